"""The tools of the MCP server, the functions that answer their calls, and the limits of answers.

Tools that write add notes to the repository, or fetch a reference topic once a person has
approved its plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from llm_kb.capture import annotation, emission, entries, notes, store
from llm_kb.errors import KbError
from llm_kb.host import reference_calls
from llm_kb.host.capture_tools import EMIT, LIVE_INPUT, record
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.tool_text import LEARN, SEARCH_KNOWLEDGE, ToolText, read_arguments
from llm_kb.knowledge_base.user_dir import find_library
from llm_kb.references.library import Library
from llm_kb.rendering.section import render_instructions

if TYPE_CHECKING:
    from llm_kb.references.plan import Plan

MOST_CHARS = 45_000
"""The longest answer: Claude Code saves one over 50,000 characters to a file."""

MENU_BUDGET, INSTRUCTIONS = 400, 2_048
"""Tokens of the menu, and characters of the instructions that Claude Code shows."""

MOST_ITEMS, MOST_CHARACTERS = 200, 200_000
"""The most items and characters of an annotation: each entry is compared with all others."""

SECONDS, FETCH_SECONDS = 120, 900
"""Seconds that a call may go on without progress: conversions of documents take up to 120, and
a fetch has bounds of its own."""

SEARCH = SEARCH_KNOWLEDGE._replace(name="search")
"""The search, under a shorter name: a client puts the server's name before it."""

REFERENCES = (reference_calls.SEARCH, reference_calls.TOPIC_SEARCH, reference_calls.TOPIC_LIST)
"""The tools that read reference topics."""

ANNOTATE = ToolText(
    "annotate",
    "Annotate a commit you have just made: why it was done so, what was tried and failed (wisdom),"
    " and conventions, boundaries or anti-patterns it taught (knowledge). Written to git notes.",
    LIVE_INPUT,
)

Report: TypeAlias = "Callable[..., None]"
"""Called whenever work was done, which moves the deadline."""

Arguments: TypeAlias = "Mapping[str, Any]"


def fit_clients(kb: KnowledgeBase) -> KnowledgeBase:
    """Lower default limits to what common clients accept; configured limits stay.

    Pre-loaded subjects can be learned too, since clients need not show the instructions.
    """
    kb.repeat_preloaded()
    if "kb.max_result_chars" not in kb.config.settings:
        kb.config = replace(kb.config, max_result_chars=MOST_CHARS)
    if "kb.menu_budget" not in kb.config.settings:
        kb.config = replace(kb.config, menu_budget=MENU_BUDGET)
    return kb


def write_instructions(kb: KnowledgeBase) -> str | None:
    """Return the menu and the pre-loaded subjects that clients show; None without any."""
    return render_instructions(kb.preloaded, kb.menu(), INSTRUCTIONS, SEARCH.name)


def find_deadline(params: object) -> int:
    """Return the seconds that a request with these parameters may go on without progress."""
    name = params.get("name") if isinstance(params, dict) else None
    return FETCH_SECONDS if name == reference_calls.CREATE.name else SECONDS


def render_tools(kb: KnowledgeBase) -> list[dict[str, Any]]:
    """Return the tools that are served in this directory, as clients list them."""
    return [
        _render(tool, kb.describe_learn() if tool is LEARN else tool.description)
        for tool in find_tools(kb)
    ]


def render_broken(description: str) -> list[dict[str, Any]]:
    """Return the tools of a knowledge base that cannot be read."""
    return [_render(tool, description) for tool in (LEARN, SEARCH)]


def _render(tool: ToolText, description: str) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": description,
        "inputSchema": tool.schema,
        "annotations": {
            "readOnlyHint": tool not in (reference_calls.CREATE, EMIT, ANNOTATE),
            "destructiveHint": False,
            "openWorldHint": tool is reference_calls.CREATE,
        },
    }


def find_tools(kb: KnowledgeBase) -> list[ToolText]:
    """Return the tools that are served in this directory."""
    return [
        LEARN,
        SEARCH,
        *(REFERENCES if open_references(kb).ids() else []),
        reference_calls.CREATE,
        *([EMIT, ANNOTATE] if notes.find_repository(kb.directory) else []),
    ]


def answer_call(kb: KnowledgeBase, name: str, arguments: Arguments, report: Report) -> str:
    """Check a call and answer it. Raises KbError."""
    if name not in ANSWERS:
        known = ", ".join(tool.name for tool in find_tools(kb))
        raise KbError(f"unknown tool {name!r}; tools: {known}")
    return ANSWERS[name](kb, arguments, report)


def open_references(kb: KnowledgeBase) -> Library:
    """Return the reference topics of a knowledge base."""
    return find_library(kb.config, kb.directory)


def _learn(kb: KnowledgeBase, arguments: Arguments, _: Report) -> str:
    return kb.answer_call(**arguments)


def _search(kb: KnowledgeBase, arguments: Arguments, report: Report) -> str:
    if not kb.menu_ids:
        raise KbError(f"{kb.directory}: {kb.explain_nothing()}")
    return kb.answer_search(SEARCH, arguments, report)


def _read_references(tool: ToolText, kb: KnowledgeBase, arguments: Arguments, _: Report) -> str:
    return dump(reference_calls.read(open_references(kb), tool, read_arguments(tool, arguments)))


def _create(kb: KnowledgeBase, arguments: Arguments, report: Report) -> str:
    """Answer a call of `reference_topic_create`; a new plan waits for the user's approval."""
    from llm_kb.references.plan import PendingPlans  # noqa: PLC0415 - a client is greeted sooner

    library = open_references(kb)

    def keep(plan: Plan) -> bool:
        raise PendingPlans(library).ask_later(plan)

    given = read_arguments(reference_calls.CREATE, arguments)
    return dump(reference_calls.create(library, given, {"ghost": "mcp"}, keep, report))


def _emit(kb: KnowledgeBase, arguments: Arguments, _: Report) -> str:
    return emission.render_reply(record(kb.directory, arguments))


def _annotate(kb: KnowledgeBase, arguments: Arguments, _: Report) -> str:
    """Annotate a commit of the repository; return the result as JSON. Raises KbError."""
    text = dump(arguments)
    items = sum(len(value) for value in arguments.values() if isinstance(value, list))
    if items > MOST_ITEMS or len(text) > MOST_CHARACTERS:
        raise KbError(
            f"annotate: {items:,} items, {len(text):,} characters in all; at most {MOST_ITEMS} and"
            f" {MOST_CHARACTERS:,} are allowed"
        )
    root = store.require_repository(kb.directory).root
    result = annotation.annotate(root, annotation.parse_live_input(text))
    return entries.dump_json(result).decode()


def dump(value: object) -> str:
    """Return a value as the JSON that models read."""
    return json.dumps(value, ensure_ascii=False)


ANSWERS: dict[str, Callable[[KnowledgeBase, Arguments, Report], str]] = {
    LEARN.name: _learn,
    SEARCH.name: _search,
    **{tool.name: partial(_read_references, tool) for tool in REFERENCES},
    reference_calls.CREATE.name: _create,
    EMIT.name: _emit,
    ANNOTATE.name: _annotate,
}
"""The function that answers the calls of each tool, by name."""
