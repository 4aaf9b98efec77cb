"""The conversion of this package's errors into the host's."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from llm_kb.errors import KbError, UnknownTopicError
from llm_kb.rendering.plain_text import visible_text

P = ParamSpec("P")
R = TypeVar("R")

_NEAR_COMMAND = 0.6
"""How alike a mistyped command and a real one must be, as `difflib` counts it."""
_EXTRA = "Got unexpected extra argument"
"""How click begins the error for an argument that a command does not take."""


def kb_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn a KbError into a ClickException: a message and exit code 1, no traceback.

    An operating system error that nothing else handled, such as a full disk, is treated the same.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except KbError as error:
            # Messages quote files, servers and models.
            raise click.ClickException(visible_text(str(error))) from error
        except OSError as error:
            _drop_unwritable()
            if error.errno == errno.EPIPE:  # the reader, such as `head`, has closed the pipe
                raise click.exceptions.Exit(0) from error
            raise click.ClickException(_describe(error)) from error

    return wrapper


def _drop_unwritable() -> None:
    """Discard output that cannot be written; Python would retry at exit and end with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe(error: OSError) -> str:
    what = error.strerror or str(error)
    return what if error.filename is None else f"{what}: {str(error.filename)!r}"


def explain_usage(
    error: click.ClickException, ctx: click.Context, typed: str | None, commands: Sequence[str]
) -> click.ClickException:
    """Return a usage error reworded to help if its arguments were misunderstood.

    `typed` is the first argument if `list` ran because that argument is not a command.
    """
    is_usage = isinstance(error, click.UsageError)
    is_extra = is_usage and error.message.startswith(_EXTRA)
    if typed is None:
        return error
    if not is_usage and not isinstance(error.__cause__, UnknownTopicError):
        return error
    near = get_close_matches(typed, commands, n=3, cutoff=_NEAR_COMMAND)
    names = " or ".join(f"'{ctx.command_path} {name}'" for name in near)
    if is_usage and (near or is_extra):
        advice = f"did you mean {names}?" if near else f"'{ctx.command_path} --help' lists them"
        return click.UsageError(f"{typed!r} is not a command; {advice}", ctx)
    message = f"{error.format_message()}\nDid you mean the command {names}?"
    return click.ClickException(message) if near else error
