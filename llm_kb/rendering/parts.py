"""The parts of a subject: found by their addresses, rendered, and listed in outlines. Pure.

`slug#anchor` is a section of its text, `slug#L10-L20` are lines.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from llm_kb.errors import NoPartError, find_similar
from llm_kb.rendering.plain_text import count, estimate_tokens
from llm_kb.rendering.presentation import Presented, present, truncate
from llm_kb.subjects.topics import Content, Subject
from llm_kb.texts.decoding import hide_embedded, is_binary
from llm_kb.texts.document import (
    Document,
    Section,
    find_line,
    find_line_numbers,
    name_lines,
)
from llm_kb.texts.outlines.outline import read_document
from llm_kb.texts.safe import defuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit of one answer; 0 sets none."""

    most: int = 0
    in_bytes: bool = False
    """Whether it counts the bytes, in UTF-8, of the whole answer; else the characters of subjects,
    without notices."""
    notices: int = 1_500
    """The part of such bytes that is kept for lists of what is left out or not found."""

    @property
    def texts(self) -> int:
        """What subjects may take of the limit."""
        return self.most - min(self.notices, self.most // 4) if self.in_bytes else self.most

    @property
    def unit(self) -> str:
        """What is counted."""
        return "bytes" if self.in_bytes else "characters"

    def measure(self, text: str) -> int:
        """Return the length of a text as this limit counts it."""
        return len(text.encode("utf-8", "replace")) if self.in_bytes else len(text)

    def fit(self, text: str, size: int) -> int:
        """Return the number of first characters of a text that measure at most `size`."""
        if not self.in_bytes or size <= 0:
            return max(0, size)
        return len(text[:size].encode("utf-8", "replace")[:size].decode("utf-8", "ignore"))

    def share(self, number: int, used: int) -> Limit:
        """Return the limit of each of a number of texts in one answer, beside what is used."""
        if not self.most:
            return self
        left = self.most - used if self.in_bytes else self.most
        return replace(self, most=max(1, left // number))

    def keep(self, lines: Sequence[str], room: int) -> list[str]:
        """Return the first lines that fit into the room as a list, and the number of the others.

        Only bytes are counted.
        """
        if not self.in_bytes or not self.most:
            return list(lines)
        kept: list[str] = []
        room -= len("- and 1,000,000 more\n")
        for line in lines:
            room -= self.measure(line) + len("- \n")
            if room < 0:
                return [*kept, f"and {len(lines) - len(kept):,} more"]
            kept.append(line)
        return kept


NO_LIMIT = Limit()


WHOLE = "*"
"""The anchor of a whole subject, without its outline."""

OUTLINE = ""
"""The anchor of a subject's outline, even if the subject is small."""

OPENING = 1_500
"""Number of characters, or bytes, of the text that are shown above an outline."""

LONGEST_OUTLINE = 6_000
"""Maximum number of them in an outline; parts that do not fit are counted."""

LONGEST_ANCHOR = 200
"""Maximum number of characters of a requested anchor that are read."""

MOST_NEAR = 5

_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\W_]+")


def find_spans(
    document: Document, anchors: Iterable[str]
) -> tuple[list[Section], dict[str, Sequence[str]]]:
    """Return the spans of anchors in a text, and the unknown anchors with similar ones.

    An anchor may have other separators, or be its part's own name if that is unique.
    Overlapping spans become one, so no text is returned twice.
    """
    spans: list[Section] = []
    unknown: dict[str, Sequence[str]] = {}
    exact = {part.anchor.casefold(): part for part in document.sections}
    by_name: defaultdict[str, list[Section]] = defaultdict(list)
    for part in document.sections:
        by_name[_loosen(part.anchor.rpartition("/")[2])].append(part)
    for anchor in dict.fromkeys(anchors):
        asked = anchor[:LONGEST_ANCHOR]
        named = by_name.get(_loosen(asked.rpartition("/")[2]), [])
        alike = [part for part in named if _loosen(part.anchor) == _loosen(asked)] or named
        span = exact.get(asked.casefold()) or _find_lines(document.text, asked)
        if span or len(alike) == 1:
            _add_span(document.text, spans, span or alike[0])
        elif _LINES.fullmatch(asked):
            unknown[anchor] = [name_lines(1, count_lines(document.text))]
        else:
            known = (each.anchor for each in document.sections)
            similar = find_similar(asked, known, most=MOST_NEAR)
            unknown[anchor] = [part.anchor for part in named[:MOST_NEAR]] or similar
    return spans, unknown


def count_lines(text: str) -> int:
    """Return the number of lines of a text."""
    return text.count("\n") + (not text.endswith("\n"))


def _loosen(anchor: str) -> str:
    """Return an anchor without case, and with one kind of separator."""
    return _SEPARATORS.sub("-", anchor.casefold()).strip("-")


def _find_lines(text: str, anchor: str) -> Section | None:
    """Return the span of `L10-L20`, as far as the text has these lines."""
    if not (found := _LINES.fullmatch(anchor)):
        return None
    first, last = int(found[1]), min(int(found[2] or found[1]), count_lines(text))
    if not 1 <= first <= last:
        return None
    start = find_line(text, 0, first - 1)
    return Section(start, find_line(text, start, last - first + 1), 0, "", name_lines(first, last))


def _add_span(text: str, spans: list[Section], new: Section) -> None:
    """Add a span to others, joined with those it overlaps, in the place of the first."""
    joined = [each for each in spans if each.start < new.end and new.start < each.end]
    place = spans.index(joined[0]) if joined else len(spans)
    joined.append(new)
    start, end = min(each.start for each in joined), max(each.end for each in joined)
    lines = Section(start, end, 0, "", name_lines(*find_line_numbers(text, start, end)))
    whole = next((each for each in joined if each[:2] == (start, end)), lines)
    spans[:] = [each for each in spans if each not in joined]
    spans.insert(place, whole)


# Rendering


def present_asked(  # noqa: PLR0913 - the last are options
    subject: Subject,
    content: Content,
    asked: Sequence[str | None],
    *,
    topic: str,
    outline_over: int = 0,
    limit: Limit = NO_LIMIT,
) -> tuple[list[Presented], list[NoPartError]]:
    """Return the requested pieces of a subject, each once, and an error for each unknown anchor.

    `asked` has anchors, and None for the subject itself. A text over `outline_over`
    characters (0: never), or bytes if the limit counts them, is given as its beginning and outline:
    the subject, or a part that has parts of its own. Parts come after the subject.
    """
    whole = present(subject, content)
    if is_binary(content.data) or not content.data:
        return [whole], []
    text, _ = hide_embedded(decode_exactly(content.data))
    whole = whole._replace(lines=(1, count_lines(text)))
    if WHOLE in asked:
        return [whole._replace(anchor=f"#{WHOLE}")], []
    most = outline_over or limit.measure(text)
    if None in asked and limit.measure(text) <= most:
        return [whole], []
    document = read_document(subject.path, text)
    # Without a heading and a second line, nothing of it could be chosen.
    is_fitting = not limit.most or limit.measure(text) <= limit.texts
    if None in asked and not document.sections and is_fitting and count_lines(text) == 1:
        return [whole], []
    spans, unknown = find_spans(document, filter(None, asked))
    pieces = []
    if OUTLINE in asked or None in asked:
        span = Section(0, len(text), 0, "", WHOLE)
        outline = render_outline(subject.name, topic, text, span, document.sections, limit=limit)
        opened = _open(whole, outline, limit)
        pieces.append(opened if None in asked else opened._replace(anchor="#"))
    for span in spans:
        piece = _present_span(subject, content, text, span)
        # Lines have no depth, and no parts.
        parts = document.sections if span.depth else ()
        inner = [part for part in parts if span.start < part.start and part.end <= span.end]
        if inner and limit.measure(text[span.start : span.end]) > most:
            outline = render_outline(subject.name, topic, text, span, inner, limit=limit)
            piece = _open(piece, outline, limit)
        pieces.append(piece)
    return pieces, [NoPartError(topic, subject.name, each, near) for each, near in unknown.items()]


def _open(piece: Presented, outline: str, limit: Limit) -> Presented:
    """Return the beginning of a piece with its outline."""
    opening = truncate(piece, limit.fit(piece.body, OPENING))
    return opening._replace(below=outline, is_opening=True)


def take_pieces(subject: Subject, data: bytes, asked: Sequence[str | None]) -> list[bytes]:
    """Return the bytes of the requested file or parts."""
    if not {None, WHOLE, OUTLINE}.isdisjoint(asked):
        return [data]
    text = decode_exactly(data)
    spans, _ = find_spans(read_document(subject.path, text), filter(None, asked))
    return [encode_exactly(text[span.start : span.end]) for span in spans]


def decode_exactly(data: bytes) -> str:
    """Decode a file so that any piece of its text can be encoded to the same bytes again."""
    return data.decode("utf-8-sig", "surrogateescape")


def encode_exactly(text: str) -> bytes:
    """Return the bytes of a piece of a text that `decode_exactly` made."""
    return text.encode("utf-8", "surrogateescape")


def _present_span(subject: Subject, content: Content, text: str, span: Section) -> Presented:
    data = encode_exactly(text[span.start : span.end])
    first, last = find_line_numbers(text, span.start, span.end)
    piece = present(
        subject._replace(name=f"{subject.name}#{span.anchor}"),
        content._replace(data=data, size=len(data)),
        note=f"lines {first:,}-{last:,} of {count_lines(text):,}",
    )
    return piece._replace(lines=(first, last))


def render_outline(  # noqa: PLR0913 - each is a part of the sentence
    name: str,
    topic: str,
    text: str,
    span: Section,
    parts: Sequence[Section],
    *,
    limit: Limit = NO_LIMIT,
) -> str:
    """Return the parts of a span of a subject with their sizes, nested, and how to load them."""
    part_name = name if span.anchor == WHOLE else f"{name}#{span.anchor}"
    first, last = find_line_numbers(text, span.start, span.end)
    tokens = estimate_tokens(text[span.start : span.end])
    sizes = f"{count(last - first + 1, 'line')}, ~{tokens:,} tokens"
    heading = f"## Outline of {part_name} ({sizes})"
    shown = "\n".join(_render_parts(parts, limit)) if parts else "It has no headings."
    calls = [f"{name}#{parts[min(1, len(parts) - 1)].anchor}"] if parts else []
    calls.append(f"{name}#{name_lines(first, min(last, first + 199))}")
    kinds = "parts or lines" if parts else "lines"
    call = f"learn({json.dumps(topic)}, {json.dumps(calls, ensure_ascii=False)})"
    every = WHOLE if span.anchor == WHOLE else name_lines(first, last)
    whole = json.dumps(f"{name}#{every}", ensure_ascii=False)
    how = f"Load {kinds} with {call}, or all of it with {whole}."
    return defuse(f"{heading}\n\n{shown}\n\n{how}")


def _render_parts(parts: Sequence[Section], limit: Limit) -> list[str]:
    """Return a line for each part, down to the depth that fits; deeper parts are counted."""
    deepest = max(part.depth for part in parts)
    for depth in range(deepest, 0, -1):
        lines = _render_depths(parts, depth)
        if sum(map(limit.measure, lines)) + len(lines) <= LONGEST_OUTLINE:
            return lines
    ends = accumulate(limit.measure(line) + 1 for line in lines)
    kept = sum(end <= LONGEST_OUTLINE for end in ends)
    return [*lines[:kept], f"- and {len(lines) - kept:,} more at this level"]


def _render_depths(parts: Sequence[Section], deepest: int) -> list[str]:
    """Return a line for each part of these levels, with the number of those below them."""
    lines: list[str] = []
    below = 0
    top = min(part.depth for part in parts)
    for part in reversed(parts):
        if part.depth > deepest:
            below += 1
            continue
        tokens = estimate_tokens(part.end - part.start)
        inner = f", {count(below, 'part')}" if below else ""
        below = 0
        lines.append(f"{'  ' * (part.depth - top)}- #{part.anchor} (~{tokens:,} tokens{inner})")
    return lines[::-1]
