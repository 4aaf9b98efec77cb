"""What a text says of subjects: which hidden ones it names, which it tells a model to learn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from llm_kb.subjects.topics import Subject

_LONGEST_END = 8
_TOKEN = re.compile(r"[\w./@+-]+")
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
    """A topic and, where it says so, a pattern that a text tells a model to learn."""

    line: int
    topic: str
    pattern: str | None


class Mentions:
    """Which of a topic's hidden subjects are named by the texts looked at so far."""

    def __init__(self, hidden: Iterable[Subject]) -> None:
        self._named: dict[str, list[Subject]] = {}
        self._in_directory: dict[str, list[Subject]] = {}
        self.unmentioned: dict[str, Subject] = {}
        for subject in hidden:
            self.unmentioned[subject.path] = subject
            for name in _names(subject):
                self._named.setdefault(name, []).append(subject)
            for directory in _directories(subject):
                self._in_directory.setdefault(directory, []).append(subject)
        # What no token can equal has to be looked for letter by letter.
        self._odd = [name for name in self._named if not _TOKEN.fullmatch(name)]

    def look_at(self, text: str) -> None:
        """Take the subjects that a text names off the unmentioned ones."""
        if not self.unmentioned:
            return
        tokens = {token.rstrip(".") for token in _TOKEN.findall(text)}
        names = {token.removeprefix("./") for token in tokens} & self._named.keys()
        names.update(name for name in self._odd if name in text)
        # A directory's bare name may be any word; with a slash it is a place.
        places = {token.removeprefix("./").rstrip("/") for token in tokens if "/" in token}
        named = [self._named[name] for name in names]
        named += [self._in_directory[place] for place in places & self._in_directory.keys()]
        for subjects in named:
            for subject in subjects:
                self.ignore(subject)

    def ignore(self, subject: Subject) -> None:
        """Take a subject off the unmentioned ones."""
        self.unmentioned.pop(subject.path, None)


def _names(subject: Subject) -> Iterator[str]:
    """Yield what a text may call a subject: its slug, its path, or the end of its path."""
    yield subject.slug
    yield subject.name
    for end in _ends(subject.path):
        # One bare word without an extension says too little to be a name.
        if "/" in end or "." in end.lstrip("."):
            yield end


def _directories(subject: Subject) -> Iterator[str]:
    """Yield what a text may call the directories a subject lies in."""
    for path in dict.fromkeys((subject.path, subject.slug)):
        directory = path.rpartition("/")[0]
        while directory:
            yield from _ends(directory)
            directory = directory.rpartition("/")[0]


def _ends(path: str) -> Iterator[str]:
    """Yield a path and its ends, of which the long ones are never written."""
    parts = path.split("/")
    yield path
    for count in range(1, min(len(parts), _LONGEST_END)):
        yield "/".join(parts[-count:])


def find_references(text: str, topics: Sequence[str]) -> Iterator[Reference]:
    """Yield what a text tells a model, or a person, to learn.

    `learn("topic", "pattern")` counts whatever its topic; `-k topic/pattern`,
    `kb:topic/pattern` and `llm kb show topic/pattern` where the topic is one of
    `topics`: others may be of another project.
    """
    if "learn(" in text:
        for match in _LEARN.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            patterns: Sequence[str | None] = _QUOTED.findall(match["subjects"] or "") or [None]
            for pattern in patterns:
                yield Reference(line=line, topic=match["topic"], pattern=pattern)
    for match in _OPTION.finditer(text):
        if match["topic"] in topics:
            line = text.count("\n", 0, match.start()) + 1
            pattern = match["pattern"].rstrip(".:!?")
            yield Reference(line=line, topic=match["topic"], pattern=pattern)
