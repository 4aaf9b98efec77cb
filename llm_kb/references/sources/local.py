"""Read the files of a directory of this machine, which its user chose."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from llm_kb.opener import read_regular
from llm_kb.references.errors import FetchError
from llm_kb.references.sources.git import GitFile, Tree, select_files
from llm_kb.references.sources.records import LocalSource

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})


def list_local(source: LocalSource) -> Tree:
    """Return the files a local source wants, with their sizes; links are not followed.

    Raises FetchError for a directory that cannot be read: what is in it is not gone.
    """
    root = Path(source.url)
    entries = []
    for path in _walk(source, root):
        try:
            status = path.lstat()
        except OSError as error:
            _fail(source, error)
        name = path.relative_to(root).as_posix()
        entries.append((_mode(status.st_mode), GitFile(path=name, size=status.st_size)))
    return select_files(source, entries)


def read_local(source: LocalSource, path: str) -> bytes:
    """Read a file of a local source."""
    try:
        return read_regular(Path(source.url) / path)
    except OSError as error:
        raise FetchError(source.url, f"{path}: {error.strerror}") from error


def _walk(source: LocalSource, root: Path) -> Iterator[Path]:
    """Yield all that is no directory, and links to directories."""

    def fail(error: OSError) -> NoReturn:
        _fail(source, error)

    try:
        if not root.is_dir():
            raise FetchError(source.url, "it is no directory")
    except OSError as error:
        _fail(source, error)
    for directory, directories, names in os.walk(root, onerror=fail):
        here = Path(directory)
        yield from (here / name for name in names)
        yield from (here / name for name in directories if (here / name).is_symlink())
        directories[:] = [
            name
            for name in directories
            if name not in _VERSION_CONTROL
            and _leads_to_wanted(source, (here / name).relative_to(root).as_posix())
        ]


def _leads_to_wanted(source: LocalSource, directory: str) -> bool:
    """Tell whether a directory holds something of `paths`; others need not be readable."""
    return source.wants(directory) or any(
        wanted.startswith(f"{directory}/") for wanted in source.paths
    )


def _fail(source: LocalSource, error: OSError) -> NoReturn:
    where = Path(str(error.filename))
    if where == Path(source.url):
        reason = f"{error.strerror}"
    else:
        reason = f"{where.relative_to(source.url).as_posix()}: {error.strerror}"
    raise FetchError(source.url, reason) from error


def _mode(mode: int) -> str:
    """Return what git would call the kind of a file; it knows no FIFOs nor devices."""
    if stat.S_ISLNK(mode):
        return "120000"
    return "100644" if stat.S_ISREG(mode) else "special"
