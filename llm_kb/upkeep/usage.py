"""Counts the subjects that models read, and their failed calls, by the log of `llm`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from textwrap import TextWrapper
from typing import Any, NamedTuple, TypeAlias

from llm_kb.errors import KbError, UnknownTopicError
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.tool_text import LEARN, ArgumentsError, read_arguments
from llm_kb.rendering.passages import FOUND_NOTHING
from llm_kb.rendering.plain_text import count, visible_line
from llm_kb.subjects.selection import select

MOST_NEVER = 20
"""The most unread subjects that are named for people."""

_PASSAGE = re.compile(r'^<passage "([^/"]+)/([^"]*?) \(', re.MULTILINE)
FIGURES = ("loaded", "found", "given")

Subject: TypeAlias = "tuple[str, str]"
"""A topic and the name of one of its subjects."""


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


class Usage:
    """The use of one workspace according to the log.

    Names are resolved against today's files, so the old name of a renamed subject fails.
    """

    def __init__(self, kb: OpenTopics, turns: Iterable[Turn]) -> None:
        self._kb = kb
        self._uses: defaultdict[Subject, Counter[str]] = defaultdict(Counter)
        self._given: set[tuple[str, Subject]] = set()
        self._find = cache(self._resolve)
        self.conversations: set[str] = set()
        self.failed: Counter[str] = Counter()
        """The unknown topics and TOPIC/PATTERN in calls of `learn`."""
        self.found_nothing: Counter[str] = Counter()
        """The questions without any passage."""
        for turn in turns:
            if turn.workspace == str(kb.config.workspace or ""):
                self._add(turn)

    def _add(self, turn: Turn) -> None:
        self.conversations.add(turn.conversation)
        sent = [(topic, name) for topic, _, name in turn.sent]
        sent += [address for text in turn.passages for address in _PASSAGE.findall(text)]
        for topic, pattern in sent:
            for subject in self._find(topic, (pattern,))[0]:
                if (turn.conversation, subject) not in self._given:
                    self._given.add((turn.conversation, subject))
                    self._uses[subject]["given"] += 1
        for call in turn.calls:
            if call.name == "learn":
                with suppress(ArgumentsError):
                    self._add_load(read_arguments(LEARN, call.arguments), failed=call.failed)
            elif call.output.startswith(FOUND_NOTHING):
                self.found_nothing[str(call.arguments.get("question", ""))] += 1
            for topic, pattern in set(_PASSAGE.findall(call.output)):
                for subject in self._find(topic, (pattern,))[0]:
                    self._uses[subject]["found"] += call.name != "learn"

    def _add_load(self, given: Mapping[str, Any], *, failed: bool) -> None:
        patterns = tuple(given.get("subjects", ()))
        subjects, missing = self._find(given["topic"], patterns)
        if failed and not missing:
            subjects, missing = [], [f"{given['topic']}/{pattern}" for pattern in patterns]
        self.failed.update(missing)
        for subject in subjects:
            self._uses[subject]["loaded"] += 1

    def _resolve(
        self, topic: str, patterns: tuple[str, ...]
    ) -> tuple[Sequence[Subject], Sequence[str]]:
        """Return the subjects that a call of `learn` names, and the names that fail."""
        try:
            groups = self._kb.group_patterns(topic, patterns)
        except UnknownTopicError:
            return [], [topic]
        except KbError:  # an invalid pattern
            return [], [f"{topic}/{pattern}" for pattern in patterns]
        subjects: list[Subject] = []
        missing: list[str] = []
        for id_, wanted in groups.items():
            selection = select(self._kb.topics[id_].catalog, wanted)
            missing += [f"{id_}/{pattern}" for pattern in selection.missing]
            subjects += [(id_, each.name) for each in selection.subjects]
        return subjects, missing

    def as_dict(self) -> dict[str, Any]:
        """Return the record that `--json` prints, with the topics in the menu and others used.

        Each subject has three numbers, the most used is first: how often models loaded it, how
        often their searches found it, and in how many conversations it was sent at the start.
        """
        in_menu = [opened.topic.id for opened in self._kb.active if opened.topic.in_menu]
        topics = []
        for id_ in dict.fromkeys((*in_menu, *(topic for topic, _ in self._uses))):
            names = {name for topic, name in self._uses if topic == id_}
            names |= {subject.name for subject in self._kb.topics[id_].listing.listed}
            uses = {name: self._uses.get((id_, name), Counter[str]()) for name in names}
            ranked = sorted(uses, key=lambda name: ([-uses[name][each] for each in FIGURES], name))
            subjects = [
                {"slug": name, **{each: uses[name][each] for each in FIGURES}} for name in ranked
            ]
            topics.append({"id": id_, "subjects": subjects})
        return {
            "conversations": len(self.conversations),
            "topics": topics,
            "failed": [{"name": name, "times": n} for name, n in rank(self.failed)],
            "found_nothing": [{"question": q, "times": n} for q, n in rank(self.found_nothing)],
        }


def render_usage(usage: Mapping[str, Any], width: int = 80) -> Iterator[str]:
    """Yield the lines of the report for people; the unread subjects are folded at `width`."""
    for topic in usage["topics"]:
        used = [use for use in topic["subjects"] if any(use[each] for each in FIGURES)]
        yield f"{topic['id']}: {count(sum(use['loaded'] for use in used), 'load')}"
        if used:
            yield "  loaded   found   given  subject"
        for use in used:
            figures = "".join(f"{use[each]:8,}" for each in FIGURES)
            yield f"{figures}  {visible_line(use['slug'])}"
        never = [visible_line(use["slug"]) for use in topic["subjects"][len(used) :]]
        if never:
            more = len(never) - MOST_NEVER
            named = ", ".join(never[:MOST_NEVER]) + (f" and {more:,} more" if more > 0 else "")
            words = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
            words.subsequent_indent = " " * 9
            yield from words.wrap(f"  never: {named}")
    for heading, key, name in (
        ("names that failed:", "failed", "name"),
        ("searches that found nothing:", "found_nothing", "question"),
    ):
        if usage[key]:
            yield heading
            yield from (f"{each['times']:8,}  {visible_line(each[name])}" for each in usage[key])


def rank(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return names with their numbers, the highest first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
