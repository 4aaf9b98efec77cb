"""Finds duplicate and similar entries, and compares their places. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from llm_kb.capture.entries import Entry, KnowledgeStore

NEAR_ENOUGH = 0.5
"""The least share of common words of two similar rules."""

EVERYWHERE = "*"
"""The place of an entry that applies to the whole repository."""

_SENTENCE_ENDS = ".,;:!?…。、，；：！？ "  # noqa: RUF001 - the full-width ones end sentences too
# Brackets and quotes stay: `parse()` and `parse(*)` are different rules.


def normalize(text: str) -> str:
    """Return text in lower case, white space collapsed, without trailing punctuation."""
    return " ".join(text.lower().split()).rstrip(_SENTENCE_ENDS)


def dedup_key(entry: Entry) -> tuple[str, str | None, str]:
    """Return the kind, place and rule of an entry, normalized: equal for duplicates."""
    place = entry.place
    return entry.kind.name, None if place is None else normalize_place(place), normalize(entry.rule)


def normalize_place(place: str) -> str:
    """Return a scope in the form for comparison: `src` for `./src/`, `src/**` and `src`."""
    plain = plain_place(place.strip())
    while plain.startswith("./"):
        plain = plain[2:].lstrip("/")
    return plain.rstrip("/") or plain


def plain_place(place: str) -> str:
    """Return a place in the form for storage: `src/` for `src/**`, `*` for the root itself."""
    plain = without_stars(place)
    # A model writes `.` or `./` for the whole repository.
    is_root = plain.startswith(".") and set(plain.split("/")) <= {"", "."}
    return EVERYWHERE if is_root else plain


def without_stars(place: str) -> str:
    """Return a place without stars at its end: `src/` for `src/**`, `*` for stars alone."""
    parts = place.split("/")
    count = len(parts)
    while parts and parts[-1] in {"*", "**"}:
        parts.pop()
    if not parts:
        return EVERYWHERE
    return place if len(parts) == count else "/".join(parts) + "/"


def find_place_problem(place: str, *, exists: bool) -> str | None:
    """Return the reason why a text is not a place below the root; None if it is one.

    A place need not exist. `exists` tells whether it does, since an existing file may be
    named like a pattern or like two paths.
    """
    parts = place.split("/")
    if parts[0] in {"", "~"} or ".." in parts or place[1:3] in {":/", ":\\"}:
        return "is outside the repository; give a path below its root, or '*' for everything"
    if place == EVERYWHERE or exists:
        return None
    found = (problem for signs, problem in _ODD_PLACES.items() if set(place) & set(signs))
    return next(found, None)


_ODD_PLACES = {
    "\\": "is not a path; separate its parts with '/'",
    "*?{}": "is a pattern; give a directory such as 'src/', a file, or '*' for everything",
    ",;|": "names several places; record one entry for each",
    " ": "is not a path; give a directory such as 'src/', a file, or '*' for everything",
}
"""The problem of a path that does not exist, keyed by the characters in it."""


def find_duplicate(candidate: Entry, entries: Iterable[Entry]) -> Entry | None:
    """Return the first entry that is a duplicate of the candidate."""
    key = dedup_key(candidate)
    same = (e for e in entries if e.kind is candidate.kind and dedup_key(e) == key)
    return next(same, None)


def find_nearest(candidate: Entry, entries: Iterable[Entry], limit: int = 3) -> tuple[Entry, ...]:
    """Return the entries of the same kind whose rules share the most words, nearest first."""
    words = set(normalize(candidate.rule).split())
    scored = []
    for entry in entries:
        if entry.kind is candidate.kind:
            others = set(normalize(entry.rule).split())
            share = len(words & others) / (len(words | others) or 1)
            if share >= NEAR_ENOUGH:
                scored.append((share, entry))
    scored.sort(key=lambda pair: -pair[0])  # stable: of equals, the older entry first
    return tuple(entry for _, entry in scored[:limit])


def scope_matches(scope: str, file: str) -> bool:
    """Tell whether a scope covers a file; both are paths below the repository's root.

    `*` and the root cover everything; `dir/`, `dir/**` and `dir` cover the files below; a path
    covers itself.
    """
    scope = plain_place(scope)
    if scope == EVERYWHERE:
        return True
    scope, file = scope.removeprefix("./"), file.removeprefix("./")
    if scope.endswith("/"):
        return file.startswith(scope)
    return file == scope or file.startswith(scope + "/")


def filter_by_file(store: KnowledgeStore, file: str) -> KnowledgeStore:
    """Return the entries that apply to a file, with all anti-patterns."""
    entries = (e for e in store.entries if e.place is None or scope_matches(e.place, file))
    return replace(store, entries=tuple(entries))
