"""Finds hidden subjects that texts mention, and references to subjects to learn."""

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
    """A topic, and perhaps a pattern, that a text refers to, with its line."""

    line: int
    topic: str
    pattern: str | None


class Mentions:
    """The hidden subjects of a topic, and the texts that mention them.

    A subject is mentioned by its slug, its path, or the end of its path, in any case.
    """

    def __init__(self, hidden: Iterable[Subject]) -> None:
        self._hidden: dict[str, Subject] = {}
        self._named: dict[str, list[Subject]] = {}
        self._in_directory: dict[str, list[Subject]] = {}
        self._reached: set[str] = set()
        """The paths mentioned by listed subjects."""
        self._reached_from: dict[str, set[str]] = {}
        """The paths mentioned by hidden subjects, keyed by the path of the hidden subject."""
        for subject in hidden:
            self._hidden[subject.path] = subject
            for name in _names(subject):
                self._named.setdefault(name.casefold(), []).append(subject)
            for directory in _directories(subject):
                self._in_directory.setdefault(directory.casefold(), []).append(subject)
        # A name of several tokens is searched for in the whole text.
        self._odd = [name for name in self._named if not _TOKEN.fullmatch(name)]

    def look_at(self, text: str, by: Subject | None = None) -> None:
        """Record the subjects that a text mentions; `by` is its subject if that is hidden."""
        if not self._hidden:
            return
        named = {subject.path for subject in self._find(text.casefold())}
        if by is None:
            self._reached |= named
        else:
            self._reached_from[by.path] = named

    def ignore(self, subject: Subject) -> None:
        """Count a subject as mentioned."""
        self._reached.add(subject.path)

    def unmentioned(self) -> list[Subject]:
        """Return the subjects that a model cannot reach from listed subjects."""
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
        # The name of a directory may be any word; only with a slash it is a mention.
        directories = {
            _UPWARDS.sub("", token, count=1).rstrip("/") for token in tokens if "/" in token
        }
        for directory in directories & self._in_directory.keys():
            yield from self._in_directory[directory]


def _names(subject: Subject) -> Iterator[str]:
    """Yield the possible mentions of a subject: its slug, its path, and the ends of its path."""
    yield subject.slug
    yield subject.name
    for end in _ends(subject.path):
        # A single word without an extension may be any word.
        if "/" in end or "." in end.lstrip("."):
            yield end


def _directories(subject: Subject) -> Iterator[str]:
    """Yield the possible mentions of the directories of a subject."""
    for path in dict.fromkeys((subject.path, subject.slug)):
        directory = path.rpartition("/")[0]
        while directory:
            yield from _ends(directory)
            directory = directory.rpartition("/")[0]


def _ends(path: str) -> Iterator[str]:
    """Yield a path and its ends, except for long ones, which nobody writes."""
    parts = path.split("/")
    yield path
    for count in range(1, min(len(parts), _LONGEST_END)):
        yield "/".join(parts[-count:])


def find_references(text: str, topics: Sequence[str]) -> Iterator[Reference]:
    """Yield the references to topics and subjects in a text.

    `learn("topic", "pattern")` counts with any topic; `-k topic/pattern`,
    `kb:topic/pattern` and `llm kb show topic/pattern` only with one of `topics`, since
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
    """Yield each match with the number of its line."""
    line, counted = 1, 0
    for match in matches:
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield line, match
