"""Renders listed topics and subjects for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import takewhile

from llm_kb.rendering.plain_text import count, format_size, name_some, shorten, visible_line
from llm_kb.subjects.names import is_readable
from llm_kb.upkeep.subject_list import ListedSubject, ListedTopic, State

WIDTH = 80

_SPECIAL = (State.PRELOADED, State.HIDDEN, State.DISABLED)

_WIDEST_COLUMN = 100
"""The greatest width of the column of slugs."""
_NARROWEST_COLUMN = 20
_FIGURES = 38
"""The width of the columns beside it."""


def render_topic(listed: ListedTopic) -> Iterator[str]:
    """Yield a topic's heading and its totals."""
    topic = listed.topic
    heading = f"{topic.id}: {visible_line(topic.title)}" if topic.title else topic.id
    yield shorten(heading, WIDTH)
    yield f"  {_summary(listed)}"
    if listed.is_aside:
        yield "  only on request: -T References or -k for prompts, -t for searches"
    special = _special(listed)
    if special:
        yield f"  {special}"
    # With no subject at all, a skipped file is the reason.
    if not (listed.whole or listed.subjects):
        listed = replace(listed, whole=True, skipped=listed.skipped[:1])
    yield from _skipped_lines(listed, "  ")
    if listed.unsearched:
        yield f"  not searched: {visible_line(name_some(map(str, listed.unsearched)))}"


MANY = 200
"""From this number of subjects on, a listing is folded by directory."""
_MOST_ROWS = 60
_DEPTHS = (3, 2, 1)


def render_subjects(listed: ListedTopic, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a topic's subjects, in columns that fit a width.

    Many subjects are folded by directory, unless the whole topic is asked for.
    """
    rows = [(s.name, _figures(s.size, s.tokens, s.changed), _state(s)) for s in listed.subjects]
    if len(rows) >= MANY and not listed.whole:
        rows = list(_fold(listed.subjects))[:MANY]
    widest = max((len(name) for name, _, _ in rows), default=0)
    room = _WIDEST_COLUMN if width is None else max(width - _FIGURES - 2, _NARROWEST_COLUMN)
    column = min(widest, room)
    for name, figures, state in rows:
        shown = name if width is None else shorten(name, column)
        yield f"{shown:{column}}  {figures}{state}".rstrip()
    if len(rows) < len(listed.subjects):
        yield f"{count(len(listed.subjects), 'subject')}; --all lists each of them"
    if listed.problem:
        yield f"no subjects: {listed.problem}"
    yield from _skipped_lines(listed, "")
    for left in listed.unsearched:
        yield f"not searched: {visible_line(str(left))}"


def _fold(subjects: Sequence[ListedSubject]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each directory, as deep as a screen or two allow, and each other subject."""
    for depth in _DEPTHS:
        groups: dict[str, list[ListedSubject]] = {}
        for subject in subjects:
            groups.setdefault(_name_group(subject.name, depth), []).append(subject)
        if len(groups) <= _MOST_ROWS:
            break
    for name, inner in groups.items():
        changed = max((s.changed for s in inner if s.changed is not None), default=None)
        sums = sum(s.size or 0 for s in inner), sum(s.tokens or 0 for s in inner)
        number = f"  {count(len(inner), 'subject')}" if name.endswith("/") else _state(inner[0])
        yield name, _figures(*sums, changed), number


def _name_group(name: str, depth: int) -> str:
    parts = name.split("/")
    return f"{'/'.join(parts[:depth])}/" if len(parts) > depth else name


def render_tree(listed: ListedTopic) -> Iterator[str]:
    """Yield a topic's subjects as a tree of their slugs, each level indented."""
    yield f"{listed.topic.id}/"
    above: Sequence[str] = ()
    for subject in sorted(listed.subjects, key=lambda subject: subject.name.split("/")):
        *parents, name = subject.name.split("/")
        for depth in range(_common(parents, above), len(parents)):
            yield f"{'  ' * (depth + 1)}{parents[depth]}/"
        size = "" if subject.size is None else f"  {format_size(subject.size)}"
        yield f"{'  ' * (len(parents) + 1)}{name}{size}{_state(subject)}"
        above = parents
    if listed.problem:
        yield f"  no subjects: {listed.problem}"
    yield from _skipped_lines(listed, "  ")


def _common(parents: Sequence[str], above: Sequence[str]) -> int:
    """Return the number of directories that two subjects share."""
    pairs = zip(parents, above, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _summary(listed: ListedTopic) -> str:
    """Return the number, size and age of a topic's subjects."""
    if listed.problem:
        return f"no subjects: {listed.problem}"
    totals = listed.totals
    parts = [count(totals.subjects, "subject"), format_size(totals.size)]
    parts.append(f"~{totals.tokens:,} tokens")
    if totals.changed is not None:
        parts.append(f"changed {_format_day(totals.changed)}")
    if not listed.topic.in_menu:
        parts.append("not in the menu")
    return ", ".join(parts)


def _special(listed: ListedTopic) -> str:
    """Return the numbers of special subjects, of files that are not text, and of skipped ones."""
    counts = [(listed.count(state), state.value) for state in _SPECIAL]
    counts.append((sum(not is_readable(s.path) for s in listed.subjects), "not text"))
    counts.append((len(listed.skipped), "skipped"))
    return ", ".join(f"{number:,} {name}" for number, name in counts if number)


def _figures(size: int | None, tokens: int | None, changed: float | None) -> str:
    shown = "" if tokens is None else f"~{tokens:,} tokens"
    day = "" if changed is None else _format_day(changed)
    return f"{'' if size is None else format_size(size):>9}  {shown:>15}  {day:10}"


def _state(subject: ListedSubject) -> str:
    return "" if subject.state is State.AVAILABLE else f"  {subject.state.value}"


def _skipped_lines(listed: ListedTopic, indent: str) -> Iterator[str]:
    for skipped in listed.skipped if listed.whole else ():
        yield f"{indent}skipped {visible_line(skipped.path)}: {visible_line(skipped.reason)}"


def _format_day(seconds: float) -> str:
    return _name_day(int(seconds // 86_400))


@lru_cache
def _name_day(days: int) -> str:
    """Return the date of a day after the epoch, cached since files share few days."""
    return str(date(1970, 1, 1) + timedelta(days=days))
