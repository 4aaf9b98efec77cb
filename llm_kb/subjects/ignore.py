"""The files that a topic ignores or takes, by fixed names and in the language of gitignore."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile
from math import inf
from typing import Any

from llm_kb.errors import PatternError
from llm_kb.subjects.patterns import has_open_class, is_glob, parse_pattern
from llm_kb.subjects.topics import Skipped, compose, find_flaw

_SECRETS = (
    ".aws", ".env", ".envrc", ".git-credentials", ".gnupg", ".htpasswd", ".netrc", ".npmrc",
    ".pgpass", ".pypirc", ".ssh", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa",
)  # fmt: skip
"""Files and directories with passwords and keys: a hidden subject could be loaded by name."""

_PRIVATE = frozenset({".git", ".hg", ".svn", *_SECRETS})

_TEMPLATES = (".dist", ".example", ".sample", ".template")
"""Ends of the names of files such as `.env.example`, which hold no passwords."""

_ALWAYS = _PRIVATE | {"node_modules", "__pycache__", ".DS_Store", "Thumbs.db"}

NEVER = "never a subject"

LEFTOVER = "left by an editor, a merge or a sync program"
"""Why a file with a name that no person gives to a page is not a subject."""

_LEFTOVER = re.compile(
    r"""
    .+\.(?:orig|rej|bak|bck|save|swo|kate-swp|crswap|part|tmp)  # editors, patch, downloads
    | .+\.\w+\.(?:mine|r\d+)                                    # svn
    | .+_(?:BASE|LOCAL|REMOTE|BACKUP)_\d+(?:\.\w+)?             # git mergetool
    | \#.*\# | 4913 | sed(?=[a-z]*[A-Z\d])[A-Za-z\d]{6} | .*___jb_(?:tmp|old)___
    | .*\.sync-conflict-\d{8}-.*                                # Syncthing
    | .*\([^()]*conflicted\ copy[^()]*\).*                       # Dropbox, Nextcloud
    | .*\ -\ Copy(?:\ \(\d+\))?(?:\.\w+)?                      # Windows
    """,
    re.VERBOSE,
)

MOST_RULES = 500
"""The most rules of a topic: every file is compared with each of them."""

_MOST_CHARACTERS = 20_000
"""The most characters of all rules of a topic."""


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


@lru_cache(maxsize=16_384)
def find_fault(name: str) -> str | None:
    """Return the reason why no file of this name is a subject; None if it may be one.

    It is NEVER for what nobody needs to be told of.
    """
    if is_always_ignored(name):
        return NEVER
    return find_flaw(name) or (LEFTOVER if _LEFTOVER.fullmatch(name) else None)


class Rule:
    """A line in the language of gitignore, as a pattern of `pathspec`.

    https://git-scm.com/docs/gitignore; a class of named characters (`[[:alpha:]]`) is refused.
    """

    def __init__(self, line: str) -> None:
        """Read a line. Raises PatternError if it can match nothing."""
        text = _strip(line)
        self.include = None if not text or text.startswith("#") else not text.startswith("!")
        """Whether it ignores, keeps, or is a comment."""
        text = text.removeprefix("!")
        self.is_directory = text.endswith("/")
        text = text.removesuffix("/")
        self.is_name = "/" not in text
        """Whether it is for a name at any level, not for a path."""
        self.levels = _split_levels(text) if self.include is not None else []
        if self.levels:
            self._matches = parse_pattern("/".join(self.levels)).matches

    def match_file(self, file: str) -> bool | None:
        """Return True for a path that it is for, which ends in `/` for a directory, else None."""
        path = file.removesuffix("/")
        if self.is_directory and path == file:
            return None
        return bool(self._matches(path.rpartition("/")[2] if self.is_name else path)) or None


_STARS = re.compile(r"\A\*{3,}\Z")
_ESCAPED = re.compile(r"\\(.)")
_UNESCAPED = re.compile(r"\[([*?[])\]")
"""A wildcard that stands for itself, as our patterns have it."""


def _strip(line: str) -> str:
    """Return a line without the blanks at its end, of which the first may be escaped."""
    line = line.rstrip("\r")
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return line[: len(bare) + escapes % 2]


def _split_levels(text: str) -> list[str]:
    """Return the levels of a rule, as our patterns have them. Raises PatternError."""
    levels = text.removeprefix("/").split("/")
    if not {"", ".", ".."}.isdisjoint(levels):
        raise PatternError(text, "no path has such a level")
    levels = [_STARS.sub("**", _ESCAPED.sub(_unescape, level)) for level in levels]
    if "[:" in text or any(map(has_open_class, levels)):
        raise PatternError(text, "its '[' is not that of a class of single characters")
    return levels


def _unescape(escaped: re.Match[str]) -> str:
    return f"[{escaped[1]}]" if escaped[1] in "*?[" else escaped[1]


def _find_name(level: str) -> str | None:
    """Return the only name that a level matches; None for one with wildcards."""
    return None if is_glob(_UNESCAPED.sub("", level)) else _UNESCAPED.sub(r"\1", level)


class IgnoreRules:
    """Rules with gitignore semantics; `problems` are the rules that were left out.

    The last rule for a path wins.
    """

    def __init__(self, lines: Sequence[str], where: str = "ignore") -> None:
        self.problems: list[Skipped] = []
        self.rules = [*self._read(lines, where)] if lines else []
        self._spec: Any = None
        if self.rules:
            # Imported for topics with rules only: it takes 20 ms.
            from pathspec import PathSpec  # noqa: PLC0415

            self._spec = PathSpec(self.rules, backend="simple")

    def ignores(self, path: str) -> bool:
        """Tell whether a path is ignored; one that ends in `/` is a directory.

        Its parents are not looked at: no walk enters a directory that is ignored.
        """
        return self._spec is not None and bool(self._spec.match_file(compose(path)))

    def _read(self, lines: Sequence[str], where: str) -> Iterator[Rule]:
        ends = accumulate(map(len, lines[:MOST_RULES]))
        kept = sum(end <= _MOST_CHARACTERS for end in ends)
        for number, line in enumerate(lines[:kept], 1):
            try:
                yield Rule(line)
            except PatternError as error:
                reason = f"rule {number} left out: {error.reason}"
                self.problems.append(Skipped(path=where, reason=reason))
        if len(lines) > kept:
            reason = f"rule {kept + 1:,} and all after it left out: there are too many"
            self.problems.append(Skipped(path=where, reason=reason))


class Include:
    """The files that a topic takes: all without patterns; `problems` are patterns left out."""

    def __init__(self, patterns: Sequence[str]) -> None:
        keeping = [pattern for pattern in patterns if pattern.startswith("!")]
        self._rules = IgnoreRules([each for each in patterns if each not in keeping], "include")
        reason = "left out: what a topic leaves out is `ignore`"
        self.problems = list(self._rules.problems)
        self.problems += (Skipped(path="include", reason=f"{each!r} {reason}") for each in keeping)
        rules = [rule for rule in self._rules.rules if rule.levels]
        self._ways = {_find_way(rule) for rule in rules}
        written = [[*map(_find_name, rule.levels)] for rule in rules if not rule.is_directory]
        self._names = {"/".join(filter(None, names)) for names in written if None not in names}
        self.takes_all = not patterns
        self._whole: dict[str, bool] = {"": self.takes_all}

    def takes(self, path: str) -> bool:
        """Tell whether a file, or a directory that it is in, is taken."""
        return self._takes_whole(path[: path.rfind("/") + 1]) or self._rules.ignores(path)

    def enters(self, directory: str) -> bool:
        """Tell whether a directory, which ends in `/`, may hold files that are taken."""
        depth = directory.count("/")
        return self._takes_whole(directory) or any(
            depth < levels and (directory.startswith(start) or start.startswith(directory))
            for start, levels in self._ways
        )

    def names(self, path: str) -> bool:
        """Tell whether a pattern is a path written out, so that it is listed though hidden."""
        return path in self._names

    def _takes_whole(self, directory: str) -> bool:
        """Tell whether all files of a directory are taken, for itself or one above it."""
        if directory not in self._whole:
            above = directory[: directory.rfind("/", 0, -1) + 1]
            self._whole[directory] = self._takes_whole(above) or self._rules.ignores(directory)
        return self._whole[directory]


def _find_way(rule: Rule) -> tuple[str, float]:
    """Return the directory that all matches of a rule are in, and their most levels."""
    if rule.is_name:
        return "", inf
    names = takewhile(lambda name: name is not None, map(_find_name, rule.levels[:-1]))
    return "".join(f"{name}/" for name in names), inf if "**" in rule.levels else len(rule.levels)
