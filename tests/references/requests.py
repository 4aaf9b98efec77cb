"""Requests to a library, their approval, and the fetched files, for tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llm_kb.references.errors import ApprovalNeededError, DeniedError
from llm_kb.references.fetch.create import create_topic, propose_topic
from llm_kb.references.library import Library
from llm_kb.references.plan import PendingPlans, Plan
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.topic_file import TopicFile

PAGE = "<title>Hooks</title><main><h1>Hooks</h1><p>Call them <b>first</b>.</p></main>"


def request(*sources: Source, title: str = "Frob") -> TopicFile:
    """Ask for a topic of some sources."""
    return TopicFile(
        id="topic-frob",
        title=title,
        body="Frobnicates.",
        tags=("x",),
        max_age_days=30,
        sources=sources,
    )


def yes(*_: object) -> bool:
    """Approve of anything."""
    return True


def never(*_: object) -> bool:
    """Fail when approval is asked for."""
    raise AssertionError("nobody should be asked")


def refreshed_to(**counts: object) -> dict[str, object]:
    """Return what a refresh of the topic answers, with the given counts."""
    nothing = {"added": 0, "modified": 0, "removed": 0, "own": [], "warnings": []}
    return {"topic_id": "topic-frob", "changed": True, **nothing, **counts}


def differences(**kinds: list[str]) -> dict[str, list[str]]:
    """Return what `verify` finds, with the given kinds of differences."""
    names = ("modified", "missing", "unknown", "unreadable", "problems")
    return {name: [] for name in names} | kinds


def files_of(library: Library, topic_id: str = "topic-frob") -> dict[str, str]:
    """Return the fetched files that a topic has on disk."""
    root = library.directory(topic_id)
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in {"topic.md", ".provenance.json"}
    }


def keep_waiting(library: Library) -> Callable[[Plan], bool]:
    """Return an approval that stores every plan for the operator."""

    def ask(plan: Plan) -> bool:
        raise PendingPlans(library).ask_later(plan)

    return ask


def plan_topic(library: Library, asked: TopicFile) -> Plan:
    """Return what was fetched for a request, which is denied."""
    plans: list[Plan] = []

    def deny(plan: Plan) -> bool:
        plans.append(plan)
        return False

    with pytest.raises(DeniedError):
        create_topic(library, asked, deny)
    return plans[0]


def store_plan(library: Library, asked: TopicFile) -> Plan:
    """Return the plan of a request, which waits for approval."""
    with pytest.raises(ApprovalNeededError) as needed:
        propose_topic(library, asked, keep_waiting(library))
    return PendingPlans(library).read(needed.value.plan_id)


def use_up(pending: PendingPlans, plan: Plan) -> None:
    """Carry a plan out by doing nothing."""
    with pending.carrying_out(plan.id):
        pass
