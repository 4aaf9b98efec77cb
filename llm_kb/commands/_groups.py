"""A group of commands that lists by default, as `llm`'s own groups do."""

from __future__ import annotations

import click


class ListGroup(click.Group):
    """Runs `list` without a subcommand, and where the first argument names none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default subcommand where none is named."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args.insert(0, "list")
        return super().parse_args(ctx, args)
