"""Renders the menu of topics and subjects, cut to fit its budget of tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from llm_kb.rendering.plain_text import count, defuse, one_line, shorten
from llm_kb.rendering.summaries import LONGEST_SUMMARY
from llm_kb.rendering.tokens import CHARACTERS, estimate_tokens
from llm_kb.subjects.topics import REFERENCE_PREFIX, Topic

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


class MenuSubject(NamedTuple):
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

    Made by `fit_menu` or `plain_menu`, which defuse hostile texts. `tokens` may still be over
    the budget if nothing is left to cut.
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
    plain = (
        replace(topic, subjects=tuple(map(_plain_subject, topic.subjects)))
        if topic.subjects
        else topic
        for topic in topics
    )
    return FittedMenu(topics=tuple(plain), has_hidden=has_hidden)


def _plain_subject(subject: MenuSubject) -> MenuSubject:
    name, summary = defuse(subject.name), subject.summary
    if not name.isprintable():
        name = one_line(name)
    if summary:
        summary = shorten(defuse(one_line(summary)), LONGEST_DESCRIPTION)
    return subject._replace(name=name, summary=summary)


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


SHORTEST_SUMMARY = 40
"""Shortest summary after cutting; if that is too long, the largest topics lose theirs."""

SHORTEST_INTRODUCTION = 30
"""Shortest introduction after cutting; if that is too long, it is left out."""

MOST_DIRECTORIES = 12
"""A topic with more directories than this is counted as a whole."""

_LONGEST_NOTE = 200
"""Room for the note on the cuts, which is shorter."""


def fit_menu(topics: Sequence[MenuTopic], budget: int, *, has_hidden: bool = True) -> FittedMenu:
    """Return the menu, cut to a budget of tokens if necessary.

    In steps: summaries are shortened evenly; if that is not enough, topics lose their
    summaries and then have their subjects counted, references first and then the largest;
    introductions are shortened evenly, then left out; topics are reduced to their ids. The
    note on the cuts names the budget that would be enough.
    """
    whole = plain_menu(topics, has_hidden=has_hidden)
    if whole.tokens <= budget:
        return whole
    frame = len(_HEADER) + len("\n") + len(_HOW) + (len(_HIDDEN_NOTE) if has_hidden else 0)
    room = CHARACTERS * budget - frame - _LONGEST_NOTE
    shown, cuts = _cut_subjects(whole.topics, room)
    if counted := sum(topic.counted is not None for topic in shown):
        cuts.append(f"the subjects of {count(counted, 'topic')} are counted, not listed")
    shown, introductions = _cut_introductions(shown, room)
    shown, others = _cut_topics(shown, room)
    cuts += introductions
    if others:
        cuts.append(f"only the ids of {count(len(topics) - len(shown), 'topic')} are listed")
    if cuts:
        cuts.append(f"menu_budget = {_estimate_needed(whole)} would do")
    return FittedMenu(
        topics=tuple(shown), others=tuple(others), cuts=tuple(cuts), has_hidden=has_hidden
    )


def find_readable(
    topics: Sequence[MenuTopic], budget: int, *, has_hidden: bool = True
) -> frozenset[str]:
    """Return the ids of the topics whose subjects fit, so that their summaries are needed."""
    fitted = fit_menu(topics, budget, has_hidden=has_hidden)
    return frozenset(shown.topic.id for shown in fitted.topics if shown.subjects)


def list_topics(topics: Sequence[Topic], budget: int) -> str:
    """Return ids with titles on a line, without titles or cut if that exceeds the budget."""
    names = [
        f"{topic.id} ({' '.join(topic.title.split())})" if topic.title else topic.id
        for topic in topics
    ]
    if estimate_tokens(", ".join(names)) > budget:
        names = [topic.id for topic in topics]
    ends = accumulate(len(name) + len(", ") for name in names)
    fitting = max(1, sum(end - len(", ") <= CHARACTERS * budget for end in ends))
    more = [f"and {len(names) - fitting:,} more"] if len(names) > fitting else []
    return ", ".join([*names[:fitting], *more])


class _Form(NamedTuple):
    """A topic with as much about its subjects as its size, in characters, allows."""

    size: int
    topic: MenuTopic


def _cut_subjects(topics: Sequence[MenuTopic], room: int) -> tuple[list[MenuTopic], list[str]]:
    """Return the topics with as much about their subjects as fits, and a note on the cuts."""
    forms = [_list_forms(topic) for topic in topics]
    total = sum(each[0].size for each in forms)
    while total > room and (longer := [each for each in forms if len(each) > 1]):
        first = max(longer, key=lambda each: (_is_reference(each[0].topic), each[0].size))
        total -= first.pop(0).size - first[0].size
    shown = [each[0].topic for each in forms]
    kept = [place for place, topic in enumerate(shown) if _has_summaries(topic)]
    cuts = []
    used = total - sum(forms[place][0].size for place in kept)
    limit = _find_limit([topics[place] for place in kept], room - used)
    if limit is not None:
        cuts.append(f"summaries are shortened to at most {limit} characters")
    lost = sum(
        bool(now.subjects) and _has_summaries(whole) and not _has_summaries(now)
        for whole, now in zip(topics, shown, strict=True)
    )
    if lost:
        whose = f"the summaries of {count(lost, 'topic')}" if kept else "summaries"
        cuts.append(f"{whose} are left out")
    for place in kept:
        shown[place] = _with_summaries(topics[place], limit)
    return shown, cuts


def _list_forms(topic: MenuTopic) -> list[_Form]:
    """Return the shorter forms of a topic: with short summaries, without, and counted."""
    short = _with_summaries(topic, SHORTEST_SUMMARY)
    forms = [_Form(measure(short), short)]
    if topic.subjects:
        bare = replace(topic, subjects=tuple(s._replace(summary="") for s in topic.subjects))
        counted = replace(topic, subjects=None, counted=_count_subjects(topic))
        for form in (bare, counted):
            if (size := measure(form)) < forms[-1].size:
                forms.append(_Form(size, form))
    return forms


def _find_limit(topics: Sequence[MenuTopic], room: int) -> int | None:
    """Return the longest summaries that let the topics fit; None if all fit as they are."""
    lengths = [len(s.summary or "") for topic in topics for s in topic.subjects or ()]
    limits = range(SHORTEST_SUMMARY, max(lengths, default=0))
    room -= sum(map(measure, topics)) - sum(lengths)
    if not limits or sum(lengths) <= room:
        return None
    fitting = bisect_right(
        limits, room, key=lambda limit: sum(min(length, limit) for length in lengths)
    )
    return limits[max(fitting, 1) - 1]


def _cut_introductions(topics: Sequence[MenuTopic], room: int) -> tuple[list[MenuTopic], list[str]]:
    """Return the topics with introductions that fit, and a note on the cuts."""
    over = sum(map(measure, topics)) - room
    texts = [one_line(topic.topic.introduction or "") for topic in topics]
    if over <= 0 or not any(texts):
        return list(topics), []
    lengths = list(map(len, texts))
    limits = range(max(lengths) - 1, SHORTEST_INTRODUCTION - 1, -1)
    saving = bisect_left(
        limits, over, key=lambda limit: sum(max(0, length - limit) for length in lengths)
    )
    limit = limits[saving] if saving < len(limits) else 0
    shown = [
        replace(
            entry,
            topic=replace(entry.topic, introduction=shorten(text, limit) if limit else None),
        )
        for entry, text in zip(topics, texts, strict=True)
    ]
    what = f"shortened to at most {limit} characters" if limit else "left out"
    return shown, [f"introductions are {what}"]


def _cut_topics(topics: Sequence[MenuTopic], room: int) -> tuple[list[MenuTopic], list[str]]:
    """Return the first topics that fit, and the ids of the others, as many as fit."""
    sizes = [measure(topic) for topic in topics]
    if sum(sizes) <= room:
        return list(topics), []
    ids = [topic.topic.id for topic in topics]
    kept = len(topics)
    used = sum(sizes) + len("- \n")
    while kept > 1 and used > room:
        kept -= 1
        used += len(ids[kept]) + 2 - sizes[kept]
    others = ids[kept:]
    while len(others) > 1 and used > room:
        used -= len(others.pop()) + 2
    left = len(topics) - kept - len(others)
    return list(topics[:kept]), [*others, f"and {left:,} more"] if left else others


def _with_summaries(topic: MenuTopic, limit: int | None) -> MenuTopic:
    """Return a topic with summaries of at most `limit` characters."""
    if limit is None or not topic.subjects:
        return topic
    return replace(
        topic,
        subjects=tuple(
            s._replace(summary=shorten(s.summary, limit)) if s.summary else s
            for s in topic.subjects
        ),
    )


def _has_summaries(topic: MenuTopic) -> bool:
    """Tell whether any subject has a summary, or has not been read yet."""
    return any(subject.summary != "" for subject in topic.subjects or ())


def _is_reference(topic: MenuTopic) -> bool:
    return topic.topic.id.startswith(REFERENCE_PREFIX)


def _estimate_needed(whole: FittedMenu) -> int:
    """Return a budget at which nothing would be cut, with long summaries where none was read."""
    return replace(whole, topics=tuple(map(_with_longest_summaries, whole.topics))).tokens


def _with_longest_summaries(topic: MenuTopic) -> MenuTopic:
    """Return a topic with a long summary for each subject that was not read."""
    unread = "x" * LONGEST_SUMMARY
    subjects = [
        subject._replace(summary=unread) if subject.summary is None else subject
        for subject in topic.subjects or ()
    ]
    return replace(topic, subjects=tuple(subjects)) if subjects else topic


def _count_subjects(topic: MenuTopic) -> str:
    """Return the numbers of a topic's subjects: `207 subjects: ref/** (100), 107 others`."""
    names = [subject.name for subject in topic.subjects or ()]
    directories = Counter(name.partition("/")[0] for name in names if "/" in name)
    total = count(len(names), "subject")
    if not directories or len(directories) > MOST_DIRECTORIES:
        return total
    shown = [
        f"{defuse(one_line(name))}/** ({number:,})" for name, number in sorted(directories.items())
    ]
    beside = len(names) - sum(directories.values())
    if beside:
        shown.append(count(beside, "other"))
    return f"{total}: {', '.join(shown)}"
