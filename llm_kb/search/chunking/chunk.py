"""Cutting a document into chunks along its structure.

The chunks of a document, joined, are the document, without overlap, and no chunk is longer
than the cap. Of an HTML page they are its main element, where it marks one, else its body. Where
a chunk ends depends on its own section, so that a change in one section leaves the chunks of the
others as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from llm_kb.search.chunking.documents import MAX_TITLE, Chunk, Mark, Outline
from llm_kb.search.chunking.outline import find_outline

CAP = 1200
"""Longest chunk, in characters."""

FLOOR = 300
"""A chunk shorter than this takes in the next section, if both fit the cap."""

BARE = 120
"""A section of at most so many characters before a deeper one counts as a heading alone."""

TAIL = 150
"""Shortest last part of a section that is cut, in characters."""

# Where to cut, the best first.
_BLANK_LINES = ("\n\n", "\n\r\n")
_IN_PROSE = (*_BLANK_LINES, ".\n", ".\r\n", "\n", ". ", " ")
_IN_CODE = (*_BLANK_LINES, "\n", " ")  # a line that ends in a dot may describe the next


class _Section(NamedTuple):
    """A span of a document and the labels of the sections around it."""

    start: int
    end: int
    labels: tuple[str, ...]
    heading: str
    """The label of the section that begins here; empty in later parts of a section."""


def chunk_document(
    path: str, text: str, *, cap: int = CAP, floor: int = FLOOR, outline: Outline | None = None
) -> list[Chunk]:
    """Return the chunks of a text, cut along its outline; an empty text has none."""
    outline = find_outline(path, text) if outline is None else outline
    chunks: list[Chunk] = []
    line = 1 + text.count("\n", 0, outline.start)
    for sections in _merge(_cut(text, outline, cap), outline, cap, floor):
        start, end = sections[0].start, sections[-1].end
        newlines = text.count("\n", start, end)
        ends_line = text[end - 1] == "\n"
        last = max(line, line + newlines - ends_line)
        title, heading = _name(sections, outline.separator)
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
        return chunk_document("", text, outline=Outline())


def _cut(text: str, outline: Outline, cap: int) -> Iterator[_Section]:
    """Yield the spans between the marks; spans over the cap are cut in parts."""
    wholes = [whole for whole in outline.wholes if whole[1] - whole[0] <= cap]
    separators = _IN_CODE if outline.is_code else _IN_PROSE
    depths: list[int] = []
    labels: tuple[str, ...] = ()
    start = outline.start
    heading = ""
    end = len(text) if outline.end is None else outline.end
    marks = [mark for mark in outline.marks if start <= mark.offset < end]
    for offset, depth, label in chain(marks, [Mark(end, 0, "")]):
        # A heading without text joins the section below it.
        is_bare = (
            label
            and heading
            and offset - start <= BARE
            and ((depths and depth > depths[-1]) or not _has_text(text[start:offset], heading))
        )
        if offset > start and not is_bare:
            while offset - start > cap:
                limit = min(start + cap, max(start + cap // 2, offset - TAIL))
                cut = _cut_point(text, start, limit, wholes, separators)
                yield _Section(start, cut, labels, heading)
                start, heading = cut, ""
            yield _Section(start, offset, labels, heading)
            start, heading = offset, ""
        while depths and depths[-1] >= depth:
            depths.pop()
        labels = labels[: len(depths)]
        if label:
            depths.append(depth)
            labels = (*labels, label)
            # For a method its own name, since its type is in the title.
            name = label.rpartition(outline.separator)[2] if outline.is_code else label
            heading = f"{heading} {name}" if heading else name


def _has_text(section: str, heading: str) -> bool:
    """Tell whether a section has words besides its heading."""
    return any(character.isalnum() for character in section.replace(heading, "", 1))


def _cut_point(
    text: str,
    start: int,
    limit: int,
    wholes: Sequence[tuple[int, int]],
    separators: Sequence[str],
) -> int:
    """Return the best offset in (start, limit] to cut at.

    It is after the last of the first separator that is found, else at the limit. Cuts in the first
    third, which would make tiny chunks, are not used. A cut inside a whole moves to its end or its
    start.
    """
    earliest = start + (limit - start) // 3
    cut = _find_last(text, separators, earliest, limit) or limit
    if whole := _find_around(wholes, cut):
        # A whole at the start of the part may pass the limit, since it fits the cap.
        is_kept = whole[1] <= limit or whole[0] <= start
        cut = whole[1 if is_kept else 0]
    above = _find_lead_in(text, earliest, cut)
    return above if above and not _find_around(wholes, above) else cut


def _find_last(text: str, separators: Sequence[str], start: int, end: int) -> int:
    """Return the end of the last of the first separator that a span has; 0 if it has none."""
    for separator in separators:
        found = text.rfind(separator, start, end)
        if found != -1:
            return found + len(separator)
    return 0


def _find_around(wholes: Sequence[tuple[int, int]], offset: int) -> tuple[int, int] | None:
    """Return the whole that an offset is inside of."""
    at = bisect_right(wholes, (offset, 0)) - 1
    return wholes[at] if at >= 0 and wholes[at][0] < offset < wholes[at][1] else None


def _find_lead_in(text: str, earliest: int, cut: int) -> int:
    """Return the start of the paragraph above a cut if its colon announces what follows, else 0."""
    above = text[earliest:cut].rstrip()
    if not above.endswith((":", ":</p>")):
        return 0
    return _find_last(text, _BLANK_LINES, earliest, earliest + len(above))


def _merge(
    sections: Iterator[_Section], outline: Outline, cap: int, floor: int
) -> Iterator[list[_Section]]:
    """Yield groups of sections; a short section is grouped with those that follow."""
    group: list[_Section] = []
    for section in sections:
        if group:
            start = group[0].start
            # Code that names nothing, such as imports, is not alone if it fits.
            is_named = any(section.labels for section in group)
            enough = cap if outline.is_code and not is_named else floor
            if group[-1].end - start >= enough or section.end - start > cap:
                yield group
                group = []
        group.append(section)
    if group:
        yield group


def _name(sections: Sequence[_Section], separator: str) -> tuple[str, str]:
    """Return the title and the heading of a chunk.

    The title is the breadcrumb of its first section and the labels of the others.
    """
    title = separator.join(sections[0].labels)
    heading = sections[0].heading
    if len(sections) > 1:
        names = [title, *(section.labels[-1] for section in sections[1:] if section.labels)]
        title = ", ".join(dict.fromkeys(filter(None, names)))
        heading = " ".join([section.heading for section in sections if section.heading])
    title = title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
    return title, heading[:MAX_TITLE]
