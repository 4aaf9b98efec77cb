"""Which entries hold for a file, by git-chronicle's rules. Pure."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from llm_kb.capture.entries import Entry, KnowledgeStore
from llm_kb.capture.likeness import without_stars


def scope_matches(scope: str, file: str) -> bool:
    """Tell whether a scope covers a file; both are paths below the repository's root.

    `*` covers everything, `dir/`, `dir/**` and `dir` what is beneath, and a path itself.
    """
    scope = without_stars(scope)
    if scope == "*":
        return True
    scope, file = scope.removeprefix("./"), file.removeprefix("./")
    if scope.endswith("/"):
        return file.startswith(scope)
    return file == scope or file.startswith(scope + "/")


def filter_by_file(store: KnowledgeStore, file: str) -> KnowledgeStore:
    """Return the store with the entries that hold for a file; anti-patterns always do."""

    @cache  # thousands of entries share a few scopes
    def covers(scope: object) -> bool:
        return scope_matches(str(scope), file)

    def holds(entry: Entry) -> bool:
        place = entry.kind.place
        return place is None or covers(entry.fields[place])

    return replace(store, entries=tuple(filter(holds, store.entries)))
