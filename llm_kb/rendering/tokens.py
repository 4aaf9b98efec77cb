"""The tokens of a text: the estimate, and the line for a user who sends many."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_kb.rendering.section import Preloaded

CHARACTERS = 4
"""Characters, or bytes, that make one token."""

MUCH = 20_000
"""Tokens of sent subjects above which a line tells the user their cost."""


def estimate_tokens(text: str | int) -> int:
    """Estimate the tokens of a text, or of a number of characters; part of one counts whole."""
    return -(-(text if isinstance(text, int) else len(text)) // CHARACTERS)


def describe_large(preloaded: Preloaded) -> str | None:
    """Return a note on the cost of large subjects, and how to send less."""
    tokens = {
        f"{topic.id}/{subject.name}": estimate_tokens(subject.text)
        for topic, subjects in preloaded
        for subject in subjects
    }
    total = sum(tokens.values())
    if total <= MUCH:
        return None
    name = max(tokens, key=lambda name: tokens[name])
    return (
        f"~{total:,} tokens of knowledge are sent, ~{tokens[name]:,} of them from {name};"
        f" {name.partition('#')[0]}#ANCHOR sends a part of it"
    )
