"""`emit_knowledge` as a tool of llm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llm import Tool

from llm_kb.capture.emission import (
    EMIT_DESCRIPTION,
    EMIT_NAME,
    EMIT_SCHEMA,
    Addition,
    parse_emission,
    render_reply,
)
from llm_kb.capture.errors import NotARepositoryError, TooManyEntriesError
from llm_kb.capture.git.repository import find_repository
from llm_kb.capture.store import add_to_store
from llm_kb.config.workspace import find_cwd
from llm_kb.host.tool_text import make_signature


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

    The repository is that of the moment of the call unless one is named. `watch` is
    called with every entry, new or not, before the model gets its answer. After
    `max_entries` calls that reached the store the tool refuses.
    """
    count = 0

    def emit_knowledge(**arguments: object) -> str:
        nonlocal count
        entry = parse_emission(arguments)
        if max_entries is not None and count >= max_entries:
            raise TooManyEntriesError(max_entries)
        count += 1
        addition = add_to_store(directory or _find_root(), entry, commit=commit)
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


def _find_root() -> Path:
    cwd = find_cwd() or Path("/")
    repository = find_repository(cwd, bare=False)
    if repository is None:
        raise NotARepositoryError(cwd)
    return repository.root
