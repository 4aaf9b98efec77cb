"""Reference topics: fetched, kept and searched."""

from __future__ import annotations

from llm_kb.subjects.topics import Kind

KIND = Kind(ids="topic-", is_users=True, has_words=True, has_links=True, yields=True)
"""The kind of what was fetched."""

TOOLBOX = "References"
"""The name of `-T` for the tools."""
