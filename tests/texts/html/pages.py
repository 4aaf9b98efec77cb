"""Converts the pages of tables, and says what is expected of code."""

from __future__ import annotations

from llm_kb.texts.html.to_markdown import html_to_markdown

URL = "https://e.org/docs/page.html"


def convert(html: str) -> str:
    """Return a page as Markdown without its last line end."""
    return html_to_markdown(html, URL).removesuffix("\n")


def fence(*lines: str, language: str = "") -> str:
    """Return lines of code as Markdown has them."""
    return "\n".join([f"```{language}", *lines, "```"])
