"""The tools that clients see, and what answers a call of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from llm_kb.api import LEARN_SCHEMA, KnowledgeBase, find_library
from llm_kb.capture.emission import EMIT_DESCRIPTION, EMIT_NAME, EMIT_SCHEMA
from llm_kb.capture.errors import NotARepositoryError
from llm_kb.capture.git.repository import Repository, find_repository
from llm_kb.errors import KbError
from llm_kb.host import reference_calls
from llm_kb.host.capture_schemas import SCHEMAS
from llm_kb.host.capture_tools import answer_annotation, answer_emission
from llm_kb.host.mcp.calls import Steps, answer_within
from llm_kb.host.search_tool import SEARCH_KNOWLEDGE, answer_search
from llm_kb.host.tool_text import (
    FILTERS,
    ToolText,
    check_arguments,
    object_schema,
    read_filters,
    string,
)
from llm_kb.references.ask import ask
from llm_kb.references.errors import UnknownPlanError
from llm_kb.references.fetch.create import carry_out
from llm_kb.references.fetch.outcomes import Progress, created_answer
from llm_kb.references.library import Library
from llm_kb.references.plan.pending import open_pending
from llm_kb.references.plan.plan import Plan

_PROPERTIES = SEARCH_KNOWLEDGE.schema["properties"]

SEARCH = ToolText(
    "search",
    SEARCH_KNOWLEDGE.description,
    object_schema(
        ["query"],
        query=string("What the passages should answer, in the words they would use."),
        topic=_PROPERTIES["topic"],
        limit=_PROPERTIES["limit"],
        **FILTERS,
    ),
)

ANNOTATE_DESCRIPTION = (
    "Annotate a commit you have just made: why it was done so, what was tried and failed (wisdom),"
    " and conventions, boundaries or anti-patterns it taught (knowledge). Written to git notes."
)

CREATED_BY = {"ghost": "mcp"}

MOST_LISTED = 40_000
"""Characters of a list of reference topics."""


class Needs(Enum):
    """What has to be there for a tool to be served."""

    NOTHING = "nothing"
    REFERENCES = "reference topics"
    REPOSITORY = "a repository, and that clients may write"
    WRITING = "that clients may write"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool as clients see it, and the function that answers a call of it."""

    text: ToolText
    answer: Callable[[KnowledgeBase, Mapping[str, Any], Steps], str]
    needs: Needs = Needs.NOTHING
    checks_arguments: bool = False
    """Whether `answer` checks the arguments itself."""

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.needs in (Needs.REPOSITORY, Needs.WRITING)


class UnknownToolError(KbError):
    """A tool this server does not have, or not here."""

    def __init__(self, name: str, tools: list[str]) -> None:
        self.name = name
        super().__init__(f"unknown tool {name!r}; tools: {', '.join(tools)}")


def find_tools(kb: KnowledgeBase, *, can_write: bool) -> Iterator[str]:
    """Yield the names of the tools that are served here."""
    for name, tool in TOOLS.items():
        if tool.writes and not can_write:
            continue
        if tool.needs is Needs.REPOSITORY and not _find_repository(kb):
            continue
        if tool.needs is Needs.REFERENCES and not open_references(kb).store.ids():
            continue
        yield name


def answer_call(
    kb: KnowledgeBase, name: str, arguments: Mapping[str, Any], steps: Steps, *, can_write: bool
) -> str:
    """Check a call and answer it. Raises KbError."""
    if name not in TOOLS or (TOOLS[name].writes and not can_write):
        raise UnknownToolError(name, list(find_tools(kb, can_write=can_write)))
    tool = TOOLS[name]
    given = arguments if tool.checks_arguments else check_arguments(tool.text, arguments)
    return tool.answer(kb, given, steps)


def describe_tool(kb: KnowledgeBase, tool: ServedTool) -> str:
    """Return the description of a tool; that of `learn` names the topics."""
    return kb.describe_learn() if tool is _LEARN else tool.text.description


def open_references(kb: KnowledgeBase) -> Library:
    """Return the reference topics of a knowledge base."""
    return find_library(kb.config, kb.directory)


def _find_repository(kb: KnowledgeBase) -> Repository | None:
    return find_repository(kb.directory, bare=False) if kb.directory else None


def _require_root(kb: KnowledgeBase) -> Path:
    repository = _find_repository(kb)
    if repository is None:
        raise NotARepositoryError(kb.directory or Path("/"))
    return repository.root


def _learn(kb: KnowledgeBase, arguments: Mapping[str, Any], _steps: Steps) -> str:
    return answer_within(kb, lambda: kb.answer_call(**arguments))


def _search(kb: KnowledgeBase, given: Mapping[str, Any], steps: Steps) -> str:
    return answer_search(kb, SEARCH, given, lambda *done: steps.report("indexing", *done))


def _reference_search(kb: KnowledgeBase, given: Mapping[str, Any], _steps: Steps) -> str:
    filters = read_filters(reference_calls.SEARCH, given)
    return dump(ask(open_references(kb), given["question"], given.get("topic"), **filters))


def _reference_topic_search(kb: KnowledgeBase, given: Mapping[str, Any], _steps: Steps) -> str:
    return dump(reference_calls.search_topics(open_references(kb), given["query"]))


def _reference_topic_list(kb: KnowledgeBase, given: Mapping[str, Any], _steps: Steps) -> str:
    topics: list[Any] = reference_calls.list_topics(open_references(kb), **given)
    shown = len(topics)
    while shown and len(dump(topics[:shown])) > MOST_LISTED:
        shown = shown * 3 // 4
    left = [topic["topic_id"] for topic in topics[shown:]]
    return dump(topics[:shown] + ([{"left_out": left}] if left else []))


def _create(kb: KnowledgeBase, given: Mapping[str, Any], steps: Steps) -> str:
    """Answer a call of `reference_topic_create`. Raises ApprovalNeededError for a new plan."""
    library = open_references(kb)
    keep = open_pending(library).keep
    created = reference_calls.create(library, given, CREATED_BY, keep, _progress(steps))
    return dump(created_answer(created))


def _emit(kb: KnowledgeBase, arguments: Mapping[str, Any], _steps: Steps) -> str:
    return answer_emission(_require_root(kb), arguments)


def _annotate(kb: KnowledgeBase, arguments: Mapping[str, Any], _steps: Steps) -> str:
    return answer_annotation(_require_root(kb), arguments)


def carry_out_approved(
    kb: KnowledgeBase, plan_id: str, arguments: Mapping[str, Any], steps: Steps
) -> str:
    """Carry out the plan that a person has approved for a call of `reference_topic_create`.

    Raises UnknownPlanError unless the plan was made for this very call, and
    ApprovalNeededError for another plan that the person has not seen.
    """
    read_plan(kb, plan_id, arguments)
    library = open_references(kb)
    keep = open_pending(library).keep
    return dump(created_answer(carry_out(library, plan_id, keep, _progress(steps))))


def read_plan(kb: KnowledgeBase, plan_id: str, arguments: Mapping[str, Any]) -> Plan:
    """Return the waiting plan of a call. Raises UnknownPlanError where it is of another one."""
    library = open_references(kb)
    given = check_arguments(reference_calls.CREATE, arguments)
    wanted = reference_calls.parse_call(library, given, CREATED_BY)
    plan = open_pending(library).read(plan_id).plan
    if plan.request.digest != wanted.digest:
        raise UnknownPlanError(plan_id, "it was made for another request")
    return plan


def _progress(steps: Steps) -> Progress:
    return Progress(
        asking=lambda what, done, total: steps.report(f"asking {what}", done, total),
        fetching=lambda what, done, total: steps.report(f"fetching {what}", done, total),
        indexing=lambda done, total: steps.report("indexing", done, total),
        embedding=lambda done, total: steps.report("embedding", done, total),
    )


def dump(value: object) -> str:
    """Return a value as the JSON that models read."""
    return json.dumps(value, ensure_ascii=False)


_LEARN = ServedTool(text=ToolText("learn", "", LEARN_SCHEMA), answer=_learn, checks_arguments=True)

_SERVED = (
    _LEARN,
    ServedTool(text=SEARCH, answer=_search),
    ServedTool(text=reference_calls.SEARCH, answer=_reference_search, needs=Needs.REFERENCES),
    ServedTool(
        text=reference_calls.TOPIC_SEARCH, answer=_reference_topic_search, needs=Needs.REFERENCES
    ),
    ServedTool(
        text=reference_calls.TOPIC_LIST, answer=_reference_topic_list, needs=Needs.REFERENCES
    ),
    ServedTool(text=reference_calls.CREATE, answer=_create, needs=Needs.WRITING),
    ServedTool(
        text=ToolText(EMIT_NAME, EMIT_DESCRIPTION, EMIT_SCHEMA),
        answer=_emit,
        needs=Needs.REPOSITORY,
        checks_arguments=True,
    ),
    ServedTool(
        text=ToolText("annotate", ANNOTATE_DESCRIPTION, SCHEMAS["live-input"]),
        answer=_annotate,
        needs=Needs.REPOSITORY,
        checks_arguments=True,
    ),
)

TOOLS = {tool.text.name: tool for tool in _SERVED}
"""Every tool there is, by name. Those that write add notes to the repository, or fetch a
reference topic once a person has approved its plan."""
