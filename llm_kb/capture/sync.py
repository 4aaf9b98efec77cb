"""Shares entries and annotations with a remote by fetch, merge and push, never by force."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from llm_kb.capture.entries import KnowledgeStore, dump_json, dump_store
from llm_kb.capture.errors import BusyStoreError
from llm_kb.capture.merging import Merge, merge
from llm_kb.capture.notes import (
    ANNOTATIONS_REF,
    KNOWLEDGE_REF,
    RefMovedError,
    commit_notes,
    list_notes,
    move_refs,
    read_note,
)
from llm_kb.capture.remotes import (
    SHARED_REFS,
    fetch_ref,
    find_merge_base,
    hide_secrets,
    push_ref,
)
from llm_kb.capture.store import (
    Change,
    Snapshot,
    change_store,
    load_store,
    parse_note,
    require_repository,
)
from llm_kb.git.read import ObjectReader


class Outcome(Enum):
    """The outcome of a pull."""

    NOTHING_THERE = "the remote has no knowledge store"
    UP_TO_DATE = "nothing new"
    TAKEN_OVER = "taken over as it is"
    MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """The outcome of a pull, and the merge of the entries."""

    outcome: Outcome
    merge: Merge
    annotations: int = 0
    """The number of commits whose annotations are new here or have changed."""


def pull(directory: Path, remote: str) -> Pull:
    """Fetch the remote's store and annotations, and merge them into ours."""
    require_repository(directory)
    pulled = _pull_store(directory, remote)
    return replace(pulled, annotations=pull_annotations(directory, remote))


def _pull_store(directory: Path, remote: str) -> Pull:
    fetched = fetch_ref(directory, remote, KNOWLEDGE_REF)
    if fetched is None:
        return Pull(outcome=Outcome.NOTHING_THERE, merge=Merge(store=KnowledgeStore()))

    def decide(snapshot: Snapshot) -> Change[Pull]:
        ours, new = snapshot.note.commit, fetched
        ancestor = find_merge_base(directory, ours, fetched) if ours else None
        if ancestor == fetched:
            nothing = Merge(store=snapshot.store)
            return Change(result=Pull(outcome=Outcome.UP_TO_DATE, merge=nothing))
        theirs = _store_at(directory, fetched, remote)
        base = _store_at(directory, ancestor, remote) if ancestor else KnowledgeStore()
        pulled = Pull(outcome=Outcome.TAKEN_OVER, merge=merge(base, snapshot.store, theirs))
        if ours and ancestor != ours:
            pulled = replace(pulled, outcome=Outcome.MERGED)
            notes = {snapshot.note.target: dump_store(pulled.merge.store)}
            message = f"Merge knowledge of {hide_secrets(remote)}"
            new = commit_notes(directory, ours, notes, message, merged=fetched)
        moves = ((KNOWLEDGE_REF, new, ours),)
        return Change(result=pulled, message=f"Pull from {hide_secrets(remote)}", moves=moves)

    return change_store(directory, decide)


def push(directory: Path, remote: str) -> tuple[Pull, ...]:
    """Push our store and annotations; return the pulls that this took.

    Raises BusyStoreError if the remote keeps moving.
    """
    load_store(directory)  # a damaged store is not pushed
    pulls: list[Pull] = []
    with ObjectReader(directory) as reader:
        refs = [ref for ref in SHARED_REFS if reader.read(ref) is not None]
    if KNOWLEDGE_REF in refs:
        push_ref(
            directory, remote, KNOWLEDGE_REF, lambda: pulls.append(_pull_store(directory, remote))
        )
    if ANNOTATIONS_REF in refs:
        push_ref(directory, remote, ANNOTATIONS_REF, lambda: pull_annotations(directory, remote))
    return tuple(pulls)


def has_store(directory: Path) -> bool:
    """Tell whether a repository has entries or annotations to push."""
    require_repository(directory)
    with ObjectReader(directory) as reader:
        return any(reader.read(ref) is not None for ref in SHARED_REFS)


def _store_at(directory: Path, commit: str, remote: str) -> KnowledgeStore:
    with ObjectReader(directory) as reader:
        note = read_note(reader, commit)
    assert note is not None  # noqa: S101 - the commit was just fetched
    return parse_note(note, hide_secrets(remote))


_MAX_ATTEMPTS = 10


def pull_annotations(directory: Path, remote: str) -> int:
    """Merge the remote's annotations into ours; return the number of new or changed ones."""
    theirs = fetch_ref(directory, remote, ANNOTATIONS_REF)
    if theirs is None:
        return 0
    for _ in range(_MAX_ATTEMPTS):
        with ObjectReader(directory) as reader:
            found = reader.read(ANNOTATIONS_REF)
        ours = found.id if found else None
        base = find_merge_base(directory, ours, theirs) if ours else None
        if base == theirs:
            return 0
        new = theirs if ours is None or base == ours else _merge(directory, ours, theirs, base)
        try:
            move_refs(directory, [(ANNOTATIONS_REF, new, ours)], f"Pull from {remote}")
        except RefMovedError as error:
            last = error
            continue
        before = list_notes(directory, ours) if ours else {}
        return sum(before.get(name) != blob for name, blob in list_notes(directory, new).items())
    raise BusyStoreError(ANNOTATIONS_REF, str(last)) from last


def _merge(directory: Path, ours: str, theirs: str, base: str | None) -> str:
    """Return a commit that holds the annotations of both sides."""
    before = list_notes(directory, base) if base else {}
    here, there = list_notes(directory, ours), list_notes(directory, theirs)
    joined: dict[str, bytes] = {}
    with ObjectReader(directory) as reader:
        for target, other in there.items():
            mine, old = here.get(target), before.get(target)
            # git settles the others.
            if old != other and mine not in {old, other}:
                both = [found.data for id_ in (other, mine) if id_ and (found := reader.read(id_))]
                joined[target] = join_annotations(*both) if len(both) > 1 else b"".join(both)
    return commit_notes(directory, ours, joined, "Merge annotations", merged=theirs)


def join_annotations(first: bytes, second: bytes) -> bytes:
    """Return an annotation with the lessons of both; texts in another format are appended."""
    one, other = _parse(first), _parse(second)
    if one is None or other is None:
        return first.rstrip(b"\n") + b"\n\n" + second
    lessons = list(one.get("wisdom") or [])
    said = [*(other.get("wisdom") or [])]
    if other.get("summary") not in (None, one.get("summary")):
        # An annotation has only one summary, so the other becomes a lesson.
        said.append({"category": "insight", "content": other["summary"]})
    lessons += [lesson for lesson in said if lesson not in lessons]
    return dump_json({**other, **one, **({"wisdom": lessons} if lessons else {})})


def _parse(data: bytes) -> Mapping[str, Any] | None:
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        return None
    is_annotation = isinstance(raw, dict) and isinstance(raw.get("wisdom", []), list)
    return raw if is_annotation else None
