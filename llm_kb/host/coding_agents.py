"""Knowledge for agents that run commands: the name of ours, and the system prompt of `llm code`."""

from __future__ import annotations

import os
import shutil
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any

import click

from llm_kb.config.workspace import find_cwd, mentions_auto
from llm_kb.errors import KbError
from llm_kb.terminal.screen import say
from llm_kb.texts.safe import visible_text

SHELL_TOOL = "execute_command"
"""The tool of `llm code` that runs commands; without it a menu would be of no use."""


def name_command() -> str:
    """Return the command that models run: the script, or `llm kb` where it is not on PATH."""
    return "llm-kb" if shutil.which("llm-kb") else "llm kb"


def extend_system(
    kwargs: MutableMapping[str, Any], knowledge: Sequence[str], kb_cfg: Sequence[str]
) -> None:
    """Add the section to the system prompt of `llm code`, as asked by `-k`, `--kb-cfg` or `auto`.

    Its model reads the knowledge by running our command. Raises ClickException before any model
    is called; problems that only `auto` has are reported.
    """
    import llm  # noqa: PLC0415 - `llm kb prompt --shell` does without the host

    directory = (find_cwd() or Path("/")) / (kwargs.get("directory") or ".")
    is_asking = bool(knowledge or kb_cfg)
    if not is_asking and not mentions_auto(directory, Path(llm.user_dir()), os.environ):
        return
    if kwargs.get("_continue") or kwargs.get("conversation_id"):
        if is_asking:
            raise click.ClickException(
                "a continued conversation of `llm code` keeps its system prompt, so -k and --kb-cfg"
                " change nothing there; start a new one"
            )
        return
    try:
        section = _make_section(directory, knowledge, kb_cfg, kwargs.get("no_tools") or ())
    except KbError as error:
        if is_asking:
            raise click.ClickException(visible_text(str(error))) from error
        say(f"auto left out: {str(error).splitlines()[0]}")
        return
    kwargs["system"] = "\n\n".join(filter(None, (section, kwargs.get("system")))) or None


def _make_section(
    directory: Path, knowledge: Sequence[str], kb_cfg: Sequence[str], left_out: Sequence[str]
) -> str | None:
    """Return the section for a model that works in a directory. Raises KbError."""
    # Imported here: a session that does not use this plugin need not wait for it.
    from llm_kb.config.trust import render_skipped, render_withheld  # noqa: PLC0415
    from llm_kb.knowledge_base.api import KnowledgeBase  # noqa: PLC0415
    from llm_kb.rendering.section import describe_large  # noqa: PLC0415

    kb = KnowledgeBase.discover(directory, fragments=kb_cfg, knowledge=knowledge)
    config = kb.config
    is_asking = bool(knowledge or kb_cfg)
    if not (is_asking or config.auto):
        if "kb.auto" in config.withheld:
            say(render_skipped(config.workspace_file, config.withheld))
        return None
    if skipped := render_withheld(config):
        say(skipped)
    if large := describe_large(kb.preloaded):
        say(large)
    has_menu = config.auto and SHELL_TOOL not in left_out
    return kb.section(learn=has_menu, shell=name_command())
