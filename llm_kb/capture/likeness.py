"""Duplicates and similar entries, and the places they hold in. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from llm_kb.capture.entries import Entry, KnowledgeStore

NEAR_ENOUGH = 0.5
"""The share of their words that two rules must have in common to be named together."""

EVERYWHERE = "*"
"""The place of an entry that holds in all of the repository."""

_SENTENCE_ENDS = ".,;:!?…。、，；：！？ "  # noqa: RUF001 - the full-width ones end sentences too
# Brackets and quotes stay: `parse()` and `parse(*)` differ in nothing else.


def normalize(text: str) -> str:
    """Return text in lower case, white space collapsed, without trailing punctuation."""
    return " ".join(text.lower().split()).rstrip(_SENTENCE_ENDS)


def dedup_key(entry: Entry) -> tuple[str, str | None, str]:
    """Return the kind, place and rule of an entry, normalized: equal for duplicates."""
    place = entry.place
    return entry.kind.name, None if place is None else normalize_place(place), normalize(entry.rule)


def normalize_place(place: str) -> str:
    """Return a scope as it is compared: `./src/`, `src/**` and `src` are one place."""
    plain = plain_place(place.strip())
    while plain.startswith("./"):
        plain = plain[2:].lstrip("/")
    return plain.rstrip("/") or plain


def plain_place(place: str) -> str:
    """Return a place below the root as it is kept: `src/` of `src/**`, `*` of the root itself."""
    plain = without_stars(place)
    # `.` and `./`: a model means all of the repository, in which nothing has such a path.
    is_root = plain.startswith(".") and set(plain.split("/")) <= {"", "."}
    return EVERYWHERE if is_root else plain


def without_stars(place: str) -> str:
    """Return the directory that `src/**` and `src/*` mean, `src/`; of stars alone, `*`."""
    parts = place.split("/")
    count = len(parts)
    while parts and parts[-1] in {"*", "**"}:
        parts.pop()
    if not parts:
        return EVERYWHERE
    return place if len(parts) == count else "/".join(parts) + "/"


def find_place_problem(place: str, *, exists: bool) -> str | None:
    """Return why an entry cannot hold in this place below the root; None when it can.

    A path that does not exist may be a place: `exists` tells whether it does, because a
    file may well be named like a pattern or like two paths.
    """
    parts = place.split("/")
    if parts[0] in {"", "~"} or ".." in parts or place[1:3] in {":/", ":\\"}:
        return "lies outside the repository; give a path below its root, or '*' for everything"
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
"""What is wrong with a path that does not exist, by the characters in it."""


def find_duplicate(candidate: Entry, entries: Iterable[Entry]) -> Entry | None:
    """Return the first entry of which the candidate is a duplicate."""
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


def filter_by_file(store: KnowledgeStore, file: str) -> KnowledgeStore:
    """Return the entries that hold for a file; anti-patterns always do."""
    entries = (e for e in store.entries if e.place is None or scope_matches(e.place, file))
    return replace(store, entries=tuple(entries))
