"""Renders the answers of the `learn` tool: a listing of a topic, or the text of subjects."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from posixpath import commonpath, dirname

from llm_kb.errors import NoMatchError
from llm_kb.rendering.menu import MenuSubject, render_subject
from llm_kb.rendering.plain_text import count
from llm_kb.rendering.presentation import Presented, truncate, wrap_subject
from llm_kb.subjects.topics import Topic
from llm_kb.texts.safe import one_line

BYTES_A_CHARACTER = 4
"""Maximum number of bytes of a character in UTF-8."""

MOST_LISTED = 500
"""A longer list is summarized by directories and patterns."""

MOST_FILES = 100
"""Maximum number of a skill's files, and of subjects left out, that are listed."""

_CUT_NOTICE = 100
"""Room for the notice of a cut, which is shorter."""

ALREADY = "## Already learned (in system prompt):"

_HOW_TO_CONTINUE = "load them with another call of the `learn` tool."

_HOW_TO_LOAD = "Use the `learn` tool with the `subjects` argument to learn specific subjects."


def render_listing(
    topic: Topic, available: Sequence[MenuSubject], learned: Sequence[str] = ()
) -> str:
    """Return the listing of a topic: the subjects to learn, then those already learned.

    They keep their order, so pass them sorted. The heading has the id, since
    the next call needs it.
    """
    heading = one_line(topic.label)
    parts = [f"# Topic: {heading}{f' ({topic.id})' if topic.title else ''}"]
    description = (topic.description or "").strip()
    if description:
        parts.append(description)
    if len(available) > MOST_LISTED:
        listed = _render_narrowed([subject.name for subject in available])
    else:
        listed = _bullets(map(render_subject, available))
    if available:
        parts += [f"## Available subjects:\n\n{listed}", _HOW_TO_LOAD]
    elif not learned:
        parts.append("This topic lists no subjects.")
    if learned:
        parts.append(_render_already(learned))
    return "\n\n".join(parts)


def render_files(names: Sequence[str]) -> str:
    """Return the list of a skill's bundled files; empty if there are none."""
    if not names:
        return ""
    shown = _bullets(_bound(names, MOST_FILES))
    return f"## Files of this skill, to be learned by these names:\n\n{shown}"


class Answer:
    """The text of subjects within a limit, and the rest of the request.

    `wrap` puts each between its tags; without it there is at most one. The limit
    (0 for none) counts the characters of subjects, in their order: one that no
    longer fits is left out and listed with its size. Only if not even one
    fits, the first is cut at a line, with a notice of the missing bytes.
    Notices do not count.
    """

    def __init__(self, *, wrap: bool, max_chars: int = 0) -> None:
        self._wrap = wrap
        self._max_chars = max_chars
        self._room = max_chars
        self._texts: list[str] = []
        self._first: Presented | None = None
        self._left_out: list[tuple[str, int]] = []

    @property
    def read_limit(self) -> int | None:
        """The number of bytes of the next subject that could be shown; None if unlimited."""
        return self._room * BYTES_A_CHARACTER if self._max_chars else None

    @property
    def is_empty(self) -> bool:
        """Whether no subject was added."""
        return self._first is None

    def add(self, item: Presented) -> None:
        """Add the next subject, of which at most `read_limit` bytes were read."""
        self._first = self._first or item
        text = self._render(item)
        is_short = item.is_cut and not item.is_opening
        if self._max_chars and (is_short or len(text) > self._room):
            self._left_out.append((item.name, item.size))
        else:
            self._texts.append(text)
            self._room -= len(text)

    def render(self, *, already: Sequence[str] = (), missing: Sequence[NoMatchError] = ()) -> str:
        """Return the whole answer, with the subjects already learned and the patterns not found."""
        parts, left_out = list(self._texts), self._left_out
        if self._first and not parts:
            parts.append(self._cut(self._first))
            left_out = left_out[1:]
        if left_out:
            parts.append(_render_left_out(left_out, self._max_chars))
        if already:
            parts.append(_render_already(already))
        if missing:
            parts.append(render_missing(missing))
        return "\n\n".join(parts)

    def _render(self, item: Presented) -> str:
        return wrap_subject(item) if self._wrap else item.text

    def _cut(self, item: Presented) -> str:
        """Return the start of a subject, within the limit unless that is tiny."""
        frame = len(self._render(item)) - len(item.body) + _CUT_NOTICE
        return self._render(truncate(item, max(0, self._max_chars - frame)))


def render_missing(missing: Sequence[NoMatchError]) -> str:
    """Return the list of patterns that match nothing."""
    return "## Not found:\n\n" + _bullets([str(error) for error in missing])


def _render_left_out(left_out: Sequence[tuple[str, int]], max_chars: int) -> str:
    """Return the notice of subjects that did not fit, with their sizes in bytes."""
    lines = [f"{name} ({size:,} bytes)" for name, size in left_out]
    total = f"{len(left_out):,} left out, {sum(size for _, size in left_out):,} bytes"
    heading = f"## Left out (over the limit of {max_chars:,} characters):"
    return f"{heading}\n\n{_bullets(_bound(lines, MOST_FILES))}\n\n{total}; {_HOW_TO_CONTINUE}"


def _render_narrowed(names: Sequence[str]) -> str:
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
        f"{_bullets(_bound(lines))}\n\n"
        f"Append `#` to a pattern to list its subjects, as `{example}#`; without it, it loads"
        " them."
    )


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
