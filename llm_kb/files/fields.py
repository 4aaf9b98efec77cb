"""Typed getters for tables from outside: TOML, JSON, a tool's arguments.

A getter returns the value of a key. If the value is wrong or missing, the getter
records a problem and returns the default, so that one pass reports all problems of a
document; `raise_problems` then raises them together:

    fields = Fields(document)
    title = fields.text("title", read=read_line)
    days = fields.count("max_age_days", 30, most=MAX_AGE_DAYS)
    fields.reject_unknown()
    fields.raise_problems(lambda problems: TopicFileError(where, problems))

A reader of a single value returns it in its proper type or raises BadValueError. Pure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from llm_kb.errors import MAX_PROBLEMS, MAX_SHOWN, cut, find_similar, limit_problems, quote
from llm_kb.texts.safe import CONTROLS, SURROGATES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_COUNT = 2**63 - 1
"""The largest number that TOML promises to hold; a larger one may not even be printable."""

CONTROL = re.compile(f"[{CONTROLS}{SURROGATES}]")


class BadValueError(ValueError):
    """A value that is not allowed for its key; the message names the value and the allowed ones."""

    def __init__(self, found: str, allowed: str) -> None:
        self.found = found
        self.allowed = allowed
        super().__init__(f"found {found}; allowed: {allowed}")


def read_text(value: object) -> str:
    """Read a string of any number of lines, without control characters."""
    if not isinstance(value, str):
        raise BadValueError(describe(value), "a string")
    if CONTROL.search(value):
        raise BadValueError(describe(value), "a string without control characters")
    return value


def read_line(value: object) -> str:
    """Read a string of one line, without control characters."""
    text = read_text(value)
    if "\n" in text or "\r" in text:
        raise BadValueError(describe(value), "a string of one line")
    return text


def read_flag(value: object) -> bool:
    """Read `true` or `false`."""
    if not isinstance(value, bool):
        raise BadValueError(describe(value), "true or false")
    return value


def read_count(value: object, least: int = 0, most: int = MAX_COUNT) -> int:
    """Read a whole number from `least` to `most`; a bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        is_open = most == MAX_COUNT and not (isinstance(value, int) and value > most)
        allowed = f"{least} or more" if is_open else f"from {least} to {most}"
        raise BadValueError(describe(value), f"a whole number{',' if is_open else ''} {allowed}")
    return value


def read_choice(value: object, choices: Collection[str]) -> str:
    """Read one of these strings."""
    if not isinstance(value, str) or value not in choices:
        raise BadValueError(describe(value), ", ".join(sorted(choices)) + suggest(value, choices))
    return value


def describe(value: object) -> str:
    """Name a value for an error, short and on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool | str):
        return show_value(value)
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    return f"the {kind} {show_value(value)}"


def suggest(found: object, choices: Collection[str]) -> str:
    """Return `; did you mean …?` with the nearest choice (of a mapping, its value), or nothing."""
    if not isinstance(found, str) or len(found) > MAX_SHOWN:
        return ""
    near = find_similar(found, sorted(choices), most=1)
    if not near:
        return ""
    meant = choices[near[0]] if isinstance(choices, Mapping) else near[0]
    return f"; did you mean {meant!r}?"


def show_value(value: object) -> str:
    """Return a single value as an error names it: short, on one line."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return repr(value).lower()
    try:
        return cut(repr(value))
    except ValueError:  # a number of more digits than Python prints
        return "too long to print"


T = TypeVar("T")
Read: TypeAlias = Callable[[object], T]
"""Returns a value in its proper type, or raises BadValueError."""


class Fields:
    """The fields of one table, with the dotted path that leads to it.

    A key whose value is null counts as absent. Tables below this one share its
    problems.
    """

    def __init__(self, table: object, path: str = "", problems: list[str] | None = None) -> None:
        self.path = path
        self.problems: list[str] = [] if problems is None else problems
        self.table: Mapping[str, object] = {}
        self._known: set[str] = set()
        self._is_table = isinstance(table, Mapping)
        if isinstance(table, Mapping):
            self.table = table
        else:
            self.report("", str(BadValueError(describe(table), "a table")))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys in the order of the document."""
        return iter(self.table)

    def has(self, key: str) -> bool:
        """Tell whether the key has a value."""
        self._known.add(key)
        return self.table.get(key) is not None

    def get(self, key: str, read: Read[T]) -> T | None:
        """Return the value as `read` returns it; None if it is absent or wrong."""
        return self._read(self.place(key), self.table[key], read) if self.has(key) else None

    def text(self, key: str, default: str | None = None, read: Read[str] = read_text) -> str:
        """Return a string; without a default it is required and must not be blank."""
        if default is None:
            read = partial(_read_filled, read=read)
        return self._value(key, read, default, "")

    def flag(self, key: str, default: bool | None = None) -> bool:
        """Return true or false; required without a default."""
        return self._value(key, read_flag, default, False)

    def count(
        self, key: str, default: int | None = None, *, least: int = 0, most: int = MAX_COUNT
    ) -> int:
        """Return a whole number within bounds; required without a default."""
        return self._value(key, lambda value: read_count(value, least, most), default, least)

    def choice(self, key: str, choices: Collection[str], default: str | None = None) -> str:
        """Return one of the choices; required without a default."""
        return self._value(key, lambda value: read_choice(value, choices), default, "")

    def texts(self, key: str, read: Read[str] = read_text) -> tuple[str, ...]:
        """Return a list of strings, each as `read` returns it; empty if it is absent."""
        items = self._items(key, "a list of strings")
        texts = [self._read(f"{self.place(key)}[{index}]", item, read) for index, item in items]
        return tuple(text for text in texts if text is not None)

    def fields(self, key: str) -> Fields:
        """Return the fields of a table; none if it is absent."""
        table = self.table[key] if self.has(key) else {}
        return Fields(table, self.place(key), self.problems)

    def list_of_fields(self, key: str) -> tuple[Fields, ...]:
        """Return the fields of each table of a list; empty if it is absent."""
        return tuple(
            Fields(item, f"{self.place(key)}[{index}]", self.problems)
            for index, item in self._items(key, "a list of tables")
        )

    def reject_unknown(self, *known: str) -> None:
        """Report the keys that no getter has read and that are not in `known`."""
        allowed = sorted(self._known.union(known))
        for key in self.table:
            if key not in allowed:
                # Finding a near match is slow, so not for problems that are not shown.
                near = suggest(key, allowed) if len(self.problems) < MAX_PROBLEMS else ""
                self.report(key, f"unknown key; allowed: {', '.join(allowed)}{near}")

    def report(self, key: str, problem: str) -> None:
        """Record a problem of a key; of the table itself if the key is empty."""
        place = self.place(key) if key else self.path
        self.problems.append(f"{place}: {problem}" if place else problem)

    def raise_problems(self, error: Callable[[Sequence[str]], Exception]) -> None:
        """Raise the error that `error` makes of all recorded problems, if there are any."""
        if self.problems:
            raise error(limit_problems(self.problems))

    def place(self, key: str) -> str:
        """Return the dotted path of a key."""
        return f"{self.path}.{quote_key(key)}" if self.path else quote_key(key)

    def _value(self, key: str, read: Read[T], default: T | None, placeholder: T) -> T:
        if default is None and not self.has(key) and self._is_table:
            self.report(key, "missing")
        value = self.get(key, read)
        fallback = placeholder if default is None else default
        return fallback if value is None else value

    def _read(self, place: str, value: object, read: Read[T]) -> T | None:
        try:
            return read(value)
        except BadValueError as error:
            self.problems.append(f"{place}: {error}")
            return None

    def _items(self, key: str, allowed: str) -> Iterator[tuple[int, object]]:
        value = self.table[key] if self.has(key) else []
        if isinstance(value, list | tuple):
            yield from enumerate(value)
            return
        if isinstance(value, str) and allowed == "a list of strings":
            allowed += f", as in [{describe(value)}]"
        self.report(key, str(BadValueError(describe(value), allowed)))


def quote_key(key: str) -> str:
    """Return one part of a dotted path as TOML would write it, on one line."""
    is_plain = re.fullmatch(r"[A-Za-z0-9._-]{1,100}", key)  # as long as the id of a topic
    return key if is_plain else quote(key)


def _read_filled(value: object, read: Read[str]) -> str:
    text = read(value)
    if not text.strip():
        raise BadValueError(describe(value), "a string that is not empty")
    return text


# TOML from strangers, in time that is linear in its length

MOST_DOTS = 20
"""Dots on one line outside of strings. `tomllib` takes time that is quadratic in them."""

MOST_TABLES = 10_000
"""Lines that begin with a bracket. Each may be a table, which takes the most time to make."""

# Every alternative also matches without its end, so that the scan stays linear.
_NO_KEY = re.compile(
    r"""
    \"\"\" (?: \\. | [^\\] )*? (?: \"\"\" | \Z )
    | ''' .*? (?: ''' | \Z )
    | " (?: \\[^\n] | [^"\\\n] )* "?
    | ' [^'\n]* '?
    | \# [^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)


class TomlError(ValueError):
    """A text that is not valid TOML; the message names the reason and the line."""


def decode_toml(text: str) -> dict[str, object]:
    """Decode a TOML document. Raises TomlError."""
    if _has_many_dots(text) and _has_many_dots(_NO_KEY.sub("''", text)):
        raise TomlError(f"it has a key of more than {MOST_DOTS} parts")
    if text.count("\n[") > MOST_TABLES:
        raise TomlError(f"it has more than {MOST_TABLES:,} tables")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TomlError("it is nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, or a number Python refuses to convert
        reason, at, place = str(error).rpartition(" (at ")
        message = f"{place.removesuffix(')')}: {reason}" if at else str(error)
        raise TomlError(message) from error


def _has_many_dots(text: str) -> bool:
    return any(line.count(".") > MOST_DOTS for line in text.split("\n"))
