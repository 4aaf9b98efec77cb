"""The menu of what can be learned, and how it is made to fit its budget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from llm_kb.rendering.plain_text import defuse, one_line, shorten
from llm_kb.rendering.summaries import LONGEST_SUMMARY
from llm_kb.subjects.topics import Topic

SHORTEST_SUMMARY = 24
"""Summaries are shortened no further than this; below it they only take room."""

_HEADER = "The following knowledge topics are available to learn:\n\n"

_FOOTER = """\
Use the `learn` tool to consume this knowledge.

(note: some topics may contain hidden subjects that are not listed via `learn`
by default, but can be loaded manually if you are made aware of their names via
other means, such as by reading non-hidden subjects first. This prevents
exposing too much irrelevant knowledge upfront)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuSubject:
    """A subject in the menu: what listings call it, and a line on what it says.

    `summary` is None where it was not read.
    """

    name: str
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuTopic:
    """A topic in the menu.

    `subjects` are those the menu lists below it, None for `menu = "topics"`.
    `counted` stands for subjects that found no room: how many there are.
    """

    topic: Topic
    subjects: tuple[MenuSubject, ...] | None = None
    counted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMenu:
    """A menu as it is rendered: its topics, and what was cut from it, in words.

    Made by `fit_menu` or `plain_menu`, which see to hostile texts. `tokens` may
    still be over the budget when nothing is left to cut.
    """

    topics: tuple[MenuTopic, ...]
    cuts: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """The estimated tokens of the menu, headings and notes included."""
        return estimate_tokens(render_menu(self))


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: four characters each, rounded up."""
    return -(-len(text) // 4)


SEARCH_LINE = """\
Use the `search_knowledge` tool to find the passages of these topics that answer a question, by
their words (and by meaning, where there is an embedding model).
"""


def render_menu(menu: FittedMenu, *, search: bool = False) -> str:
    """Return the menu between its heading and its notes; it has a topic at least.

    `search` says whether the tool `search_knowledge` is offered.
    """
    lines = "".join(line for topic in menu.topics for line in _topic_lines(topic))
    found_by = f"{SEARCH_LINE}\n" if search else ""
    return f"{_HEADER}{lines}\n{_note(menu.cuts)}{found_by}{_FOOTER}"


def plain_menu(topics: Sequence[MenuTopic]) -> FittedMenu:
    """Return the uncut menu, its texts fit for a line each and closing no tag."""
    return FittedMenu(
        topics=tuple(
            replace(topic, subjects=tuple(map(_plain_subject, topic.subjects)))
            if topic.subjects
            else topic
            for topic in topics
        )
    )


def slugs_fit(topics: Sequence[MenuTopic], budget: int) -> bool:
    """Tell whether slugs alone fit the budget; if not, no summary need be read."""
    room = _room(budget)
    if any(_exceeds(topic, room) for topic in topics):
        return False
    return _characters(_without_summaries(plain_menu(topics))) <= room


def fit_menu(topics: Sequence[MenuTopic], budget: int) -> FittedMenu:
    """Return the menu, cut to a budget of tokens where it is over.

    In steps: summaries are shortened evenly; they are left out; topics have
    their subjects counted instead of listed, the one that takes most room
    first. Topics themselves are never cut.
    """
    room = _room(budget)
    # Whatever else is cut, these will be counted in the end: spare the work until then.
    hopeless = [_exceeds(topic, room) for topic in topics]
    if any(hopeless):
        rest = [
            _counted(t) if too_large else t for t, too_large in zip(topics, hopeless, strict=True)
        ]
        bare = _without_summaries(plain_menu(rest), had_any=_has_summaries(topics))
        return _count_largest(bare, room, counted=sum(hopeless))
    menu = plain_menu(topics)
    # What was not read was left out by the caller, for want of room.
    read = _all_read(menu)
    if read and _characters(menu) <= room:
        return menu
    bare = _without_summaries(menu, had_any=_has_summaries(topics))
    if _characters(bare) > room:
        return _count_largest(bare, room)
    return (_shorten_evenly(menu, room) if read else None) or bare


def _shorten_evenly(menu: FittedMenu, room: int) -> FittedMenu | None:
    """Return the menu with the longest summaries that fit; None when none do."""
    limits = range(SHORTEST_SUMMARY, LONGEST_SUMMARY)
    fitting = bisect_right(
        limits, room, key=lambda limit: _characters(_with_summaries(menu, limit))
    )
    return _with_summaries(menu, limits[fitting - 1]) if fitting else None


def _count_largest(menu: FittedMenu, room: int, counted: int = 0) -> FittedMenu:
    """Return the menu with as few topics counted as fit, the largest first.

    `counted` of them are already.
    """
    topics = list(menu.topics)
    sizes = [_size(topic) for topic in topics]
    total = sum(sizes)
    for index in sorted(range(len(topics)), key=lambda i: (-sizes[i], topics[i].topic.id)):
        if total + _overhead((*menu.cuts, *_counting(counted))) <= room:
            break
        smaller = _counted(topics[index])
        saved = sizes[index] - _size(smaller)
        if saved > 0:
            topics[index] = smaller
            total -= saved
            counted += 1
    return FittedMenu(topics=tuple(topics), cuts=(*menu.cuts, *_counting(counted)))


def _counting(counted: int) -> tuple[str, ...]:
    noun = "topic" if counted == 1 else "topics"
    return (f"the subjects of {counted} {noun} are counted, not listed",) if counted else ()


def _plain_subject(subject: MenuSubject) -> MenuSubject:
    name, summary = defuse(subject.name), subject.summary
    if not name.isprintable():
        name = one_line(name)
    if summary:
        summary = shorten(defuse(one_line(summary)), LONGEST_SUMMARY)
    return MenuSubject(name=name, summary=summary)


def _with_summaries(menu: FittedMenu, limit: int) -> FittedMenu:
    """Return the menu with summaries of at most `limit` characters."""
    topics = tuple(
        replace(
            topic,
            subjects=tuple(
                replace(subject, summary=shorten(subject.summary or "", limit))
                for subject in topic.subjects
            ),
        )
        if topic.subjects
        else topic
        for topic in menu.topics
    )
    cut = f"summaries are shortened to at most {limit} characters"
    return FittedMenu(topics=topics, cuts=(cut,))


def _without_summaries(menu: FittedMenu, *, had_any: bool = True) -> FittedMenu:
    """Return the menu with slugs alone; `had_any` says whether that leaves out anything."""
    topics = tuple(
        replace(topic, subjects=tuple(MenuSubject(name=s.name) for s in topic.subjects))
        if topic.subjects
        else topic
        for topic in menu.topics
    )
    return FittedMenu(topics=topics, cuts=("summaries are left out",) if had_any else ())


def _has_summaries(topics: Sequence[MenuTopic]) -> bool:
    """Tell whether any subject says something, or might: it was not read."""
    return any(s.summary != "" for topic in topics for s in topic.subjects or ())


def _exceeds(topic: MenuTopic, room: int) -> bool:
    """Tell whether the slugs of one topic take more than all the room, and than their count."""
    slugs = sum(len(subject.name) for subject in topic.subjects or ())
    return slugs > room + _size(_counted(topic)) if topic.subjects else False


def _counted(topic: MenuTopic) -> MenuTopic:
    """Return a topic with its subjects counted instead of listed."""
    if topic.subjects is None:
        return topic
    return MenuTopic(topic=topic.topic, counted=len(topic.subjects))


def _all_read(menu: FittedMenu) -> bool:
    return all(s.summary is not None for topic in menu.topics for s in topic.subjects or ())


def _room(budget: int) -> int:
    """Return the most characters that are estimated at a budget of tokens."""
    return 4 * budget


def _characters(menu: FittedMenu) -> int:
    return sum(map(_size, menu.topics)) + _overhead(menu.cuts)


def _overhead(cuts: Sequence[str]) -> int:
    return len(_HEADER) + len("\n") + len(_note(cuts)) + len(_FOOTER)


def _size(topic: MenuTopic) -> int:
    return sum(map(len, _topic_lines(topic)))


def _note(cuts: Sequence[str]) -> str:
    return f"(note: {'; '.join(cuts)})\n\n" if cuts else ""


def _topic_lines(topic: MenuTopic) -> Iterator[str]:
    """Yield the lines of one topic, each with its line feed."""
    yield _topic_line(topic.topic)
    for subject in topic.subjects or ():
        summary = f" — {subject.summary}" if subject.summary else ""
        yield f"  - {subject.name}{summary}\n"
    if topic.counted is not None:
        yield f'  - {topic.counted} subjects, call learn("{topic.topic.id}")\n'


def _topic_line(topic: Topic) -> str:
    line = f"- {topic.id}"
    if topic.title:
        line += f" (**{one_line(topic.title)}**)"
    if topic.introduction:
        line += f": {one_line(topic.introduction)}"
    return defuse(line) + "\n"
