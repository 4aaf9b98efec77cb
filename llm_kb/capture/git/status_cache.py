"""The status of entries, kept in the git directory until HEAD or the entries change."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import astuple, fields
from hashlib import sha256
from pathlib import Path

from llm_kb.capture.entries import Anchor, Status
from llm_kb.capture.git.history import read_statuses
from llm_kb.capture.git.repository import Repository
from llm_kb.files.atomic import WriteError, replace_file

_VERSION = 1
_FIELDS = tuple(field.name for field in fields(Status))


def load_statuses(
    repository: Repository, head: str | None, anchors: Collection[Anchor]
) -> dict[Anchor, Status]:
    """Return the status of each anchor at `head`, computed only if it is not on record."""
    ordered = sorted(anchors, key=repr)
    key = sha256(repr((_VERSION, head, ordered)).encode("utf-8", "replace")).hexdigest()
    path = repository.git_dir / "llm-kb" / "status.json"
    kept = _read(path, key, ordered)
    if kept is not None:
        return kept
    statuses = read_statuses(repository.root, anchors)
    rows = [astuple(statuses[anchor]) for anchor in ordered]
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(path, json.dumps({"key": key, "statuses": rows}).encode())
    except (OSError, WriteError):
        pass  # a repository that cannot be written to is read all the same
    return statuses


def _read(path: Path, key: str, anchors: list[Anchor]) -> dict[Anchor, Status] | None:
    try:
        record = json.loads(path.read_bytes())
        if record["key"] != key:
            return None
        rows = zip(anchors, record["statuses"], strict=True)
        return {anchor: Status(**dict(zip(_FIELDS, row, strict=True))) for anchor, row in rows}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None  # whatever is wrong with it, it is made again
