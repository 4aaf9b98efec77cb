"""Fits answers, instructions and errors to what common MCP clients show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError
from llm_kb.rendering.plain_text import shorten
from llm_kb.rendering.section import render_instructions
from llm_kb.rendering.tokens import estimate_tokens
from llm_kb.subjects.topics import Layer

MOST_CHARS, MOST_TOKENS = 45_000, 24_000
"""The longest answer: Claude Code saves one over 50,000 characters or 25,000 tokens to a file."""

MENU_BUDGET, INSTRUCTIONS = 400, 2_048
"""Tokens of the menu, and characters of the instructions that Claude Code shows."""

LONGEST_ERROR = 10_000
"""The longest error: Claude Code cuts its text at about 11,000 characters."""

LEAST_CHARS = 1_000

SEARCH_NAME = "search"
"""The name of `search_knowledge` here: a client puts the server's name before it."""


def fit_clients(kb: KnowledgeBase) -> KnowledgeBase:
    """Lower default limits to what common clients accept; configured limits stay.

    Pre-loaded subjects can be learned too, since clients need not show the instructions.
    """
    kb.repeat_preloaded()
    if _is_default(kb, "max_result_chars"):
        kb.config = replace(kb.config, max_result_chars=MOST_CHARS)
    if _is_default(kb, "menu_budget"):
        kb.config = replace(kb.config, menu_budget=MENU_BUDGET)
    return kb


def write_instructions(kb: KnowledgeBase) -> str | None:
    """Return the menu and the pre-loaded subjects that clients show; None without any."""
    return render_instructions(kb.preloaded, kb.menu(), INSTRUCTIONS, SEARCH_NAME)


def answer_within(kb: KnowledgeBase, answer: Callable[[], str]) -> str:
    """Return a text made under `max_result_chars`, shortened until its tokens fit, too."""
    text = answer()
    while _is_default(kb, "max_result_chars") and estimate_tokens(text) > MOST_TOKENS:
        fitting = int(0.9 * len(text) * MOST_TOKENS / estimate_tokens(text))
        if not LEAST_CHARS < fitting < kb.config.max_result_chars:
            break
        kb.config = replace(kb.config, max_result_chars=fitting)
        text = answer()
    return text


def describe_error(error: KbError | OSError) -> str:
    """Return the text of an error, short enough for clients."""
    return shorten(str(error), LONGEST_ERROR)


def _is_default(kb: KnowledgeBase, key: str) -> bool:
    origins = kb.config.origins.get(f"kb.{key}", ())
    return all(origin.layer is Layer.DEFAULT for origin in origins)
