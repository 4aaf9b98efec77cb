"""Renders a requested subject: all of it, its outline, or parts of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llm_kb.rendering.menu import estimate_tokens
from llm_kb.rendering.parts import AnchorError, Part, Span, find_parts, find_spans, name_lines
from llm_kb.rendering.plain_text import count, defuse
from llm_kb.rendering.presentation import Presented, present, truncate
from llm_kb.subjects.topics import Content, Subject, is_binary

WHOLE = "*"
"""The anchor of a whole subject, however large."""

OUTLINE = ""
"""The anchor of a subject's outline, even if the subject is small."""

OPENING = 1_500
"""Number of characters of the text that are shown above an outline."""

LONGEST_OUTLINE = 6_000
"""Maximum number of characters of an outline; parts that do not fit are counted."""


def present_asked(
    subject: Subject,
    content: Content,
    asked: Sequence[str | None],
    *,
    topic: str,
    outline_over: int = 0,
) -> tuple[list[Presented], list[AnchorError]]:
    """Return the requested pieces of a subject, each once, and the unknown anchors.

    `asked` has anchors, and None for the subject itself. A text over `outline_over`
    characters (0: never) is given as its beginning and outline: the subject, or a part that
    has parts of its own. Parts come after the subject.
    """
    if WHOLE in asked or is_binary(content.data) or not content.data:
        return [present(subject, content)], []
    text = decode_exactly(content.data)
    is_large = 0 < outline_over < len(text)
    if None in asked and not is_large:
        return [present(subject, content)], []
    parts = find_parts(text, subject.path)
    pieces = []
    if OUTLINE in asked or None in asked:
        opening = truncate(present(subject, content), OPENING)
        whole = Span(WHOLE, 1, count_lines(text), 0, len(text))
        outline = render_outline(subject.name, topic, text, whole, parts)
        pieces.append(opening._replace(below=outline, is_opening=True, is_bare=False))
    spans = find_spans(text, parts, [anchor for anchor in asked if anchor])
    lines = count_lines(text)
    for span in spans:
        if isinstance(span, Span):
            piece = _present_span(subject, content, text, span, lines)
            is_large = 0 < outline_over < span.end - span.start
            inner = _find_inner(parts, span) if is_large else ()
            if inner:
                outline = render_outline(subject.name, topic, text, span, inner)
                piece = truncate(piece, OPENING)
                piece = piece._replace(below=outline, is_opening=True, is_bare=False)
            pieces.append(piece)
    return pieces, [span for span in spans if isinstance(span, AnchorError)]


def _find_inner(parts: Sequence[Part], span: Span) -> list[Part]:
    """Return the parts below a part; none below lines."""
    if all(part.anchor != span.anchor for part in parts):
        return []
    return [part for part in parts if span.start < part.start and part.end <= span.end]


def take_pieces(subject: Subject, data: bytes, asked: Sequence[str | None]) -> list[bytes]:
    """Return the bytes of the requested file or parts."""
    if not {None, WHOLE, OUTLINE}.isdisjoint(asked):
        return [data]
    text = decode_exactly(data)
    spans = find_spans(text, find_parts(text, subject.path), filter(None, asked))
    return [encode_exactly(text[s.start : s.end]) for s in spans if isinstance(s, Span)]


def decode_exactly(data: bytes) -> str:
    """Decode a file so that any piece of its text can be encoded to the same bytes again."""
    return data.decode("utf-8-sig", "surrogateescape")


def encode_exactly(text: str) -> bytes:
    """Return the bytes of a piece of a text that `decode_exactly` made."""
    return text.encode("utf-8", "surrogateescape")


def count_lines(text: str) -> int:
    """Return the number of lines of a text."""
    return text.count("\n") + (not text.endswith("\n"))


def describe_size(size: int, parts: int) -> str:
    """Return the size of a large subject for listings: `(~29,900 tokens, 182 parts)`."""
    inside = f", {count(parts, 'part')}" if parts else ""
    return f"(~{-(-size // 4):,} tokens{inside})"


def _present_span(
    subject: Subject, content: Content, text: str, span: Span, lines: int
) -> Presented:
    data = encode_exactly(text[span.start : span.end])
    return present(
        subject._replace(name=f"{subject.name}#{span.anchor}"),
        Content(data=data, size=len(data), origin=content.origin),
        note=f"lines {span.first_line:,}-{span.last_line:,} of {lines:,}",
    )


def render_outline(name: str, topic: str, text: str, span: Span, parts: Sequence[Part]) -> str:
    """Return the parts of a span of a subject with their sizes, nested, and how to load them."""
    part_name = name if span.anchor == WHOLE else f"{name}#{span.anchor}"
    lines = span.last_line - span.first_line + 1
    sizes = f"{count(lines, 'line')}, ~{estimate_tokens(text[span.start : span.end]):,} tokens"
    heading = f"## Outline of {part_name} ({sizes})"
    shown = "\n".join(_render_parts(parts)) if parts else "It has no headings."
    calls = [f"{name}#{parts[min(1, len(parts) - 1)].anchor}"] if parts else []
    last = min(span.last_line, span.first_line + 199)
    calls.append(f"{name}#{name_lines(span.first_line, last)}")
    kinds = "parts or lines" if parts else "lines"
    call = f"learn({json.dumps(topic)}, {json.dumps(calls, ensure_ascii=False)})"
    every = WHOLE if span.anchor == WHOLE else name_lines(span.first_line, span.last_line)
    whole = json.dumps(f"{name}#{every}", ensure_ascii=False)
    how = f"Load {kinds} with {call}, or all of it with {whole}."
    return defuse(f"{heading}\n\n{shown}\n\n{how}")


def _render_parts(parts: Sequence[Part]) -> list[str]:
    """Return a line for each part, down to the depth that fits; deeper parts are counted."""
    deepest = max(part.level for part in parts)
    for level in range(deepest, 0, -1):
        lines = _render_levels(parts, level)
        if sum(map(len, lines)) + len(lines) <= LONGEST_OUTLINE:
            return lines
    kept, room = [], LONGEST_OUTLINE
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return [*kept, f"- and {len(lines) - len(kept):,} more beside these"]


def _render_levels(parts: Sequence[Part], deepest: int) -> list[str]:
    """Return a line for each part of these levels, with the number of those below them."""
    lines: list[str] = []
    below = 0
    top = min(part.level for part in parts)
    for part in reversed(parts):
        if part.level > deepest:
            below += 1
            continue
        tokens = -(-(part.end - part.start) // 4)
        inner = f", {count(below, 'part')}" if below else ""
        below = 0
        lines.append(f"{'  ' * (part.level - top)}- #{part.anchor} (~{tokens:,} tokens{inner})")
    return lines[::-1]
