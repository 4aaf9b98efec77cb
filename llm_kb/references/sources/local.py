"""Listing and reading local sources: a directory or a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from llm_kb.files.containment import read_regular
from llm_kb.files.walk import iter_files
from llm_kb.git.run import GitError, read_git
from llm_kb.references.errors import FetchError
from llm_kb.references.sources.git import GitFile, Tree, select_files
from llm_kb.references.sources.records import LocalSource, covers
from llm_kb.rendering.plain_text import format_size
from llm_kb.subjects.ignore import is_always_ignored
from llm_kb.subjects.names import is_readable, is_unread_document

MOST_NAMED = 10
"""Most directories and files that a note names."""

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})
_MAX_IGNORED = 10_000_000
"""Most bytes read of git's list of ignored files."""


def list_local(source: LocalSource, most_bytes: int) -> Tree:
    """Return the wanted files of a local source, with their sizes; links are not followed.

    Hidden files, files that git ignores and files that are never subjects are left out unless
    `paths` names them; files larger than `most_bytes` and directories that cannot be read are
    left out too. Raises FetchError if the source itself cannot be read.
    """
    root = Path(source.url)
    try:
        mode = root.stat().st_mode
    except OSError as error:
        _fail(source, error)
    if stat.S_ISDIR(mode):
        found = _walk(source)
    elif not stat.S_ISREG(mode):
        raise FetchError(source.url, "it is neither a directory nor a file")
    elif not is_readable(root.name) and not is_unread_document(root.name):
        raise FetchError(source.url, "it is not text; unpack an archive, and name its directory")
    else:
        found = Tree(files=(GitFile(path=root.name, size=root.stat().st_size),))
    large = [file for file in found.files if (file.size or 0) > most_bytes]
    notes = [f"left out: {file.path} ({format_size(file.size or 0)})" for file in large]
    tree = select_files(source, [file for file in found.files if file not in large])
    return Tree(files=tree.files, notes=(*found.notes, *notes, *tree.notes), unread=found.unread)


def read_local(source: LocalSource, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of files of a local source."""
    root = Path(source.url)
    for path in paths:
        try:
            yield path, read_regular(root if root.is_file() else root / path)
        except OSError as error:
            raise FetchError(source.url, f"{path}: {error.strerror}") from error


def stat_tag(place: str, path: str) -> str | None:
    """Return a tag that changes with a file of a local source: its time and size."""
    root = Path(place)
    try:
        status = (root / path if root.is_dir() else root).stat()
    except OSError:
        return None
    return f"{status.st_mtime_ns}-{status.st_size}"


def has_changed(place: str, tags: Mapping[str, str | None]) -> bool:
    """Tell whether files differ from their `tags`, or are gone; no content is read.

    `tags` are keyed by path, with or without the folder that the source has in its topic.
    """
    return any(
        tag not in {None, stat_tag(place, path), stat_tag(place, path.partition("/")[2])}
        for path, tag in tags.items()
    )


def _walk(source: LocalSource) -> Tree:
    """Return everything that is not a real directory, as git would record it."""
    root = Path(source.url)
    ignored = _find_ignored(source)
    left_out: list[str] = []
    unread: dict[str, str] = {}
    files: list[GitFile] = []

    def keeps(path: str) -> bool:
        """Tell whether a path is kept; a directory's ends in `/`."""
        name = path.rstrip("/").rpartition("/")[2]
        if name in _VERSION_CONTROL:
            return False
        is_odd = name.startswith(".") or is_always_ignored(name) or path in ignored
        if is_odd and not _names(source, path):
            left_out.append(path)
            return False
        return True

    def enters(path: str) -> bool:
        return (covers(source.paths, path[:-1]) or _names(source, path)) and keeps(path)

    for path, entry in iter_files(root, enters):
        if isinstance(entry, OSError):
            if path == "./":
                _fail(source, entry)
            unread[path] = str(entry.strerror)
        elif keeps(path):
            files.append(_describe(source, path, entry))
    reasons = [f"{path} ({reason})" for path, reason in sorted(unread.items())]
    notes = [*_note("hidden or ignored", sorted(left_out)), *_note("unreadable", reasons)]
    return Tree(files=tuple(files), notes=tuple(notes), unread=unread)


def _find_ignored(source: LocalSource) -> set[str]:
    """Return the files in a source that git ignores; none outside a repository."""
    directory = Path(source.url)
    try:
        data, _ = read_git(
            *("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"),
            cwd=directory,
            limit=_MAX_IGNORED,
        )
    except GitError as error:
        if any((parent / ".git").exists() for parent in (directory, *directory.parents)):
            reason = f"git's ignore rules cannot be read: {error}"
            raise FetchError(source.url, reason) from error
        return set()
    return set(data.decode("utf-8", "surrogateescape").split("\0"))


def _note(what: str, names: Sequence[str]) -> list[str]:
    more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return [f"left out as {what}: {', '.join([*names[:MOST_NAMED], *more])}"] if names else []


def _fail(source: LocalSource, error: OSError) -> NoReturn:
    where = Path(str(error.filename))
    place = "" if where == Path(source.url) else f"{where.relative_to(source.url).as_posix()}: "
    raise FetchError(source.url, f"{place}{error.strerror}") from error


def _names(source: LocalSource, path: str) -> bool:
    """Tell whether `paths` names a file, a directory, or something below it."""
    named = f"{path.rstrip('/')}/"
    return any(f"{wanted.rstrip('/')}/".startswith(named) for wanted in source.paths)


def _describe(source: LocalSource, path: str, entry: os.DirEntry[str]) -> GitFile:
    """Return a file with git's mode; `special` for FIFOs and devices, which git does not know."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        _fail(source, error)
    modes = {stat.S_IFLNK: "120000", stat.S_IFREG: "100644"}
    mode = modes.get(stat.S_IFMT(status.st_mode), "special")
    return GitFile(path=path, size=status.st_size, mode=mode)
