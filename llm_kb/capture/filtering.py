"""Which entries hold for a file, by git-chronicle's rules. Pure."""

from __future__ import annotations

from dataclasses import replace

from llm_kb.capture.entries import Entry, KnowledgeStore


def scope_matches(scope: str, file: str) -> bool:
    """Tell whether a scope covers a file; both are paths below the repository's root.

    `*` covers everything, `dir/` and `dir` what is beneath, and a path itself.
    """
    if scope == "*":
        return True
    scope, file = scope.removeprefix("./"), file.removeprefix("./")
    if scope.endswith("/"):
        return file.startswith(scope)
    return file == scope or file.startswith(scope + "/")


def filter_by_file(store: KnowledgeStore, file: str) -> KnowledgeStore:
    """Return the store with the entries that hold for a file; anti-patterns always do."""
    return replace(store, entries=tuple(e for e in store.entries if _holds_for(e, file)))


def _holds_for(entry: Entry, file: str) -> bool:
    return entry.place is None or scope_matches(entry.place, file)
