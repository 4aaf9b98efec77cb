"""What an add-on can bring: each function here is a hook, which it implements by name.

An add-on is a module whose functions are marked with `hookimpl`. One of another package has an
entry point in the group `llm_kb`, whose name is that of the add-on:

    # man_pages/addon.py                       # pyproject.toml
    from llm_kb.hookspecs import hookimpl      [project.entry-points.llm_kb]
                                               man = "man_pages.addon"
    @hookimpl
    def skills():
        return [Path(__file__).parent / "skills"]

Each hook returns a list, or yields. Whatever an add-on needs for its work it imports inside these
functions: a request that does not use it imports the module with the hooks alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    import click
    import llm

    from llm_kb.config.layers import Key
    from llm_kb.config.settings import Config
    from llm_kb.knowledge_base.api import KnowledgeBase
    from llm_kb.knowledge_base.kinds import Topic
    from llm_kb.knowledge_base.tool_text import ToolText
    from llm_kb.subjects.topics import Kind
    from llm_kb.texts.formats import Format
    from llm_kb.upkeep.check import Finding

hookspec = HookspecMarker("llm_kb")
hookimpl = HookimplMarker("llm_kb")
"""Marks the functions of an add-on that implement hooks."""


Find = Callable[["Config", "Path | None", "Path"], "Iterable[Topic]"]
"""Finds the topics of a kind under a configuration, in a directory (None if it is gone), for the
user with this directory. It must be quick where there is none: each request calls it."""


@hookspec
def kinds() -> Iterable[tuple[Kind, Find]]:  # type: ignore[empty-body]
    """Return kinds of topics, which the menu has after the configured ones.

    A topic is what `llm_kb.knowledge_base.kinds.Topic` says; `DirectoryTopic` is one over a
    directory, and a subclass of it is mostly all that is needed.

        @hookimpl
        def kinds():
            return [(Kind(ids="man"), find_man_pages)]
    """


Report = Callable[..., None]
"""Called whenever work was done, of a call that takes long."""

Answer = Callable[[Mapping[str, Any], Report], object]
"""Answers a call with the arguments that the model wrote: with text, or what becomes JSON.

A KbError is for the model, which then corrects its call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSet:
    """The tools that one name of `-T` offers: mostly one, of that name."""

    name: str
    open: Callable[[KnowledgeBase], Sequence[tuple[ToolText, Answer]]]
    """Returns each tool, and the function that answers its calls."""
    is_offered: Callable[[KnowledgeBase], bool] = lambda _: False
    """Tells whether they come with `learn`, also over MCP, as a setting with `acts` decides."""
    find_problem: Callable[[KnowledgeBase], str] = lambda _: ""
    """Returns why they are of no use here; empty if they are."""
    toolbox: Callable[[], type[llm.Toolbox]] | None = None
    """Returns what `llm` gets in place of the tools."""
    prefix: str = ""
    """The beginning of the names of a toolbox's tools."""


@hookspec
def tools() -> Iterable[ToolSet]:  # type: ignore[empty-body]
    """Return tools, for `llm -T`, for MCP clients, and for `KnowledgeBase.added_tools`.

    @hookimpl
    def tools():
        return [ToolSet(name="man_search", open=open_search, is_offered=offers_search)]

    def open_search(kb):
        text = ToolText("man_search", "Search.", object_schema(["word"], word=string("…")))
        return [(text, lambda arguments, report: search(**read_arguments(text, arguments)))]
    """


@hookspec
def texts(kb: KnowledgeBase, tools: frozenset[str]) -> Iterable[str]:  # type: ignore[empty-body]
    """Return texts for the system prompt of a request, after the section.

    `tools` are the names of `-T` that the request offers and the conversation did not before.

        @hookimpl
        def texts(kb, tools):
            return ["Prefer man_search to guesses."] if "man_search" in tools else []
    """


class Group(NamedTuple):
    """A group of commands, each imported when it is run."""

    name: str
    summary: str
    modules: Mapping[str, Sequence[str]]
    """The names of the commands in each module; in that module `list` is named `list_`."""
    hidden: Sequence[str] = ()
    """Names of commands that help does not list."""
    section: str = "Add-ons"
    """The heading of the group in the help of `llm kb`."""


@hookspec
def commands() -> Iterable[click.Command | Group]:  # type: ignore[empty-body]
    """Return commands of `llm kb`.

    @hookimpl
    def commands():
        return [Group("man", "Look at manual pages", {"man_pages.commands": ("list", "show")})]
    """


@hookspec
def settings() -> Iterable[tuple[str, Key]]:  # type: ignore[empty-body]
    """Return keys of the configuration: dotted name and key. `kb.value("kb.man.offer")` reads.

    `kb.topic.NAME` is a key of each topic's table. One that `acts` affects requests that do not
    ask for it, so that of a workspace counts only once the workspace is trusted.

        @hookimpl
        def settings():
            return [("kb.man.offer", Key(read_flag, default=False, acts="offer man_search"))]
    """


@hookspec
def skills() -> Iterable[Path]:  # type: ignore[empty-body]
    """Return Markdown files that say how a model uses the add-on's tools.

    They are subjects of the topic `llm-kb`, which is in the menu where one of the tools is offered.

        @hookimpl
        def skills():
            return sorted((Path(__file__).parent / "skills").glob("*.md"))
    """


@hookspec
def converters() -> Iterable[Format]:  # type: ignore[empty-body]
    """Return formats that are turned into Markdown, each as a row of the table of formats.

    @hookimpl
    def converters():
        return [Format(name="manual page", extensions=("1",), kind=Kind.PROSE, markup="markdown",
            is_fenced=False, converter="man", convert=convert_page)]
    """


@hookspec
def checks(kb: KnowledgeBase) -> Iterable[Finding]:  # type: ignore[empty-body]
    """Return what is wrong, for `llm kb check`.

    @hookimpl
    def checks(kb):
        return find_broken_pages(kb)
    """


class Waiting(Protocol):
    """Something that waits for a person to keep or reject it."""

    id: str
    """What names exactly this, as it is now."""

    def show(self) -> Iterable[str]:
        """Return the lines that a person reads before the decision, safe for a terminal."""

    def describe(self) -> Mapping[str, object]:
        """Return the same as data, for `--json`."""

    def keep(self) -> str:
        """Accept what was shown, and return a line on that. Raises KbError if it has changed."""

    def reject(self) -> str:
        """Reject it, and return a line on that. Raises KbError likewise."""

    def edit(self) -> str:
        """Let the person change it, and return a line on that; it is shown again, and waits."""


@hookspec
def reviews(kb: KnowledgeBase) -> Iterable[Waiting]:  # type: ignore[empty-body]
    """Return what waits for a person, for `llm kb review`, in the order to look at it.

    @hookimpl
    def reviews(kb):
        return list_drafts(kb.directory)
    """
