"""What the conversion of one page may cost: a page is hostile input."""

from __future__ import annotations

import time

PAGE_SECONDS = 20.0
"""Processor time that one page may take; the largest pages allowed take about five."""

ADDED_PER_CHARACTER = 5
"""Characters of markup (links, quotes, indents) that Markdown may have for each of the page."""


class PageTooComplexError(ValueError):
    """A page that takes more time or memory than its size can explain."""


class Budget:
    """What one page may cost: processor time, and markup that is added to its text."""

    def __init__(self, size: int) -> None:
        self._characters = ADDED_PER_CHARACTER * size + 100_000
        self._end = time.thread_time() + PAGE_SECONDS
        self._steps = 0

    def step(self) -> None:
        """Count a step of work; raise PageTooComplexError when the time is over."""
        self._steps += 1
        if not self._steps % 256 and time.thread_time() > self._end:
            raise PageTooComplexError(f"it takes over {PAGE_SECONDS:g} s of processor time")

    def add(self, characters: int) -> None:
        """Count added markup; raise PageTooComplexError when it is out of proportion."""
        self.step()
        self._characters -= characters
        if self._characters < 0:
            raise PageTooComplexError("as Markdown it would be many times its size")
