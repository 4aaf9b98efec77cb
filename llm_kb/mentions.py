"""What a text says of subjects: which hidden ones it names, which it tells a model to learn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from llm_kb.topics import Subject

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
        self._names: dict[str, list[Subject]] = {}
        for subject in hidden:
            for name in _names(subject):
                self._names.setdefault(name, []).append(subject)
        # What no token can equal has to be looked for letter by letter.
        self._odd = [name for name in self._names if not _TOKEN.fullmatch(name)]
        self.unmentioned = {s.path: s for subjects in self._names.values() for s in subjects}

    def look_at(self, text: str) -> None:
        """Take the subjects that a text names off the unmentioned ones."""
        if not self.unmentioned:
            return
        tokens = {token.removeprefix("./").rstrip(".") for token in _TOKEN.findall(text)}
        named = [*(tokens & self._names.keys()), *(name for name in self._odd if name in text)]
        for name in named:
            for subject in self._names[name]:
                self.unmentioned.pop(subject.path, None)


def _names(subject: Subject) -> Iterator[str]:
    """Yield what a text may call a subject: its slug, its path, or the end of its path."""
    yield subject.slug
    yield subject.name
    parts = subject.path.split("/")
    for start in range(len(parts)):
        end = "/".join(parts[start:])
        # One bare word without an extension says too little to be a name.
        if "/" in end or "." in end.lstrip("."):
            yield end


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
