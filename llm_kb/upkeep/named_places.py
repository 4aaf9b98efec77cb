"""The links and paths in pages that lead to nothing: to no page, or to a file that is gone."""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

from llm_kb.files.git import TIMED_OUT, TOO_LARGE, GitError, run_git
from llm_kb.files.repository import Repository
from llm_kb.search.roles import Role, find_role
from llm_kb.subjects.links import WIKI_LINK
from llm_kb.texts.formats import find_extension, find_format
from llm_kb.texts.markup import find_code, find_includes, hide_unread
from llm_kb.texts.outlines.outline import find_outline, has_outline
from llm_kb.texts.safe import visible_line

Span: TypeAlias = tuple[int, int]

_LINK = re.compile(
    r"(?:\]\([ \t]{0,9}|^ {0,3}\[(?!\^)[^\[\]\n]{1,300}\]:[ \t]{0,9}|<a\s(?:[^<>]{0,300}\s)?href=)"
    r"(?:<(?P<inner>[^<>\n]{1,300})>|[\"']?(?P<target>[^\s()<>\"']{1,300}))",
    re.IGNORECASE | re.MULTILINE,
)
"""Where a link of Markdown leads, in brackets of two kinds, in a definition or a tag."""

_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|[@/?]|[^{}]*[{}]", re.IGNORECASE)
"""How a target begins that is not a file beside the page, or has to be filled in."""

_UP = re.compile(r"((?:\.\./){2,}[^/]+)/")
"""The directory to which a target leads that climbs two levels or more."""

_MADE = re.compile(r"^(?:::: |import )|\{\{|\{%", re.MULTILINE)
"""Signs that a tool makes more headings of a page."""

_ID = re.compile(
    r"""(?:=(?:(?<=\bid=)|(?<=\bname=))["'{]{0,2}|\((?=[^()\n]{1,200}\)=)|\{[^{}#\n]{0,200}#"""
    r"""|:name:[ \t]{1,9})([^\s"'<>}]{1,200})"""
)
"""An anchor that is given a name: in a tag, `(name)=`, `{#name}` and the option of a directive.

Each begins with one sign, to which the search skips.
"""

_OF_NO_HEADING = re.compile(
    r"[\W\d_]*|.*/.*|top|L\d{1,9}(?:-L?\d{1,9})?|[:^].*|(?:user-content-)?fn(?:ref)?\d{0,9}[:-].*",
    re.IGNORECASE,
)
"""Anchors of lines, the top, a routed page, a passage, a footnote, or of signs alone."""

_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]{1,300})\]:", re.MULTILINE)
"""Where a link of Markdown leads whose text is in brackets, which may be in brackets itself."""


def find_dead_links(
    text: str,
    page: Path,
    find_wiki_problem: Callable[[str], str],
    find_anchors: Callable[[str], frozenset[str] | None],
    is_name: Callable[[str], bool],
) -> Iterator[tuple[str, Span]]:
    """Yield what is wrong with each target of the links in a Markdown text, and its first place.

    `find_wiki_problem` says why the name in a `[[name]]` leads to no subject; empty if it does.
    `find_anchors` returns the anchors of another page, folded; None if they are not known.
    `is_name` tells whether a link without a directory leads to a subject wherever that is.
    """
    if not any(sign in text for sign in ("](", "[[", "]:", "href=")):
        return
    plain = hide_unread(text)
    find_own = cache(partial(list_anchors, page.name, text))
    yield from _find_dead_targets(plain, page, find_own, find_anchors, is_name)
    yield from _find_dead_names(plain, find_wiki_problem)


def _find_dead_targets(
    plain: str,
    page: Path,
    find_own: Callable[[], frozenset[str] | None],
    find_anchors: Callable[[str], frozenset[str] | None],
    is_name: Callable[[str], bool],
) -> Iterator[tuple[str, Span]]:
    links: dict[tuple[str, str], Span] = {}
    for match in _LINK.finditer(plain):
        group = "inner" if match["inner"] else "target"
        target, _, anchor = match[group].partition("#")
        target = unquote(target.partition("?")[0])
        if not _ELSEWHERE.match(match[group]) and (not target or _is_page(target)):
            links.setdefault((target, unquote(anchor)), match.span(group))
    own = os.path.normpath(page)
    dead: set[str] = set()
    for (target, anchor), span in links.items():
        place = os.path.normpath(page.parent / target) if target else own
        if place != own and not _exists(place):
            up = _UP.match(target)
            # Such a directory is another site beside this one.
            is_elsewhere = (
                is_name(target) if "/" not in target else up and not _exists(page.parent / up[1])
            )
            if target not in dead and not is_elsewhere:
                yield f"a link leads to nothing: {visible_line(target)}", span
            dead.add(target)
        elif anchor and not _OF_NO_HEADING.fullmatch(anchor):
            folded, known = _fold(anchor), find_own() if place == own else find_anchors(place)
            # Of several headings that are alike all but the first have a number.
            if known is not None and known.isdisjoint({folded, folded.rstrip("0123456789")}):
                yield f"a link leads to no heading: {visible_line(f'{target}#{anchor}')}", span


def _find_dead_names(
    plain: str, find_wiki_problem: Callable[[str], str]
) -> Iterator[tuple[str, Span]]:
    names: dict[str, Span] = {}
    defined = set(_DEFINITION.findall(plain)) if "[[" in plain else set()
    for match in WIKI_LINK.finditer(plain):
        # Without a letter it is a citation or a table.
        if match["name"] not in defined and any(map(str.isalpha, match["name"])):
            names.setdefault(match["name"], match.span())
    for name, span in names.items():
        known = find_format(name)
        is_page = known is None or known.is_prose or not find_extension(name)
        if is_page and (problem := find_wiki_problem(name)):
            yield f"[[{visible_line(name)}]] leads to {problem}", span


def _is_page(target: str) -> bool:
    known = find_format(target)
    is_written = known is not None and known.is_prose and not known.is_built
    return is_written and find_extension(target) != ""


def list_anchors(path: str, text: str) -> frozenset[str] | None:
    """Return the anchors of a page without case and signs; None if a tool may make more."""
    if _MADE.search(text) or not has_outline(path, text):
        return None
    names = [part.anchor for part in find_outline(path, text).sections]
    names += [name.rpartition("/")[2] for name in names]
    return frozenset(map(_fold, [*names, *_ID.findall(text)]))


def _fold(anchor: str) -> str:
    return re.sub(r"[\W_]+", "", anchor.casefold())


def find_included(
    text: str, markup: str, directories: Sequence[Path]
) -> Iterator[tuple[str, Path | None, Span]]:
    """Yield the files that a text includes as written, where each is, and its place.

    It may be below any of the directories; None if it is in none.
    """
    for written, span in find_includes(text, markup):
        target = re.sub(r"(?<=.):[\w:-]{0,99}\Z", "", written).lstrip("/")
        # What the tool fills in, or fetches, may be anywhere.
        if target and not re.search(r"[{}$<>%]|://", target):
            places = (each / target for each in directories)
            yield written, next(filter(_exists, places), None), span


def _exists(path: str | Path) -> bool:
    # `Path.exists` raises for a path that is too long.
    return os.path.exists(os.path.normpath(path))  # noqa: PTH110


# Paths that a repository once had

_MOST_BYTES = 20_000_000
"""The most bytes of all names of deleted files."""

_OF_THEIR_TIME = frozenset(
    "adr adrs decision decisions plan plans planning proposal proposals rfc rfcs rfd rfds".split()  # noqa: SIM905
)
"""Words in the paths of pages that are not kept true, besides change logs."""

_LINE_NUMBER = re.compile(r"(?<=.):\d[\d:-]{0,30}\Z")


class History(NamedTuple):
    """The paths that a repository has in HEAD, and those that commits deleted."""

    root: Path
    present: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    """The names of those that are in a directory, without it."""
    deleted: Sequence[str] = ()
    """Sorted, each with a `/` at its end, so that a directory is found by what was in it."""
    cut: str = ""
    """Why paths that were deleted may be missing; empty if none are."""

    def find_gone(self, text: str, place: PurePosixPath) -> Iterator[tuple[str, Span]]:
        """Yield what is wrong with each path in backticks that is gone, and its first place.

        `place` is the page's path below the root.
        """
        if self.deleted and not _is_of_its_time(place):
            for name, span in _find_paths(text).items():
                if self._is_gone(name, place.parent):
                    yield f"git had {visible_line(name)}, which is gone", span

    def _is_gone(self, name: str, directory: PurePosixPath) -> bool:
        meant = {os.path.normpath(each) for each in (name, directory / name)}
        deleted = [*filter(self._was_deleted, meant)]
        if not deleted or meant & self.present or any(map(self._is_built, deleted)):
            return False
        return name not in self.below and not any(_exists(self.root / each) for each in meant)

    def _is_built(self, path: str) -> bool:
        """Tell whether git ignores a path, which a build writes then."""
        try:
            run_git("check-ignore", "--no-index", "-q", "--", path, f"{path}/", cwd=self.root)
        except GitError:
            return False
        return True

    def _was_deleted(self, path: str) -> bool:
        at = bisect_left(self.deleted, f"{path}/")
        return at < len(self.deleted) and self.deleted[at].startswith(f"{path}/")


def _is_of_its_time(place: PurePosixPath) -> bool:
    words = re.split(r"[\W_]+", str(place).casefold())
    return find_role(str(place)) is Role.CHANGES or not _OF_THEIR_TIME.isdisjoint(words)


def _find_paths(text: str) -> dict[str, Span]:
    """Return the words in backticks that may be paths, with their first places."""
    paths: dict[str, Span] = {}
    for is_fenced, (start, end) in find_code(text):
        for word in [] if is_fenced else text[start:end].strip("`").split():
            bare = word.partition("#")[0].strip("()[]{}<>,;:\"'")
            name = _LINE_NUMBER.sub("", bare).removeprefix("./").rstrip("/")
            if "/" in name or find_extension(name):
                paths.setdefault(name, (start, end))
    return paths


def read_history(
    repository: Repository, *, most_commits: int = 20_000, seconds: float = 2.0
) -> History:
    """Return the paths in HEAD and those deleted before it, as far as the limits go."""
    root, started = repository.root, time.monotonic()
    try:
        tree = ("ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", "HEAD")
        present = run_git(*tree, cwd=root, timeout=seconds)
        history = ("rev-list", f"--max-count={most_commits + 1}", "HEAD")
        commits = run_git(*history, cwd=root, timeout=seconds).splitlines(keepends=True)
    except GitError as error:
        # Otherwise it is without a commit, or not a repository after all.
        is_limit = error.code in {TIMED_OUT, TOO_LARGE}
        return History(root, cut=str(error) if is_limit else "")
    left = max(0, started + seconds - time.monotonic())
    deleted, is_cut = _read_deleted(root, b"".join(commits[:most_commits]), left)
    cut = ""
    if (repository.common_dir / "shallow").is_file():
        cut = "the clone is shallow"
    elif is_cut or len(commits) > most_commits:
        cut = f"only the last {most_commits:,} commits, or {seconds:g} seconds of them, were read"
    paths = frozenset(_read_names(present))
    below = frozenset(path.rpartition("/")[2] for path in paths if "/" in path)
    gone = sorted({f"{path}/" for path in _read_names(deleted)})
    return History(root, paths, below, gone, cut)


def _read_deleted(root: Path, commits: bytes, seconds: float) -> tuple[bytes, bool]:
    """Return the paths that commits deleted, each with a NUL after it, and whether some lack."""
    options = ("-r", "-z", "--no-commit-id", "--no-renames", "--diff-filter=D", "--name-only")
    command = ("diff-tree", "--stdin", *options)
    try:
        return run_git(
            *command, cwd=root, stdin=commits, timeout=seconds, max_output=_MOST_BYTES
        ), False
    except GitError as error:
        return error.data[: error.data.rfind(b"\0") + 1], True


def _read_names(names: bytes) -> Iterator[str]:
    """Yield paths that git printed."""
    return (os.fsdecode(name) for name in names.split(b"\0") if name)
