"""A model that looks for knowledge in one commit after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import llm
from llm.models import ChainResponse

from llm_kb.capture.commits.briefing import SYSTEM_PROMPT
from llm_kb.capture.commits.journal import Journal
from llm_kb.capture.commits.ranges import read_briefing, read_subject
from llm_kb.capture.emission import Addition
from llm_kb.errors import KbError
from llm_kb.host.capture_tools import make_emit_tool

MAX_ENTRIES = 10
"""What one commit may add: a diff that talks a model into more must not fill the store."""

_MAX_TURNS = 15


class AgentError(KbError):
    """A model that failed on a commit; the commits before it are done."""

    def __init__(self, commit: str, reason: str) -> None:
        self.commit = commit
        self.reason = reason
        super().__init__(
            f"the model failed on {commit[:12]}: {reason}; "
            "what was captured before is kept, and the same command goes on from here"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What came of one commit."""

    commit: str
    subject: str
    written: tuple[str, ...]
    """The ids of the new entries."""
    duplicates: int
    left_out: tuple[str, ...]


def capture_commits(
    model: llm.Model,
    directory: Path,
    commits: Sequence[str],
    journal: Journal,
    log: Callable[[ChainResponse], None] = lambda _chain: None,
) -> Iterator[Captured]:
    """Let a model look at every commit, yielding what came of each once it is recorded.

    `log` is given what was said about each commit when it is complete.
    """
    for commit in commits:
        captured = _capture(model, directory, commit, log)
        journal.append(
            commit,
            model=model.model_id,
            written=len(captured.written),
            duplicates=captured.duplicates,
        )
        yield captured


def _capture(
    model: llm.Model,
    directory: Path,
    commit: str,
    log: Callable[[ChainResponse], None],
) -> Captured:
    briefing = read_briefing(directory, commit)
    additions: list[Addition] = []
    tool = make_emit_tool(
        commit, directory=directory, watch=additions.append, max_entries=MAX_ENTRIES
    )
    chain = model.conversation().chain(
        briefing.text, system=SYSTEM_PROMPT, tools=[tool], chain_limit=_MAX_TURNS
    )
    try:
        chain.text()
    except Exception as error:
        # A plugin's model may raise anything; its text is all there is to say.
        raise AgentError(commit, f"{type(error).__name__}: {error}") from error
    log(chain)
    return Captured(
        commit=commit,
        subject=read_subject(directory, commit),
        written=tuple(addition.entry.id for addition in additions if addition.is_new),
        duplicates=sum(not addition.is_new for addition in additions),
        left_out=briefing.left_out,
    )
