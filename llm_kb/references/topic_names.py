"""The topics that words name: for commands, `-k` and tools alike. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from llm_kb.search.question import STOP_WORDS


class Titled(Protocol):
    """A topic as far as its name goes."""

    @property
    def title(self) -> str | None:
        """Its title; None if it has none."""

    @property
    def tags(self) -> Sequence[str]:
        """The words that tag it."""


T = TypeVar("T", bound=Titled)

_KINDS = frozenset(
    """
    api book code documentation doc framework guide handbook library manual module official
    package page project reference repo repository site source specification spec topic tutorial
    website wiki
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
"""Words for what a topic consists of: people add them to a name, and they fit any topic."""

# C, C++ and C# are three languages.
_NAME_WORD = re.compile(r"[^\W_]+[+#]*")
_END_OF_NAME = re.compile(r"\s[-\u2013\u2014|]\s|:\s|\s\(")


def find_named(topics: Iterable[T], words: str) -> list[T]:
    """Return the topics that words may mean: one where it is clear, several where it is not.

    Every word must be one of the topic's title or tags, except those of `_KINDS`, which only
    decide between topics. One whose name, which is its title up to a dash or colon, says no
    more than the words comes before others; where it lacks one of them, those that have all
    are meant as well.
    """
    asked = _words(words)
    if not asked:
        return []
    found: dict[tuple[bool, int], list[T]] = {}
    for topic in topics:
        own = _words(topic.title or "") | _words(" ".join(topic.tags))
        if _telling(asked) <= own:
            name = _words(_END_OF_NAME.split(topic.title or "")[0])
            key = (_telling(name) <= asked, len(asked & own))
            found.setdefault(key, []).append(topic)
    best = max(found, default=(True, len(asked)))
    whole = [] if best[1] == len(asked) else found.get((False, len(asked)), [])
    return [*found.get(best, []), *whole]


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without stop words, a plural as its singular."""
    words = frozenset(_NAME_WORD.findall(text.casefold()))
    return frozenset(map(_singular, words - STOP_WORDS or words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _telling(words: frozenset[str]) -> frozenset[str]:
    """Return the words that distinguish topics; all words if none does."""
    return words - _KINDS or words
