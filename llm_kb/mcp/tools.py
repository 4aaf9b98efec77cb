"""The tools of the MCP server, and the functions that answer their calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from llm_kb.api import KnowledgeBase
from llm_kb.capture.annotation import annotate, parse_live_input
from llm_kb.capture.entries import dump_json
from llm_kb.capture.errors import InvalidAnnotationError
from llm_kb.errors import KbError
from llm_kb.host import reference_calls
from llm_kb.host.capture_tools import EMIT, LIVE_INPUT, emit, find_root, require_root
from llm_kb.knowledge_base.tool_text import (
    LEARN,
    SEARCH_KNOWLEDGE,
    ToolText,
    read_arguments,
    read_filters,
)
from llm_kb.mcp.limits import SEARCH_NAME, answer_within
from llm_kb.references.errors import ApprovalNeededError
from llm_kb.references.library import Library
from llm_kb.user_dir import find_library

SEARCH = SEARCH_KNOWLEDGE._replace(name=SEARCH_NAME)

ANNOTATE_DESCRIPTION = (
    "Annotate a commit you have just made: why it was done so, what was tried and failed (wisdom),"
    " and conventions, boundaries or anti-patterns it taught (knowledge). Written to git notes."
)

CREATED_BY = {"ghost": "mcp"}

MOST_LISTED = 40_000
"""The most characters of a list of reference topics."""

MOST_ITEMS = 200
MOST_CHARACTERS = 200_000
"""The most items and characters of an annotation: each entry is compared with all others."""


Report: TypeAlias = "Callable[[Any, int, int], None]"
"""Called with the label of a step, the work done and the total; raises to end the call."""

SECONDS = 120
"""Seconds that a call may go on without progress: conversions of documents take up to 120."""

FETCH_SECONDS = 900
"""The same for a fetch, which has bounds of its own."""


class Needs(Enum):
    """The condition for a tool to be served."""

    NOTHING = "nothing"
    REFERENCES = "reference topics"
    REPOSITORY = "a repository, and that clients may write"
    WRITING = "that clients may write"


class ServedTool(NamedTuple):
    """A tool as clients see it, and the function that answers its calls."""

    text: ToolText
    answer: Callable[[KnowledgeBase, Mapping[str, Any], Report], str]
    needs: Needs = Needs.NOTHING
    checks_arguments: bool = False
    """Whether `answer` checks the arguments itself."""

    def describe(self, kb: KnowledgeBase) -> str:
        """Return the description of a tool; the one of `learn` names the topics."""
        return kb.describe_learn() if self.text is LEARN else self.text.description

    def render(self, description: str) -> dict[str, Any]:
        """Return the tool as clients list it."""
        return {
            "name": self.text.name,
            "description": description,
            "inputSchema": self.text.schema,
            "annotations": {
                "readOnlyHint": not self.writes,
                "destructiveHint": False,
                "openWorldHint": self.needs is Needs.WRITING,
            },
        }

    @property
    def writes(self) -> bool:
        """Whether the tool changes anything."""
        return self.needs in (Needs.REPOSITORY, Needs.WRITING)


def find_tools(kb: KnowledgeBase, *, can_write: bool) -> Iterator[ServedTool]:
    """Yield the tools that are served in this directory."""
    for tool in TOOLS.values():
        if tool.writes and not can_write:
            continue
        if tool.needs is Needs.REPOSITORY and not find_root(kb.directory):
            continue
        if tool.needs is Needs.REFERENCES and not open_references(kb).store.ids():
            continue
        yield tool


def answer_call(
    kb: KnowledgeBase, name: str, arguments: Mapping[str, Any], report: Report, *, can_write: bool
) -> str:
    """Check a call and answer it. Raises KbError."""
    if name not in TOOLS or (TOOLS[name].writes and not can_write):
        known = ", ".join(tool.text.name for tool in find_tools(kb, can_write=can_write))
        raise KbError(f"unknown tool {name!r}; tools: {known}")
    tool = TOOLS[name]
    given = arguments if tool.checks_arguments else read_arguments(tool.text, arguments)
    return tool.answer(kb, given, report)


def make_result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    """Return the result of a call."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def find_deadline(request: Mapping[str, Any]) -> int:
    """Return the seconds that a request may go on without progress."""
    params = request.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return FETCH_SECONDS if name == reference_calls.CREATE.name else SECONDS


def open_references(kb: KnowledgeBase) -> Library:
    """Return the reference topics of a knowledge base."""
    return find_library(kb.config, kb.directory)


def _learn(kb: KnowledgeBase, arguments: Mapping[str, Any], _: Report) -> str:
    return answer_within(kb, lambda: kb.answer_call(**arguments))


def _search(kb: KnowledgeBase, given: Mapping[str, Any], report: Report) -> str:
    if not kb.menu_ids:
        raise KbError(
            f"there is nothing to search: {kb.directory} has no topics. The user can add some"
            " with `llm kb init`, or start this server in another directory with -d"
        )
    return kb.answer_search(SEARCH, given, lambda *done: report("indexing", *done))


def _reference_search(kb: KnowledgeBase, given: Mapping[str, Any], _: Report) -> str:
    # Imported here, so that a client is greeted sooner.
    from llm_kb.knowledge_base.references import search_references  # noqa: PLC0415

    filters = read_filters(reference_calls.SEARCH, given)
    return dump(
        search_references(open_references(kb), given["question"], given.get("topic"), **filters)
    )


def _reference_topic_search(kb: KnowledgeBase, given: Mapping[str, Any], _: Report) -> str:
    return dump(reference_calls.search_topics(open_references(kb), given["query"]))


def _reference_topic_list(kb: KnowledgeBase, given: Mapping[str, Any], _: Report) -> str:
    topics: list[Any] = reference_calls.list_topics(open_references(kb), **given)
    shown = len(topics)
    while shown and len(dump(topics[:shown])) > MOST_LISTED:
        shown = shown * 3 // 4
    left = [topic["topic_id"] for topic in topics[shown:]]
    return dump(topics[:shown] + ([{"left_out": left}] if left else []))


def _create(kb: KnowledgeBase, given: Mapping[str, Any], report: Report) -> str:
    """Answer a call of `reference_topic_create`; a new plan waits for the user's approval.

    Raises PlanWaitsError.
    """
    from llm_kb.references.fetch.create import created_answer  # noqa: PLC0415 - as above
    from llm_kb.references.plan.pending import open_pending  # noqa: PLC0415

    library = open_references(kb)
    keep = open_pending(library).keep
    try:
        created = reference_calls.create(library, given, CREATED_BY, keep, report)
    except ApprovalNeededError as error:
        raise reference_calls.PlanWaitsError(error) from error
    return dump(created_answer(created))


def answer_annotation(directory: Path | None, arguments: Mapping[str, Any]) -> str:
    """Annotate a commit of a directory's repository; return the result as JSON. Raises KbError."""
    text = dump(arguments)
    items = sum(len(value) for value in arguments.values() if isinstance(value, list))
    if items > MOST_ITEMS or len(text) > MOST_CHARACTERS:
        problem = (
            f"{items:,} items, {len(text):,} characters in all; at most {MOST_ITEMS} and"
            f" {MOST_CHARACTERS:,} are allowed"
        )
        raise InvalidAnnotationError([problem])
    result = annotate(require_root(directory), parse_live_input(text))
    return dump_json(asdict(result)).decode()


def dump(value: object) -> str:
    """Return a value as the JSON that models read."""
    return json.dumps(value, ensure_ascii=False)


ANNOTATE = ToolText("annotate", ANNOTATE_DESCRIPTION, LIVE_INPUT)

_SERVED = (
    ServedTool(LEARN, _learn, checks_arguments=True),
    ServedTool(SEARCH, _search),
    ServedTool(reference_calls.SEARCH, _reference_search, Needs.REFERENCES),
    ServedTool(reference_calls.TOPIC_SEARCH, _reference_topic_search, Needs.REFERENCES),
    ServedTool(reference_calls.TOPIC_LIST, _reference_topic_list, Needs.REFERENCES),
    ServedTool(reference_calls.CREATE, _create, Needs.WRITING),
    ServedTool(
        EMIT,
        lambda kb, given, _: emit(kb.directory, given),
        Needs.REPOSITORY,
        checks_arguments=True,
    ),
    ServedTool(
        ANNOTATE,
        lambda kb, given, _: answer_annotation(kb.directory, given),
        Needs.REPOSITORY,
        checks_arguments=True,
    ),
)

TOOLS = {tool.text.name: tool for tool in _SERVED}
"""Every tool by name. Tools that write add notes to the repository, or fetch a reference
topic once a person has approved its plan."""
