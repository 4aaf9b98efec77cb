"""Lets a model look for knowledge in one commit after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.capture.commits import SYSTEM_PROMPT, Briefing, Journal, read_briefing
from llm_kb.capture.emission import Addition, render_reply
from llm_kb.capture.store import load_store
from llm_kb.capture.tools import EMIT, record
from llm_kb.errors import KbError
from llm_kb.host.llm_internals import log_responses
from llm_kb.rendering.plain_text import estimate_tokens

if TYPE_CHECKING:
    import llm

MAX_ENTRIES = 10
"""The most entries of the store that come from one commit and that a run adds to."""

MAX_FAILURES = 5
"""The number of failures in a row after which a run stops."""

GO_ON = "what was captured is kept, and the same command goes on with the commits that are left"

_MAX_TURNS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The result of one commit."""

    briefing: Briefing
    additions: Sequence[Addition]
    failed: str | None
    """The reason why the model did not finish; None if it did."""
    refused: int
    """The number of entries beyond those that one commit may have."""
    tokens_sent: int
    tokens_received: int


def capture_commits(
    model: llm.Model,
    directory: Path,
    commits: Sequence[str],
    journal: Journal,
    say: Callable[[str], None],
) -> Iterator[Captured]:
    """Let a model look at the commits; yield the result of each, which is recorded if it finished.

    `say` is called with messages for the person who waits. Raises KbError after MAX_FAILURES
    in a row.
    """
    failures = 0
    for commit in commits:
        captured = _capture(model, directory, commit, say)
        if not captured.failed:
            journal.append(commit)
        yield captured
        failures = failures + 1 if captured.failed else 0
        if failures == MAX_FAILURES:
            raise KbError(f"stopped: {failures} commits in a row failed; {GO_ON}")


def _capture(
    model: llm.Model, directory: Path, commit: str, say: Callable[[str], None]
) -> Captured:
    """Let a model look at one commit and return the result, even if it is not finished."""
    import llm  # noqa: PLC0415 - `--help` and completion do without the host

    store = load_store(directory)
    briefing = read_briefing(directory, commit, store)
    left = MAX_ENTRIES - sum(entry.provenance == commit for entry in store.entries)
    additions: list[Addition] = []
    refused = 0

    def emit_knowledge(**arguments: object) -> str:
        nonlocal refused
        if len(additions) >= left:
            refused += 1
            raise KbError("no more entries are recorded from this commit")
        additions.append(record(directory, arguments, commit))
        return render_reply(additions[-1])

    tool = llm.Tool(**EMIT.bind(emit_knowledge))
    responses: list[llm.Response] = []
    failed = None
    try:
        _answer(model, briefing, tool, responses)
        if not any(response.text().strip() or response.tool_calls() for response in responses):
            failed = "the answer is empty"
    except Exception as error:  # noqa: BLE001 - a model of a plugin may raise anything
        failed = f"{type(error).__name__}: {error}"
    finally:
        _log(responses, say)
    return Captured(
        briefing=briefing,
        additions=additions,
        failed=failed,
        refused=refused,
        # Estimated if the model does not report them.
        tokens_sent=sum(each.input_tokens or briefing.tokens for each in responses),
        tokens_received=sum(e.output_tokens or estimate_tokens(e.text()) for e in responses),
    )


def _answer(
    model: llm.Model, briefing: Briefing, tool: llm.Tool, responses: list[llm.Response]
) -> None:
    """Hold the conversation about a commit."""
    chain = model.conversation().chain(
        briefing.text, system=SYSTEM_PROMPT, tools=[tool], chain_limit=_MAX_TURNS
    )
    for response in chain.responses():
        response.text()
        responses.append(response)


def _log(responses: Sequence[llm.Response], say: Callable[[str], None]) -> None:
    """Log responses as `llm prompt` does; what was captured must not be lost if that fails."""
    try:
        log_responses(responses)
    except Exception as error:  # noqa: BLE001 - see above
        say(f"Warning: not logged: {error}")
