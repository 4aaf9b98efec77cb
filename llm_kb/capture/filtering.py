"""Which entries hold for a file, by git-chronicle's rules. Pure."""

from __future__ import annotations

from dataclasses import replace

from llm_kb.capture.likeness import EVERYWHERE, plain_place
from llm_kb.capture.tables import StoreTables, Table, make_table


def scope_matches(scope: str, file: str) -> bool:
    """Tell whether a scope covers a file; both are paths below the repository's root.

    `*` and the root cover everything, `dir/`, `dir/**` and `dir` what is beneath, and a path
    itself.
    """
    scope = plain_place(scope)
    if scope == EVERYWHERE:
        return True
    scope, file = scope.removeprefix("./"), file.removeprefix("./")
    if scope.endswith("/"):
        return file.startswith(scope)
    return file == scope or file.startswith(scope + "/")


def filter_by_file(stored: StoreTables, file: str) -> StoreTables:
    """Return the entries that hold for a file; anti-patterns always do."""
    return replace(stored, tables=tuple(_filter_table(table, file) for table in stored.tables))


def _filter_table(table: Table, file: str) -> Table:
    if table.kind.place is None:
        return table
    places = table.columns[table.kind.place]
    covering = {place for place in set(places) if scope_matches(place, file)}
    kept = [row for row, place in zip(table.rows, places, strict=True) if place in covering]
    return make_table(table.kind, kept)
