"""Chunking: any text is cut whole into chunks of bounded length, and its outline stays inside it.

Of an HTML page the chunks are its own text.
"""

from __future__ import annotations

from llm_kb.search.chunks import CAP, chunk_document
from llm_kb.search.question import space, split_identifiers
from llm_kb.texts.decoding import open_text
from llm_kb.texts.folding import fold
from llm_kb.texts.formats import FORMATS, find_format
from llm_kb.texts.outlines.outline import read_document

_FIRST = {row.markup: f"a.{row.extensions[0]}" for row in reversed(FORMATS) if row.markup}
PATHS = (
    "README",
    *(
        path
        for markup, path in _FIRST.items()
        if (row := find_format(path)) and row.markup == markup
    ),
)
"""A file of each markup that its name alone tells."""


def fuzz(data: bytes) -> None:
    """Cut the bytes after the first as the kind of file that the first one chooses."""
    path = PATHS[data[0] % len(PATHS)] if data else PATHS[0]
    text = open_text(data[1:]).text
    chunks = chunk_document(path, text)
    joined = "".join(chunk.text for chunk in chunks)
    found = read_document(path, text)
    assert joined == text[found.start : found.end]
    assert all(0 < len(chunk.text) <= 2 * CAP for chunk in chunks)
    space(fold(text))
    split_identifiers(text)
    for section in found.sections:
        assert 0 <= section.start < section.end <= len(text)
    anchors = [section.anchor.casefold() for section in found.sections]
    assert len(set(anchors)) == len(anchors)
    assert all(anchors)
