"""What the `learn` tool answers: the listing of a topic, or the text of its subjects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_kb.errors import NoMatchError
from llm_kb.narrowing import narrow
from llm_kb.plain_text import one_line
from llm_kb.presentation import Presented, truncate, wrap_subject
from llm_kb.topics import Topic

MOST_LISTED = 500
"""A longer list is told by directories and patterns."""

FEW = 100
MOST_GROUPS = 200
"""Groups of at most `FEW` subjects, unless that makes more than `MOST_GROUPS` of them."""

_CUT_NOTICE = 100
"""Room for the notice of a cut, which is shorter."""

_HOW_TO_CONTINUE = "load them with another call of the `learn` tool."

_HOW_TO_LOAD = "Use the `learn` tool with the `subjects` argument to learn specific subjects."


def render_listing(topic: Topic, available: Sequence[str], learned: Sequence[str] = ()) -> str:
    """Return what a topic holds: the subjects to learn, then those learned already.

    Names stand in the order they are given, so pass them sorted.
    """
    parts = [f"# Topic: {one_line(topic.label)}"]
    description = (topic.description or "").strip()
    if description:
        parts.append(description)
    if len(available) > MOST_LISTED:
        parts += [f"## Available subjects:\n\n{_narrowed(available)}", _HOW_TO_LOAD]
    elif available:
        parts += [f"## Available subjects:\n\n{_bullets(available)}", _HOW_TO_LOAD]
    elif not learned:
        parts.append("This topic lists no subjects.")
    if learned:
        parts.append(_already(learned))
    return "\n\n".join(parts)


def render_load(
    items: Iterable[Presented],
    *,
    wrap: bool,
    already: Sequence[str] = (),
    missing: Sequence[NoMatchError] = (),
    max_chars: int = 0,
) -> str:
    """Return the text of subjects, then what of the request it does not hold.

    `wrap` puts each between its tags; without it `items` holds one at most. The
    limit (0 is none) counts the characters of subjects, in their order: one that no longer
    fits is left out whole and listed with its size. Only when not even one fits
    the first is cut, at a line, with a notice of how much is not shown. Notices
    come on top of the limit. Items are consumed one by one, so that those left
    out need never be in memory together.
    """
    texts: list[str] = []
    left_out: list[tuple[str, int]] = []
    first: Presented | None = None
    room = max_chars
    for item in items:
        first = first or item
        text = wrap_subject(item) if wrap else item.text
        if max_chars and (item.is_cut or len(text) > room):
            left_out.append((item.name, item.size))
        else:
            texts.append(text)
            room -= len(text)
    if first and not texts:
        texts.append(_cut(first, max_chars, wrap=wrap))
        left_out = left_out[1:]
    if left_out:
        texts.append(_left_out(left_out, max_chars))
    if already:
        texts.append(_already(already))
    if missing:
        texts.append("## Not found:\n\n" + _bullets([str(error) for error in missing]))
    return "\n\n".join(texts)


def _cut(item: Presented, max_chars: int, *, wrap: bool) -> str:
    """Return the start of a subject, within the limit where that is not tiny."""
    text = wrap_subject(item) if wrap else item.text
    frame = len(text) - len(item.body) + _CUT_NOTICE
    cut = truncate(item, max(0, max_chars - frame))
    return wrap_subject(cut) if wrap else cut.text


def _left_out(left_out: Sequence[tuple[str, int]], max_chars: int) -> str:
    """Return the notice of whole subjects that found no room, with every byte of them."""
    sizes: dict[str, int] = {}
    for name, size in left_out:
        sizes[name] = sizes.get(name, 0) + size
    total = f"{len(left_out):,} left out, {sum(sizes.values()):,} bytes"
    lines = (
        [f"{name} ({size:,} bytes)" for name, size in sizes.items()]
        if len(sizes) <= MOST_LISTED
        else [
            f"`{group.pattern}`: {len(group.names):,} subjects"
            f" ({sum(sizes[name] for name in group.names):,} bytes)"
            for group in narrow(sizes, few=FEW, most=MOST_GROUPS)
        ]
    )
    heading = f"## Left out (over the limit of {max_chars:,} characters):"
    return f"{heading}\n\n{_bullets(lines)}\n\n{total}; {_HOW_TO_CONTINUE}"


def _narrowed(names: Sequence[str]) -> str:
    """Return the patterns that narrow down a list too long to read."""
    groups = narrow(names, few=FEW, most=MOST_GROUPS)
    lines = [f"`{group.pattern}`: {len(group.names):,} subjects" for group in groups]
    return f"{len(names):,} subjects, too many to list; narrow by pattern:\n\n{_bullets(lines)}"


def _already(learned: Sequence[str]) -> str:
    return f"## Already learned (in system prompt):\n\n{_bullets(learned)}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
