"""Asks questions and shows progress and colour on a terminal."""

from __future__ import annotations

import os
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; None is a stream closed from the start."""
    return stream is not None and not stream.closed and stream.isatty()


def has_terminal() -> bool:
    """Tell whether input and output are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def confirm(question: str) -> bool:
    """Ask a question on the terminal and return the answer, ignoring input typed earlier.

    Raises click.Abort at the end of input and on Ctrl-C.
    """
    _drop_typed_ahead()
    return click.confirm(question, default=False, err=True)


def _drop_typed_ahead() -> None:
    """Discard the unread input of a terminal."""
    # Standard input may be an object without a descriptor.
    with suppress(OSError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def say(text: str) -> None:
    """Print a message of this plugin on standard error."""
    from llm_kb.rendering.plain_text import visible_text  # noqa: PLC0415 - most requests say nothing

    click.echo(f"llm-kb: {visible_text(text)}", err=True)


def read_input() -> str:
    """Return all of standard input. Raises ClickException if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise click.ClickException("standard input is closed, so '-' has nothing to read")
    return sys.stdin.read()


MOST_INPUT = 1_000_000_000
"""Bytes of standard input after which no more are read: a pipe may never end."""


def read_ends_of_input(most: int) -> str:
    """Return the first and last bytes of standard input as text, at most so many of either.

    All of it is read: a program whose output is no longer read is killed.
    """
    if sys.stdin is None or sys.stdin.closed:
        return ""
    source = sys.stdin.buffer
    first, last, count = source.read(most), b"", 0
    while count < MOST_INPUT and (block := source.read(most)):
        last = (last + block)[-most:]
        count += len(block)
    return (first + last).decode("utf-8", "replace")


BAR_AFTER = 0.3
"""Seconds of work before a progress bar appears."""


LINE_AFTER = 3.0
"""Seconds of work before one line is printed where there is no terminal."""


def draw_progress(label: str) -> Callable[[int, int], None]:
    """Return a function that shows the progress of work on standard error.

    The function is called with the work done and the total. On a terminal it draws a bar, elsewhere
    it prints one line. Short work shows nothing.
    """
    return _draw_bar(label) if is_terminal(sys.stderr) else _print_line(label)


def _draw_bar(label: str) -> Callable[[int, int], None]:
    bars: list[ProgressBar[int]] = []
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        if not bars:
            if done >= total or time.monotonic() < start + BAR_AFTER:
                return
            bars.append(click.progressbar(length=total, label=label, file=sys.stderr))
        bar = bars[0]
        bar.update(done - bar.pos)
        if done >= total:
            bars.pop().render_finish()

    return show


def _print_line(label: str) -> Callable[[int, int], None]:
    when = time.monotonic() + LINE_AFTER

    def show(done: int, total: int) -> None:
        nonlocal when
        if done < total and time.monotonic() >= when:
            when = float("inf")
            say(f"{label}: {done:,} of {total:,} files so far ...")

    return show


def style(
    text: str, *, fg: str | None = None, bold: bool | None = None, dim: bool | None = None
) -> str:
    """Style a text unless $NO_COLOR is set; click removes the style without a terminal."""
    # https://no-color.org: an empty value does not count.
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=fg, bold=bold, dim=dim)
