"""Lets a model look for knowledge in one commit after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.capture.briefing import SYSTEM_PROMPT, Briefing
from llm_kb.capture.commits import Journal, read_briefing
from llm_kb.capture.emission import Addition, render_reply
from llm_kb.capture.store import load_store
from llm_kb.errors import KbError
from llm_kb.host.capture_tools import EMIT, record
from llm_kb.rendering.plain_text import estimate_tokens

if TYPE_CHECKING:
    import llm

MAX_ENTRIES = 10
"""The most entries of the store that come from one commit and that a run adds to."""

MAX_FAILURES = 5
"""The number of failures in a row after which a run stops."""

PAUSES = (5.0, 15.0, 40.0, 60.0)
"""Seconds to wait before each further attempt when the provider limits requests."""

INTERRUPTED = "interrupted"
"""The reason of a run that stops on Ctrl-C."""

_MAX_TURNS = 15
_BUSY_STATUS = frozenset({429, 503, 529})


class RunStoppedError(KbError):
    """A run that ended before its last commit."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"stopped: {reason}; what was captured is kept, "
            "and the same command goes on with the commits that are left"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The result of one commit."""

    commit: str
    subject: str
    written: tuple[str, ...] = ()
    """The ids of the new entries."""
    duplicates: int = 0
    left_out: tuple[str, ...] = ()
    failed: str | None = None
    """The reason why the model did not finish; None if it did."""
    tokens_sent: int = 0
    tokens_received: int = 0


def capture_commits(
    model: llm.Model,
    directory: Path,
    commits: Sequence[str],
    journal: Journal,
    say: Callable[[str], None] = lambda _text: None,
) -> Iterator[Captured]:
    """Let a model look at the commits; yield the result of each, which is recorded if it finished.

    `say` is called with messages for the person who waits. Raises RunStoppedError after
    MAX_FAILURES in a row and on Ctrl-C.
    """
    failures = 0
    for commit in commits:
        captured = _capture(model, directory, commit, say)
        if not captured.failed:
            journal.append(commit, model.model_id)
        yield captured
        if captured.failed == INTERRUPTED:
            raise RunStoppedError(INTERRUPTED)
        failures = failures + 1 if captured.failed else 0
        if failures == MAX_FAILURES:
            raise RunStoppedError(f"{failures} commits in a row failed")


def _capture(
    model: llm.Model, directory: Path, commit: str, say: Callable[[str], None]
) -> Captured:
    """Let a model look at one commit and return the result, even if it is not finished."""
    import llm  # noqa: PLC0415 - `--help` and completion do without the host

    store = load_store(directory)
    briefing = read_briefing(directory, commit, store)
    left = MAX_ENTRIES - sum(entry.provenance == commit for entry in store.entries)
    additions: list[Addition] = []

    def emit_knowledge(**arguments: object) -> str:
        if len(additions) >= left:
            raise KbError("no more entries are recorded from this commit")
        additions.append(record(directory, arguments, commit))
        return render_reply(additions[-1])

    tool = llm.Tool(**EMIT.bind(emit_knowledge))
    responses: list[llm.Response] = []
    failed = None
    try:
        _answer(model, briefing, tool, responses, say)
        failed = find_fault(responses)
    except KeyboardInterrupt:
        failed = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a model of a plugin may raise anything
        failed = f"{type(error).__name__}: {error}"
    finally:
        _log(responses, say)
    sent, received = _count_tokens(responses, briefing)
    return Captured(
        commit=commit,
        subject=briefing.subject,
        written=tuple(addition.entry.id for addition in additions if addition.is_new),
        duplicates=sum(not addition.is_new for addition in additions),
        left_out=briefing.left_out,
        failed=failed,
        tokens_sent=sent,
        tokens_received=received,
    )


def _answer(
    model: llm.Model,
    briefing: Briefing,
    tool: llm.Tool,
    responses: list[llm.Response],
    say: Callable[[str], None],
) -> None:
    """Hold the conversation about a commit, and wait while the provider limits requests."""
    for pause in (*PAUSES, None):
        chain = model.conversation().chain(
            briefing.text,
            system=SYSTEM_PROMPT,
            tools=[tool],
            chain_limit=_MAX_TURNS,
        )
        try:
            for response in chain.responses():
                response.text()
                responses.append(response)
        except Exception as error:
            if pause is None or not _is_busy(error):
                raise
            say(f"The provider limits requests; trying again in {pause:.0f} s.")
            time.sleep(pause)
        else:
            return


def _is_busy(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status in _BUSY_STATUS or type(error).__name__ == "RateLimitError"


def _log(responses: Sequence[llm.Response], say: Callable[[str], None]) -> None:
    """Log responses as `llm prompt` does; what was captured must not be lost if that fails."""
    import sqlite_utils  # noqa: PLC0415 - start-up time
    from llm.cli import logs_db_path, logs_on  # noqa: PLC0415
    from llm.migrations import migrate  # noqa: PLC0415

    if not logs_on():
        return
    try:
        with closing(sqlite_utils.Database(logs_db_path())) as db:
            migrate(db)
            for response in responses:
                response.log_to_db(db)
    except Exception as error:  # noqa: BLE001 - see above
        say(f"Warning: not logged: {error}")


def find_fault(responses: Sequence[llm.Response]) -> str | None:
    """Return the reason why the responses are not answers of a model; None if they are."""
    text = responses[-1].text().strip() if responses else ""
    if text[:15].lower().startswith(("<!doctype html", "<html")):
        return "the answer is an HTML page; a proxy or a login may be in between"
    if not text and not any(response.tool_calls() for response in responses):
        return "the answer is empty"
    return None


def _count_tokens(responses: Sequence[llm.Response], briefing: Briefing) -> tuple[int, int]:
    """Return the tokens sent and received, estimated if the model does not report them."""
    request = briefing.tokens
    sent, received = (0 if responses else request), 0  # a request that failed was sent, too
    for number, response in enumerate(responses):
        sent += response.input_tokens or request + 120 * number
        received += response.output_tokens or estimate_tokens(response.text())
    return sent, received
