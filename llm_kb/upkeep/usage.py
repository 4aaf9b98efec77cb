"""Counts the subjects that models read, and their failed calls, by the log of `llm`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from textwrap import wrap
from typing import Any, NamedTuple, TypeAlias

from llm_kb.errors import KbError, PatternError, UnknownTopicError
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.tool_text import LEARN, ArgumentsError, read_arguments
from llm_kb.rendering.passages import FOUND_NOTHING
from llm_kb.rendering.plain_text import count, visible_line
from llm_kb.subjects.selection import is_listed, select, select_each

MOST_NEVER = 20
"""The most unread subjects that are named for people."""

_PASSAGE = re.compile(r'^<passage "([^/"]+)/([^"]*?) \(', re.MULTILINE)


class Call(NamedTuple):
    """A call of `learn` or `search_knowledge`, and its answer."""

    name: str
    arguments: Mapping[str, Any]
    output: str
    failed: bool


class Turn(NamedTuple):
    """One turn of a conversation in which this plugin took part."""

    conversation: str
    workspace: str
    sent: tuple[tuple[str, str, str], ...]
    """Topic id, root of the topic and name of each subject that it was given."""
    calls: tuple[Call, ...]
    """The calls of the turn before, whose answers were sent with this one."""
    passages: tuple[str, ...] = ()
    """The texts of its `kb-search:` fragments."""


class SubjectUse(NamedTuple):
    """The numbers of times models loaded a subject, or found it with `search_knowledge`.

    `given` is the number of conversations in which it was pre-loaded, or sent as a fragment
    or in passages.
    """

    slug: str
    loaded: int
    found: int
    given: int


class TopicUse(NamedTuple):
    """The number of listings of a topic, and the use of its subjects, most loaded first."""

    id: str
    listed: int
    subjects: Sequence[SubjectUse]


class Usage(NamedTuple):
    """The use of one workspace according to the log."""

    conversations: int
    topics: Sequence[TopicUse]
    failed: Sequence[tuple[str, int]]
    """The unknown topics and TOPIC/PATTERN in calls of `learn`, each with its number."""
    found_nothing: Sequence[tuple[str, int]]
    """The questions without any passage, each with its number."""

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        topics = [
            {**use._asdict(), "subjects": [subject._asdict() for subject in use.subjects]}
            for use in self.topics
        ]
        return {
            "conversations": self.conversations,
            "topics": topics,
            "failed": [{"name": name, "times": times} for name, times in self.failed],
            "found_nothing": [{"question": q, "times": times} for q, times in self.found_nothing],
        }


def count_usage(kb: OpenTopics, turns: Iterable[Turn]) -> Usage:
    """Return the use of this workspace in the given turns.

    Names are resolved against today's files, so the old name of a renamed subject fails.
    """
    here = str(kb.config.workspace or "")
    tally = _Tally(kb)
    conversations: set[str] = set()
    given: set[tuple[str, str, str]] = set()
    for turn in turns:
        if turn.workspace != here:
            continue
        conversations.add(turn.conversation)
        sent = [(topic, name) for topic, _, name in turn.sent]
        sent += [found for text in turn.passages for found in _PASSAGE.findall(text)]
        given.update((turn.conversation, *subject) for each in sent for subject in tally.find(each))
        for call in turn.calls:
            tally.add_call(call)
    tally.given.update((topic, name) for _, topic, name in given)
    return tally.finish(len(conversations))


Subject: TypeAlias = "tuple[str, str]"
"""A topic and the name of one of its subjects."""


class _Tally:
    """Collects the counts of one knowledge base."""

    def __init__(self, kb: OpenTopics) -> None:
        self.kb = kb
        self.loads: Counter[tuple[str, tuple[str, ...], bool]] = Counter()
        """The calls of `learn`, by topic, patterns and failure; equal ones are resolved once."""
        self.listed: Counter[str] = Counter()
        self.loaded: Counter[Subject] = Counter()
        self.found: Counter[Subject] = Counter()
        self.given: Counter[Subject] = Counter()
        self.failed: Counter[str] = Counter()
        self.found_nothing: Counter[str] = Counter()
        self.find = cache(self._find)
        """Returns the subjects of a topic and an address, if they still exist."""

    def _find(self, address: tuple[str, str]) -> list[Subject]:
        topic, pattern = address
        if topic in self.kb.topics:
            with suppress(PatternError):
                found = select(self.kb.topics[topic].catalog, [pattern]).subjects
                return [(topic, subject.name) for subject in found]
        return []

    def add_call(self, call: Call) -> None:
        """Count a call by its results, or by its failed request."""
        if call.name == "learn":
            with suppress(ArgumentsError):
                given = read_arguments(LEARN, call.arguments)
                self.loads[given["topic"], tuple(given.get("subjects", ())), call.failed] += 1
        elif call.output.startswith(FOUND_NOTHING):
            self.found_nothing[str(call.arguments.get("question", ""))] += 1
        else:
            for address in set(_PASSAGE.findall(call.output)):
                self.found.update(self.find(address))

    def _add_load(self, topic: str, patterns: Sequence[str], times: int, *, failed: bool) -> None:
        """Count the subjects that a call of `learn` loaded, and its failures."""
        try:
            groups = self.kb.group_patterns(topic, patterns)
        except UnknownTopicError:
            self.failed[topic] += times
            return
        except KbError:  # an invalid pattern
            self.failed.update({f"{topic}/{pattern}": times for pattern in patterns})
            return
        for id_, wanted in groups.items():
            self.listed[id_] += 0 if wanted else times
            selections = select_each(self.kb.topics[id_].catalog, wanted)
            for pattern, selection in zip(wanted, selections, strict=True):
                if failed or selection.missing:
                    self.failed[f"{id_}/{pattern}"] += times
                else:
                    self.loaded.update({(id_, each.name): times for each in selection.subjects})

    def finish(self, conversations: int) -> Usage:
        """Return the counts, with the unused subjects of the topics in the menu."""
        for (topic, patterns, failed), times in self.loads.items():
            self._add_load(topic, patterns, times, failed=failed)
        in_menu = [opened.topic.id for opened in self.kb.active if opened.topic.in_menu]
        used = [topic for topic, _ in (*self.loaded, *self.found, *self.given)]
        topics = dict.fromkeys([*in_menu, *self.listed, *used])
        return Usage(
            conversations=conversations,
            topics=[TopicUse(id_, self.listed[id_], self._list_subjects(id_)) for id_ in topics],
            failed=_rank(self.failed),
            found_nothing=_rank(self.found_nothing),
        )

    def _list_subjects(self, topic: str) -> list[SubjectUse]:
        """Return the use of each listed subject of a topic, and of others that were used."""
        names = [name for id_, name in (*self.loaded, *self.found, *self.given) if id_ == topic]
        listed = self.kb.topics[topic].catalog.list().subjects
        names += [subject.name for subject in listed if is_listed(subject)]
        uses = [
            SubjectUse(
                name, self.loaded[topic, name], self.found[topic, name], self.given[topic, name]
            )
            for name in dict.fromkeys(names)
        ]
        return sorted(uses, key=lambda use: (*(-number for number in use[1:]), use.slug))


def render_usage(usage: Usage, width: int = 80) -> Iterator[str]:
    """Yield the lines of the report for people; the unread subjects are folded at `width`."""
    for use in usage.topics:
        listings = f", listed {count(use.listed, 'time')}" if use.listed else ""
        loads = sum(subject.loaded for subject in use.subjects)
        yield f"{use.id}: {count(loads, 'load')}{listings}"
        used = [subject for subject in use.subjects if any(subject[1:])]
        if used:
            yield "  loaded   found   given  subject"
        for name, *figures in used:
            yield "".join(f"{n:8,}" for n in figures) + f"  {visible_line(name)}"
        never = [visible_line(subject.slug) for subject in use.subjects[len(used) :]]
        if never:
            more = len(never) - MOST_NEVER
            named = ", ".join(never[:MOST_NEVER]) + (f" and {more:,} more" if more > 0 else "")
            yield from wrap(
                f"never: {named}",
                width,
                initial_indent="  ",
                subsequent_indent="         ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    for heading, counts in (
        ("names that failed:", usage.failed),
        ("searches that found nothing:", usage.found_nothing),
    ):
        if counts:
            yield heading
            yield from (f"{times:8,}  {visible_line(name)}" for name, times in counts)


def _rank(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
