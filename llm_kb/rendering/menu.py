"""Renders the menu of topics and subjects, cut to fit its budget of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from llm_kb.rendering.plain_text import (
    CHARACTERS,
    count,
    defuse,
    estimate_tokens,
    join_fitting,
    one_line,
    shorten,
)
from llm_kb.subjects.topics import REFERENCE_PREFIX, Topic

LONGEST_DESCRIPTION = 1_024
"""Maximum number of characters of a skill's description, by which models choose it."""

SHORTEST = 40
"""Shortest summary after cutting; shorter ones are left out."""

_LONGEST_NOTE = 160
"""Room for the note on the cuts, which is shorter."""

_HEADER = "The following knowledge topics are available to learn:\n\n"

_HOW = "Use the `learn` tool to consume this knowledge."

_HIDDEN_NOTE = """\


(note: some topics may contain hidden subjects that are not listed via `learn`
by default, but can be loaded manually if you are made aware of their names via
other means, such as by reading non-hidden subjects first. This prevents
exposing too much irrelevant knowledge upfront)"""

SEARCH_LINE = """\
Use the `{}` tool to find the passages of these topics that answer a question, by
their words (and by meaning, where there is an embedding model).
"""


class MenuSubject(NamedTuple):
    """A subject in the menu: its name in listings, its summary, and its size if it is large."""

    name: str
    summary: str = ""
    size: str = ""


class MenuTopic(NamedTuple):
    """A topic in the menu, with the subjects listed below it.

    `counted` is the number of those that did not fit.
    """

    topic: Topic
    subjects: Sequence[MenuSubject] = ()
    counted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The lines of the topics, and notes on the cuts made to fit a budget; made by `fit_menu`."""

    lines: str = ""
    cuts: tuple[str, ...] = ()
    has_hidden: bool = True
    """Whether there may be hidden subjects, which a note explains."""

    @property
    def tokens(self) -> int:
        """The estimated tokens of the menu, headings and notes included."""
        return estimate_tokens(render_menu(self)) if self.lines else 0


def render_menu(menu: Menu, *, search: bool = False, search_tool: str = "search_knowledge") -> str:
    """Return the menu between its heading and its notes; it has at least one topic.

    `search` says whether the search is offered, as a tool of this name.
    """
    note = f"(note: {'; '.join(menu.cuts)})\n\n" if menu.cuts else ""
    found_by = f"{SEARCH_LINE.format(search_tool)}\n" if search else ""
    footer = _HOW + (_HIDDEN_NOTE if menu.has_hidden else "")
    return f"{_HEADER}{menu.lines}\n{note}{found_by}{footer}"


def fit_menu(
    topics: Sequence[MenuTopic],
    budget: int,
    describe: Callable[[MenuTopic], MenuTopic] = lambda topic: topic,
    *,
    has_hidden: bool = True,
) -> Menu:
    """Return the menu, cut to a budget of tokens if necessary.

    In steps: summaries are shortened evenly; if that is not enough, topics lose theirs, the
    largest first, and then have their subjects counted, references first; introductions are
    left out; topics are reduced to their ids. `describe` adds the
    summaries to the subjects of a topic; it is called only for those that are listed.
    """
    frame = Menu(has_hidden=has_hidden)
    room = CHARACTERS * budget - len(render_menu(frame))
    listed = _count_largest(topics, room)
    shown = [_make_plain(describe(each)) if each.subjects else each for each in listed]
    is_cut = any(each.counted for each in shown) or sum(map(_measure, shown)) > room
    if not (topics and is_cut):
        return replace(frame, lines="".join(map(_render_topic, shown)))
    room -= _LONGEST_NOTE
    shown, summaries = _cut_summaries(_count_largest(shown, room), room)
    counted = sum(bool(each.counted) for each in shown)
    counting = f"the subjects of {count(counted, 'topic')} are counted, not listed"
    shown, introductions = _cut_introductions(shown, room)
    lines, ids = _cut_topics(shown, room)
    cuts = (summaries, counting if counted else "", introductions, ids)
    return replace(frame, lines=lines, cuts=tuple(filter(None, cuts)))


def list_topics(topics: Sequence[Topic], budget: int) -> str:
    """Return ids with titles on a line, without titles or cut if that exceeds the budget."""
    names = [
        f"{topic.id} ({one_line(topic.title)})" if topic.title else topic.id for topic in topics
    ]
    room = CHARACTERS * budget
    fits = len(", ".join(names)) <= room
    return join_fitting(names if fits else [topic.id for topic in topics], room)


def _make_plain(topic: MenuTopic) -> MenuTopic:
    """Return a topic with each text of its subjects on one line and without closing tags."""
    return topic._replace(
        subjects=[
            MenuSubject(
                defuse(name if name.isprintable() else one_line(name)),
                shorten(defuse(one_line(summary)), LONGEST_DESCRIPTION),
                size,
            )
            for name, summary, size in topic.subjects
        ]
    )


def _render_topic(topic: MenuTopic) -> str:
    """Return the lines of one topic, each with its line feed."""
    id_, title, introduction = topic.topic.id, topic.topic.title, topic.topic.introduction
    line = f"- {id_}"
    if title:
        line += f" (**{one_line(title)}**)"
    if introduction:
        line += f": {one_line(introduction)}"
    lines = [defuse(line), *map(_render_subject, topic.subjects)]
    if topic.counted:
        lines.append(f'  - {topic.counted}, call learn("{id_}")')
    return "".join(f"{line}\n" for line in lines)


def _render_subject(subject: MenuSubject) -> str:
    size = f" {subject.size}" if subject.size else ""
    return f"  - {subject.name}{size}{f' — {subject.summary}' if subject.summary else ''}"


def _measure(topic: MenuTopic) -> int:
    """Return the number of characters of a topic's lines."""
    return len(_render_topic(topic))


def _shorten_summaries(topic: MenuTopic, limit: int) -> MenuTopic:
    """Return a topic with summaries of at most `limit` characters; without any at 0."""
    return topic._replace(
        subjects=[s._replace(summary=_cut(s.summary, limit)) for s in topic.subjects]
    )


def _cut(text: str, limit: int) -> str:
    return shorten(text, limit) if limit else ""


def _count_largest(topics: Sequence[MenuTopic], room: int) -> list[MenuTopic]:
    """Return the topics with the subjects of some counted, so that all fit without summaries.

    References come first, then the largest.
    """
    shown = list(topics)
    sizes = [_measure(_shorten_summaries(topic, 0)) for topic in topics]
    places = [place for place, topic in enumerate(topics) if topic.subjects]
    places.sort(key=lambda place: (_is_reference(topics[place]), sizes[place]))
    used = sum(sizes)
    while used > room and places:
        place = places.pop()
        topic = shown[place]
        counted = topic._replace(subjects=(), counted=count(len(topic.subjects), "subject"))
        if _measure(counted) < sizes[place]:
            shown[place] = counted
            used -= sizes[place] - _measure(counted)
    return shown


def _is_reference(topic: MenuTopic) -> bool:
    return topic.topic.id.startswith(REFERENCE_PREFIX)


def _cut_summaries(topics: Sequence[MenuTopic], room: int) -> tuple[list[MenuTopic], str]:
    """Return the topics with summaries that fit, and a note on the cuts.

    The largest topics lose theirs until the others can have at least `SHORTEST` characters.
    """
    bare = [_shorten_summaries(topic, 0) for topic in topics]
    free = room - sum(map(_measure, bare))
    extra = [_measure(topic) - _measure(short) for topic, short in zip(topics, bare, strict=True)]
    kept = sorted((place for place, size in enumerate(extra) if size), key=extra.__getitem__)
    number, limit, longest = len(kept), 0, 0
    while kept and not limit:
        lengths = [len(s.summary) for place in kept for s in topics[place].subjects if s.summary]
        limit = _find_limit(lengths, free - len(" — ") * len(lengths))
        longest = max(lengths)
        if not limit:
            kept.pop()
    shown = [
        _shorten_summaries(topic, limit) if place in kept else bare[place]
        for place, topic in enumerate(topics)
    ]
    if len(kept) < number:
        whose = f"the summaries of {count(number - len(kept), 'topic')}" if kept else "summaries"
        return shown, f"{whose} are left out"
    is_cut = limit < longest
    return shown, f"summaries are shortened to at most {limit} characters" if is_cut else ""


def _find_limit(lengths: Sequence[int], room: int) -> int:
    """Return the most characters of each text with which all fit; 0 if that is too few."""
    if sum(lengths) <= room:
        return max(lengths)
    limits = range(SHORTEST, max(lengths))
    fitting = bisect_right(
        limits, room, key=lambda limit: sum(min(length, limit) for length in lengths)
    )
    return limits[fitting - 1] if fitting else 0


def _cut_introductions(topics: Sequence[MenuTopic], room: int) -> tuple[list[MenuTopic], str]:
    """Return the topics, without introductions if those do not fit, and a note on that."""
    if sum(map(_measure, topics)) <= room or not any(t.topic.introduction for t in topics):
        return list(topics), ""
    shown = [t._replace(topic=replace(t.topic, introduction=None)) for t in topics]
    return shown, "introductions are left out"


def _cut_topics(topics: Sequence[MenuTopic], room: int) -> tuple[str, str]:
    """Return the lines of the first topics that fit, the ids of the others, and a note on them."""
    lines = list(map(_render_topic, topics))
    ids = [topic.topic.id for topic in topics]
    ends = list(accumulate(map(len, lines)))
    kept, used = len(lines), ends[-1]
    while kept > 1 and used > room:
        kept -= 1
        used = ends[kept - 1] + len("- \n") + len(", ".join(ids[kept:]))
    if kept == len(lines):
        return "".join(lines), ""
    note = f"only the ids of {count(len(lines) - kept, 'topic')} are listed"
    others = join_fitting(ids[kept:], room - ends[kept - 1] - len("- \n"))
    return f"{''.join(lines[:kept])}- {others}\n", note
