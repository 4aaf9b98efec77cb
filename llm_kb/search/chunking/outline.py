"""The outline of a text: its headings or definitions, with their spans. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

from llm_kb.search.chunking.code_lines import CODE_SUFFIXES, outline_code
from llm_kb.search.chunking.documents import Outline
from llm_kb.search.chunking.html import outline_html
from llm_kb.search.chunking.markdown import outline_markdown
from llm_kb.search.chunking.rst import outline_rst

_OUTLINERS: dict[str, Callable[[str], Outline]] = {
    **dict.fromkeys(
        (".md", ".markdown", ".mdx", ".mdc", ".mkd", ".qmd", ".rmd", ".ipynb"), outline_markdown
    ),
    **dict.fromkeys((".pdf", ".docx", ".pptx", ".epub"), outline_markdown),  # as converted
    # Plain text underlines titles in the same way, and may be reStructuredText.
    **dict.fromkeys((".rst", ".rest", ".txt", ".text", ""), outline_rst),
    **dict.fromkeys((".html", ".htm", ".xhtml"), outline_html),
}


class Heading(NamedTuple):
    """A heading or a definition with everything under it.

    Lines count from 1, both inclusive; `start` and `end` are offsets in the text.
    """

    level: int
    """The depth of nesting: 1 for the outermost, whatever its level in the markup."""
    title: str
    first_line: int
    last_line: int
    start: int
    end: int


def outline(text: str, path: str, found: Outline | None = None) -> tuple[Heading, ...]:
    """Return the headings or definitions of a text, in order, with their spans.

    The extension of the path determines how it is read. `found` is its outline, if known.
    A heading ends where the next of its level or a higher one begins. Linear in the text.
    """
    spans = _find_spans(text, found or find_outline(path, text))
    ends = [match.end() for match in re.finditer("\n", text)]
    return tuple(
        Heading(
            level=level,
            title=title,
            first_line=bisect_right(ends, start) + 1,
            last_line=bisect_left(ends, end) + 1,
            start=start,
            end=end,
        )
        for level, title, start, end in spans
    )


def _find_spans(text: str, found: Outline) -> list[tuple[int, str, int, int]]:
    """Return level, title, start and end of every heading, in order."""
    spans: list[tuple[int, str, int, int]] = []
    open_: list[tuple[int, int]] = []  # depth, place in spans

    def close(depth: int, end: int) -> None:
        while open_ and open_[-1][0] >= depth:
            place = open_.pop()[1]
            spans[place] = (*spans[place][:3], end)

    for offset, depth, label in found.marks:
        close(depth, offset)
        if label:
            open_.append((depth, len(spans)))
            spans.append((len(open_), label, offset, len(text)))
    return [span for span in spans if span[2] < span[3]]


def find_outline(path: str, text: str) -> Outline:
    """Return the marks of a text, by the extension of its path; none for an unknown extension."""
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    suffix = f".{extension.lower()}" if dot and stem else ""
    if suffix in CODE_SUFFIXES:
        return outline_code(suffix, text)
    outliner = _OUTLINERS.get(suffix)
    return outliner(text) if outliner else Outline()
