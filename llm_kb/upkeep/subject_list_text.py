"""Renders listed topics and subjects for people, within 80 columns unless slugs are long."""

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


def render_subjects(listed: ListedTopic) -> Iterator[str]:
    """Yield the lines of a topic's subjects, in columns."""
    width = min(max((len(s.name) for s in listed.subjects), default=0), _WIDEST_COLUMN)
    for subject in listed.subjects:
        yield f"{subject.name:{width}}  {_figures(subject)}{_state(subject)}".rstrip()
    if listed.problem:
        yield f"no subjects: {listed.problem}"
    yield from _skipped_lines(listed, "")
    for left in listed.unsearched:
        yield f"not searched: {visible_line(str(left))}"


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


def _figures(subject: ListedSubject) -> str:
    size = "" if subject.size is None else format_size(subject.size)
    tokens = "" if subject.tokens is None else f"~{subject.tokens:,} tokens"
    day = "" if subject.changed is None else _format_day(subject.changed)
    return f"{size:>9}  {tokens:>15}  {day:10}"


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
