"""Ignores files of a topic by a fixed set of names, and by gitignore rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from llm_kb.subjects.topics import Skipped

RULES_FILE = ".kbignore"
"""The file with rules in a topic's root directory; it is not a subject itself."""

_SECRETS = (
    ".aws", ".env", ".envrc", ".git-credentials", ".gnupg", ".htpasswd", ".netrc", ".npmrc",
    ".pgpass", ".pypirc", ".ssh", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa",
)  # fmt: skip
"""Files and directories with passwords and keys: a hidden subject could be loaded by name."""

_PRIVATE = frozenset({".git", ".hg", ".svn", *_SECRETS})

_TEMPLATES = (".dist", ".example", ".sample", ".template")
"""Ends of the names of files such as `.env.example`, which hold no passwords."""

_ALWAYS = _PRIVATE | {"node_modules", "__pycache__", ".DS_Store", "Thumbs.db"}

_MOST_RULES = 500
"""The most rules of one place: every file is compared with each of them."""

_MOST_STARS = 2
"""The most wildcards of a kind in a rule, whose number is an exponent of pathspec's time."""


def is_always_ignored(name: str) -> bool:
    """Tell whether a file or directory of this name is never a subject."""
    if name in _ALWAYS or name.startswith(".#") or name.endswith(("~", ".swp")):
        return True
    return is_private(name)


def is_private(name: str) -> bool:
    """Tell whether a file or directory holds passwords, or the data of version control.

    Some file systems ignore case.
    """
    lower = name.lower()
    return lower in _PRIVATE or (lower.startswith(".env.") and not lower.endswith(_TEMPLATES))


class IgnoreRules:
    """Rules with gitignore semantics; `problems` are the rules that were left out."""

    def __init__(self, groups: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Compile the rules of each place, given as `(place, lines)`; the last rule wins."""
        self.problems: list[Skipped] = []
        lines = [line for where, rules in groups for line in self._usable(where, rules)]
        self._rules = _compile(tuple(lines)) if lines else ()

    def __bool__(self) -> bool:
        return bool(self._rules)

    def ignores(self, path: str) -> bool:
        """Tell whether a path is ignored; one that ends in `/` is a directory.

        Its parents are not looked at: no walk enters a directory that is ignored.
        """
        return next((ignores for ignores, rules in self._rules if rules.search(path)), False)

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
def _compile(lines: tuple[str, ...]) -> Sequence[tuple[bool, re.Pattern[str]]]:
    """Return one regex for each run of rules that ignore, or that keep, the last run first."""
    # Imported here: few topics have rules, and the import is slow.
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    runs: list[tuple[bool, list[str]]] = []
    for pattern in GitIgnoreSpec.from_lines(lines).patterns:
        if pattern.include is None or pattern.regex is None:
            continue
        if not runs or runs[-1][0] != pattern.include:
            runs.append((pattern.include, []))
        # pathspec marks the slash after a directory; a rule for directories is for that one, and
        # one that ends in `/**` is for what is below it.
        source = pattern.regex.pattern.replace("(?P<ps_d>/)", r"/\Z")
        runs[-1][1].append(f"{source}." if source.endswith("/") else source)
    return [(ignores, re.compile("|".join(sources))) for ignores, sources in reversed(runs)]
