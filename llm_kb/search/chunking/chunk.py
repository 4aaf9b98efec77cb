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
_SEPARATORS = ("\n\n", "\n\r\n", ".\n", "\n", ". ", " ")


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
    for sections in _merge(_cut(text, outline, cap), cap, floor):
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
                cut = _cut_point(text, start, limit, wholes)
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
            name = label.rpartition(outline.separator)[2] if outline.separator == "." else label
            heading = f"{heading} {name}" if heading else name


def _has_text(section: str, heading: str) -> bool:
    """Tell whether a section has words besides its heading."""
    return any(character.isalnum() for character in section.replace(heading, "", 1))


def _cut_point(text: str, start: int, limit: int, wholes: Sequence[tuple[int, int]]) -> int:
    """Return the best offset in (start, limit] to cut at.

    It is after the last blank line, else the last line end (of a sentence, if one ends a line),
    else the last sentence or space, else at the limit. Cuts in the first third, which would make
    tiny chunks, are not used. A cut inside a whole moves to its end or its start.
    """
    earliest = start + (limit - start) // 3
    cut = limit
    for separator in _SEPARATORS:
        found = text.rfind(separator, earliest, limit)
        if found != -1:
            cut = found + len(separator)
            break
    at = bisect_right(wholes, (cut, 0)) - 1
    if at >= 0 and wholes[at][0] < cut < wholes[at][1]:
        # A whole at the start of the part may pass the limit, since it fits the cap.
        is_kept = wholes[at][1] <= limit or wholes[at][0] <= start
        cut = wholes[at][1 if is_kept else 0]
    return _before_lead_in(text, earliest, cut)


def _before_lead_in(text: str, earliest: int, cut: int) -> int:
    """Return the start of the paragraph above a cut if its colon announces what follows."""
    above = text[earliest:cut].rstrip()
    paragraph = above.rfind("\n\n") if above.endswith((":", ":</p>")) else -1
    return cut if paragraph == -1 else earliest + paragraph + 2


def _merge(sections: Iterator[_Section], cap: int, floor: int) -> Iterator[list[_Section]]:
    """Yield groups of sections; a short section is grouped with those that follow."""
    group: list[_Section] = []
    for section in sections:
        if group:
            start = group[0].start
            # What names nothing, such as imports, is not alone if it fits.
            enough = floor if any(section.labels for section in group) else cap
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
