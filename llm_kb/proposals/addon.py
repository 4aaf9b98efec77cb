"""What proposals bring: the tool that proposes a page or an edit, and its review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.hookspecs import Answer, ToolSet, Waiting, hookimpl

if TYPE_CHECKING:
    from llm_kb.config.layers import Key
    from llm_kb.knowledge_base.api import KnowledgeBase
    from llm_kb.knowledge_base.tool_text import ToolText


@hookimpl
def tools() -> list[ToolSet]:
    """Return the tool, which comes with `learn` where a topic takes proposals."""
    return [
        ToolSet(
            name="propose_subject",
            open=_open_tool,
            is_offered=lambda kb: not _find_problem(kb),
            find_problem=_find_problem,
        )
    ]


def _open_tool(kb: KnowledgeBase) -> Sequence[tuple[ToolText, Answer]]:
    from llm_kb.proposals.tool import open_tool

    return open_tool(kb)


def _find_problem(kb: KnowledgeBase) -> str:
    if any(kb.value(f"kb.topic.{topic.id}.proposals") for topic in kb.config.topics):
        return ""
    return "propose_subject is for topics with `proposals = true`, and there is none"


@hookimpl
def settings() -> list[tuple[str, Key]]:
    """Return the key by which a topic takes proposals."""
    from llm_kb.config.layers import Key
    from llm_kb.files.fields import read_flag

    acts = "let models propose pages and edits of this topic, which wait for you"
    return [("kb.topic.proposals", Key(read_flag, default=False, acts=acts))]


@hookimpl
def skills() -> list[Path]:
    """Return the page on when and how to propose."""
    return sorted(Path(__file__).parent.glob("skills/*.md"))


@hookimpl
def reviews(kb: KnowledgeBase) -> Iterable[Waiting]:
    """Return the proposals for this workspace."""
    from llm_kb.proposals.review import list_waiting

    return list_waiting(kb)
