"""Shortens a menu to fit its budget of tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from llm_kb.rendering.menu import (
    FittedMenu,
    MenuTopic,
    estimate_tokens,
    frame_length,
    measure,
    plain_menu,
    plain_topic,
)
from llm_kb.rendering.plain_text import count, defuse, one_line, shorten
from llm_kb.rendering.summaries import LONGEST_SUMMARY
from llm_kb.subjects.topics import REFERENCE_PREFIX, Topic

SHORTEST_SUMMARY = 40
"""Shortest summary after cutting; if that is too long, the largest topics lose theirs."""

SHORTEST_INTRODUCTION = 30
"""Shortest introduction after cutting; if that is too long, it is left out."""

MOST_DIRECTORIES = 12
"""A topic with more directories than this is counted as a whole."""


def fit_menu(topics: Sequence[MenuTopic], budget: int, *, has_hidden: bool = True) -> FittedMenu:
    """Return the menu, cut to a budget of tokens if necessary.

    In steps: summaries are shortened evenly; if that is not enough, topics lose their
    summaries and then have their subjects counted, references first and then the largest;
    introductions are shortened evenly, then left out; topics are reduced to their ids. The
    note on the cuts names the budget that would be enough.
    """
    room = 4 * budget - frame_length(has_hidden=has_hidden)
    hopeless = [_exceeds(topic, room) for topic in topics]
    if not any(hopeless):
        whole = plain_menu(topics, has_hidden=has_hidden)
        if whole.tokens <= budget and not any(map(_has_unread, topics)):
            return whole
    plain = [
        replace(topic, subjects=None, counted=_count_subjects(topic))
        if too_large
        else plain_topic(topic)
        for topic, too_large in zip(topics, hopeless, strict=True)
    ]
    room -= _LONGEST_NOTE
    shown, cuts = _cut_subjects(plain, room)
    counted = sum(topic.counted is not None for topic in shown)
    if counted:
        cuts.append(f"the subjects of {count(counted, 'topic')} are counted, not listed")
    shown, introductions = _cut_introductions(shown, room)
    shown, others = _cut_topics(shown, room)
    cuts += introductions
    if others:
        cuts.append(f"only the ids of {count(len(topics) - len(shown), 'topic')} are listed")
    if cuts:
        cuts.append(f"menu_budget = {_estimate_needed(topics, has_hidden=has_hidden)} would do")
    return FittedMenu(
        topics=tuple(shown), others=tuple(others), cuts=tuple(cuts), has_hidden=has_hidden
    )


def find_readable(topics: Sequence[MenuTopic], budget: int) -> frozenset[str]:
    """Return the ids of the topics whose subjects fit, so that their summaries are needed."""
    return frozenset(shown.topic.id for shown in fit_menu(topics, budget).topics if shown.subjects)


def list_topics(topics: Sequence[Topic], budget: int) -> str:
    """Return ids with titles on a line, without titles or cut if that exceeds the budget."""
    names = [
        f"{topic.id} ({' '.join(topic.title.split())})" if topic.title else topic.id
        for topic in topics
    ]
    if estimate_tokens(", ".join(names)) > budget:
        names = [topic.id for topic in topics]
    fitting = bisect_right(
        range(1, len(names)), budget, key=lambda n: estimate_tokens(", ".join(names[:n]))
    )
    if names and estimate_tokens(", ".join(names)) > budget:
        left = len(names) - max(fitting, 1)
        names = [*names[: max(fitting, 1)], f"and {left:,} more"]
    return ", ".join(names)


_LONGEST_NOTE = 200
"""Room for the note on the cuts, which is shorter."""


def _cut_subjects(topics: Sequence[MenuTopic], room: int) -> tuple[list[MenuTopic], list[str]]:
    """Return the topics with as much about their subjects as fits, and a note on the cuts."""
    forms = [_list_forms(topic) for topic in topics]
    total = sum(measure(each[0]) for each in forms)
    # heapq pops the smallest: references first, then the largest; the place breaks ties.
    heap = [
        (not topics[place].topic.id.startswith(REFERENCE_PREFIX), -measure(each[0]), place)
        for place, each in enumerate(forms)
        if len(each) > 1
    ]
    heapify(heap)
    while heap and total > room:
        is_own, size, place = heappop(heap)
        del forms[place][0]
        smaller = measure(forms[place][0])
        total += smaller + size
        if len(forms[place]) > 1:
            heappush(heap, (is_own, -smaller, place))
    shown = [each[0] for each in forms]
    kept = {place for place in range(len(topics)) if _has_summaries(shown[place])}
    lost = sum(
        place not in kept and bool(shown[place].subjects) and _has_summaries(topic)
        for place, topic in enumerate(topics)
    )
    used = sum(measure(topic) for place, topic in enumerate(shown) if place not in kept)
    limit = _find_limit([topics[place] for place in kept], room - used)
    cuts = []
    if limit is not None:
        cuts.append(f"summaries are shortened to at most {limit} characters")
    if lost:
        whose = f"the summaries of {count(lost, 'topic')}" if kept else "summaries"
        cuts.append(f"{whose} are left out")
    for place in kept:
        shown[place] = _with_summaries(topics[place], limit)
    return shown, cuts


def _list_forms(topic: MenuTopic) -> list[MenuTopic]:
    """Return the shorter forms of a topic: with short summaries, without, and counted."""
    if not topic.subjects:
        return [topic]
    short = _with_summaries(topic, SHORTEST_SUMMARY)
    bare = replace(topic, subjects=tuple(replace(s, summary="") for s in topic.subjects))
    counted = replace(topic, subjects=None, counted=_count_subjects(topic))
    forms = [short]
    for form in (bare, counted):
        if measure(form) < measure(forms[-1]):
            forms.append(form)
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
    lengths = [len(one_line(topic.topic.introduction or "")) for topic in topics]
    if over <= 0 or not any(lengths):
        return list(topics), []
    limits = range(max(lengths) - 1, SHORTEST_INTRODUCTION - 1, -1)
    saving = bisect_left(
        limits, over, key=lambda limit: sum(max(0, length - limit) for length in lengths)
    )
    limit = limits[saving] if saving < len(limits) else 0
    shown = [
        replace(
            topic,
            topic=replace(
                topic.topic,
                introduction=shorten(one_line(topic.topic.introduction or ""), limit)
                if limit
                else None,
            ),
        )
        for topic in topics
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
            replace(subject, summary=shorten(subject.summary, limit))
            if subject.summary
            else subject
            for subject in topic.subjects
        ),
    )


def _has_summaries(topic: MenuTopic) -> bool:
    """Tell whether any subject has a summary, or has not been read yet."""
    return any(subject.summary != "" for subject in topic.subjects or ())


def _has_unread(topic: MenuTopic) -> bool:
    return any(subject.summary is None for subject in topic.subjects or ())


def _exceeds(topic: MenuTopic, room: int) -> bool:
    """Tell whether the slugs of one topic exceed the whole budget."""
    return sum(len(subject.name) for subject in topic.subjects or ()) > max(room, 0) + 1_000


def _estimate_needed(topics: Sequence[MenuTopic], *, has_hidden: bool) -> int:
    """Return a budget at which nothing would be cut."""
    heads = sum(measure(replace(topic, subjects=None)) for topic in topics)
    listed = sum(
        len(f"  - {subject.name}{' ' if subject.size else ''}{subject.size}\n")
        + (LONGEST_SUMMARY if subject.summary is None else len(subject.summary))
        + (0 if subject.summary == "" else len(" — "))
        for topic in topics
        for subject in topic.subjects or ()
    )
    return -(-(frame_length(has_hidden=has_hidden) + heads + listed) // 4)


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
        shown.append(f"{count(beside, 'other')}")
    return f"{total}: {', '.join(shown)}"
