"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from llm_kb.commands._completion import complete_fragment, complete_topic_slash_pattern

F = TypeVar("F", bound=Callable[..., Any])


def knowledge_options(function: F) -> F:
    """Add `-k` and `--kb-cfg`, with the meaning they have on `llm prompt`."""
    function = click.option(
        "kb_cfg",
        "--kb-cfg",
        multiple=True,
        metavar="NAME|FILE|KEY=VALUE",
        help="Config fragment or assignment for the knowledge base",
        shell_complete=complete_fragment,
    )(function)
    return click.option(
        "-k",
        "--knowledge",
        multiple=True,
        metavar="TOPIC/PATTERN",
        help="Knowledge to pre-load into the system prompt",
        shell_complete=complete_topic_slash_pattern,
    )(function)
