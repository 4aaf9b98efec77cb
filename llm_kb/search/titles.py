"""Finds the topics that words name, by their titles and tags. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from llm_kb.search.question import STOP_WORDS


class Titled(Protocol):
    """A topic, as far as words name it."""

    @property
    def title(self) -> str | None:
        """Its title; None without one."""

    @property
    def tags(self) -> Sequence[str]:
        """Words for what it is about."""


T = TypeVar("T", bound=Titled)

_KINDS = frozenset(
    """
    api book code documentation doc framework guide handbook library manual module official
    package page project reference repo repository site source specification spec topic tutorial
    website wiki
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
"""Words for kinds of documents, which people add to a name and which fit any topic."""

# C, C++ and C# are three languages.
_NAME_WORD = re.compile(r"[^\W_]+[+#]*")
_END_OF_NAME = re.compile(r"\s[-\u2013\u2014|]\s|:\s|\s\(")


def find_named(topics: Iterable[T], words: str) -> list[T]:
    """Return the topics that words may mean: one if they are clear, else several.

    Every word must be in the topic's title or tags, except those of `_KINDS`, which only decide
    between topics. A topic's name is its title up to a dash or colon. A topic whose name has no
    other words comes before others; if it lacks one of the words, the others are meant as well.
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
    return frozenset(map(_singular, words - STOP_WORDS["en"] or words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _telling(words: frozenset[str]) -> frozenset[str]:
    """Return the words that distinguish topics; all words if none does."""
    return words - _KINDS or words
