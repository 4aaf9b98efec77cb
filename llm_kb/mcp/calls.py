"""Runs a call of a client in a thread, reports its progress, and bounds its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError
from llm_kb.rendering.menu import estimate_tokens
from llm_kb.rendering.plain_text import shorten
from llm_kb.rendering.section import render_instructions
from llm_kb.subjects.topics import Layer

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from llm_kb.references.plan.make import Step

T = TypeVar("T")

MOST_CHARS, MOST_TOKENS = 45_000, 24_000
"""The longest answer: Claude Code saves one over 50,000 characters or 25,000 tokens to a file."""

MENU_BUDGET, INSTRUCTIONS = 400, 2_048
"""Tokens of the menu, and characters of the instructions that Claude Code shows."""

LONGEST_ERROR = 10_000
"""The longest error: Claude Code cuts its text at about 11,000 characters."""

LEAST_CHARS = 1_000

SEARCH_NAME = "search"
"""The name of `search_knowledge` here: a client puts the server's name before it."""


class Steps:
    """Passes the progress of a thread to the client, and a cancellation to the thread."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._is_finished = False
        self._loop = asyncio.get_running_loop()
        self._has_news = asyncio.Event()
        self._label = ""
        self._base = self._reached = 0
        self._news: tuple[int, int, str] = (0, 0, "")

    def report(self, step: str | Step, done: int, total: int) -> None:
        """Report the progress of the work; called in its thread.

        Raises KbError if the call was cancelled. Each step is a part of the work; the
        total that the client sees only grows.
        """
        label = str(step)
        if self.is_cancelled:
            raise KbError("the call was cancelled")
        if label != self._label:
            self._label, self._base = label, self._reached
        if self._base + done > self._reached:
            self._reached = self._base + done
            self._news = (self._reached, self._base + total, label)
            self._loop.call_soon_threadsafe(self._has_news.set)

    def finish(self) -> None:
        """Let `send_to` return once the client has the latest progress."""
        self._is_finished = True
        self._has_news.set()

    async def send_to(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Send the latest progress until finished; a slow client misses some in between."""
        sent = self._news
        while not self._is_finished:
            await self._has_news.wait()
            self._has_news.clear()
            if self._news != sent:
                sent = self._news
                await ctx.session.report_progress(*sent)


async def work(ctx: ServerRequestContext[Any, Any], function: Callable[[Steps], T]) -> T:
    """Run a function in a thread; the client gets its progress and may cancel it."""
    steps = Steps()
    sender = asyncio.create_task(steps.send_to(ctx))
    try:
        result = await anyio.to_thread.run_sync(function, steps, abandon_on_cancel=True)
        steps.finish()
        await asyncio.wait({sender})
        return result
    finally:
        steps.is_cancelled = True
        sender.cancel()


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
