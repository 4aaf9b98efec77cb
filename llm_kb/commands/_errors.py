"""The seam where this package's errors become the host's."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from llm_kb.errors import KbError
from llm_kb.rendering.plain_text import visible_text

P = ParamSpec("P")
R = TypeVar("R")


def kb_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn a KbError into a ClickException: a message and exit code 1, no traceback.

    So is an error of the system that nothing made sense of, such as a full disk.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except KbError as error:
            # Messages quote files, servers and models.
            raise click.ClickException(visible_text(str(error))) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click ends in silence when nobody reads any more
            _drop_unwritable()
            raise click.ClickException(_describe(error)) from error

    return wrapper


def _drop_unwritable() -> None:
    """Let go of output that cannot be written: Python would try again at exit, and end with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe(error: OSError) -> str:
    what = error.strerror or str(error)
    return what if error.filename is None else f"{what}: {str(error.filename)!r}"


class ListGroup(click.Group):
    """Runs `list` without a subcommand, and where the first argument names none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default subcommand where none is named, but not to complete one."""
        known = {*self.commands, *ctx.help_option_names}
        if not ctx.resilient_parsing and (not args or args[0] not in known):
            args.insert(0, "list")
        return super().parse_args(ctx, args)
