"""Renders the answers of the `learn` tool: a listing of a topic, or the text of subjects."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from posixpath import commonpath, dirname

from llm_kb.errors import NoMatchError
from llm_kb.rendering.parts import NO_LIMIT, Limit
from llm_kb.rendering.plain_text import LONGEST_NAME, count, shorten
from llm_kb.rendering.presentation import Picture, Presented, list_pictures, truncate, wrap_subject
from llm_kb.rendering.section import LONGEST_DESCRIPTION, SHORTEST, MenuSubject
from llm_kb.subjects.topics import TopicConfig
from llm_kb.texts.safe import one_line

BYTES_A_CHARACTER = 4
"""Maximum number of bytes of a character in UTF-8."""

MOST_LISTED = 500
"""A longer list is summarized by directories and patterns."""

MOST_FILES = 100
"""Maximum number of a skill's files, and of subjects left out, that are listed."""

_FRAME, _NOTICE, _CUT_NOTICE = 500, 120, 100
"""Room for what stands around a list, for a notice, and for that of a cut, which are shorter."""

_BETWEEN = "\n\n"

ALREADY = "## Already learned (in system prompt):"

_HOW_TO_CONTINUE = "load them with another call of the `learn` tool."

_HOW_TO_LOAD = "Use the `learn` tool with the `subjects` argument to learn specific subjects."


def render_listing(
    topic: TopicConfig,
    available: Sequence[MenuSubject],
    learned: Sequence[str] = (),
    limit: Limit = NO_LIMIT,
) -> str:
    """Return the listing of a topic: the subjects to learn, then those already learned.

    They keep their order, so pass them sorted. Over the limit, descriptions are shortened evenly
    or left out, and then the subjects are summarized by patterns.
    """
    parts = [render_heading(topic, limit)]
    description = (topic.description or "").strip()
    if limit.most and limit.measure(description) > limit.most // 4:
        description = f"{description[: limit.fit(description, limit.most // 4)]}…"
    if description:
        parts.append(description)
    used = sum(map(limit.measure, (*parts, *map(one_line, learned))))
    room = limit.most - used - _FRAME if limit.most else None
    listed = _list_fitting(available, room, limit)
    if available:
        parts += [f"## Available subjects:\n\n{listed}", _HOW_TO_LOAD]
    elif not learned:
        parts.append("This topic lists no subjects.")
    if learned:
        parts.append(_render_already(learned))
    return "\n\n".join(parts)


def render_heading(topic: TopicConfig, limit: Limit = NO_LIMIT) -> str:
    """Return the heading of what is learned of a topic; it has the id, for the next call."""
    label = one_line(topic.label)
    label = shorten(label, LONGEST_NAME) if limit.most else label
    return f"# Topic: {label}{f' ({topic.id})' if topic.title else ''}"


def _list_fitting(available: Sequence[MenuSubject], room: int | None, limit: Limit) -> str:
    """Return a line for each subject or, if they do not fit into the room, for patterns."""

    def measure(longest: int) -> int:
        return sum(limit.measure(_render_entry(each, longest)) + 3 for each in available)

    if len(available) <= MOST_LISTED:
        if room is None or measure(LONGEST_DESCRIPTION) <= room:
            return _bullets(map(_render_entry, available))
        longest = bisect_right(range(SHORTEST, LONGEST_DESCRIPTION), room, key=measure)
        shown = SHORTEST + longest - 1 if longest else 0
        if measure(shown) <= room:
            how = f"shortened to at most {shown} characters" if shown else "left out"
            listed = _bullets(_render_entry(each, shown) for each in available)
            return f"(note: descriptions are {how}; each subject has its own)\n\n{listed}"
    return _render_narrowed([subject.name for subject in available], room, limit)


def _render_entry(subject: MenuSubject, limit: int = LONGEST_DESCRIPTION) -> str:
    """Return a subject of a listing, with at most `limit` characters of its text."""
    name = f"{subject.name} {subject.size}" if subject.size else subject.name
    return f"{name}: {shorten(subject.summary, limit)}" if subject.summary and limit else name


def render_files(names: Sequence[str], limit: Limit = NO_LIMIT) -> str:
    """Return the list of a skill's bundled files; empty if there are none."""
    if not names:
        return ""
    shown = _bullets(limit.keep(_bound(names, MOST_FILES), limit.notices))
    return f"## Files of this skill, to be learned by these names:\n\n{shown}"


class Answer:
    """The text of subjects within a limit, and the rest of the request.

    `wrap` puts each between its tags; without it there is at most one. The limit
    counts subjects in their order: one that no longer fits is left out and listed
    with its size. Only if not even one fits, the first is cut at a line, with a notice of
    the missing bytes. `topic` is the id of the topic, for the call that loads what is left out.
    """

    def __init__(self, *, wrap: bool, limit: Limit = NO_LIMIT, topic: str = "") -> None:
        self._wrap = wrap
        self._limit = limit
        self._topic = topic
        self._room = limit.texts
        self._texts: list[str] = []
        self._first: Presented | None = None
        self._left_out: list[tuple[str, int]] = []
        self.pictures: list[Picture] = []
        """The pictures that go with the text."""

    @property
    def read_limit(self) -> int | None:
        """The number of bytes of the next subject that could be shown; None if unlimited."""
        return max(0, self._room) * BYTES_A_CHARACTER if self._limit.most else None

    @property
    def is_empty(self) -> bool:
        """Whether no subject was added."""
        return self._first is None

    def add(self, item: Presented) -> None:
        """Add the next subject, of which at most `read_limit` bytes were read."""
        self._first = self._first or item
        text = self._render(item)
        size = self._limit.measure(text)
        is_short = item.is_cut and not item.is_opening
        if self._limit.most and (is_short or size > self._room):
            self._left_out.append((item.address, item.size))
        else:
            self._texts.append(text)
            self._room -= size + (len(_BETWEEN) if self._limit.in_bytes else 0)
            self.pictures += list_pictures([item])

    def render(self, *, already: Sequence[str] = (), missing: Sequence[NoMatchError] = ()) -> str:
        """Return the whole answer, with the subjects already learned and the patterns not found."""
        parts, left_out, limit = list(self._texts), self._left_out, self._limit
        if self._first and not parts:
            parts.append(self._cut(self._first))
            left_out = left_out[1:]
        room = limit.most - limit.measure(_BETWEEN.join(parts)) if limit.in_bytes else 0
        if left_out:
            share = room // 2 if missing else room
            parts.append(_render_left_out(left_out, self._topic, limit, share))
            room -= limit.measure(parts[-1])
        if already:
            parts.append(_render_already(already))
        if missing:
            parts.append(render_missing(missing, limit, room))
        return _BETWEEN.join(parts)

    def _render(self, item: Presented) -> str:
        return wrap_subject(item) if self._wrap else item.text

    def _cut(self, item: Presented) -> str:
        """Return the start of a subject, within the limit unless that is tiny."""
        limit = self._limit
        frame = limit.measure(self._render(item)) - limit.measure(item.body) + _CUT_NOTICE
        frame += limit.measure(item.name) + _NOTICE if limit.in_bytes else 0
        # What has to be replaced all over a text makes the frame too large.
        for size in (limit.texts - frame, limit.texts // 2, limit.texts // 4):
            text = self._render(truncate(item, limit.fit(item.body, size)))
            if size > 0 and limit.measure(text) <= limit.texts:
                return text
        return self._render(truncate(item, 0))


def render_missing(missing: Sequence[NoMatchError], limit: Limit = NO_LIMIT, room: int = 0) -> str:
    """Return the list of patterns that match nothing."""
    lines = [str(error) for error in missing]
    if limit.in_bytes:
        most = max(0, room // 2)
        lines = [line[: limit.fit(line, most)] for line in lines]
    return "## Not found:\n\n" + _bullets(limit.keep(lines, room - _NOTICE))


def _render_left_out(
    left_out: Sequence[tuple[str, int]], topic: str, limit: Limit, room: int
) -> str:
    """Return the notice of subjects that did not fit, with their sizes in bytes.

    Where room is counted, it ends with the call that brings the next ones.
    """
    lines = [f"{name} ({size:,} bytes)" for name, size in left_out]
    total = f"{len(left_out):,} left out, {sum(size for _, size in left_out):,} bytes"
    heading = f"## Left out (over the limit of {limit.most:,} {limit.unit}):"
    how = _HOW_TO_CONTINUE
    if limit.in_bytes:
        how = f"load them with {_render_call(left_out, topic, limit, room // 3)}"
        room -= limit.measure(heading + total + how) + len(_BETWEEN) * 3
    shown = _bullets(limit.keep(_bound(lines, MOST_FILES), room))
    return f"{heading}\n\n{shown}\n\n{total}; {how}"


def _render_call(left_out: Sequence[tuple[str, int]], topic: str, limit: Limit, room: int) -> str:
    """Return the call that loads as many subjects as one answer holds, in this order."""
    ends = accumulate(size for _, size in left_out)
    fitting = max(1, sum(end <= limit.texts for end in ends))
    names = [name for name, _ in left_out[:fitting]]
    while len(names) > 1 and limit.measure(json.dumps(names, ensure_ascii=False)) > room:
        names = names[: len(names) // 2]
    return f"learn({json.dumps(topic)}, {json.dumps(names, ensure_ascii=False)})"


def render_more(patterns: Sequence[str], limit: Limit) -> str:
    """Return the notice of patterns of other topics that were not even tried."""
    heading = f"## Left out (over the limit of {limit.most:,} {limit.unit}):"
    shown = _bullets(limit.keep(patterns, limit.notices // 2))
    topic, _, _ = patterns[0].partition("/")
    call = f"learn({json.dumps(topic)}, {json.dumps(patterns[:1], ensure_ascii=False)})"
    return f"{heading}\n\n{shown}\n\n{len(patterns):,} left out; load them with {call}"


def _render_narrowed(names: Sequence[str], room: int | None, limit: Limit) -> str:
    """Return the patterns that narrow down a list too long to read.

    Of subjects side by side, which share a pattern, the first names.
    """
    groups = narrow(names)
    example = min(groups)
    lines = [f"`{pattern}`: {count(len(inside), 'subject')}" for pattern, inside in groups.items()]
    if len(groups) == 1:
        lines, first = list(names), names[0].rpartition("/")[2][:1]
        example = f"{example[:-1]}{first}*"
    return (
        f"{len(names):,} subjects, too many to list; narrow by pattern:\n\n"
        f"{_bullets(_bound(_fit_list(lines, room, limit)))}\n\n"
        f"Append `#` to a pattern to list its subjects, as `{example}#`; without it, it loads"
        " them."
    )


def _fit_list(lines: Sequence[str], room: int | None, limit: Limit) -> Sequence[str]:
    return lines if room is None else limit.keep(lines, room - _FRAME)


def _bound(lines: Sequence[str], most: int = MOST_LISTED) -> list[str]:
    """Return the first lines, and the number of the others."""
    more = [f"and {len(lines) - most:,} more"] if len(lines) > most else []
    return [*lines[:most], *more]


def _render_already(learned: Sequence[str]) -> str:
    return f"{ALREADY}\n\n{_bullets(learned)}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


# Long lists of names, partitioned into groups that are each exactly what one pattern matches

_WILDCARDS = re.compile(r"([*?\[])")


def narrow(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names by patterns: `**` below each directory of those that all share, `*` in it."""
    names = sorted(names)
    start = commonpath([dirname(names[0]), dirname(names[-1])])
    start = f"{start}/" if start else ""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        end = name.find("/", len(start)) + 1
        pattern = _WILDCARDS.sub(r"[\1]", name[:end] or start)
        groups[f"{pattern}**" if end else f"{pattern}*"].append(name)
    return groups
