"""Archives: any bytes hold files of the sizes they state, or are refused."""

from __future__ import annotations

import atexit
import io
import random
import shutil
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from llm_kb.references.errors import FetchError
from llm_kb.references.sources.archive import list_archive, read_archive

NAMES = ("x.tar", "x.tar.gz", "x.zip", "x.tar.xz")


def fuzz(data: bytes) -> None:
    """Change some bytes of an archive, and read whatever is in it then."""
    source = random.Random(data)
    name = source.choice(NAMES)
    archive = bytearray(_archives()[name])
    for _ in range(source.randrange(1, 8)):
        place = source.randrange(len(archive))
        archive[place : place + 4] = source.choice((data[:4], source.randbytes(4)))
    path = _directory() / name
    path.write_bytes(archive)
    try:
        files = {file.path: file.size for file in list_archive(path) if file.mode == "100644"}
        for read, content in read_archive(path, list(files)):
            # Of two entries of one name the last one is listed last.
            assert len(content) == files[read] or len(set(files)) < len(list_archive(path))
    except FetchError:
        return


@cache
def _directory() -> Path:
    path = tempfile.mkdtemp(prefix="llm-kb-fuzz-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


@cache
def _archives() -> dict[str, bytes]:
    """Return an archive of each kind, with three files."""
    files = {f"frob/{name}": name.encode() * 300 for name in ("a.md", "b.md", "docs/c.md")}
    found = {}
    for name, mode in zip(NAMES, ("w", "w:gz", "", "w:xz"), strict=True):
        buffer = io.BytesIO()
        if name == "x.zip":
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
                for path, content in files.items():
                    packed.writestr(path, content)
        else:
            with tarfile.open(fileobj=buffer, mode=mode, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
                for path, content in files.items():
                    entry = tarfile.TarInfo(path)
                    entry.size, entry.pax_headers = len(content), {"comment": "x" * 10}
                    tar.addfile(entry, io.BytesIO(content))
        found[name] = buffer.getvalue()
    return found
