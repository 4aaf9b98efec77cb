"""The conversion of this package's errors into the host's."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from llm_kb.errors import KbError, UnknownTopicError, find_similar
from llm_kb.rendering.plain_text import visible_text

_EXTRA = "Got unexpected extra argument"
"""The beginning of click's error for an unexpected argument."""


def explain(
    error: Exception, ctx: click.Context, typed: str | None, commands: Sequence[str]
) -> Exception:
    """Return the host's error for an error of a command; unexpected errors stay unchanged.

    `typed` is the first argument if `list` ran because that argument is not a command.
    """
    if isinstance(error, KbError):
        # Messages quote files, servers and models.
        told = click.ClickException(visible_text(str(error)))
        told.__cause__ = error
        return _explain_usage(told, ctx, typed, commands)
    if isinstance(error, OSError):  # that nothing else handled, such as a full disk
        _drop_unwritable()
        # The reader, such as `head`, may have closed the pipe.
        return click.exceptions.Exit(0) if error.errno == errno.EPIPE else _describe(error)
    if isinstance(error, click.ClickException):
        return _explain_usage(error, ctx, typed, commands)
    return error


def _drop_unwritable() -> None:
    """Discard output that cannot be written; Python would retry at exit and end with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe(error: OSError) -> click.ClickException:
    what = error.strerror or str(error)
    where = "" if error.filename is None else f": {str(error.filename)!r}"
    return click.ClickException(f"{what}{where}")


def _explain_usage(
    error: click.ClickException, ctx: click.Context, typed: str | None, commands: Sequence[str]
) -> click.ClickException:
    """Return a usage error reworded to help if its arguments were misunderstood."""
    is_usage = isinstance(error, click.UsageError)
    if typed is None or not (is_usage or isinstance(error.__cause__, UnknownTopicError)):
        return error
    near = find_similar(typed, commands, most=3)
    names = " or ".join(f"'{ctx.command_path} {name}'" for name in near)
    if not is_usage:
        message = f"{error.format_message()}\nDid you mean the command {names}?"
        return click.ClickException(message) if near else error
    if near or error.message.startswith(_EXTRA):
        advice = f"did you mean {names}?" if near else f"'{ctx.command_path} --help' lists them"
        return click.UsageError(f"{typed!r} is not a command; {advice}", ctx)
    return error
