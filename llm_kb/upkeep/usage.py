"""Counts the subjects that models read, and their failed calls, by the log of `llm`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from llm_kb.errors import KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.tool_text import LEARN, read_arguments
from llm_kb.rendering.passages import FOUND_NOTHING, find_addresses
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.topics import select
from llm_kb.texts.safe import visible_line

Subject: TypeAlias = "tuple[str, str]"
"""A topic and the name of one of its subjects."""


class Turn(NamedTuple):
    """One turn of a conversation in which this plugin took part."""

    conversation: str
    workspace: str
    sent: Sequence[Subject]
    """The subjects that it was given."""
    passages: Sequence[str]
    """The texts of its `kb-search:` fragments."""
    calls: Sequence[tuple[str, Mapping[str, Any], str, bool]]
    """The calls of the turn before, whose answers were sent with this one.

    Each has a tool, its arguments, the answer, and whether it failed.
    """


def count_uses(kb: KnowledgeBase, turns: Iterable[Turn]) -> dict[str, Any]:
    """Return the uses of one workspace, as `--json` prints them: topics in the menu and others.

    Each subject has three numbers, the most used is first: how often models loaded it, how often
    their searches found it, and in how many conversations it was sent at the start. Names are
    resolved against today's files, so the old name of a renamed subject fails.
    """
    find = cache(partial(_find_subjects, kb))
    given: set[tuple[str, Subject]] = set()
    conversations: set[str] = set()
    uses: dict[str, Counter[Subject]] = {name: Counter() for name in ("loaded", "found", "given")}
    failed: Counter[str] = Counter()
    found_nothing: Counter[str] = Counter()
    workspace = str(kb.config.workspace or "")
    for turn in (turn for turn in turns if turn.workspace == workspace):
        conversations.add(turn.conversation)
        for topic, name in (*turn.sent, *chain.from_iterable(map(find_addresses, turn.passages))):
            given.update((turn.conversation, subject) for subject in find(topic, (name,))[0])
        for tool, arguments, answer, has_failed in turn.calls:
            if tool == "learn":
                with suppress(KbError):
                    asked = read_arguments(LEARN, arguments)
                    topic, names = asked["topic"], tuple(asked.get("subjects", ()))
                    subjects, missing = find(topic, names)
                    if has_failed:
                        subjects, missing = (), missing or [f"{topic}/{name}" for name in names]
                    uses["loaded"].update(subjects)
                    failed.update(missing)
            elif answer.startswith(FOUND_NOTHING):
                found_nothing[str(arguments.get("question", ""))] += 1
            else:
                for topic, name in set(find_addresses(answer)):
                    uses["found"].update(find(topic, (name,))[0])
    uses["given"].update(subject for _, subject in given)
    ids = kb.menu_ids + [topic for counts in uses.values() for topic, _ in counts]
    return {
        "conversations": len(conversations),
        "topics": [{"id": id_, "subjects": _rank(kb, id_, uses)} for id_ in dict.fromkeys(ids)],
        "failed": [{"name": name, "times": n} for name, n in _order(failed)],
        "found_nothing": [{"question": name, "times": n} for name, n in _order(found_nothing)],
    }


def _find_subjects(
    kb: KnowledgeBase, topic: str, patterns: tuple[str, ...]
) -> tuple[Sequence[Subject], Sequence[str]]:
    """Return the subjects that a call of `learn` names, and the names that fail."""
    try:
        groups = kb.group_patterns(topic, patterns)
    except KbError:  # an unknown topic or an invalid pattern
        return (), [f"{topic}/{pattern}" for pattern in patterns] or [topic]
    subjects: list[Subject] = []
    missing: list[str] = []
    for id_, wanted in groups.items():
        selection = select(kb.topics[id_].topic, wanted)
        missing += [f"{id_}/{pattern}" for pattern in selection.missing]
        subjects += [(id_, each.name) for each in selection.subjects]
    return subjects, missing


def _rank(
    kb: KnowledgeBase, id_: str, uses: Mapping[str, Counter[Subject]]
) -> list[dict[str, Any]]:
    """Return the subjects of a topic with their numbers, the most used first."""
    used = {name for counts in uses.values() for topic, name in counts if topic == id_}
    names = used.union(subject.name for subject in kb.topics[id_].listing.listed)
    numbers = {name: {each: counts[id_, name] for each, counts in uses.items()} for name in names}
    ranked = sorted(names, key=lambda name: ([-n for n in numbers[name].values()], name))
    return [{"slug": name, **numbers[name]} for name in ranked]


def _order(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def render_usage(usage: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yield the lines of the report for people; the unread subjects are folded at `width`."""
    fold = textwrap.TextWrapper(width, subsequent_indent=" " * 9, max_lines=8, placeholder=" ...")
    fold.break_long_words = fold.break_on_hyphens = False
    for topic in usage["topics"]:
        used = [use for use in topic["subjects"] if use["loaded"] or use["found"] or use["given"]]
        yield f"{topic['id']}: read {count(sum(use['loaded'] for use in used), 'time')}"
        if used:
            yield "    read   found    sent  subject"
        for use in used:
            figures = f"{use['loaded']:8,}{use['found']:8,}{use['given']:8,}"
            yield f"{figures}  {visible_line(use['slug'])}"
        if never := [visible_line(use["slug"]) for use in topic["subjects"][len(used) :]]:
            yield from fold.wrap(f"  never: {', '.join(never)}")
    for heading, key, name in (
        ("names that failed:", "failed", "name"),
        ("searches that found nothing:", "found_nothing", "question"),
    ):
        if usage[key]:
            yield heading
            yield from (f"{each['times']:8,}  {visible_line(each[name])}" for each in usage[key])
