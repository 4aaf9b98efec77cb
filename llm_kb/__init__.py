"""Knowledge in plain files for the `llm` CLI: topics, subjects and a `learn` tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_kb.errors import KbError as KbError
    from llm_kb.knowledge_base.api import KnowledgeBase as KnowledgeBase

__version__ = "0.1.0"

__all__ = ["KbError", "KnowledgeBase", "__version__"]


def __dir__() -> list[str]:
    """Return the names of the public API; everything else is private."""
    return sorted(__all__)


def __getattr__(name: str) -> object:
    """Import the public API on first use: every start of `llm` imports this package."""
    if name == "KnowledgeBase":
        from llm_kb.knowledge_base.api import KnowledgeBase

        return KnowledgeBase
    if name == "KbError":
        from llm_kb.errors import KbError

        return KbError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
