"""Find the subjects that texts name: hidden ones, and ones that a model is told to learn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from llm_kb.subjects.topics import Subject

_LONGEST_END = 8
_TOKEN = re.compile(r"[\w./@+-]+")
_LINK = re.compile(r"\]\(<?([^()<>\n]+)")
_UPWARDS = re.compile(r"(?:\.\.?/)+")
_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")
_LEARN = re.compile(
    r"""\blearn\(\s*(?:topic\s*[:=]\s*)?(["'])(?P<topic>[^"'\n]+)\1"""
    r"""(?:\s*,\s*(?:subjects\s*[:=]\s*)?(?P<subjects>\[[^\]]{0,2000}\]|"[^"\n]*"|'[^'\n]*'))?"""
)
_OPTION = re.compile(
    r"""(?:(?<!\S)(?:-k|--knowledge)[ =]|\bkb:|\bkb show )"""
    r"""(["']?)(?P<topic>[A-Za-z0-9][\w.-]*)/(?P<pattern>[^\s"'`)\]>,;]+)"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A topic, and perhaps a pattern, that a text tells a model to learn."""

    line: int
    topic: str
    pattern: str | None


class Mentions:
    """The hidden subjects of a topic, and which texts name them.

    A name counts in any case, as the slug, the path, or the end of the path.
    """

    def __init__(self, hidden: Iterable[Subject]) -> None:
        self._hidden: dict[str, Subject] = {}
        self._named: dict[str, list[Subject]] = {}
        self._in_directory: dict[str, list[Subject]] = {}
        self._reached: set[str] = set()
        """Paths that are named by texts which a model comes to."""
        self._reached_from: dict[str, set[str]] = {}
        """Paths that the text of a hidden subject names, by its own path."""
        for subject in hidden:
            self._hidden[subject.path] = subject
            for name in _names(subject):
                self._named.setdefault(name.casefold(), []).append(subject)
            for directory in _directories(subject):
                self._in_directory.setdefault(directory.casefold(), []).append(subject)
        # A name that is not a single token is searched for in the text as it is.
        self._odd = [name for name in self._named if not _TOKEN.fullmatch(name)]

    def look_at(self, text: str, by: Subject | None = None) -> None:
        """Record the subjects that a text names; `by` is the hidden subject it belongs to."""
        if not self._hidden:
            return
        named = {subject.path for subject in self._find(text.casefold())}
        if by is None:
            self._reached |= named
        else:
            self._reached_from[by.path] = named

    def ignore(self, subject: Subject) -> None:
        """Treat a subject as named."""
        self._reached.add(subject.path)

    def unmentioned(self) -> list[Subject]:
        """Return the subjects that no text names, starting from those a model comes to."""
        reached: set[str] = set()
        waiting = list(self._reached)
        while waiting:
            path = waiting.pop()
            if path not in reached:
                reached.add(path)
                waiting += self._reached_from.get(path, ())
        return [subject for path, subject in self._hidden.items() if path not in reached]

    def _find(self, text: str) -> Iterator[Subject]:
        links = {unquote(target.partition("#")[0]) for target in _LINK.findall(text)}
        tokens = {token.rstrip(".") for token in _TOKEN.findall(text)} | links
        places = {_UPWARDS.sub("", token, count=1) for token in tokens}
        for name in places & self._named.keys():
            yield from self._named[name]
        for name in self._odd:
            if name in text:
                yield from self._named[name]
        # The bare name of a directory may be any word; with a slash it is a place.
        directories = {
            _UPWARDS.sub("", token, count=1).rstrip("/") for token in tokens if "/" in token
        }
        for directory in directories & self._in_directory.keys():
            yield from self._in_directory[directory]


def _names(subject: Subject) -> Iterator[str]:
    """Yield the names of a subject in texts: its slug, its path, and the ends of its path."""
    yield subject.slug
    yield subject.name
    for end in _ends(subject.path):
        # A single word without an extension may mean anything.
        if "/" in end or "." in end.lstrip("."):
            yield end


def _directories(subject: Subject) -> Iterator[str]:
    """Yield the names in texts of the directories that hold a subject."""
    for path in dict.fromkeys((subject.path, subject.slug)):
        directory = path.rpartition("/")[0]
        while directory:
            yield from _ends(directory)
            directory = directory.rpartition("/")[0]


def _ends(path: str) -> Iterator[str]:
    """Yield a path and its ends; long ends are left out, as nobody writes them."""
    parts = path.split("/")
    yield path
    for count in range(1, min(len(parts), _LONGEST_END)):
        yield "/".join(parts[-count:])


def find_references(text: str, topics: Sequence[str]) -> Iterator[Reference]:
    """Yield the references in a text that tells a model, or a person, what to learn.

    `learn("topic", "pattern")` counts with any topic; `-k topic/pattern`,
    `kb:topic/pattern` and `llm kb show topic/pattern` only with one of `topics`, as
    others may belong to another project.
    """
    if "learn(" in text:
        for line, match in _number_lines(text, _LEARN.finditer(text)):
            patterns: Sequence[str | None] = _QUOTED.findall(match["subjects"] or "") or [None]
            for pattern in patterns:
                yield Reference(line=line, topic=match["topic"], pattern=pattern)
    for line, match in _number_lines(text, _OPTION.finditer(text)):
        if match["topic"] in topics:
            pattern = match["pattern"].rstrip(".:!?")
            yield Reference(line=line, topic=match["topic"], pattern=pattern)


def _number_lines(
    text: str, matches: Iterable[re.Match[str]]
) -> Iterator[tuple[int, re.Match[str]]]:
    """Pair each match with the number of its line, in one pass over the text."""
    line, counted = 1, 0
    for match in matches:
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield line, match
