"""The hooks of the plugin, the lazy `kb` group, and our options on commands of the host.

Every start of `llm` imports this module and nothing else of ours, as each further module
would cost as much as all the code here. Commands are imported when they are run, and
requests are examined when they are made. The console script `llm-kb` starts here as well,
without the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import wraps
from importlib import import_module
from itertools import chain
from typing import Any, cast

import click
from click_default_group import DefaultGroup  # type: ignore[import-untyped]
from pluggy import HookimplMarker

from llm_kb import __version__

hookimpl = HookimplMarker("llm")
"""The same as `llm.hookimpl`, without the half second that importing the host takes."""

COMMANDS = {
    "check": ("check",),
    "config": ("add", "config", "disable", "preload", "remove", "trust"),
    "connect": ("connect",),
    "init": ("init",),
    "mcp": ("mcp",),
    "new": ("edit", "new"),
    "reading": ("list", "prompt", "show", "used"),
    "review": ("review",),
    "search": ("search",),
}
"""The commands of `llm kb` in each module of `llm_kb/commands`."""

SECTIONS = {
    "Look": ("list", "search", "show", "prompt", "used"),
    "Write": ("add", "new", "edit", "review", "preload", "disable", "remove"),
    "Fetch and capture": (),
    "Set up": (
        "init",
        "check",
        "connect",
        "mcp",
        "config",
        "trust",
    ),
}
"""The commands and groups of `llm kb` as its help lists them."""

SUMMARY = "See, check and tune the knowledge that models can learn"

CONSOLE = "llm-kb"
"""The console script that runs the same commands without the host."""

EXTENDED = ("prompt", "chat")
"""The commands of the host that take our options."""

AGENT = "code", "llm_coding_agent"
"""A command that takes them as well, and the package of the plugin that brings it."""

READING = ("fragments", "logs", "templates")
"""The groups of the host whose commands load a fragment or a template by name."""


def __dir__() -> list[str]:
    """Return only the names of the hooks.

    pluggy examines each name that `dir` returns; all of them would add a quarter to the time
    that this plugin takes at every start (`bench/starting.py`).
    """
    return [
        "register_commands",
        "register_fragment_loaders",
        "register_template_loaders",
        "register_tools",
    ]


def main() -> None:
    """Run `llm-kb`: the commands of `llm kb`, without importing the host."""
    group = make_group(CONSOLE)
    group.main(prog_name=CONSOLE, help_option_names=["-h", "--help"])  # the host's setting


def make_group(name: str) -> click.Group:
    """Return all our commands as one group."""
    modules = {f"llm_kb.commands.{module}": names for module, names in COMMANDS.items()}
    group = LazyGroup(name, SUMMARY, modules, sections=SECTIONS)
    click.version_option(__version__, prog_name=CONSOLE)(group)
    return group


@hookimpl
def register_commands(cli: click.Group) -> None:
    """Add the `kb` group, and our options to `prompt` and `chat`."""
    cli.add_command(make_group("kb"))
    extend_commands(cli)


@hookimpl
def register_tools(register: Callable[..., None]) -> None:
    """Register `learn` and the tools of add-ons, if they are useful here.

    The host gathers tools on every prompt that names one. Tools that the request does not
    use have only names, for the host's error that lists the tools.
    """
    try:
        from llm import Tool
    except ImportError:  # a host of the future: the tools of others must still be found
        return
    from llm_kb.host.request import current_request, name_tools

    request = current_request()
    if request is None or request.tools:
        from llm_kb.host.hooks import make_tools  # it imports the knowledge base

        for tool in make_tools():
            register(tool)
    if request is not None and request.lists_tools and not request.is_muted:
        for name in sorted(name_tools(others=bool(request.tools)) - request.tools):
            register(Tool(name=name))


@hookimpl
def register_fragment_loaders(register: Callable[..., None]) -> None:
    """Load `kb:topic/pattern` as a fragment for each subject, and `kb-search:` as a single one."""
    register("kb", load_fragments)
    register("kb-search", load_passages)


@hookimpl
def register_template_loaders(register: Callable[..., None]) -> None:
    """Load `kb:topic` as a template with `learn` and that topic's section."""
    register("kb", load_template)


def load_passages(reference: str) -> Any:
    """Load kb-search:topic:question as passages of a topic; kb-search::question, of all topics."""
    from llm_kb.host.hooks import load_passages

    return load_passages(reference)


def load_fragments(reference: str) -> Any:
    """Load kb:topic/pattern as fragments, one for each subject."""
    from llm_kb.host.hooks import load_fragments

    return load_fragments(reference)


def load_template(reference: str) -> Any:
    """Load kb:topic as a template: the learn tool, and that topic's section."""
    from llm_kb.host.hooks import load_template

    return load_template(reference)


class LazyGroup(DefaultGroup):  # type: ignore[misc]  # the library has no types
    """A group that imports a subcommand when it is first needed.

    Without a subcommand, or when the first argument is not one, it runs `list`, as
    `llm`'s own groups do.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        modules: Mapping[str, Sequence[str]],
        hidden: Sequence[str] = (),
        *,
        sections: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(name, help=summary, default="list", default_if_no_args=True)
        self._hidden = hidden
        self._sections = {title: [*names] for title, names in (sections or {}).items()}
        self._modules = {name: module for module, names in modules.items() for name in names}
        self._lacks_addons = bool(sections)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        if self._lacks_addons:
            self._lacks_addons = False
            self._add_commands()
        return sorted({*self._modules, *self.commands})

    def _add_commands(self) -> None:
        """Add the commands of add-ons, when one is first looked up."""
        from llm_kb import addons, hookspecs

        found = addons.gather(hookspecs.commands)
        taken = {*self._modules, *self.commands}
        for name, each in addons.name_each(found, lambda _, c: (c.name or "", c), taken).items():
            command = each if isinstance(each, click.Command) else LazyGroup(*each[:-1])
            self.add_command(command, name)
            self._sections.setdefault(getattr(each, "section", "Add-ons"), []).append(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands by section, with their names in one column for all."""
        names = [name for name in self.list_commands(ctx) if name not in self._hidden]
        width = max(map(len, names)) + 1
        for heading, members in (self._sections or {"Commands": names}).items():
            commands = {name: self.get_command(ctx, name) for name in members}
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (
                            f"{name + '*' * (name == self.default_cmd_name):{width}}",
                            command.get_short_help_str(formatter.width - width - 4),
                        )
                        for name, command in commands.items()
                        if command is not None
                    ]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand, or `list` if there is none of that name."""
        name = cmd_name if cmd_name in self.list_commands(ctx) else self.default_cmd_name
        if name not in self.commands:
            module = import_module(self._modules[name])
            self.commands[name] = getattr(module, "list_" if name == "list" else name)
        command = cast(click.Command | None, super().get_command(ctx, cmd_name))
        if command is not None and ctx.find_root().info_name == CONSOLE:
            command = copy(command)
            command.help = (command.help or "").replace("llm kb", CONSOLE)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default subcommand if none is given, but not while completing one."""
        if not args and ctx.resilient_parsing:
            return click.Group.parse_args(self, ctx, args)
        return cast(list[str], super().parse_args(ctx, args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; our errors become the host's, with a message and exit code 1."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Imported here: only a failing command needs it.
            from llm_kb.terminal.output import explain

            explained = explain(error, ctx, getattr(ctx, "arg0", None), self.list_commands(ctx))
            if explained is error:
                raise
            raise explained from error


def extend_commands(cli: click.Group) -> None:
    """Add our options to `prompt`, `chat` and `llm code` when they are looked up.

    Another plugin may wrap or replace these commands, before us or after us.
    """
    get_command = cli.get_command

    def get_extended(ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = get_command(ctx, cmd_name)
        # By its own name: the default command is looked up as "".
        if command is not None and (command.name in EXTENDED or is_agent(command)):
            extend(command)
        if isinstance(command, click.Group) and command.name in READING:
            for each in command.commands.values():
                guard(each)
        return command

    cli.get_command = get_extended  # type: ignore[method-assign]  # this group alone


def is_agent(command: click.Command) -> bool:
    """Tell whether a command is `llm code` of llm-coding-agent, and takes a system prompt."""
    package = getattr(command.callback, "__module__", "").partition(".")[0]
    return (command.name, package) == AGENT and any(p.name == "system" for p in command.params)


def extend(command: click.Command) -> None:
    """Append our options to a command that lacks them and wrap its callback; safe to repeat."""
    if command.callback is not None and all(each.name != "no_kb" for each in command.params):
        command.params.extend(make_options())
        command.callback = wrap_callback(command.callback, command.name or "prompt")


def guard(command: click.Command) -> None:
    """Make a command of the host refuse files that are named like our fragments and templates."""
    callback = command.callback
    if callback is None or hasattr(callback, "refuses_files"):
        return

    @wraps(callback)
    def run(*args: Any, **kwargs: Any) -> Any:
        values = [each if isinstance(each, tuple) else (each,) for each in kwargs.values()]
        names = [each for each in chain(*values) if isinstance(each, str) and each[:2] == "kb"]
        if names:
            # Imported here: other commands do not need it.
            from llm_kb.host.request import require_no_files

            require_no_files(names)
        return callback(*args, **kwargs)

    run.refuses_files = True  # type: ignore[attr-defined]  # groups are looked up repeatedly
    command.callback = run


def make_options() -> list[click.Option]:
    """Return our options for one command."""
    return [
        click.Option(
            ["-k", "--knowledge"],
            multiple=True,
            metavar="TOPIC/PATTERN",
            help="Knowledge to pre-load into the system prompt",
            shell_complete=complete_pattern,
        ),
        click.Option(
            ["kb_cfg", "--kb-cfg"],
            multiple=True,
            metavar="NAME|FILE|KEY=VALUE",
            help="Config fragment or assignment for the knowledge base",
        ),
        click.Option(["no_kb", "--no-kb"], is_flag=True, help="Leave the knowledge base out"),
    ]


def complete_pattern(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Complete a value of `-k`."""
    from llm_kb.terminal.options import complete_address

    return complete_address(ctx, param, incomplete)


def wrap_callback(callback: Callable[..., Any], command: str) -> Callable[..., Any]:
    """Return a callback that handles our options and calls that of the host."""

    @wraps(callback)
    def run(*args: Any, **kwargs: Any) -> Any:
        # Imported here: only a prompt or chat needs it.
        from llm_kb.host.prompt_options import open_request

        with open_request(command, kwargs):
            return callback(*args, **kwargs)

    return run
