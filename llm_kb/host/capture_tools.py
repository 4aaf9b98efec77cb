"""`emit_knowledge` as a tool of llm."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.capture.annotation import annotate, parse_live_input
from llm_kb.capture.emission import (
    EMIT_DESCRIPTION,
    EMIT_NAME,
    EMIT_SCHEMA,
    Addition,
    parse_emission,
    render_reply,
)
from llm_kb.capture.errors import (
    InvalidAnnotationError,
    NotARepositoryError,
    TooManyEntriesError,
)
from llm_kb.capture.git.repository import find_repository
from llm_kb.capture.store import record_entry
from llm_kb.capture.store_format import dump_json
from llm_kb.config.workspace import find_cwd
from llm_kb.host.tool_text import make_signature

if TYPE_CHECKING:
    from llm import Tool

MOST_ITEMS = 200
MOST_CHARACTERS = 200_000
"""Lessons and entries of one annotation, and its length: each entry is compared with all others."""


def make_emit_knowledge() -> Tool | None:
    """Return the tool where a repository is found upward of here, else None.

    Reads directory entries alone: this runs whenever llm collects its tools.
    """
    cwd = find_cwd()
    return make_emit_tool() if cwd and find_repository(cwd, bare=False) else None


def make_emit_tool(
    commit: str = "HEAD",
    *,
    directory: Path | None = None,
    watch: Callable[[Addition], None] | None = None,
    max_entries: int | None = None,
) -> Tool:
    """Return `emit_knowledge`, whose entries come from `commit`.

    The repository is the one of the current directory at each call, unless one is given.
    `watch` gets every entry, new or not, before the model gets its reply. The tool refuses
    when the commit has `max_entries` entries, whatever run they come from, and after that
    many calls that reached the store.
    """
    from llm import Tool  # noqa: PLC0415 - the MCP server does without the host

    calls = 0

    def emit_knowledge(**arguments: object) -> str:
        nonlocal calls
        entry = parse_emission(arguments)
        if max_entries is not None and calls >= max_entries:
            raise TooManyEntriesError(max_entries)
        addition = record_entry(directory or _find_root(), entry, commit=commit, limit=max_entries)
        calls += 1
        if watch:
            watch(addition)
        return render_reply(addition)

    # What `llm tools` shows. Whatever else a model makes up still gets an answer.
    emit_knowledge.__signature__ = make_signature(EMIT_SCHEMA)  # type: ignore[attr-defined]
    return Tool(
        name=EMIT_NAME,
        description=EMIT_DESCRIPTION,
        input_schema=EMIT_SCHEMA,
        implementation=emit_knowledge,
    )


def answer_emission(directory: Path, arguments: Mapping[str, object]) -> str:
    """Answer a call of `emit_knowledge` in a repository. Raises KbError."""
    return render_reply(record_entry(directory, parse_emission(arguments)))


def answer_annotation(directory: Path, arguments: Mapping[str, object]) -> str:
    """Annotate a commit of a repository and return the result as JSON. Raises KbError."""
    text = json.dumps(arguments)
    items = sum(len(value) for value in arguments.values() if isinstance(value, list))
    if items > MOST_ITEMS or len(text) > MOST_CHARACTERS:
        problem = (
            f"{items:,} items, {len(text):,} characters in all; at most {MOST_ITEMS} and"
            f" {MOST_CHARACTERS:,} are allowed"
        )
        raise InvalidAnnotationError([problem])
    result = annotate(directory, parse_live_input(text))
    return dump_json(asdict(result)).decode()


def _find_root() -> Path:
    cwd = find_cwd() or Path("/")
    repository = find_repository(cwd, bare=False)
    if repository is None:
        raise NotARepositoryError(cwd)
    return repository.root
