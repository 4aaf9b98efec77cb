"""What references bring: fetched topics, the commands that fetch them, and plans that wait."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.hookspecs import Answer, Find, Group, ToolSet, Waiting, hookimpl
from llm_kb.references import KIND, TOOLBOX

if TYPE_CHECKING:
    import llm

    from llm_kb.config.layers import Key
    from llm_kb.config.settings import Config
    from llm_kb.knowledge_base.api import KnowledgeBase
    from llm_kb.knowledge_base.tool_text import ToolText
    from llm_kb.references.fetched import FetchedTopic
    from llm_kb.subjects.topics import Kind


@hookimpl
def kinds() -> list[tuple[Kind, Find]]:
    """Return the kind of what was fetched."""
    return [(KIND, _find)]


def _find(config: Config, cwd: Path | None, user_dir: Path) -> Iterator[FetchedTopic]:
    """Yield the fetched topics, if there are any."""
    own = config.settings.get("kb.references.dir")
    # It may be one that cannot be entered.
    if os.path.exists(str(own.value) if own else user_dir / "kb" / "references"):  # noqa: PTH110
        from llm_kb.references.fetched import find

        yield from find(config, cwd, user_dir)


@hookimpl
def tools() -> list[ToolSet]:
    """Return the toolbox that fetches, lists and searches topics."""
    return [ToolSet(name=TOOLBOX, open=_open_tools, toolbox=_open_toolbox, prefix="reference_")]


def _open_tools(kb: KnowledgeBase) -> Sequence[tuple[ToolText, Answer]]:
    from llm_kb.references.calls import open_tools

    return open_tools(kb)


def _open_toolbox() -> type[llm.Toolbox]:
    from llm_kb.references.toolbox import References

    return References


@hookimpl
def texts(kb: KnowledgeBase, tools: frozenset[str]) -> Iterator[str]:
    """Yield the topics that were fetched last, but those in the menu beside it."""
    if TOOLBOX in tools:
        from llm_kb.references.calls import find_library
        from llm_kb.references.lookup import recent_references

        listed = kb.menu_ids if "learn" in tools else ()
        if recent := recent_references(find_library(kb.config, kb.directory), listed):
            yield recent


@hookimpl
def commands() -> list[Group]:
    """Return `llm kb references`."""
    room = "llm_kb.references.commands"
    return [
        Group(
            "references",
            "Fetch documentation of other projects, and keep it fresh",
            {f"{room}.fetch": ("create", "refresh"), f"{room}.group": ("delete", "list", "show")},
            section="Fetch and capture",
        )
    ]


@hookimpl
def settings() -> list[tuple[str, Key]]:
    """Return the limits of fetching."""
    from llm_kb.references.settings import list_settings

    return list_settings()


@hookimpl
def skills() -> list[Path]:
    """Return the page on how to gather references."""
    return sorted(Path(__file__).parent.glob("skills/*.md"))


@hookimpl
def reviews(kb: KnowledgeBase) -> Iterable[Waiting]:
    """Return the plans that wait for an answer."""
    from llm_kb.references.commands.review import list_waiting

    return list_waiting(kb)
