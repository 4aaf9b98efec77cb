"""The chunks of a document, cut along its outline. Pure.

The chunks of a document, joined, are the document, without overlap. None is longer than the cap,
but for one that ends with what is not to be cut, which may be twice as long. Of an HTML page they
are its main element, where it marks one, else its body. Where a chunk ends depends on its own
section, so that a change in one section leaves the chunks of the others as they are.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from llm_kb.texts.document import MAX_TITLE, Document, Section
from llm_kb.texts.outlines.outline import read_document

CAP = 1200
"""Longest chunk, in characters, but for what is not to be cut."""

FLOOR = 300
"""A chunk shorter than this takes in the next section, if both fit the cap."""

BARE = 120
"""A section of at most so many characters before a deeper one counts as a heading alone."""

_BREADCRUMB, _IN_CODE_NAMES = " > ", "."
"""Separators between the titles of nested sections."""

# Where to cut, the best first.
_BLANK_LINES = ("\n\n", "\n\r\n")
_IN_PROSE = (*_BLANK_LINES, ".\n", ".\r\n", "\n", ". ", " ")
_IN_CODE = (*_BLANK_LINES, "\n", " ")  # a line that ends in a dot may describe the next


class Chunk(NamedTuple):
    """A span of a document: the unit of indexing and of results.

    The title names the section with those around it. The heading names only sections that begin
    in this chunk; it is empty if the chunk continues an earlier one. Lines count from 1, both
    inclusive. The hash depends on the content and not on the position.
    """

    title: str
    heading: str
    text: str
    first_line: int
    last_line: int

    @property
    def hash(self) -> bytes:
        """Return 16 bytes that identify title, heading and text."""
        joined = f"{self.title}\0{self.heading}\0{self.text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(joined, digest_size=16).digest()


class _Piece(NamedTuple):
    """A span of a document, the titles of the sections around it, and of those that begin in it."""

    start: int
    end: int
    titles: tuple[str, ...]
    heading: str


def chunk_document(path: str, text: str, outline: Document | None = None) -> list[Chunk]:
    """Return the chunks of a text, cut along its outline; an empty text has none."""
    outline = read_document(path, text) if outline is None else outline
    chunks: list[Chunk] = []
    line = 1 + text.count("\n", 0, outline.start)
    for pieces in _merge(_cut(text, outline)):
        start, end = pieces[0].start, pieces[-1].end
        newlines = text.count("\n", start, end)
        ends_line = text[end - 1] == "\n"
        last = max(line, line + newlines - ends_line)
        title, heading = _name(pieces, _IN_CODE_NAMES if outline.is_code else _BREADCRUMB)
        chunks.append(Chunk(title, heading, text[start:end], line, last))
        line += newlines
    return chunks


def chunk_safely(path: str, text: str) -> list[Chunk]:
    """Return the chunks of a text, cut along its structure, or by length if that fails.

    Files come from strangers: one that crashes a parser must not hide all others.
    """
    try:
        return chunk_document(path, text)
    except Exception:  # noqa: BLE001 - whatever a parser of hostile text may raise
        return chunk_document("", text, Document(text))


def _cut(text: str, outline: Document) -> Iterator[_Piece]:
    """Yield the spans between the edges of sections; spans over the cap are cut in parts."""
    wholes = [whole for whole in outline.wholes if whole[1] - whole[0] <= CAP]
    separators = _IN_CODE if outline.is_code else _IN_PROSE
    open_: list[Section] = []
    start, heading = outline.start, ""
    page = (outline.title,) if outline.title else ()
    for edge, section in _find_edges(text, outline):
        titles = (*page, *(each.title for each in open_))
        # A heading without text joins the section below it.
        is_bare = section and heading and edge - start <= BARE and open_ and edge < open_[-1].end
        if edge > start and not is_bare:
            while edge - start > CAP:
                cut = _cut_point(text, start, start + CAP, wholes, separators)
                if cut >= edge:
                    break
                yield _Piece(start, cut, titles, heading)
                start, heading = cut, ""
            yield _Piece(start, edge, titles, heading)
            start, heading = edge, ""
        while open_ and open_[-1].end <= edge:
            open_.pop()
        if section:
            open_.append(section)
            # For a method its own name, since its type is in the title.
            title = section.title
            name = title.rpartition(_IN_CODE_NAMES)[2] if outline.is_code else title
            heading = f"{heading} {name}" if heading else name


def _find_edges(text: str, outline: Document) -> Iterator[tuple[int, Section | None]]:
    """Yield the places within a text's own span where sections begin or end, in order."""
    end = len(text) if outline.end is None else outline.end
    inside = [each for each in outline.sections if outline.start <= each.start < end]
    starts = {section.start for section in inside}
    ends = {section.end for section in inside if section.end < end} - starts
    edges: list[tuple[int, Section | None]] = [(section.start, section) for section in inside]
    yield from sorted([*edges, *((edge, None) for edge in ends)], key=lambda edge: edge[0])
    yield end, None


def _cut_point(
    text: str, start: int, limit: int, wholes: Sequence[tuple[int, int]], separators: Sequence[str]
) -> int:
    """Return the best offset in (start, limit] to cut at, or the end of a whole around it.

    It is after the last of the first separator that is found, else at the limit. Cuts in the first
    third, which would make tiny chunks, are not used.
    """
    earliest = start + (limit - start) // 3
    cut = limit
    for separator in separators:
        if (found := text.rfind(separator, earliest, limit)) >= 0:
            cut = found + len(separator)
            break
    at = bisect_right(wholes, (cut, 0)) - 1
    return wholes[at][1] if at >= 0 and cut < wholes[at][1] else cut


def _merge(pieces: Iterator[_Piece]) -> Iterator[list[_Piece]]:
    """Yield groups of pieces; a short piece is grouped with those that follow."""
    group: list[_Piece] = []
    for piece in pieces:
        if group:
            start = group[0].start
            if group[-1].end - start >= FLOOR or piece.end - start > CAP:
                yield group
                group = []
        group.append(piece)
    if group:
        yield group


def _name(pieces: Sequence[_Piece], separator: str) -> tuple[str, str]:
    """Return the title and the heading of a chunk.

    The title is the breadcrumb of its first section and the titles of the others.
    """
    title = next(filter(None, (separator.join(piece.titles) for piece in pieces)), "")
    heading = pieces[0].heading
    if len(pieces) > 1:
        names = [title, *(piece.titles[-1] for piece in pieces[1:] if piece.titles)]
        title = ", ".join(dict.fromkeys(filter(None, names)))
        heading = " ".join([piece.heading for piece in pieces if piece.heading])
    title = title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
    return title, heading[:MAX_TITLE]
