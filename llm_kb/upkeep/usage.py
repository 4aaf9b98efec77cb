"""Counts the subjects that models read, and their failed calls, by the log of `llm`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from llm_kb.errors import KbError, PatternError, UnknownTopicError
from llm_kb.knowledge_base.knowledge_base import KnowledgeBase
from llm_kb.knowledge_base.learning import read_patterns
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
    when: str
    workspace: str
    sent: tuple[tuple[str, str, str], ...]
    """Topic id, root of the topic and name of each subject that it was given."""
    calls: tuple[Call, ...]
    """The calls of the turn before, whose answers were sent with this one."""
    passages: tuple[str, ...] = ()
    """The texts of its `kb-search:` fragments."""


@dataclass(slots=True, kw_only=True)
class TopicUse:
    """How often a topic was listed, and each of its subjects read."""

    id: str
    listed: int = 0
    loaded: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    """How often subjects were found by `search_knowledge`."""
    given: Counter[str] = field(default_factory=Counter)
    """In how many conversations subjects were pre-loaded, or sent as fragments or passages."""
    never: list[str] = field(default_factory=list)
    """The listed subjects that were not used."""

    def names(self) -> list[str]:
        """Return the subjects that were used, the most loaded first."""
        names = {*self.loaded, *self.found, *self.given}
        return sorted(names, key=lambda n: (-self.loaded[n], -self.found[n], -self.given[n], n))


@dataclass(slots=True, kw_only=True)
class Usage:
    """The use of one workspace according to the log."""

    conversations: int = 0
    topics: dict[str, TopicUse] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    """The unknown topics and TOPIC/PATTERN in calls of `learn`."""
    empty: Counter[str] = field(default_factory=Counter)
    """The questions without any passage."""

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        topics = [
            {
                "id": use.id,
                "listed": use.listed,
                "subjects": [
                    {
                        "slug": name,
                        "loaded": use.loaded[name],
                        "found": use.found[name],
                        "given": use.given[name],
                    }
                    for name in (*use.names(), *use.never)
                ],
            }
            for use in self.topics.values()
        ]
        failed = [{"name": name, "times": times} for name, times in _ranked(self.failed)]
        empty = [{"question": text, "times": times} for text, times in _ranked(self.empty)]
        return {
            "conversations": self.conversations,
            "topics": topics,
            "failed": failed,
            "found_nothing": empty,
        }


class Load(NamedTuple):
    """A call of `learn`; equal calls are resolved once."""

    topic: str
    patterns: tuple[str, ...]
    failed: bool


def count_usage(kb: KnowledgeBase, turns: Iterable[Turn]) -> Usage:
    """Return the use of this workspace in the given turns.

    Names are those of today: a subject that was renamed since is a name that fails.
    """
    here = str(kb.config.workspace or "")
    tally = _Tally(kb)
    conversations: set[str] = set()
    given: set[tuple[str, str, str]] = set()
    loads: Counter[Load] = Counter()
    for turn in turns:
        if turn.workspace != here:
            continue
        conversations.add(turn.conversation)
        sent = [(topic, name) for topic, _, name in turn.sent]
        sent += [found for text in turn.passages for found in _PASSAGE.findall(text)]
        given.update(
            (turn.conversation, topic, name)
            for topic, address in sent
            for name in tally.resolve(topic, address)
        )
        for call in turn.calls:
            if call.name == "learn":
                patterns = tuple(read_patterns(call.arguments.get("subjects")) or ())
                loads[Load(str(call.arguments.get("topic", "")), patterns, call.failed)] += 1
            elif call.output.startswith(FOUND_NOTHING):
                tally.usage.empty[str(call.arguments.get("question", ""))] += 1
            else:
                for topic, address in set(_PASSAGE.findall(call.output)):
                    tally.use(topic).found.update(tally.resolve(topic, address))
    for load, times in loads.items():
        tally.add_load(load, times)
    for _, topic, name in given:
        tally.use(topic).given[name] += 1
    tally.usage.conversations = len(conversations)
    return tally.finish()


class _Tally:
    """Collects the counts of one knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.usage = Usage()
        for opened in kb.active:
            if opened.topic.in_menu:
                self.use(opened.topic.id)
        self.resolve = cache(self._resolve)
        """Returns the subjects of an address, if they still exist."""

    def use(self, topic: str) -> TopicUse:
        """Return the counts of a topic."""
        return self.usage.topics.setdefault(topic, TopicUse(id=topic))

    def add_load(self, load: Load, times: int) -> None:
        """Count the subjects that a call of `learn` loaded, and its failures."""
        failed = self.usage.failed
        try:
            groups = self.kb.group_patterns(load.topic, load.patterns)
        except UnknownTopicError:
            failed[load.topic] += times
            return
        except KbError:  # an invalid pattern
            failed.update({f"{load.topic}/{pattern}": times for pattern in load.patterns})
            return
        for topic, patterns in groups.items():
            use = self.use(topic)
            use.listed += 0 if patterns else times
            selections = select_each(self.kb.topics[topic].catalog, patterns)
            for pattern, selection in zip(patterns, selections, strict=True):
                if load.failed or selection.missing:
                    failed[f"{topic}/{pattern}"] += times
                else:
                    use.loaded.update({subject.name: times for subject in selection.subjects})

    def _resolve(self, topic: str, address: str) -> list[str]:
        if topic in self.kb.topics:
            with suppress(PatternError):
                found = select(self.kb.topics[topic].catalog, [address]).subjects
                return [subject.name for subject in found]
        return []

    def finish(self) -> Usage:
        """Return the counts, with the unused subjects."""
        for use in self.usage.topics.values():
            read = set(use.names())
            listed = self.kb.topics[use.id].catalog.list_subjects().subjects
            use.never = [s.name for s in listed if is_listed(s) and s.name not in read]
        return self.usage


def render_usage(usage: Usage) -> Iterator[str]:
    """Yield the lines of the report for people."""
    for use in usage.topics.values():
        listings = f", listed {count(use.listed, 'time')}" if use.listed else ""
        yield f"{use.id}: {count(use.loaded.total(), 'load')}{listings}"
        if names := use.names():
            yield "  loaded   found   given  subject"
        for name in names:
            figures = (use.loaded[name], use.found[name], use.given[name])
            yield "".join(f"{n:8,}" for n in figures) + f"  {visible_line(name)}"
        if use.never:
            more = len(use.never) - MOST_NEVER
            named = ", ".join(map(visible_line, use.never[:MOST_NEVER]))
            yield f"  never: {named}" + (f" and {more:,} more" if more > 0 else "")
    for heading, counts in (
        ("names that failed:", usage.failed),
        ("searches that found nothing:", usage.empty),
    ):
        if counts:
            yield heading
            yield from (f"{times:8,}  {visible_line(name)}" for name, times in _ranked(counts))


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
