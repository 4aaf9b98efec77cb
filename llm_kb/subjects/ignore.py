"""Which files of a topic are no subjects: a fixed set, then gitignore rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from llm_kb.subjects.topics import Skipped

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RULES_FILE = ".kbignore"
"""The file at a topic's root that holds rules; it is no subject itself."""

_ALWAYS = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".DS_Store", "Thumbs.db"}
)

_MOST_RULES = 500
"""Rules of one place that are kept; every file is held against each of them."""

_MOST_STARS = 2
"""Wildcards of a kind in a rule; pathspec's time is a power of their number."""


def is_always_ignored(name: str) -> bool:
    """Tell whether a file or directory of this name is never a subject."""
    return name in _ALWAYS or name.startswith(".#") or name.endswith(("~", ".swp"))


def may_hold_ignored(joined: str) -> bool:
    """Tell whether `is_always_ignored` may hold of any name without a leading dot.

    The names are joined and end with `/`: a few searches for all are faster than
    one look at each.
    """
    # One character is found ten times as fast as several, so each rule starts with one.
    return (
        "~" in joined
        or ".swp/" in joined
        or ("T" in joined and "/Thumbs.db/" in joined)
        or ("_" in joined and ("/node_modules/" in joined or "/__pycache__/" in joined))
    )


class IgnoreRules:
    """Rules with gitignore semantics; `problems` are the rules that were left out."""

    def __init__(self, groups: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Take the rules of each place, `(where they stand, lines)`, the last one to win."""
        self.problems: list[Skipped] = []
        lines = [line for where, rules in groups for line in self._usable(where, rules)]
        self._spec = _compile(tuple(lines)) if lines else None

    def __bool__(self) -> bool:
        return self._spec is not None

    def ignores(self, path: str) -> bool:
        """Tell whether a path is ignored; one that ends in `/` is a directory."""
        return self._spec is not None and self._spec.match_file(path)

    def _usable(self, where: str, rules: Sequence[str]) -> list[str]:
        usable: list[str] = []
        if len(rules) > _MOST_RULES:
            surplus = f"the rules after the first {_MOST_RULES} lines are left out"
            self.problems.append(Skipped(path=where, reason=surplus))
        for number, rule in enumerate(rules[:_MOST_RULES], 1):
            reason = _find_problem(rule)
            if reason:
                self.problems.append(
                    Skipped(path=where, reason=f"rule {number} left out: {reason}")
                )
            elif rule.strip() and not rule.startswith("#"):
                usable.append(rule)
        return usable


@lru_cache(maxsize=4 * _MOST_RULES)
def _find_problem(rule: str) -> str | None:
    components = rule.split("/")
    if components.count("**") > _MOST_STARS or any(
        len(re.findall(r"\*+", component)) > _MOST_STARS for component in components
    ):
        return f"it has more than {_MOST_STARS} wildcards of a kind and could take very long"
    try:
        _compile((rule,))
    except ValueError as error:
        return str(error)
    return None


@lru_cache(maxsize=32)
def _compile(lines: tuple[str, ...]) -> GitIgnoreSpec:
    # Imported only where there are rules: it costs more than the rest of the start.
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    return GitIgnoreSpec.from_lines(lines)
