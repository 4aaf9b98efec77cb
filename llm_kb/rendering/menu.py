"""Renders the menu of topics and subjects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from llm_kb.rendering.plain_text import defuse, one_line, shorten
from llm_kb.subjects.topics import Topic

LONGEST_DESCRIPTION = 1_024
"""Maximum number of characters of a skill's description, by which models choose it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuSubject:
    """A subject in the menu: its name in listings, and its summary.

    `summary` is None if it was not read. `size` is given only for a large subject.
    """

    name: str
    summary: str | None = None
    size: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuTopic:
    """A topic in the menu.

    `subjects` are those listed below it, None for `menu = "topics"`.
    `counted` describes subjects that did not fit: how many there are, and in which
    directories.
    """

    topic: Topic
    subjects: tuple[MenuSubject, ...] | None = None
    counted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMenu:
    """The topics of a menu, and a note on the cuts made to fit its budget.

    Made by `menu_budget.fit_menu` or `plain_menu`, which defuse hostile texts. `tokens` may
    still be over the budget if nothing is left to cut.
    """

    topics: tuple[MenuTopic, ...]
    others: tuple[str, ...] = ()
    """The ids of topics for which there is only room for the id."""
    cuts: tuple[str, ...] = ()
    has_hidden: bool = True
    """Whether there may be hidden subjects, which a note explains."""

    @property
    def tokens(self) -> int:
        """The estimated tokens of the menu, headings and notes included."""
        return estimate_tokens(render_menu(self))


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: four characters each, rounded up."""
    return -(-len(text) // 4)


def frame_length(*, has_hidden: bool) -> int:
    """Return the number of characters of a menu without its topics and its note on cuts."""
    return len(_HEADER) + len("\n") + len(_HOW) + (len(_HIDDEN_NOTE) if has_hidden else 0)


def render_menu(
    menu: FittedMenu, *, search: bool = False, search_tool: str = "search_knowledge"
) -> str:
    """Return the menu between its heading and its notes; it has at least one topic.

    `search` says whether the search is offered, as a tool of this name.
    """
    lines = "".join(line for topic in menu.topics for line in _topic_lines(topic))
    if menu.others:
        lines += f"- {', '.join(menu.others)}\n"
    note = f"(note: {'; '.join(menu.cuts)})\n\n" if menu.cuts else ""
    found_by = f"{SEARCH_LINE.format(search_tool)}\n" if search else ""
    footer = _HOW + (_HIDDEN_NOTE if menu.has_hidden else "")
    return f"{_HEADER}{lines}\n{note}{found_by}{footer}"


def plain_menu(topics: Sequence[MenuTopic], *, has_hidden: bool = True) -> FittedMenu:
    """Return the uncut menu, with each text on one line and without closing tags."""
    return FittedMenu(topics=tuple(map(plain_topic, topics)), has_hidden=has_hidden)


def plain_topic(topic: MenuTopic) -> MenuTopic:
    """Return a topic with each text on one line and without closing tags."""
    if not topic.subjects:
        return topic
    return replace(topic, subjects=tuple(map(_plain_subject, topic.subjects)))


def _plain_subject(subject: MenuSubject) -> MenuSubject:
    name, summary = defuse(subject.name), subject.summary
    if not name.isprintable():
        name = one_line(name)
    if summary:
        summary = shorten(defuse(one_line(summary)), LONGEST_DESCRIPTION)
    return replace(subject, name=name, summary=summary)


def measure(topic: MenuTopic) -> int:
    """Return the number of characters of a topic's lines."""
    return sum(map(len, _topic_lines(topic)))


def _topic_lines(topic: MenuTopic) -> Iterator[str]:
    """Yield the lines of one topic, each with its line feed."""
    yield _topic_line(topic.topic)
    for subject in topic.subjects or ():
        size = f" {subject.size}" if subject.size else ""
        summary = f" — {subject.summary}" if subject.summary else ""
        yield f"  - {subject.name}{size}{summary}\n"
    if topic.counted is not None:
        joined = ";" if ":" in topic.counted else ","
        yield f'  - {topic.counted}{joined} call learn("{topic.topic.id}")\n'


def _topic_line(topic: Topic) -> str:
    line = f"- {topic.id}"
    if topic.title:
        line += f" (**{one_line(topic.title)}**)"
    if topic.introduction:
        line += f": {one_line(topic.introduction)}"
    return defuse(line) + "\n"
