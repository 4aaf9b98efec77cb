"""Finding the sections of a file by the format that its extension names. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from llm_kb.search.chunking.adoc_org import outline_adoc, outline_org
from llm_kb.search.chunking.code import CODE_SUFFIXES, outline_code
from llm_kb.search.chunking.html import outline_html
from llm_kb.search.chunking.markdown import outline_markdown
from llm_kb.search.chunking.rst import outline_rst
from llm_kb.search.chunking.sections import Outline

_OUTLINERS: dict[str, Callable[[str], Outline]] = {
    **dict.fromkeys(
        (".md", ".markdown", ".mdx", ".mdc", ".mkd", ".qmd", ".rmd", ".cheatmd", ".livemd"),
        outline_markdown,
    ),
    ".ipynb": outline_markdown,  # as converted
    **dict.fromkeys((".pdf", ".docx"), outline_markdown),
    # Plain text underlines titles in the same way, and may be reStructuredText.
    **dict.fromkeys((".rst", ".rest", ".txt", ".text", ""), outline_rst),
    **dict.fromkeys((".adoc", ".asciidoc"), outline_adoc),
    ".org": outline_org,
    **dict.fromkeys((".html", ".htm", ".xhtml"), outline_html),
}

_MOST_KEPT = 1_000_000
"""Longest text whose outline is cached, since models read several parts of one text."""


def find_outline(path: str, text: str) -> Outline:
    """Return the sections of a text, by the extension of its path; none for an unknown one."""
    return _find_kept(path, text) if len(text) <= _MOST_KEPT else _find(path, text)


def _find(path: str, text: str) -> Outline:
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    suffix = f".{extension.lower()}" if dot and stem else ""
    if suffix in CODE_SUFFIXES:
        return outline_code(suffix, text)
    outliner = _OUTLINERS.get(suffix)
    return outliner(text) if outliner else Outline(text)


_find_kept = lru_cache(maxsize=4)(_find)
