"""The seam where this package's errors become the host's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from llm_kb.errors import KbError

P = ParamSpec("P")
R = TypeVar("R")


def kb_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn a KbError into a ClickException: a message and exit code 1, no traceback."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except KbError as error:
            raise click.ClickException(str(error)) from error

    return wrapper
