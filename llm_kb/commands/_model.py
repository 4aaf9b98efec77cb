"""Models that commands call: found, called and logged as llm's own commands do.

Help and completion import every command, so the host is imported only to call a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import llm


def load_model(model_id: str | None) -> llm.Model:
    """Return the model of an id or alias, which must support tools; by default llm's own."""
    import llm  # noqa: PLC0415 - see the module's docstring, also for those below

    try:
        model = llm.get_model(model_id)
    except llm.UnknownModelError as error:
        # Its message is complete as it stands.
        raise click.ClickException(str(error.args[0])) from error
    if not model.supports_tools:
        raise click.ClickException(
            f"{model.model_id} does not support tools; `llm models --tools` lists those that do"
        )
    return model


def resolve_key(model: llm.Model, key: str | None) -> str | None:
    """Return the API key, found as llm finds it; None for a model that needs none."""
    import llm  # noqa: PLC0415

    try:
        return model.get_key(key)
    except llm.NeedsKeyException as error:
        raise click.ClickException(str(error)) from error


def parse_options(model: llm.Model, options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the model's options, checked as `llm prompt` checks them."""
    import pydantic  # noqa: PLC0415

    try:
        given = model.Options(**dict(options))
    except pydantic.ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise click.UsageError(f"options of {model.model_id}: {'; '.join(problems)}") from error
    return {name: value for name, value in given if value is not None}


@contextmanager
def open_log() -> Iterator[Callable[[llm.Response], None]]:
    """Yield a function that logs a response if `llm prompt` would log it."""
    import sqlite_utils  # noqa: PLC0415
    from llm.cli import logs_db_path, logs_on  # noqa: PLC0415
    from llm.migrations import migrate  # noqa: PLC0415

    if not logs_on():
        yield _log_nothing
        return
    try:
        db = sqlite_utils.Database(logs_db_path())
        try:
            migrate(db)
        except Exception:
            db.close()
            raise
    except Exception as error:
        raise click.ClickException(
            f"llm's log, {str(logs_db_path())!r}, cannot be used: {error}; --no-log goes without"
        ) from error

    def log(response: llm.Response) -> None:
        try:
            response.log_to_db(db)
        except Exception as error:  # noqa: BLE001 - what was captured must not be lost for it
            click.echo(f"Warning: not logged: {error}", err=True)

    with closing(db):
        yield log


def _log_nothing(_response: llm.Response) -> None:
    pass
