"""A chunk on its way from the index to the answer; each step fills in more fields. Pure."""

from __future__ import annotations

from typing import NamedTuple

from llm_kb.search.roles import Role


class Place(NamedTuple):
    """The position of a chunk; lines count from 1, both inclusive."""

    topic: str
    path: str
    first_line: int
    last_line: int


class Hit(NamedTuple):
    """A chunk that may answer a question; lines count from 1, both inclusive."""

    topic: str
    path: str
    first_line: int
    last_line: int
    title: str
    heading: str
    text: str
    hash: bytes = b""
    bm25: float = 0.0
    """Its score by keywords; 0 if only the dense leg found it."""
    cosine: float | None = None
    """Its similarity; None if the dense leg did not find it."""
    score: float = 0.0
    """How well it answers, from 0 to 1: the share of the telling words that it has of the question,
    or its similarity if that is higher. The order of the hits is more reliable."""
    copies: tuple[Place, ...] = ()
    """Other places of the same text."""
    role: Role = Role.DOCS
    language: str = ""
    """The language that it is translated into; empty if it is not translated."""
    prior: float = 0.0
    """The part of its score from its role and the trust in its topic."""

    @property
    def place(self) -> Place:
        """Its position."""
        return Place(*self[:4])

    @property
    def also_in(self) -> tuple[str, ...]:
        """The other documents with the same text, each once, as `topic/path`."""
        places = dict.fromkeys((copy.topic, copy.path) for copy in self.copies)
        places.pop((self.topic, self.path), None)
        return tuple(f"{topic}/{path}" for topic, path in places)
