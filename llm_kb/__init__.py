"""Knowledge in plain files for the `llm` CLI: topics, subjects and a `learn` tool."""

from __future__ import annotations

__version__ = "0.1.0"
