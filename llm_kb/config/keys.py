"""The keys a configuration may hold: how each value is read and what it may be.

`config` walks a file by these tables; nothing else knows which keys exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from llm_kb.errors import PatternError
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Layout, Origin

Value: TypeAlias = "bool | int | str | tuple[str, ...]"
"""What a setting holds; paths are absolute strings."""

TOPIC_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
TOPIC_ID_RULE = "letters, digits, '.', '_' and '-', starting with a letter or a digit"

# Lone surrogates are bytes of a command line that are no text.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class BadValueError(ValueError):
    """A value that a key cannot take: what was found, and what is allowed."""

    def __init__(self, found: str, allowed: str) -> None:
        self.found = found
        self.allowed = allowed
        super().__init__(f"found {found}; allowed: {allowed}")


class BadItemsError(ValueError):
    """All items of a list that its key cannot take."""

    def __init__(self, errors: Sequence[BadValueError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, errors)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Who says a setting, and therefore what it may say about directories."""

    origin: Origin
    base: Path = Path("/")
    """The directory that relative ones start from."""
    home: Path | None = None
    """What `~` stands for; None where it is not known."""
    bounds: Path | None = None
    """The workspace, where the speaker is one of its files; None for the user's own word."""
    resolve_links: Callable[[Path], Path] = lambda path: path
    """Returns a path with its links resolved: the outside's part in reading a directory."""


Reader: TypeAlias = Callable[[object, Speaker], Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: how its value is read, and whether only the user layer may hold it."""

    read: Reader
    user_only: bool = False
    is_list: bool = False
    is_text: bool = False
    """Whether its value, or each value of its list, is a string."""


def describe_found(value: object) -> str:
    """Name a TOML value for an error, short and on one line."""
    if isinstance(value, dict):
        return "a table"
    shown = repr(value).lower() if isinstance(value, bool) else repr(value)
    if isinstance(value, list):
        return f"the list {shown}" if len(shown) <= 60 else "a list"
    if len(shown) > 60:
        shown = f"{shown[:57]}..."
    if isinstance(value, bool | str):
        return shown
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    return f"the {kind} {shown}"


def read_flag(value: object, _speaker: Speaker) -> bool:
    """Read `true` or `false`."""
    if not isinstance(value, bool):
        raise BadValueError(describe_found(value), "true or false")
    return value


def read_count(value: object, _speaker: Speaker) -> int:
    """Read a whole number that is not negative; a bool is no number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadValueError(describe_found(value), "a whole number, 0 or more")
    return value


def read_text(value: object, _speaker: Speaker) -> str:
    """Read a string of any number of lines."""
    if not isinstance(value, str):
        raise BadValueError(describe_found(value), "a string")
    if _CONTROL.search(value):
        raise BadValueError(describe_found(value), "a string without control characters")
    return value


def read_line(value: object, speaker: Speaker) -> str:
    """Read a string of one line."""
    text = read_text(value, speaker)
    if "\n" in text or "\r" in text:
        raise BadValueError(describe_found(value), "a string of one line")
    return text


def read_choice(choices: Collection[str]) -> Reader:
    """Return a reader of one of these strings."""

    def read(value: object, _speaker: Speaker) -> str:
        if not isinstance(value, str) or value not in choices:
            allowed = ", ".join(sorted(choices))
            raise BadValueError(describe_found(value), allowed + suggest(value, choices))
        return value

    return read


def read_list(read_item: Reader, *, unique: bool = False) -> Reader:
    """Return a reader of a list, each item read by `read_item`; it raises BadItemsError."""

    def read(value: object, speaker: Speaker) -> tuple[str, ...]:
        if not isinstance(value, list):
            allowed = "a list of strings"
            if isinstance(value, str):
                allowed += f", as in [{describe_found(value)}]"
            raise BadValueError(describe_found(value), allowed)
        items: list[str] = []
        errors: list[BadValueError] = []
        for item in value:
            try:
                text = str(read_item(item, speaker))
            except BadValueError as error:
                errors.append(error)
                continue
            if unique and text in items:
                twice = f"{describe_found(item)} twice"
                errors.append(BadValueError(twice, "each pattern once"))
            items.append(text)
        if errors:
            raise BadItemsError(errors)
        return tuple(items)

    return read


def read_pattern(value: object, _speaker: Speaker) -> str:
    """Read a pattern over slugs."""
    if not isinstance(value, str):
        raise BadValueError(describe_found(value), "a list of patterns, each a string")
    if _CONTROL.search(value):
        raise BadValueError(describe_found(value), "patterns without control characters")
    try:
        return parse_pattern(value).text
    except PatternError as error:
        raise BadValueError(
            describe_found(value), f"patterns over slugs ({error.reason})"
        ) from error


def read_directory(value: object, speaker: Speaker) -> str:
    """Read a directory and return it absolute, with its links resolved.

    A file of the workspace may name directories inside the workspace only.
    """
    if not isinstance(value, str) or not value or _CONTROL.search(value) or "\n" in value:
        raise BadValueError(describe_found(value), "a directory, as a string of one line")
    if speaker.bounds is None:
        return str(speaker.resolve_links(_place(value, speaker)))
    _require_relative(value)
    path = speaker.resolve_links(_place(value, speaker))
    if not path.is_relative_to(speaker.resolve_links(speaker.bounds)):
        raise BadValueError(
            f"{describe_found(value)}, which leads to {str(path)!r}",
            f"a directory that lies inside the workspace {str(speaker.bounds)!r}",
        )
    return str(path)


def read_load_path(value: object, speaker: Speaker) -> str:
    """Read a directory of config fragments; a relative one belongs to the workspace."""
    if not isinstance(value, str) or not value or _CONTROL.search(value) or "\n" in value:
        allowed = "a list of directories, each a string of one line"
        raise BadValueError(describe_found(value), allowed)
    if speaker.bounds is not None:
        _require_relative(value)
    return str(_place(value, speaker)) if value.startswith("~") else value


def suggest(found: object, choices: Collection[str]) -> str:
    """Return `; did you mean …?` with the nearest choice, or nothing."""
    # Imported here: only a mistake pays for it.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(found, sorted(choices), n=1) if isinstance(found, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def _place(value: str, speaker: Speaker) -> Path:
    if value != "~" and not value.startswith("~/"):
        return speaker.base / value
    if speaker.home is None:
        raise BadValueError(describe_found(value), "a path without '~': there is no home directory")
    return speaker.home / value[2:]


def _require_relative(value: str) -> None:
    parts = re.split(r"[/\\]", value)
    if value.startswith("~") or parts[0] == "" or ".." in parts or re.match(r"[A-Za-z]:", value):
        raise BadValueError(
            describe_found(value),
            "a relative path inside the workspace, without '~' or '..' "
            "(other directories belong in the user layer's kb.toml)",
        )


KB_KEYS: Mapping[str, Key] = {
    "auto": Key(read=read_flag),
    "menu": Key(read=read_choice({"topics", "subjects"}), is_text=True),
    "menu_budget": Key(read=read_count),
    "max_result_chars": Key(read=read_count),
    "config_load_paths": Key(read=read_list(read_load_path), is_list=True, is_text=True),
    "allow_links_to": Key(
        read=read_list(read_directory), user_only=True, is_list=True, is_text=True
    ),
}
"""The keys of `[kb]`, tables aside."""

TOPIC_KEYS: Mapping[str, Key] = {
    "enable": Key(read=read_flag),
    "title": Key(read=read_line, is_text=True),
    "introduction": Key(read=read_text, is_text=True),
    "description": Key(read=read_text, is_text=True),
    "subjects": Key(read=read_directory, is_text=True),
    "learned": Key(read=read_list(read_pattern, unique=True), is_list=True, is_text=True),
    "disabled": Key(read=read_list(read_pattern, unique=True), is_list=True, is_text=True),
    "ignore": Key(read=read_list(read_line), is_list=True, is_text=True),
    "layout": Key(read=read_choice({layout.value for layout in Layout}), is_text=True),
}
"""The keys of `[kb.topic.<id>]`."""

REFERENCE_KEYS: Mapping[str, Key] = {
    "allow_hosts": Key(read=read_list(read_line), user_only=True, is_list=True, is_text=True),
    "allow_protocols": Key(
        read=read_list(read_choice({"file", "git", "ssh"})),
        user_only=True,
        is_list=True,
        is_text=True,
    ),
    "dir": Key(read=read_directory, user_only=True, is_text=True),
    "embedding_model": Key(read=read_line, user_only=True, is_text=True),
    "max_bytes": Key(read=read_count, user_only=True),
    "max_files": Key(read=read_count, user_only=True),
    "timeout": Key(read=read_count, user_only=True),
}
"""The keys of `[kb.references]`."""
