"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from llm_kb.commands._completion import complete_fragment, complete_topic_slash_pattern
from llm_kb.search.roles import ROLES, Role, Scope

F = TypeVar("F", bound=Callable[..., Any])


def filter_options(command: F) -> F:
    """Add the options that narrow a search; `make_filters` reads them."""
    for option in (
        click.option(
            "tags", "--tag", multiple=True, metavar="TAG", help="Only topics with this tag"
        ),
        click.option(
            "paths",
            "--path",
            multiple=True,
            metavar="PATTERN",
            help="Only files in this directory, or that match",
        ),
        click.option(
            "roles",
            "--role",
            multiple=True,
            type=click.Choice(ROLES),
            help="Only this kind of file; documentation comes first anyway",
        ),
    ):
        command = option(command)
    return command


def make_filters(roles: Sequence[str], paths: Sequence[str], tags: Sequence[str]) -> dict[str, Any]:
    """Return the search filters for the options of `filter_options`."""
    scope = Scope(roles=[Role(role) for role in roles], paths=paths) if roles or paths else None
    return {"scope": scope, "tags": tags}


def kb_cfg_option(function: F) -> F:
    """Add `--kb-cfg`, with the meaning it has on `llm prompt`."""
    return click.option(
        "kb_cfg",
        "--kb-cfg",
        multiple=True,
        metavar="NAME|FILE|KEY=VALUE",
        help="Config fragment or assignment for the knowledge base",
        shell_complete=complete_fragment,
    )(function)


def knowledge_options(function: F) -> F:
    """Add `-k` and `--kb-cfg`, with the meaning they have on `llm prompt`."""
    return click.option(
        "-k",
        "--knowledge",
        multiple=True,
        metavar="TOPIC/PATTERN",
        help="Knowledge to pre-load into the system prompt",
        shell_complete=complete_topic_slash_pattern,
    )(kb_cfg_option(function))
