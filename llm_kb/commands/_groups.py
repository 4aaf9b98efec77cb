"""A group of commands that lists by default, as `llm`'s own groups do."""

from __future__ import annotations

import click


class ListGroup(click.Group):
    """Runs `list` without a subcommand, and where the first argument names none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default subcommand where none is named, but not to complete one."""
        known = {*self.commands, *ctx.help_option_names}
        if not ctx.resilient_parsing and (not args or args[0] not in known):
            args.insert(0, "list")
        return super().parse_args(ctx, args)
