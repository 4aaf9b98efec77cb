"""Glob matching by brute force, the reference for the fast matchers."""

from __future__ import annotations


def matches(pattern: str, slug: str) -> bool:
    """Tell whether a pattern matches a whole slug."""
    return _match_levels(pattern.split("/"), slug.split("/"))


def _match_levels(patterns: list[str], names: list[str]) -> bool:
    if not patterns or not names:
        return not patterns and not names
    if patterns[0] != "**":
        return _match_name(patterns[0], names[0]) and _match_levels(patterns[1:], names[1:])
    if len(patterns) == 1:
        return True
    return any(_match_levels(patterns[1:], names[skipped:]) for skipped in range(len(names)))


def _match_name(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(_match_name(pattern[1:], name[taken:]) for taken in range(len(name) + 1))
    length, members, is_negated = _read_class(pattern)
    if not name:
        return False
    if length:
        fits = (name[0] in members) != is_negated
    else:
        length, fits = 1, pattern[0] in ("?", name[0])
    return fits and _match_name(pattern[length:], name[1:])


def _read_class(pattern: str) -> tuple[int, set[str], bool]:
    """Return the length of the class a pattern starts with, or 0, and what it says."""
    if pattern[0] != "[":
        return 0, set(), False
    start = 2 if pattern[1:2] in ("!", "^") else 1
    end = pattern.find("]", start + 1)
    if end < 0:
        return 0, set(), False
    body = list(pattern[start:end])
    members: set[str] = set()
    while body:
        first = body.pop(0)
        last = first
        if len(body) > 1 and body[0] == "-":
            last = body[1]
            del body[:2]
        members.update(map(chr, range(ord(first), ord(last) + 1)))
    return end + 1, members, start == 2
