"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from llm_kb.commands._completion import complete_fragment, complete_topic_slash_pattern

F = TypeVar("F", bound=Callable[..., Any])


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
