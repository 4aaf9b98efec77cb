"""Writes an annotation and the knowledge that came with it: both, or neither."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from llm_kb.capture.annotation import LiveInput, LiveResult, annotation_json, find_warnings
from llm_kb.capture.emission import add_entry, with_provenance
from llm_kb.capture.entries import KnowledgeStore
from llm_kb.capture.notes import ANNOTATIONS_REF, commit_note, read_note
from llm_kb.capture.repository import read_config
from llm_kb.capture.store import Change, Snapshot, change_store
from llm_kb.capture.store_format import dump_json
from llm_kb.git import run_git
from llm_kb.git_readers import ObjectReader

_LOG = ("log", "-1", "--no-show-signature")


def annotate(directory: Path, live: LiveInput) -> LiveResult:
    """Write an annotation on its commit and its entries to the store, all at once.

    Raises UnknownCommitError, or DamagedStoreError when the entries could not be
    added; then nothing is written.
    """
    author = read_config(directory, "chronicle.author", "user.name")
    done: list[LiveResult] = []

    def decide(snapshot: Snapshot) -> Change:
        store, written = _add_all(snapshot, live)
        with ObjectReader(directory) as reader:
            note = read_note(reader, ANNOTATIONS_REF, snapshot.commit)
        assert note is not None  # noqa: S101 - an object was named
        now = datetime.now(timezone.utc).isoformat()
        raw = annotation_json(live, commit=snapshot.commit, timestamp=now, author=author)
        message = f"Annotate {snapshot.commit[:12]}"
        new = commit_note(directory, note, dump_json(raw), message)
        done.append(_report(directory, live, snapshot.commit, written, note.data is not None))
        return Change(
            store=store if written else None,
            message=message,
            moves=((ANNOTATIONS_REF, new, note.commit),),
        )

    change_store(directory, decide, live.commit)
    return done[-1]


def _add_all(snapshot: Snapshot, live: LiveInput) -> tuple[KnowledgeStore, int]:
    store, written = snapshot.store, 0
    for entry in live.knowledge:
        addition = add_entry(store, with_provenance(entry, snapshot.commit))
        store = addition.store
        written += addition.is_new
    return store, written


def _report(
    directory: Path, live: LiveInput, commit: str, written: int, overwrites: bool
) -> LiveResult:
    message = run_git(*_LOG, "--format=%B", commit, cwd=directory).decode(errors="replace")
    changed = run_git(
        "diff-tree", "--root", "--no-commit-id", "-r", "-z", "--name-only", commit, cwd=directory
    )
    files = [path.decode(errors="replace") for path in changed.split(b"\0") if path]
    warnings = find_warnings(
        live, commit=commit, message=message, files=files, overwrites=overwrites
    )
    return LiveResult(
        commit=commit,
        wisdom_written=len(live.wisdom),
        knowledge_written=written,
        knowledge_duplicates=len(live.knowledge) - written,
        warnings=warnings,
    )
