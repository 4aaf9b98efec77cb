"""Shares the store with a remote: fetch, merge, push; nothing is ever forced."""

from __future__ import annotations

import hashlib
import random
import re
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from llm_kb.capture.entries import KnowledgeStore
from llm_kb.capture.errors import BusyStoreError
from llm_kb.capture.git.notes import KNOWLEDGE_REF, Note, commit_note, flatten_notes, read_note
from llm_kb.capture.sharing.merging import Merge, merge
from llm_kb.capture.store import Change, Snapshot, change_store, parse_note, require_repository
from llm_kb.capture.store_format import dump_store
from llm_kb.git import GitError, ObjectReader, run_git

TRACKING_REFS = "refs/llm-kb"
"""Outside `refs/notes`, where a mirroring refspec would push or prune it."""

MAX_PUSHES = 10
_NETWORK_TIMEOUT = 300.0

_MOVED = re.compile(
    r"\((fetch first|non-fast-forward|stale info|failed to update ref"
    r"|incorrect old value provided|cannot lock ref.*|reference already exists)\)"
    r"|failed to lock"
)


class Outcome(Enum):
    """What a pull came to."""

    NOTHING_THERE = "the remote has no knowledge store"
    UP_TO_DATE = "nothing new"
    TAKEN_OVER = "taken over as it is"
    MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """What a pull came to, and how the entries came together."""

    outcome: Outcome
    merge: Merge


def pull(directory: Path, remote: str) -> Pull:
    """Fetch the remote's store and merge it into ours."""
    require_repository(directory)
    fetched = _fetch(directory, remote)
    if fetched is None:
        return Pull(outcome=Outcome.NOTHING_THERE, merge=Merge(store=KnowledgeStore()))

    def decide(snapshot: Snapshot) -> Change[Pull]:
        pulled = _plan_pull(directory, snapshot, fetched, remote)
        new = _merged_commit(directory, snapshot, fetched, pulled, remote)
        moves = ((KNOWLEDGE_REF, new, snapshot.note.commit),) if new else ()
        return Change(result=pulled, message=f"Pull from {remote}", moves=moves)

    return change_store(directory, decide)


def push(directory: Path, remote: str) -> tuple[Pull, ...]:
    """Push our store, and pull first as often as the remote turns out to have moved.

    Returns those pulls. Raises BusyStoreError when the remote never rests.
    """
    require_repository(directory)
    pulls: list[Pull] = []
    for attempt in range(MAX_PUSHES):
        try:
            _push_once(directory, remote)
            return tuple(pulls)
        except GitError as error:
            if not _MOVED.search(error.stderr):
                raise
            last = error
        time.sleep(random.uniform(0, 0.1 * attempt))  # noqa: S311 - no secret
        pulls.append(pull(directory, remote))
    raise BusyStoreError(f"{KNOWLEDGE_REF} of {remote}", last.stderr.strip()) from last


def has_store(directory: Path) -> bool:
    """Tell whether there is anything to push."""
    require_repository(directory)
    with ObjectReader(directory) as reader:
        return reader.read(KNOWLEDGE_REF) is not None


def _fetch(directory: Path, remote: str) -> str | None:
    """Return the commit of the remote's store; None when it has none."""
    tracking = f"{TRACKING_REFS}/{_ref_component(remote)}/chronicle-knowledge"
    options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    refspec = f"+{KNOWLEDGE_REF}:{tracking}"
    command = ("fetch", *options, "--end-of-options", remote, refspec)
    try:
        run_git(*command, cwd=directory, timeout=_NETWORK_TIMEOUT, network=True)
    except GitError as error:
        if "couldn't find remote ref" in error.stderr:
            return None
        raise
    return run_git("rev-parse", "--verify", tracking, cwd=directory).decode().strip()


def _ref_component(remote: str) -> str:
    # A remote may be a URL, which no ref can be called.
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", remote):
        return remote
    return f"url-{hashlib.sha256(remote.encode()).hexdigest()[:16]}"


def _push_once(directory: Path, remote: str) -> None:
    # Neither tags nor submodules, whatever `push.*` says of the user's own pushes.
    options = ("--quiet", "--no-follow-tags", "--recurse-submodules=no")
    refspec = f"{KNOWLEDGE_REF}:{KNOWLEDGE_REF}"
    command = ("push", *options, "--end-of-options", remote, refspec)
    run_git(*command, cwd=directory, timeout=_NETWORK_TIMEOUT, network=True)


def _plan_pull(directory: Path, snapshot: Snapshot, fetched: str, remote: str) -> Pull:
    theirs = _store_at(directory, fetched, remote)
    ours = snapshot.note.commit
    if ours is None:
        merged = merge(KnowledgeStore(), KnowledgeStore(), theirs)
        return Pull(outcome=Outcome.TAKEN_OVER, merge=merged)
    ancestor = _merge_base(directory, ours, fetched)
    if ancestor == fetched:
        return Pull(outcome=Outcome.UP_TO_DATE, merge=Merge(store=snapshot.store))
    base = _store_at(directory, ancestor, remote) if ancestor else KnowledgeStore()
    merged = merge(base, snapshot.store, theirs)
    outcome = Outcome.TAKEN_OVER if ancestor == ours else Outcome.MERGED
    return Pull(outcome=outcome, merge=merged)


def _merged_commit(
    directory: Path, snapshot: Snapshot, fetched: str, plan: Pull, remote: str
) -> str | None:
    """Return the commit our ref is to move to; None to stay."""
    if plan.outcome is Outcome.UP_TO_DATE:
        return None
    if plan.outcome is Outcome.TAKEN_OVER:
        return fetched
    data = dump_store(plan.merge.store)
    note = _with_notes_of(directory, snapshot.note, fetched)
    return commit_note(directory, note, data, f"Merge knowledge of {remote}", merged=[fetched])


def _store_at(directory: Path, commit: str, remote: str) -> KnowledgeStore:
    with ObjectReader(directory) as reader:
        note = read_note(reader, commit)
    assert note is not None  # noqa: S101 - the commit was just fetched
    return parse_note(note, remote)


def _merge_base(directory: Path, one: str, other: str) -> str | None:
    try:
        return run_git("merge-base", one, other, cwd=directory).decode().strip()
    except GitError as error:
        if error.code == 1:
            return None  # two stores that began apart
        raise


def _with_notes_of(directory: Path, note: Note, commit: str) -> Note:
    """Return our note in a tree that holds the other notes of both sides."""
    with ObjectReader(directory) as reader:
        theirs = flatten_notes(reader, commit)
        ours = flatten_notes(reader, note.commit or commit)
    return Note(
        ref=note.ref,
        target=note.target,
        commit=note.commit,
        data=note.data,
        levels=(tuple({**theirs, **ours}.values()),),
    )
