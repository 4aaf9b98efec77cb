"""Ignores files of a topic by a fixed set of names, and by gitignore rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from llm_kb.subjects.topics import Skipped

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RULES_FILE = ".kbignore"
"""The file with rules in a topic's root directory; it is not a subject itself."""

_SECRETS = (
    ".aws", ".env", ".envrc", ".git-credentials", ".gnupg", ".htpasswd", ".netrc", ".npmrc",
    ".pgpass", ".pypirc", ".ssh",
)  # fmt: skip
"""Files and directories with passwords and keys: a hidden subject could be loaded by name."""

_ALWAYS = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".DS_Store", "Thumbs.db", *_SECRETS}
)

_MOST_RULES = 500
"""The most rules of one place: every file is compared with each of them."""

_MOST_WITH_NEGATED = 100
"""The most rules if one starts with `!`, since the order then matters and takes longer."""

_MOST_STARS = 2
"""The most wildcards of a kind in a rule, whose number is an exponent of pathspec's time."""


def is_always_ignored(name: str) -> bool:
    """Tell whether a file or directory of this name is never a subject."""
    return name in _ALWAYS or name.startswith(".#") or name.endswith(("~", ".swp"))


class IgnoreRules:
    """Rules with gitignore semantics; `problems` are the rules that were left out."""

    def __init__(self, groups: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Compile the rules of each place, given as `(place, lines)`; the last rule wins."""
        self.problems: list[Skipped] = []
        lines = [line for where, rules in groups for line in self._usable(where, rules)]
        self._rules = _compile(tuple(lines)) if lines else None

    def __bool__(self) -> bool:
        return self._rules is not None

    def ignores(self, path: str) -> bool:
        """Tell whether a path is ignored; one that ends in `/` is a directory."""
        rules = self._rules
        # One regex for all rules decides nearly every path; only paths that a `!` rule may keep
        # need the rules one by one.
        if rules is None or not rules.ignored.match(path):
            return False
        return rules.kept is None or not rules.kept.match(path) or rules.spec.match_file(path)

    def _usable(self, where: str, rules: Sequence[str]) -> list[str]:
        usable: list[str] = []
        has_negated = any(rule.startswith("!") for rule in rules[:_MOST_RULES])
        most = _MOST_WITH_NEGATED if has_negated else _MOST_RULES
        if len(rules) > most:
            surplus = f"the rules after the first {most} lines are left out"
            self.problems.append(Skipped(path=where, reason=surplus))
        for number, rule in enumerate(rules[:most], 1):
            reason = _find_problem(rule)
            if reason:
                self.problems.append(
                    Skipped(path=where, reason=f"rule {number} left out: {reason}")
                )
            elif rule.strip() and not rule.startswith("#"):
                usable.append(rule)
        return usable


class _Rules(NamedTuple):
    """Compiled rules: all of them, and one regex for each of the two kinds."""

    spec: GitIgnoreSpec
    ignored: re.Pattern[str]
    kept: re.Pattern[str] | None
    """The regex of the rules with a `!`; None without any."""


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
def _compile(lines: tuple[str, ...]) -> _Rules:
    # Imported here: few topics have rules, and the import is slow.
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    spec = GitIgnoreSpec.from_lines(lines)
    sources: dict[bool, list[str]] = {True: [], False: []}
    for pattern in spec.patterns:
        if pattern.include is not None and pattern.regex is not None:
            # A regex can have each group name only once.
            sources[pattern.include].append(re.sub(r"\(\?P<\w+>", "(?:", pattern.regex.pattern))
    kept = re.compile("|".join(sources[False])) if sources[False] else None
    return _Rules(spec, re.compile("|".join(sources[True]) or "(?!)"), kept)
