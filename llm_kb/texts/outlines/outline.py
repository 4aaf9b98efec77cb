"""The outline of a text, by the markup of its format. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from llm_kb.texts.document import Document, shorten_title
from llm_kb.texts.formats import find_format
from llm_kb.texts.markup import read_header_title
from llm_kb.texts.outlines.code import PATTERNS, outline_code
from llm_kb.texts.outlines.html import outline_html
from llm_kb.texts.outlines.lines import MARKUPS, outline_lines
from llm_kb.texts.outlines.markdown import outline_markdown
from llm_kb.texts.outlines.rst import outline_adoc, outline_rst

OUTLINES: Mapping[str, Callable[[str], Document]] = {
    "markdown": outline_markdown,
    "rst": outline_rst,
    "asciidoc": outline_adoc,
    "html": outline_html,
    **{name: partial(outline_lines, markup) for name, markup in MARKUPS.items()},
    **{markup: partial(outline_code, markup) for markup in PATTERNS},
}
"""What finds the headings or definitions of each markup."""


@lru_cache(maxsize=2)
def read_document(path: str, text: str) -> Document:
    """Return a text with its sections and title; kept, since several parts of one are read."""
    known = find_format(path, text)
    document = outline_markup(known.markup if known else "", text)
    if document.is_code or known is None or not known.is_prose:
        return document
    number, title, status = read_header_title(text)
    heading = document.sections[0].title if document.sections else ""
    if not number and not status and title.lower() in {"", heading.lower()}:
        return document
    return document._replace(title=shorten_title(f"{number}{title or heading}{status}"))


def outline_markup(markup: str, text: str) -> Document:
    """Return a text in a markup with its sections; none for an unknown one."""
    return OUTLINES.get(markup, Document)(text)
