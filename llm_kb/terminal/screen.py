"""Asks questions and shows progress and colour on a terminal."""

from __future__ import annotations

import os
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; None is a stream closed from the start."""
    return stream is not None and not stream.closed and stream.isatty()


def has_terminal() -> bool:
    """Tell whether input and output are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def can_ask() -> bool:
    """Tell whether somebody sees a question on standard error, and can answer it."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def drop_typed() -> None:
    """Ignore what was typed before a question was seen."""
    # Standard input may be an object without a descriptor.
    with suppress(OSError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def confirm(question: str) -> bool:
    """Ask a question on the terminal and return the answer, ignoring input typed earlier.

    The end of input is a no. Raises click.Abort on Ctrl-C.
    """
    drop_typed()
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort as error:
        click.echo(err=True)
        if isinstance(error.__context__, EOFError):
            return False
        raise


def confirm_on_tty(text: str, tty: str = "/dev/tty") -> bool | None:
    """Show a text that ends in a question on the terminal of this process; return the answer.

    For commands whose standard input is a pipe. None without a terminal.
    """
    try:
        # Without a buffer: a terminal cannot seek.
        with open(tty, "r+b", buffering=0) as terminal:  # noqa: PTH123 - a device
            termios.tcflush(terminal.fileno(), termios.TCIFLUSH)
            terminal.write(f"{text} [y/N]: ".encode())
            return terminal.readline().strip().lower() in {b"y", b"yes"}
    except (OSError, termios.error):
        return None


def say(text: str) -> None:
    """Print a message of this plugin on standard error."""
    from llm_kb.texts.safe import visible_text  # noqa: PLC0415 - most requests say nothing

    click.echo(f"llm-kb: {visible_text(text)}", err=True)


BAR_AFTER = 0.3
"""Seconds of work before a progress bar appears."""

LINE_AFTER = 3.0
"""Seconds of work before one line is printed where there is no terminal."""


def draw_progress(label: str, line_after: float = LINE_AFTER) -> Callable[[int, int], None]:
    """Return a function that shows the progress of work on standard error.

    The function is called with the work done and the total. On a terminal it draws a bar, elsewhere
    it prints one line. Short work shows nothing.
    """
    is_shown = is_terminal(sys.stderr)
    when = time.monotonic() + (BAR_AFTER if is_shown else line_after)
    bar: ProgressBar[int] | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar, when
        if bar is None and done < total and time.monotonic() >= when:
            if is_shown:
                bar = click.progressbar(length=total, label=label, file=sys.stderr)
            else:
                when = float("inf")
                say(f"{label}: {done:,} of {total:,} files so far ...")
        if bar is not None:
            bar.update(done - bar.pos)
            if done >= total:
                bar.render_finish()
                bar = None

    return show


def style(text: str, **how: Any) -> str:
    """Style a text unless $NO_COLOR is set; click removes the style without a terminal."""
    # https://no-color.org: an empty value does not count.
    return text if os.environ.get("NO_COLOR") else click.style(text, **how)
