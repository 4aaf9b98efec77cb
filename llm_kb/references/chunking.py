"""Cut a document into chunks along its structure, losing nothing.

The chunks of a document, joined, are the document. No chunk is longer than the
cap, there is no overlap, and where a chunk ends depends on its own section, so
that a change in one section leaves the chunks of the others alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from llm_kb.references.chunking_code import CODE_SUFFIXES, outline_code
from llm_kb.references.chunking_markup import outline_markdown, outline_rst
from llm_kb.references.chunking_syntax import outline_syntax
from llm_kb.references.documents import MAX_TITLE, Chunk, Outline

CAP = 1200
"""Characters a chunk has at most."""

FLOOR = 300
"""A chunk shorter than this takes in the next section, where both fit the cap."""

_OUTLINERS: dict[str, Callable[[str], Outline]] = {
    ".md": outline_markdown,
    ".mdx": outline_markdown,
    ".markdown": outline_markdown,
    ".qmd": outline_markdown,
    # Plain text underlines its titles the same way, and some projects name such files so.
    ".rst": outline_rst,
    ".txt": outline_rst,
    "": outline_rst,
}


class _Section(NamedTuple):
    """A span of a document and the labels of the sections around it."""

    start: int
    end: int
    labels: tuple[str, ...]
    heading: str
    """The label of what begins here; empty in later parts of a section."""


def outline_document(path: str, text: str) -> Outline:
    """Outline a text by the extension of its path; without one that is known, by nothing."""
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    suffix = f".{extension.lower()}" if dot and stem else ""
    if suffix in CODE_SUFFIXES:
        return outline_syntax(suffix, text) or outline_code(suffix, text)
    outliner = _OUTLINERS.get(suffix)
    return outliner(text) if outliner else Outline()


def chunk_document(path: str, text: str, *, cap: int = CAP, floor: int = FLOOR) -> list[Chunk]:
    """Cut a text into chunks; empty for an empty text."""
    outline = outline_document(path, text)
    chunks: list[Chunk] = []
    line = 1
    for sections in _merge(_cut(text, outline, cap), cap, floor):
        start, end = sections[0].start, sections[-1].end
        newlines = text.count("\n", start, end)
        ends_line = text[end - 1] == "\n"
        last = max(line, line + newlines - ends_line)
        title = _title(sections, outline.separator)
        heading = " ".join([section.heading for section in sections if section.heading])
        chunks.append(Chunk(title, heading[:MAX_TITLE], text[start:end], line, last))
        line += newlines
    return chunks


def _sections(text: str, outline: Outline) -> Iterator[_Section]:
    """Yield the spans between the marks, each with the labels above it."""
    depths: list[int] = []
    labels: list[str] = []
    start = 0
    heading = ""
    for offset, depth, label in outline.marks:
        if offset > start:
            yield _Section(start, offset, tuple(labels), heading)
            start = offset
            heading = ""
        heading = f"{heading} {label}".strip()
        while depths and depths[-1] >= depth:
            depths.pop()
            labels.pop()
        if label:
            depths.append(depth)
            labels.append(label)
    if start < len(text):
        yield _Section(start, len(text), tuple(labels), heading)


def _cut(text: str, outline: Outline, cap: int) -> Iterator[_Section]:
    """Yield the sections, those over the cap in parts."""
    wholes = [whole for whole in outline.wholes if whole[1] - whole[0] <= cap]
    for section in _sections(text, outline):
        start, end, labels, heading = section
        if end - start <= cap:
            yield section
            continue
        while end - start > cap:
            cut = _cut_point(text, start, start + cap, wholes)
            yield _Section(start, cut, labels, heading)
            start, heading = cut, ""
        yield _Section(start, end, labels, heading)


def _cut_point(text: str, start: int, limit: int, wholes: Sequence[tuple[int, int]]) -> int:
    """Return the best offset in (start, limit] to cut at.

    That is after the last blank line, else the last line end, else the last
    space, else the limit, leaving out the first third, which would make tiny
    chunks. A cut inside a whole moves to its end, or to its start.
    """
    earliest = start + (limit - start) // 3
    cut = limit
    for separator in ("\n\n", "\n\r\n", "\n", " "):
        found = text.rfind(separator, earliest, limit)
        if found != -1:
            cut = found + len(separator)
            break
    at = bisect_right(wholes, (cut, 0)) - 1
    if at >= 0 and wholes[at][0] < cut < wholes[at][1]:
        return wholes[at][1] if wholes[at][1] <= limit else wholes[at][0]
    return cut


def _merge(sections: Iterator[_Section], cap: int, floor: int) -> Iterator[list[_Section]]:
    """Group sections too short to stand alone with those that follow."""
    group: list[_Section] = []
    for section in sections:
        if group:
            start = group[0].start
            if group[-1].end - start >= floor or section.end - start > cap:
                yield group
                group = []
        group.append(section)
    if group:
        yield group


def _title(sections: Sequence[_Section], separator: str) -> str:
    """Name a chunk after its sections: the first one's breadcrumb, the others' labels."""
    title = separator.join(sections[0].labels)
    if len(sections) > 1:
        names = [title, *(section.labels[-1] for section in sections[1:] if section.labels)]
        title = ", ".join(dict.fromkeys(filter(None, names)))
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
