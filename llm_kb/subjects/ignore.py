"""The files that a topic ignores or takes, by fixed names and in the language of gitignore."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, count, groupby, islice

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

MOST_RULES = 500
"""The most rules of one place: every file is compared with each of them."""

_LONGEST_RULE = 1_000
"""The most characters of a rule."""

_MOST_CHARACTERS = 40_000
"""The most characters of all rules of one place, which are compiled together."""

_MOST_STARRED = 4_000
"""The most of them in rules with several `*`: such a rule and a name made for it cost the product
of their lengths."""


@lru_cache(maxsize=4096)
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
        usable = [tuple(self._usable(where, rules)) for where, rules in groups]
        self._rules = [run for rules in reversed(usable) for run in _compile(rules)]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def ignores(self, path: str) -> bool:
        """Tell whether a path is ignored; one that ends in `/` is a directory.

        Its parents are not looked at: no walk enters a directory that is ignored.
        """
        return bool(self.decide(path))

    def decide(self, path: str) -> bool | None:
        """Return what the last rule for a path says; None without one."""
        return next((ignores for ignores, rules in self._rules if rules.match(path)), None)

    def _usable(self, where: str, rules: Sequence[str]) -> list[_Rule]:
        usable: list[_Rule] = []
        left = _MOST_STARRED
        lines = [(number, text) for number, text in enumerate(rules, 1) if _is_rule(text)]
        ends = accumulate(len(text) for _, text in lines[:MOST_RULES])
        kept = sum(end <= _MOST_CHARACTERS for end in ends)
        if len(lines) > kept:
            surplus = f"the rules from line {lines[kept][0]:,} on are left out: there are too many"
            self.problems.append(Skipped(path=where, reason=surplus))
        for number, text in lines[:kept]:
            try:
                rule = _parse_rule(text)
                left -= len(text) if rule and rule.has_stars else 0
                if left < 0 and rule and rule.has_stars:
                    rule = None
                    reason = f"rules with several * have over {_MOST_STARRED:,} characters"
                    self.problems.append(_leave_out(where, number, reason))
            except _RuleError as error:
                self.problems.append(_leave_out(where, number, str(error)))
            else:
                usable += [rule] if rule else []
        return usable


def _is_rule(line: str) -> bool:
    """Tell whether a line is neither empty nor a comment."""
    return bool(line.strip()) and not line.startswith("#")


def _leave_out(where: str, number: int, reason: str) -> Skipped:
    return Skipped(path=where, reason=f"rule {number} left out: {reason}")


class _RuleError(Exception):
    """A rule that can match nothing, or that is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A rule as a regular expression."""

    source: str
    ignores: bool
    """Whether it ignores, or keeps with a `!` before it."""
    is_name: bool
    """Whether it is for a name at any level, not for a path."""
    has_stars: bool
    """Whether it has several `*`."""


_TOKEN = re.compile(
    r"\\(?P<escaped>.)|(?P<stars>\*+)|(?P<special>[?/[])|(?P<plain>[^\\])", re.DOTALL
)

_NAMED_CLASSES = {
    "[:alnum:]": "0-9A-Za-z", "[:alpha:]": "A-Za-z", "[:blank:]": " \\t",
    "[:cntrl:]": "\\x00-\\x1f\\x7f", "[:digit:]": "0-9", "[:graph:]": "!-~",
    "[:lower:]": "a-z", "[:print:]": " -~", "[:punct:]": "!-/:-@\\[-`{-~",
    "[:space:]": " \\t-\\r", "[:upper:]": "A-Z", "[:xdigit:]": "0-9A-Fa-f",
}  # fmt: skip


@lru_cache(maxsize=4 * MOST_RULES)
def _parse_rule(text: str) -> _Rule | None:
    """Return a rule; None for a comment or an empty line. Raises _RuleError.

    The grammar is git's (`man gitignore`), character by character rather than byte by byte.
    """
    pattern = re.sub(r"(?<!\\)((?:\\\\)*) +\Z", r"\1", text.rstrip("\r"))
    if not pattern.strip() or pattern.startswith("#"):
        return None
    if len(pattern) > _LONGEST_RULE:
        raise _RuleError(f"it is longer than {_LONGEST_RULE:,} characters")
    ignores = not pattern.startswith("!")
    pattern = pattern if ignores else pattern[1:]
    is_directory = pattern.endswith("/")
    levels: list[list[str]] = [[]]
    for part in _iter_tokens(pattern.removesuffix("/")):
        if part == "/":
            levels.append([])
        else:
            levels[-1].append(part)
    is_name = "/" not in pattern.removesuffix("/")
    levels = levels[1:] if len(levels) > 1 and not levels[0] else levels
    if not all(levels) or any(level in (["\\."], ["\\."] * 2) for level in levels):
        raise _RuleError("no path has such a level")
    tail = r"/\Z" if is_directory else r"/?\Z"
    has_stars = len(re.findall(r"\*+", pattern)) > 1
    source = f"{_join_levels(levels)}{tail}"
    return _Rule(source=source, ignores=ignores, is_name=is_name, has_stars=has_stars)


def _iter_tokens(pattern: str) -> Iterator[str]:
    """Yield `/`, `*`, `**` for a level of two or more, and a regular expression for a character."""
    position = 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None:
            raise _RuleError("nothing follows the backslash at its end")
        start, position = match.span()
        if match["special"] == "[":
            source, position = _read_class(pattern, start)
            yield source
        elif match["stars"]:
            around = {pattern[max(start - 1, 0) : start], pattern[position : position + 1]}
            yield "**" if around <= {"", "/"} and len(match[0]) > 1 else "*"
        elif match["special"]:
            yield "/" if match[0] == "/" else "[^/]"
        else:
            yield re.escape(match["escaped"] or match[0])


def _read_class(pattern: str, start: int) -> tuple[str, int]:
    """Return a regular expression for the `[…]` at a position, and where it ends."""
    is_negated = pattern[start + 1 : start + 2] in {"!", "^"}
    position = first = start + 1 + is_negated
    members, before = "", ""
    while position == first or pattern[position] != "]":
        char, after = pattern[position : position + 1], pattern[position + 1 : position + 2]
        if pattern.startswith("[:", position) and (end := _find_class_end(pattern, position)):
            if (name := pattern[position:end]) not in _NAMED_CLASSES:
                raise _RuleError(f"unknown character class {name!r}")
            members, before, position = members + _NAMED_CLASSES[name], "", end
        elif char == "-" and before and after not in {"", "]"}:
            low, position = before, position + 1
            high, position = _read_member(pattern, position)
            if low > high:
                raise _RuleError(f"the range '{low}-{high}' begins after its end")
            members += f"{re.escape(low)}-{re.escape(high)}"
            before = ""
        else:
            before, position = _read_member(pattern, position)
            members += re.escape(before)
        if position >= len(pattern):
            raise _RuleError("its '[' has no ']'")
    return f"[^/{members}]" if is_negated else f"(?!/)[{members}]", position + 1


def _find_class_end(pattern: str, start: int) -> int:
    """Return the place behind the `[:…:]` at a position; 0 if it is none."""
    end = pattern.find("]", start + 2)
    return end + 1 if end > start + 2 and pattern[end - 1] == ":" else 0


def _read_member(pattern: str, position: int) -> tuple[str, int]:
    """Return a character of a class, which may be escaped, and the position after it."""
    position += pattern[position : position + 1] == "\\"
    if position >= len(pattern):
        raise _RuleError("its '[' has no ']'")
    return pattern[position], position + 1


def _join_levels(levels: Sequence[Sequence[str]]) -> str:
    """Return the regular expression of the levels of a rule.

    No part of it is matched twice: what a `*` or a `**` has taken up to the first place where
    what follows fits is not given back, since a later place could not do better.
    """
    runs: list[list[str]] = [[]]
    for level in levels:
        if level != ["**"]:
            runs[-1].append(_join_tokens(level))
        elif len(runs) == 1 or runs[-1]:
            runs.append([])
    if len(runs) == 1:
        return "/".join(runs[0])
    source = "".join(f"{level}/" for level in runs[0])
    for run in runs[1:-1]:
        source += _keep("(?:[^/]+/)*?" + "".join(f"{level}/" for level in run))
    # A `**` at the end stands for one level at least.
    return source + (f"(?:[^/]+/)*?{'/'.join(runs[-1])}" if runs[-1] else "[^/].*")


def _join_tokens(level: Sequence[str]) -> str:
    pieces: list[list[str]] = [[]]
    for token in level:
        if token in {"*", "**"}:
            pieces.append([])
        else:
            pieces[-1].append(token)
    first, *others = map("".join, pieces)
    if not others:
        return first
    if len(level) == 1:
        return "[^/]+"  # a `*` alone: no level is empty
    between = "".join(_keep(f"[^/]*?{piece}") for piece in others[:-1])
    # Characters before the end are looked at once: each part of a piece is for one of them.
    return f"{first}{between}[^/]{{{len(pieces[-1])},}}(?=/|\\Z)(?<={others[-1]})"


_numbers = count()


def _keep(source: str) -> str:
    """Return a group that is not entered again: an atomic one, which Python has since 3.11."""
    number = next(_numbers)
    return f"(?=(?P<g{number}>{source}))(?P=g{number})"


@lru_cache(maxsize=256)
def _compile(rules: tuple[_Rule, ...]) -> Sequence[tuple[bool, re.Pattern[str]]]:
    """Return one regex for each run of rules that ignore, or that keep, the last run first."""
    runs: list[tuple[bool, re.Pattern[str]]] = []
    for ignores, group in groupby(rules, lambda rule: rule.ignores):
        each = list(dict.fromkeys(group))
        names = "|".join(rule.source for rule in each if rule.is_name)
        paths = [rule.source for rule in each if not rule.is_name]
        # A name is the last of a path: those above it were decided before.
        last = rf"(?:.*/)?(?=[^/]+/?\Z)(?:{names})"
        source = "|".join([*([last] if names else []), *paths])
        runs.append((ignores, re.compile(source, re.DOTALL)))
    return runs[::-1]


_WILDCARD = re.compile(r"(?<!\\)(?:\\\\)*[*?[]")


class Include:
    """The files that a topic takes: all without patterns; `problems` are patterns left out."""

    def __init__(self, patterns: Sequence[str]) -> None:
        usable = [pattern for pattern in patterns if not pattern.startswith("!")]
        self._rules = IgnoreRules([("include", usable)])
        self._takes_all = not patterns
        self.problems = [
            *self._rules.problems,
            *(
                Skipped(
                    path="include",
                    reason=f"{pattern!r} left out: what a topic leaves out is `ignore`",
                )
                for pattern in patterns
                if pattern.startswith("!")
            ),
        ]
        self._ways = [_list_levels(pattern) for pattern in islice(usable, MOST_RULES)]
        self._names = {
            re.sub(r"\\(.)", r"\1", pattern.removeprefix("/"))
            for pattern in islice(usable, MOST_RULES)
            if not _WILDCARD.search(pattern)
        }
        self._whole: dict[str, bool] = {"": self._takes_all}
        self._open: dict[str, Sequence[Sequence[str | None]]] = {"": self._ways}

    def takes(self, path: str) -> bool:
        """Tell whether a file, or a directory that it is in, is taken."""
        return self._takes_whole(path[: path.rfind("/") + 1]) or self._rules.ignores(path)

    def enters(self, directory: str) -> bool:
        """Tell whether a directory, which ends in `/`, may hold files that are taken."""
        return self._takes_whole(directory) or bool(self._list_open(directory))

    def names(self, path: str) -> bool:
        """Tell whether a pattern is a path written out, so that it is listed though hidden."""
        return path in self._names

    def _list_open(self, directory: str) -> Sequence[Sequence[str | None]]:
        """Return the ways that lead to a directory and go on: of those of the one above it."""
        if directory not in self._open:
            above, _, name = directory[:-1].rpartition("/")
            depth = directory.count("/")
            ways = self._list_open(f"{above}/" if above else "")
            self._open[directory] = [way for way in ways if _leads(way, depth, name)]
        return self._open[directory]

    def _takes_whole(self, directory: str) -> bool:
        """Tell whether all files of a directory are taken, for itself or one above it."""
        if directory not in self._whole:
            above = directory[: directory.rfind("/", 0, -1) + 1]
            self._whole[directory] = self._takes_whole(above) or self._rules.ignores(directory)
        return self._whole[directory]


def _list_levels(pattern: str) -> Sequence[str | None]:
    """Return the names on the way to what a pattern matches, the last one's too.

    None stands for a name with wildcards, `**` for any directories.
    """
    bare = pattern.rstrip(" ").removesuffix("/")
    names = bare.removeprefix("/").split("/") if "/" in bare else ["**"]
    return [
        name if name == "**" else None if _WILDCARD.search(name) else re.sub(r"\\(.)", r"\1", name)
        for name in names
    ]


def _leads(way: Sequence[str | None], depth: int, name: str) -> bool:
    """Tell whether something below a directory may match a pattern that led to the one above."""
    if "**" in way[:depth]:
        return True
    return depth < len(way) and way[depth - 1] in {None, name}
