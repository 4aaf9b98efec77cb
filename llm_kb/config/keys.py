"""The keys of a configuration, and the readers of their values.

`layers` reads a document by these tables; no other module lists the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from llm_kb.config.workspace import find_foreign_owner
from llm_kb.errors import PatternError, UnresolvableError
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import (
    CONTROL,
    BadValueError,
    describe,
    read_choice,
    read_count,
    read_flag,
    read_line,
    read_text,
)
from llm_kb.subjects.ignore import is_private
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Layout, Origin

T = TypeVar("T")

Value: TypeAlias = "bool | int | str | tuple[str, ...]"
"""The value of a setting; paths are absolute strings."""

TOPIC_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
TOPIC_ID_RULE = "letters, digits, '.', '_' and '-', starting with a letter or a digit"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSource:
    """The origin of a layer, which decides the directories that it may name."""

    origin: Origin
    base: Path = Path("/")
    """The directory that relative paths start from."""
    home: Path | None = None
    """The directory that `~` stands for; None if unknown."""
    bounds: Path | None = None
    """The workspace, if the layer is one of its files; None for the user's own files."""
    any_owner: bool = False
    """Whether files of the workspace may belong to another user, since it is trusted."""

    @property
    def owned_below(self) -> Path | None:
        """The directory whose files must belong to the user; None if they need not."""
        return None if self.any_owner else self.bounds

    @property
    def path(self) -> Path:
        """The file of the layer."""
        return Path(self.origin.place or "")


Reader: TypeAlias = Callable[[object, LayerSource], Value]
ItemReader: TypeAlias = Callable[[object, LayerSource], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key with a single value."""

    read: Reader
    user_only: bool = False
    """Whether only the user layer may set it."""
    is_text: bool = False
    """Whether its value, or each value of its list, is a string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListKey(Key):
    """A key with a list of strings, each read by `read`."""

    read: ItemReader
    is_text: bool = True


def read_pattern(value: object, _source: LayerSource) -> str:
    """Read a pattern over slugs."""
    text = read_line(value)
    try:
        return parse_pattern(text).text
    except PatternError as error:
        raise BadValueError(describe(value), f"a pattern over slugs ({error.reason})") from error


def read_directory(value: object, source: LayerSource) -> str:
    """Read a directory and return its absolute path with links resolved.

    A file of the workspace may only name directories inside the workspace.
    """
    place = _read_place(value, source)
    try:
        path = resolve_links(place)
        bounds = source.bounds and resolve_links(source.bounds)
    except UnresolvableError as error:
        raise BadValueError(describe(value), f"a directory ({error.reason})") from error
    if bounds and not path.is_relative_to(bounds):
        raise BadValueError(
            f"{describe(value)}, which leads to {str(path)!r}",
            f"a directory inside the workspace {str(source.bounds)!r}",
        )
    if bounds and any(map(is_private, path.relative_to(bounds).parts)):
        raise BadValueError(
            f"{describe(value)}, which leads to {str(path)!r}",
            "a directory whose files can be subjects (those of version control, and those with"
            " passwords, are never subjects)",
        )
    owner = find_foreign_owner(path) if source.owned_below else None
    if owner is not None:
        raise BadValueError(
            f"{describe(value)}, which belongs to another user (uid {owner})",
            "a directory of your own; make it yours with chown, or configure it with --user",
        )
    return str(path)


def read_load_path(value: object, source: LayerSource) -> str:
    """Read a directory of config fragments; a relative one belongs to the workspace."""
    place = _read_place(value, source)
    text = str(value)
    return str(place) if text.startswith("~") else text


def _read_place(value: object, source: LayerSource) -> Path:
    if not isinstance(value, str) or not value or CONTROL.search(value) or "\n" in value:
        raise BadValueError(describe(value), "a directory, as a string of one line")
    if source.bounds is not None:
        _require_relative(value)
    if value != "~" and not value.startswith("~/"):
        return source.base / value
    if source.home is None:
        raise BadValueError(describe(value), "a path without '~': there is no home directory")
    return source.home / value[2:]


def _require_relative(value: str) -> None:
    parts = re.split(r"[/\\]", value)
    if value.startswith("~") or parts[0] == "" or ".." in parts or re.match(r"[A-Za-z]:", value):
        raise BadValueError(
            describe(value),
            "a relative path inside the workspace, without '~' or '..' "
            "(other directories belong in the user layer's kb.toml)",
        )


def _plain(read: Callable[[object], T]) -> Callable[[object, LayerSource], T]:
    """Return a reader of values that do not depend on the source of a layer."""
    return lambda value, _source: read(value)


def _read_search(value: object) -> bool | str:
    if isinstance(value, bool) or value == "auto":
        return value
    raise BadValueError(describe(value), '"auto", true or false')


def _read_references(value: object) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if isinstance(value, list) and all(isinstance(id_, str) for id_ in value):
        for id_ in value:
            if not TOPIC_ID.fullmatch(id_):
                raise BadValueError(f"the topic id {describe(id_)}", TOPIC_ID_RULE)
        return tuple(value)
    raise BadValueError(describe(value), "true, false, or a list of topic ids")


def _choice(choices: Collection[str]) -> ItemReader:
    return _plain(lambda value: read_choice(value, choices))


_FLAG = Key(read=_plain(read_flag))
_COUNT = Key(read=_plain(read_count))
_LIMIT = Key(read=_plain(lambda value: read_count(value, least=1)), user_only=True)
_TEXT = Key(read=_plain(read_text), is_text=True)
_LINE = Key(read=_plain(read_line), is_text=True)
_LINES = ListKey(read=_plain(read_line))

KB_KEYS: Mapping[str, Key] = {
    "auto": _FLAG,
    "menu": Key(read=_choice({"topics", "subjects"}), is_text=True),
    "menu_budget": _COUNT,
    "max_result_chars": _COUNT,
    "outline_over": _COUNT,
    "search": Key(read=_plain(_read_search)),
    "config_load_paths": ListKey(read=read_load_path),
    "allow_links_to": ListKey(read=read_directory, user_only=True),
}
"""The keys of `[kb]`, except for tables."""

TOPIC_KEYS: Mapping[str, Key] = {
    "enable": _FLAG,
    "title": _LINE,
    "introduction": _TEXT,
    "description": _TEXT,
    "subjects": Key(read=read_directory, is_text=True),
    "learned": ListKey(read=read_pattern),
    "disabled": ListKey(read=read_pattern),
    "ignore": _LINES,
    "layout": Key(read=_choice({layout.value for layout in Layout}), is_text=True),
    "generated": _FLAG,
}
"""The keys of `[kb.topic.<id>]`."""

CHECK_KEYS: Mapping[str, Key] = {"ignore": _LINES}
"""The keys of `[kb.check]`. `llm kb check` reports unknown rules."""

REFERENCE_KEYS: Mapping[str, Key] = {
    "menu": Key(read=_plain(_read_references)),
    "ask_first": Key(read=_plain(read_flag), user_only=True),
    "allow_hosts": ListKey(read=_plain(read_line), user_only=True),
    "allow_protocols": ListKey(read=_choice({"file", "git", "ssh"}), user_only=True),
    "dir": Key(read=read_directory, user_only=True, is_text=True),
    "embedding_model": Key(read=_plain(read_line), user_only=True, is_text=True),
    "max_bytes": _LIMIT,
    "max_files": _LIMIT,
    "timeout": _LIMIT,
}
"""The keys of `[kb.references]`."""

CAPTURE_KEYS: Mapping[str, Key] = {
    "offer": _FLAG,
    "branch_only": _FLAG,
}
"""The keys of `[kb.capture]`."""

TABLES: Mapping[str, Mapping[str, Key]] = {
    "kb": KB_KEYS,
    "kb.references": REFERENCE_KEYS,
    "kb.capture": CAPTURE_KEYS,
    "kb.check": CHECK_KEYS,
}
"""The keys of each table, except for topics."""
