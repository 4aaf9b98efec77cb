"""Shares annotations with a remote, and joins those of two clones about one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_kb.capture.errors import BusyStoreError
from llm_kb.capture.git.notes import (
    ANNOTATIONS_REF,
    RefMovedError,
    commit_tree,
    flatten_notes,
    move_refs,
    write_object,
)
from llm_kb.capture.git.trees import BLOB, TreeEntry, format_tree
from llm_kb.capture.sharing.remotes import fetch_ref, find_merge_base
from llm_kb.capture.store_format import dump_json
from llm_kb.git import ObjectReader

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
