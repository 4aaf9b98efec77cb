"""Listing and reading local sources: a directory or a file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NoReturn

from llm_kb.files.containment import read_regular
from llm_kb.files.walk import iter_files
from llm_kb.git.run import GitError, read_git
from llm_kb.references.errors import FetchError
from llm_kb.references.sources.git import GitFile, Tree, select_files
from llm_kb.references.sources.records import LocalSource, covers
from llm_kb.rendering.plain_text import format_size
from llm_kb.subjects.ignore import RULES_FILE, IgnoreRules, is_always_ignored
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
    root, unread = Path(source.url), dict[str, str]()
    try:
        mode = root.stat().st_mode
    except OSError as error:
        _fail(source, error)
    if stat.S_ISDIR(mode):
        walk = _Walk(source)
        entries = list(walk.iter_files())
        notes, unread = walk.notes, walk.unread
    elif not stat.S_ISREG(mode):
        raise FetchError(source.url, "it is neither a directory nor a file")
    elif not is_readable(root.name) and not is_unread_document(root.name):
        raise FetchError(source.url, "it is not text; unpack an archive, and name its directory")
    else:
        entries, notes = [GitFile(path=root.name, size=root.stat().st_size)], []
    large = [file for file in entries if (file.size or 0) > most_bytes]
    notes += [f"left out: {file.path} ({format_size(file.size or 0)})" for file in large]
    tree = select_files(source, [file for file in entries if file not in large])
    return Tree(files=tree.files, notes=(*notes, *tree.notes), unread=unread)


def read_local(source: LocalSource, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of files of a local source."""
    root = Path(source.url)
    for path in paths:
        try:
            yield path, read_regular(root if root.is_file() else root / path)
        except OSError as error:
            raise FetchError(source.url, f"{path}: {error.strerror}") from error


def stat_tag(source: LocalSource, path: str) -> str | None:
    """Return a tag that changes with a file: its time and size."""
    root = Path(source.url)
    try:
        status = (root / path if root.is_dir() else root).stat()
    except OSError:
        return None
    return f"{status.st_mtime_ns}-{status.st_size}"


def has_changed(place: str, tags: Mapping[str, str | None], since: float) -> bool:
    """Tell whether files differ from their `tags`, or files were added since a moment.

    `tags` are keyed by path, with or without the folder that the source has in its topic.
    Contents are not read, and directories are listed only if one of them has changed.
    """
    root, source = Path(place), LocalSource(url=place)
    if not root.is_dir():
        now = stat_tag(source, "")
        return now is not None and any(tag and tag != now for tag in tags.values())
    first = next(iter(tags), "")
    folder = "" if (root / first).exists() else f"{first.partition('/')[0]}/"
    found = {path.removeprefix(folder): tag for path, tag in tags.items()}
    if any(tag and tag != stat_tag(source, path) for path, tag in found.items()):
        return True
    directories = {root / parent for path in found for parent in PurePosixPath(path).parents}
    if all(directory.stat().st_mtime <= since for directory in directories):
        return False
    return {file.path for file in list_local(source, sys.maxsize).files} != found.keys()


@dataclass(slots=True)
class _Walk:
    """One walk of a directory, with records of what it leaves out."""

    source: LocalSource
    left_out: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ignored: set[str] = field(default_factory=set)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """The notes on the walk for the operator."""
        notes = [f"git's ignore rules cannot be read: {problem}" for problem in self.problems]
        if self.left_out:
            notes.append(f"left out as hidden or ignored: {_name_some(sorted(self.left_out))}")
        if self.unread:
            unread = [f"{path} ({reason})" for path, reason in sorted(self.unread.items())]
            notes.append(f"left out as unreadable: {_name_some(unread)}")
        return notes

    def iter_files(self) -> Iterator[GitFile]:
        """Yield everything that is not a real directory, as git would record it."""
        root = Path(self.source.url)
        rules = IgnoreRules([(RULES_FILE, _read_rules(root))])

        def enters(path: str) -> bool:
            name = path[:-1].rpartition("/")[2]
            if name in _VERSION_CONTROL or not self._leads_to_wanted(path[:-1]):
                return False
            if not self._keeps(path, rules):
                return False
            if os.path.lexists(root / path / ".git"):
                self._ask_git(root / path, path, is_repository=True)
            return True

        self._ask_git(root, "", is_repository=False)
        for path, entry in iter_files(root, enters):
            if isinstance(entry, OSError):
                if path == "./":
                    _fail(self.source, entry)
                self.unread[path] = str(entry.strerror)
                continue
            if entry.name not in _VERSION_CONTROL and self._keeps(path, rules):
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:
                    _fail(self.source, error)
                yield GitFile(path=path, size=status.st_size, mode=_mode(status.st_mode))

    def _ask_git(self, directory: Path, below: str, *, is_repository: bool) -> None:
        """Record the files in a directory that git ignores."""
        try:
            data, _ = read_git(
                *("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"),
                cwd=directory,
                limit=_MAX_IGNORED,
            )
        except GitError as error:
            is_repository = is_repository or any(
                (parent / ".git").exists() for parent in (directory, *directory.parents)
            )
            if is_repository:
                self.problems.append(str(error))
            return
        names = data.decode("utf-8", "surrogateescape").split("\0")
        self.ignored.update(below + name for name in names if name)

    def _keeps(self, path: str, rules: IgnoreRules) -> bool:
        """Tell whether a path is kept; a directory's ends in `/`."""
        name = path.rstrip("/").rpartition("/")[2]
        if not (
            name.startswith(".")
            or is_always_ignored(name)
            or path in self.ignored
            or rules.ignores(path)
        ):
            return True
        named = path.rstrip("/")
        if any(f"{wanted.rstrip('/')}/".startswith(f"{named}/") for wanted in self.source.paths):
            return True
        self.left_out.append(path)
        return False

    def _leads_to_wanted(self, directory: str) -> bool:
        """Tell whether a directory can hold files that `paths` covers."""
        return covers(self.source.paths, directory) or any(
            wanted.startswith(f"{directory}/") for wanted in self.source.paths
        )


def _name_some(names: Sequence[str]) -> str:
    more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return ", ".join([*names[:MOST_NAMED], *more])


def _read_rules(root: Path) -> list[str]:
    try:
        data = read_regular(root / RULES_FILE, follow_link=True)
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()


def _fail(source: LocalSource, error: OSError) -> NoReturn:
    where = Path(str(error.filename))
    if where == Path(source.url):
        reason = f"{error.strerror}"
    else:
        reason = f"{where.relative_to(source.url).as_posix()}: {error.strerror}"
    raise FetchError(source.url, reason) from error


def _mode(mode: int) -> str:
    """Return git's mode of a file; `special` for FIFOs and devices, which git does not know."""
    if stat.S_ISLNK(mode):
        return "120000"
    return "100644" if stat.S_ISREG(mode) else "special"
