"""Renders the menu of topics and subjects, cut to fit its budget of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from llm_kb.rendering import plain_text
from llm_kb.rendering.plain_text import count, shorten
from llm_kb.subjects.topics import TopicConfig
from llm_kb.texts.safe import defuse, one_line

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
Use the `search_knowledge` tool to find the passages of these topics that answer a question, by
their words and what these mean.
"""

_IN_SHELL = """\


Run `{0} search "…"` to find the passages of these topics that answer a question, by
their words and what these mean.
Run `{0} learn TOPIC SUBJECT` to read this knowledge, or a part of it (`SUBJECT#PART`), and
`{0} learn TOPIC` to list the subjects of a topic."""


class MenuSubject(NamedTuple):
    """A subject in the menu: its name in listings, its summary, and its size if it is large."""

    name: str
    summary: str = ""
    size: str = ""


class MenuTopic(NamedTuple):
    """A topic in the menu, with the subjects listed below it, or only their number."""

    topic: TopicConfig
    subjects: Sequence[MenuSubject] = ()
    counted: int = 0
    shell: str = ""
    """The command that lists them, for models that run commands; empty for the tool `learn`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The lines of the topics, and notes on the cuts made to fit a budget; made by `fit_menu`."""

    lines: str = ""
    cuts: tuple[str, ...] = ()
    has_hidden: bool = True
    """Whether there may be hidden subjects, which a note explains."""
    shell: str = ""
    """Our command, for models that run commands in place of calling tools."""

    @property
    def tokens(self) -> int:
        """The estimated tokens of the menu, headings and notes included."""
        return plain_text.estimate_tokens(render_menu(self)) if self.lines else 0


def render_menu(menu: Menu, *, search: bool = False) -> str:
    """Return the menu between its heading and its notes; it has at least one topic.

    `search` says whether the search is offered.
    """
    note = f"(note: {'; '.join(menu.cuts)})\n\n" if menu.cuts else ""
    hidden = _HIDDEN_NOTE if menu.has_hidden else ""
    if menu.shell:
        footer = (hidden + _IN_SHELL.format(menu.shell)).lstrip("\n")
        return f"{_HEADER}{menu.lines}\n{note}{footer}"
    found_by = f"{SEARCH_LINE}\n" if search else ""
    footer = _HOW + hidden
    return f"{_HEADER}{menu.lines}\n{note}{found_by}{footer}"


def fit_menu(
    topics: Sequence[MenuTopic],
    budget: int,
    describe: Callable[[MenuTopic], MenuTopic] = lambda topic: topic,
    *,
    has_hidden: bool = True,
    shell: str = "",
) -> Menu:
    """Return the menu, cut to a budget of tokens if necessary.

    In steps: summaries are shortened evenly or left out; topics have their subjects counted,
    those of kinds that yield and the largest first; introductions are left out; only ids are
    listed. `describe` adds the summaries to the subjects of a topic; it is called only for those
    that are listed.
    """
    frame = Menu(has_hidden=has_hidden, shell=shell)
    topics = [each._replace(shell=shell) for each in topics]
    room = plain_text.CHARACTERS * budget - len(render_menu(frame))
    listed = _count_largest(topics, room)
    shown = [_make_plain(describe(each)) if each.subjects else each for each in listed]
    lines = _render(shown)
    if listed == topics and len(lines) <= room:
        return replace(frame, lines=lines)
    room -= _LONGEST_NOTE
    shown, cuts = _count_largest(shown, room), []
    limit = _find_limit(shown, room)
    if _render(shown, limit) != _render(shown):
        how = f"shortened to at most {limit} characters" if limit else "left out"
        cuts.append(f"summaries are {how}")
    if counted := sum(bool(each.counted) for each in shown):
        cuts.append(f"the subjects of {count(counted, 'topic')} are counted, not listed")
    if _measure(shown, limit) > room and any(each.topic.introduction for each in shown):
        shown = [t._replace(topic=replace(t.topic, introduction=None)) for t in shown]
        cuts.append("introductions are left out")
    lines = _render(shown, limit)
    if len(lines) > room and len(shown) > 1:
        names = plain_text.join_fitting([each.topic.id for each in shown], room - len("- \n"))
        lines = f"- {names}\n"
        cuts.append("only the ids of topics are listed")
    return replace(frame, lines=lines, cuts=tuple(cuts))


def list_topics(topics: Sequence[TopicConfig], budget: int) -> str:
    """Return ids with titles on a line, without titles or cut if that exceeds the budget."""
    names = [
        f"{topic.id} ({defuse(one_line(topic.title))})" if topic.title else topic.id
        for topic in topics
    ]
    room = plain_text.CHARACTERS * budget
    fits = len(", ".join(names)) <= room
    return plain_text.join_fitting(names if fits else [topic.id for topic in topics], room)


def _make_plain(topic: MenuTopic) -> MenuTopic:
    """Return a topic with each text of its subjects on one line and without closing tags."""
    return topic._replace(
        subjects=[
            MenuSubject(
                defuse(name if name.isprintable() else one_line(name)),
                defuse(one_line(summary)),
                size,
            )
            for name, summary, size in topic.subjects
        ]
    )


def _render(topics: Sequence[MenuTopic], limit: int = LONGEST_DESCRIPTION) -> str:
    """Return the lines of topics, with at most `limit` characters of each summary."""
    lines: list[str] = []
    for topic, subjects, counted, shell in topics:
        title = shorten(one_line(topic.title or ""), LONGEST_DESCRIPTION)
        title = f" (**{title}**)" if title else ""
        introduction = f": {one_line(topic.introduction)}" if topic.introduction else ""
        lines.append(defuse(f"- {topic.id}{title}{introduction}"))
        lines += [f"  - {render_subject(each, limit)}" for each in subjects]
        if counted:
            how = f"run `{shell} learn {topic.id}`" if shell else f'call learn("{topic.id}")'
            lines.append(f"  - {count(counted, 'subject')}, {how}")
    return "".join(f"{line}\n" for line in lines)


def render_subject(subject: MenuSubject, limit: int = LONGEST_DESCRIPTION) -> str:
    """Return a subject in a list, with at most `limit` characters of its summary."""
    name = f"{subject.name} {subject.size}" if subject.size else subject.name
    return f"{name} — {shorten(subject.summary, limit)}" if subject.summary and limit else name


def _measure(topics: Sequence[MenuTopic], limit: int) -> int:
    return len(_render(topics, limit))


def _count_largest(topics: Sequence[MenuTopic], room: int) -> list[MenuTopic]:
    """Return the topics with the subjects of some counted, so that all fit without summaries.

    Those of a kind that yields come first, then the largest.
    """
    shown = list(topics)
    sizes = [_measure([topic], 0) for topic in topics]
    places = [place for place, topic in enumerate(topics) if topic.subjects]
    places.sort(key=lambda place: (topics[place].topic.kind.yields, sizes[place]))
    used = sum(sizes)
    while used > room and places:
        place = places.pop()
        counted = topics[place]._replace(subjects=(), counted=len(topics[place].subjects))
        size = _measure([counted], 0)
        if size < sizes[place]:
            shown[place] = counted
            used -= sizes[place] - size
    return shown


def _find_limit(topics: Sequence[MenuTopic], room: int) -> int:
    """Return the most characters of each summary with which all fit; 0 if that is too few."""
    limits = range(SHORTEST, LONGEST_DESCRIPTION + 1)
    fitting = bisect_right(limits, room, key=partial(_measure, topics))
    return limits[fitting - 1] if fitting else 0
