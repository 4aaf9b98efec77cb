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
from llm_kb.capture.git.notes import (
    ANNOTATIONS_REF,
    BLOB,
    KNOWLEDGE_REF,
    Note,
    RefMovedError,
    TreeEntry,
    commit_note,
    commit_tree,
    flatten_notes,
    format_tree,
    move_refs,
    read_note,
    write_object,
)
from llm_kb.capture.sharing.merging import Merge, merge
from llm_kb.capture.sharing.remotes import (
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
            note = _with_notes_of(directory, snapshot.note, ours, fetched)
            data, message = (
                dump_store(pulled.merge.store),
                f"Merge knowledge of {hide_secrets(remote)}",
            )
            new = commit_note(directory, note, data, message, merged=[fetched])
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


def _with_notes_of(directory: Path, note: Note, ours: str, theirs: str) -> Note:
    """Return our note in a tree that holds the other notes of both commits."""
    with ObjectReader(directory) as reader:
        notes = {**flatten_notes(reader, theirs), **flatten_notes(reader, ours)}
    return replace(note, levels=(tuple(notes.values()),))


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
            before = flatten_notes(reader, ours) if ours else {}
        base = find_merge_base(directory, ours, theirs) if ours else None
        if base == theirs:
            return 0
        new = theirs if ours is None or base == ours else _merge(directory, ours, theirs, base)
        try:
            move_refs(directory, [(ANNOTATIONS_REF, new, ours)], f"Pull from {remote}")
        except RefMovedError as error:
            last = error
            continue
        with ObjectReader(directory) as reader:
            after = flatten_notes(reader, new)
        return sum(before.get(name) != entry for name, entry in after.items())
    raise BusyStoreError(ANNOTATIONS_REF, str(last)) from last


def _merge(directory: Path, ours: str, theirs: str, base: str | None) -> str:
    """Return a commit that holds the annotations of both sides."""
    with ObjectReader(directory) as reader:
        sides = [flatten_notes(reader, commit) if commit else {} for commit in (base, ours, theirs)]
        kept: list[TreeEntry] = []
        joined: dict[bytes, bytes] = {}
        for name in sorted(sides[1].keys() | sides[2].keys()):
            old, mine, other = (side.get(name) for side in sides)
            if mine and other and len({old, mine, other}) == 3:
                blobs = reader.read_ids([other.id.hex(), mine.id.hex()])
                joined[name] = join_annotations(*(b.data if b else b"" for b in blobs))
            elif mine == old:
                kept += [other] if other else []
            elif chosen := mine or (other if other != old else None):
                kept.append(chosen)
    for name, data in joined.items():
        blob = write_object(directory, "blob", data)
        kept.append(TreeEntry(mode=BLOB, name=name, id=bytes.fromhex(blob)))
    tree = write_object(directory, "tree", format_tree(kept))
    return commit_tree(directory, tree, "Merge annotations", [ours, theirs])


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
