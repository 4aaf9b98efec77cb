"""Lets a model look for knowledge in one commit after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_kb.capture.briefing import SYSTEM_PROMPT, Briefing, estimate_request
from llm_kb.capture.commits import Journal, Record, read_briefing
from llm_kb.capture.emission import Addition
from llm_kb.capture.store import load_store
from llm_kb.errors import KbError
from llm_kb.host.capture_tools import make_emit_tool
from llm_kb.rendering.tokens import estimate_tokens

if TYPE_CHECKING:
    import llm

MAX_ENTRIES = 10
"""The most entries that runs record from one commit; no diff can make a model fill the store."""

MAX_FAILURES = 5
"""The number of failures in a row after which a run stops."""

RATE_PATIENCE = 300.0
"""Seconds to wait for a rate limit, over all attempts at a commit."""

INTERRUPTED = "interrupted"
"""The reason of a run that stops on Ctrl-C."""

_LONGEST_PAUSE = 60.0
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


class RateLimitedError(KbError):
    """A rate limit that lasts longer than RATE_PATIENCE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The result of one commit."""

    commit: str
    written: tuple[str, ...] = ()
    """The ids of the new entries."""
    duplicates: int = 0
    left_out: tuple[str, ...] = ()
    failed: str | None = None
    """The reason why the model failed; None if it did not."""
    stopped: str | None = None
    """The reason why the run ends before the commit is finished; None otherwise."""
    tokens_sent: int = 0
    tokens_received: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A model and the arguments of its calls."""

    model: llm.Model
    directory: Path
    key: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    log: Callable[[llm.Response], None] = lambda _response: None
    """Called with every response."""
    say: Callable[[str], None] = lambda _text: None
    """Called with messages for the person who waits."""


def capture_commits(
    agent: Agent, commits: Sequence[str], journal: Journal, *, keep_going: bool = True
) -> Iterator[Captured]:
    """Let a model look at the commits; yield the result of each once it is recorded.

    A commit on which the model fails is recorded as failed. Raises RunStoppedError after
    the first failure without `keep_going`, after MAX_FAILURES in a row, after a long rate
    limit and on Ctrl-C; in the last two cases the commit is recorded as not finished.
    """
    failures = 0
    records = journal.read()
    for commit in commits:
        captured = capture_commit(agent, commit, records.get(commit, Record()).written)
        journal.append(
            commit,
            model=agent.model.model_id,
            written=len(captured.written),
            duplicates=captured.duplicates,
            failed=captured.failed,
            stopped=captured.stopped,
        )
        yield captured
        if captured.stopped:
            raise RunStoppedError(captured.stopped)
        failures = failures + 1 if captured.failed else 0
        if failures and not keep_going:
            raise RunStoppedError("a commit failed")
        if failures == MAX_FAILURES:
            raise RunStoppedError(f"{failures} commits in a row failed")


def capture_commit(agent: Agent, commit: str, written: int) -> Captured:
    """Let a model look at one commit and return the result, even if it is not finished.

    `written` is the number of entries that earlier runs wrote.
    """
    store = load_store(agent.directory)
    briefing = read_briefing(agent.directory, commit, store)
    # Entries that were removed leave room for others, and so do those added by hand, which have
    # the same provenance: of them count at most as many as were removed.
    recorded = min(written, sum(entry.provenance == commit for entry in store.entries))
    additions: list[Addition] = []
    tool = make_emit_tool(
        commit,
        directory=agent.directory,
        watch=additions.append,
        max_entries=MAX_ENTRIES - recorded,
    )
    responses: list[llm.Response] = []
    failed = stopped = None
    try:
        _answer(agent, briefing, tool, responses)
        failed = find_fault(responses)
    except RateLimitedError as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a model of a plugin may raise anything
        failed = f"{type(error).__name__}: {error}"
    finally:
        for response in responses:
            agent.log(response)
    sent, received = _count_tokens(responses, briefing)
    return Captured(
        commit=commit,
        written=tuple(addition.entry.id for addition in additions if addition.is_new),
        duplicates=sum(not addition.is_new for addition in additions),
        left_out=briefing.left_out,
        failed=failed,
        stopped=stopped,
        tokens_sent=sent,
        tokens_received=received,
    )


def _answer(
    agent: Agent, briefing: Briefing, tool: llm.Tool, responses: list[llm.Response]
) -> None:
    """Hold the conversation about a commit, and wait for rate limits."""
    waited, pause = 0.0, 5.0
    while True:
        chain = agent.model.conversation().chain(
            briefing.text,
            system=SYSTEM_PROMPT,
            tools=[tool],
            chain_limit=_MAX_TURNS,
            key=agent.key,
            options=dict(agent.options),
        )
        try:
            for response in chain.responses():
                response.text()
                responses.append(response)
            return
        except Exception as error:
            if not _is_busy(error):
                raise
            pause = min(_retry_after(error) or pause, _LONGEST_PAUSE)
            if waited + pause > RATE_PATIENCE:
                raise RateLimitedError(
                    f"the provider limits requests, after {waited:.0f} s of waiting: {error}"
                ) from error
            agent.say(f"The provider limits requests; trying again in {pause:.0f} s.")
            time.sleep(pause)
            waited, pause = waited + pause, pause * 2


def _is_busy(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status in _BUSY_STATUS or type(error).__name__ == "RateLimitError"


def _retry_after(error: Exception) -> float | None:
    """Return the seconds of the `Retry-After` header; None without one."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return max(0.0, float(headers["retry-after"])) if headers else None
    except (KeyError, TypeError, ValueError):
        return None


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
    request = estimate_request(briefing.text)
    sent, received = (0 if responses else request), 0  # a request that failed was sent, too
    for number, response in enumerate(responses):
        sent += response.input_tokens or request + 120 * number
        received += response.output_tokens or estimate_tokens(response.text())
    return sent, received
