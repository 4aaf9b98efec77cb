"""Hook implementations, nothing else. Imported at every start of `llm`.

Whatever a hook needs beyond `llm_kb.entry` is imported inside it: the hooks for
tools and loaders run on requests alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from llm import hookimpl

from llm_kb.entry import LazyGroup, extend_commands


@hookimpl
def register_commands(cli: click.Group) -> None:
    """Add the `kb` group, and our options to `prompt` and `chat`."""
    cli.add_command(LazyGroup("kb", help="See, check and tune the knowledge that models can learn"))
    extend_commands(cli)


@hookimpl
def register_tools(register: Callable[..., None]) -> None:
    """Offer `learn`, `References` and `emit_knowledge`, where there is use for them."""
    from llm_kb.tools import make_tools

    for tool in make_tools():
        register(tool)


@hookimpl
def register_fragment_loaders(register: Callable[..., None]) -> None:
    """Load `kb:topic/pattern` as one fragment a subject."""
    register("kb", load_fragments)


@hookimpl
def register_template_loaders(register: Callable[..., None]) -> None:
    """Load `kb:topic` as a template with `learn` and that topic's section."""
    register("kb", load_template)


def load_fragments(reference: str) -> Any:
    """Resolve the part of a `kb:` fragment after the colon."""
    from llm_kb.loaders import load_fragments

    return load_fragments(reference)


def load_template(reference: str) -> Any:
    """Resolve the part of a `kb:` template after the colon."""
    from llm_kb.loaders import load_template

    return load_template(reference)
