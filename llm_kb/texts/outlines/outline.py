"""The outline of a text, by the markup of its format. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from llm_kb.texts.formats import find_format
from llm_kb.texts.outlines.code import PATTERNS, outline_code
from llm_kb.texts.outlines.html import outline_html
from llm_kb.texts.outlines.lines import MARKUPS, outline_lines
from llm_kb.texts.outlines.markdown import outline_markdown
from llm_kb.texts.outlines.rst import outline_adoc, outline_rst
from llm_kb.texts.outlines.sections import Outline

OUTLINES: Mapping[str, Callable[[str], Outline]] = {
    "markdown": outline_markdown,
    "rst": outline_rst,
    "asciidoc": outline_adoc,
    "html": outline_html,
    **{name: partial(outline_lines, markup) for name, markup in MARKUPS.items()},
    **{markup: partial(outline_code, markup) for markup in PATTERNS},
}
"""What finds the headings or definitions of each markup."""

_MOST_KEPT = 1_000_000
"""Longest text whose outline is kept, since models read several parts of one text."""


def find_outline(path: str, text: str) -> Outline:
    """Return the sections of a text, by its format; none for one without known headings."""
    return _find_kept(path, text) if len(text) <= _MOST_KEPT else _find(path, text)


def _find(path: str, text: str) -> Outline:
    known = find_format(path, text)
    return outline_markup(known.markup if known else "", text)


def has_outline(path: str, text: str) -> bool:
    """Tell whether headings or definitions are known in the format of a text."""
    known = find_format(path, text)
    return known is not None and known.markup in OUTLINES


def outline_markup(markup: str, text: str) -> Outline:
    """Return the sections of a text in a markup; none for an unknown one."""
    outline = OUTLINES.get(markup)
    return outline(text) if outline else Outline(text)


_find_kept = lru_cache(maxsize=4)(_find)
