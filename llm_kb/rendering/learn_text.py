"""Renders the answers of the `learn` tool: a listing of a topic, or the text of subjects."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from llm_kb.errors import NoMatchError
from llm_kb.rendering.menu import LONGEST_DESCRIPTION, MenuSubject
from llm_kb.rendering.plain_text import count, name_some, one_line, shorten
from llm_kb.rendering.presentation import Presented, truncate, wrap_subject
from llm_kb.subjects.topics import Topic

BYTES_A_CHARACTER = 4
"""Maximum number of bytes of a character in UTF-8."""

MOST_LISTED = 500
"""A longer list is summarized by directories and patterns."""

MOST_FILES = 100
"""Maximum number of a skill's files that are listed below it."""

FEW = 100
MOST_GROUPS = 200
"""Groups of at most `FEW` subjects, unless that makes more than `MOST_GROUPS` of them."""

_CUT_NOTICE = 100
"""Room for the notice of a cut, which is shorter."""

ALREADY = "## Already learned (in system prompt):"

_HOW_TO_CONTINUE = "load them with another call of the `learn` tool."

_HOW_TO_LOAD = "Use the `learn` tool with the `subjects` argument to learn specific subjects."


def render_listing(
    topic: Topic,
    available: Sequence[MenuSubject],
    learned: Sequence[str] = (),
    unsearched: Sequence[str] = (),
) -> str:
    """Return the listing of a topic: the subjects to learn, then those already learned.

    They keep their order, so pass them sorted. The heading has the id, since
    the next call needs it. `unsearched` names subjects that a search does not read.
    """
    heading = one_line(topic.label)
    parts = [f"# Topic: {heading}{f' ({topic.id})' if topic.title else ''}"]
    description = (topic.description or "").strip()
    if description:
        parts.append(description)
    if len(available) > MOST_LISTED:
        listed = _render_narrowed([subject.name for subject in available])
    else:
        listed = _bullets(map(_render_entry, available))
    if available:
        parts += [f"## Available subjects:\n\n{listed}", _HOW_TO_LOAD]
    elif not learned:
        parts.append("This topic lists no subjects.")
    if learned:
        parts.append(_render_already(learned))
    if unsearched:
        parts.append(f"(note: not searched: {name_some(unsearched)})")
    return "\n\n".join(parts)


def _render_entry(subject: MenuSubject) -> str:
    size = f" {subject.size}" if subject.size else ""
    about = shorten(one_line(subject.summary), LONGEST_DESCRIPTION)
    return f"{subject.name}{size}{f' — {about}' if about else ''}"


def list_files(names: Sequence[str]) -> str:
    """Return the list of a skill's bundled files; empty if there are none."""
    if not names:
        return ""
    more = [f"and {len(names) - MOST_FILES:,} more"] if len(names) > MOST_FILES else []
    shown = _bullets([*names[:MOST_FILES], *more])
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
            parts.append("## Not found:\n\n" + _bullets([str(error) for error in missing]))
        return "\n\n".join(parts)

    def _render(self, item: Presented) -> str:
        return wrap_subject(item) if self._wrap else item.text

    def _cut(self, item: Presented) -> str:
        """Return the start of a subject, within the limit unless that is tiny."""
        frame = len(self._render(item)) - len(item.body) + _CUT_NOTICE
        return self._render(truncate(item, max(0, self._max_chars - frame)))


def join_groups(
    parts: Sequence[str],
    missing: Sequence[NoMatchError],
    left_out: Sequence[str],
    max_chars: int,
) -> str:
    """Return one answer for several topics, which names missing and omitted subjects."""
    parts = list(parts)
    if left_out:
        heading = f"## Left out (over the limit of {max_chars:,} characters):"
        parts.append(f"{heading}\n\n{_bullets(left_out)}\n\n{_HOW_TO_CONTINUE.capitalize()}")
    if missing:
        parts.append("## Not found:\n\n" + _bullets([str(error) for error in missing]))
    return "\n\n".join(parts)


def _render_left_out(left_out: Sequence[tuple[str, int]], max_chars: int) -> str:
    """Return the notice of subjects that did not fit, with their sizes in bytes."""
    sizes: dict[str, int] = {}
    for name, size in left_out:
        sizes[name] = sizes.get(name, 0) + size
    total = f"{len(left_out):,} left out, {sum(sizes.values()):,} bytes"
    lines = (
        [f"{name} ({size:,} bytes)" for name, size in sizes.items()]
        if len(sizes) <= MOST_LISTED
        else [
            f"`{group.pattern}`: {count(len(group.names), 'subject')}"
            f" ({sum(sizes[name] for name in group.names):,} bytes)"
            for group in narrow(sizes, few=FEW, most=MOST_GROUPS)
        ]
    )
    heading = f"## Left out (over the limit of {max_chars:,} characters):"
    return f"{heading}\n\n{_bullets(lines)}\n\n{total}; {_HOW_TO_CONTINUE}"


def _render_narrowed(names: Sequence[str]) -> str:
    """Return the patterns that narrow down a list too long to read."""
    groups = narrow(names, few=FEW, most=MOST_GROUPS)
    lines = [f"`{group.pattern}`: {count(len(group.names), 'subject')}" for group in groups]
    example = min((group.pattern for group in groups if "*" in group.pattern), default="**")
    return (
        f"{len(names):,} subjects, too many to list; narrow by pattern:\n\n{_bullets(lines)}\n\n"
        f"Append `#` to a pattern to list its subjects, as `{example}#`; without it, it loads"
        " them."
    )


def _render_already(learned: Sequence[str]) -> str:
    return f"{ALREADY}\n\n{_bullets(learned)}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


# Long lists of names, partitioned into groups that are each exactly what one pattern matches

_WILDCARDS = re.compile(r"([*?\[])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The names that one pattern matches, and no others.

    All begin with `stem`, and `rest` matches the remainder: `**` below a
    directory, `*` side by side, `*/**` in directories side by side, or nothing.
    """

    stem: str
    rest: str
    names: tuple[str, ...]

    @property
    def pattern(self) -> str:
        """The pattern that matches exactly these names."""
        return _WILDCARDS.sub(r"[\1]", self.stem) + self.rest


def narrow(names: Iterable[str], *, few: int, most: int) -> tuple[Group, ...]:
    """Partition names into at most `most` groups, of at most `few` names each if possible.

    The largest group is split first. Groups are sorted by their patterns.
    """
    whole = Group(stem="", rest="**", names=tuple(sorted(names)))
    pending = [whole]
    done: list[Group] = []
    while pending:
        pending.sort(key=lambda group: (-len(group.names), group.stem, group.rest))
        group, *pending = pending
        room = most - len(pending) - len(done)
        parts = _split(group, room) if len(group.names) > few else ()
        if parts:
            pending += parts
        else:
            done.append(group)
    return tuple(sorted(done, key=lambda group: group.pattern))


def _split(group: Group, room: int) -> tuple[Group, ...]:
    """Return at most `room` groups of the same names; none if that is impossible.

    A directory is split into its files and its directories. If those are too
    many, and among files side by side, the next character decides.
    """
    if group.rest == "**":
        parts = _divide(group, _by_component, len(group.stem))
        if len(parts) <= room:
            return parts
    start = _count_alike(group.names) if group.rest == "*" else len(group.stem)
    parts = _divide(group, _by_character, start)
    # Names that are all alike cannot be told apart any more.
    return parts if len(parts) <= room and parts != (group,) else ()


def _count_alike(names: Sequence[str]) -> int:
    """Return the length of the common start of sorted names."""
    first, last = names[0], names[-1]
    pairs = enumerate(zip(first, last, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(last)))


def _divide(
    group: Group, key: Callable[[str, int], tuple[str, str]], start: int
) -> tuple[Group, ...]:
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name in group.names:
        found[key(name, start)].append(name)
    return tuple(
        Group(stem=stem, rest=rest, names=tuple(names)) for (stem, rest), names in found.items()
    )


def _by_component(name: str, start: int) -> tuple[str, str]:
    """Separate the names below each directory from the other names."""
    end = name.find("/", start) + 1
    return (name[:end], "**") if end else (name[:start], "*")


def _by_character(name: str, start: int) -> tuple[str, str]:
    """Lengthen the stem by a character."""
    stem = name[: start + 1]
    if "/" in name[start:]:
        return stem, "**" if stem.endswith("/") else "*/**"
    return stem, "*" if len(name) > start else ""
