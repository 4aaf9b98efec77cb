"""A chunk from the index to the answer: one record, which each step knows more about. Pure."""

from __future__ import annotations

from typing import NamedTuple

from llm_kb.search.roles import Role


class Place(NamedTuple):
    """Where a chunk stands; lines count from 1, both inclusive."""

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
    """Its score by keywords; 0 where only the dense leg found it."""
    cosine: float | None = None
    """Its similarity; None where the dense leg did not find it."""
    score: float = 0.0
    """How well it answers, from 0 to 1: the share of the question's telling words that it
    holds, or its similarity where that is more. Its place among the hits says more."""
    copies: tuple[Place, ...] = ()
    """Where the very same text stands besides."""
    role: Role = Role.DOCS
    prior: float = 0.0
    """What it counts for beside what it says: its role, and how far its topic is trusted."""

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(*self[:4])
