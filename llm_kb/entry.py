"""What every start of `llm` pays for: the lazy `kb` group.

Commands are imported when they are run, so this module imports click alone,
which `llm` has loaded already.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

import click

COMMANDS = {
    "add": "llm_kb.commands.add:add",
    "check": "llm_kb.commands.check:check",
    "config": "llm_kb.commands.config:config",
    "disable": "llm_kb.commands.disable:disable",
    "edit": "llm_kb.commands.edit:edit",
    "init": "llm_kb.commands.init:init",
    "knowledge": "llm_kb.commands.knowledge:knowledge",
    "learn": "llm_kb.commands.learn:learn",
    "learned": "llm_kb.commands.learned:learned",
    "list": "llm_kb.commands.list_:list_",
    "mcp": "llm_kb.commands.mcp:mcp",
    "new": "llm_kb.commands.new:new",
    "path": "llm_kb.commands.path:path",
    "prompt": "llm_kb.commands.prompt:prompt",
    "references": "llm_kb.commands.references:references",
    "remove": "llm_kb.commands.remove:remove",
    "search": "llm_kb.commands.search:search",
    "show": "llm_kb.commands.show:show",
    "trust": "llm_kb.commands.trust:trust",
    "untrust": "llm_kb.commands.untrust:untrust",
}
"""Every subcommand of `llm kb` and where it is defined."""


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is asked for.

    Without a subcommand, or with a first argument that names none, it runs
    `list`, as `llm`'s own groups do.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return cast(click.Command, getattr(import_module(module), attribute))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default subcommand where none is named."""
        if not args or (args[0] not in COMMANDS and args[0] not in ctx.help_option_names):
            args.insert(0, "list")
        return super().parse_args(ctx, args)
