"""Metadata of packages: any bytes name a valid package, or none."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from llm_kb.references.errors import SourceError
from llm_kb.references.sources.installed import MAX_URL, as_git_url, find_installed, node_repository
from llm_kb.references.sources.rules import check_git_url, host_and_port

PLACES = (
    ".venv/lib/python3.12/site-packages/frob-1.dist-info/METADATA",
    *("uv.lock", "poetry.lock", "requirements.txt", "Cargo.lock"),
    *("node_modules/frob/package.json", "package-lock.json"),
)
STARTS = (
    b"Version: 1\nProject-URL: Source, ",
    *(b'[[package]]\nname = "frob"\nversion = "',) * 2,
    *(b"frob==", b'[[package]]\nname = "frob"\nversion = "'),
    *(b'{"version": "1", "repository": ', b'{"packages": {"node_modules/frob": '),
)


def fuzz(data: bytes) -> None:
    """Write the bytes behind the start of each kind of file, and look the package up."""
    workspace = _workspace()
    place, start = PLACES[len(data) % len(PLACES)], STARTS[len(data) % len(PLACES)]
    path = workspace / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(start + data)
    text = data.decode("utf-8", "replace")
    found = [find_installed(each, "frob", workspace) for each in ("pypi", "npm", "crate")]
    path.unlink()
    urls = [package.repository for package in found if package]
    urls += [
        as_git_url(text),
        as_git_url(f"https://{text}"),
        node_repository({"repository": text}).repository,
    ]
    for url in urls:
        if url is not None:
            assert len(url) <= MAX_URL + len("https://github.com/")
            assert host_and_port(url).isascii()
            try:
                check_git_url(url, ("file",))
            except SourceError:
                continue
    json.dumps([str(package) for package in found])


@cache
def _workspace() -> Path:
    path = tempfile.mkdtemp(prefix="llm-kb-fuzz-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)
