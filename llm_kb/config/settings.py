"""The effective configuration, and the layer that set each of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from llm_kb.subjects.topics import TopicConfig


class Layer(Enum):
    """The layers of the configuration, lowest first."""

    DEFAULT = "default"
    USER = "user"
    WORKSPACE = "workspace"
    FRAGMENT = "config fragment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The layer of a value, and the file, assignment or option that set it."""

    layer: Layer
    place: str | None = None


Value: TypeAlias = "bool | int | str | tuple[str, ...]"
"""The value of a setting; paths are absolute strings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and every origin that set or extended it, lowest layer first.

    The last origin of a scalar set its value.
    """

    value: Value
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective configuration after all layers, with the origin of each value.

    A key of a small table has the name of the table before it: `check_ignore`.
    """

    auto: bool = False
    guides: bool = False
    """Whether a request with `learn` carries the guides that apply in its directory."""
    menu: str = "topics"
    menu_budget: int = 1_200
    """The estimated tokens that a menu may take, or the description of `learn`; no key sets it."""
    max_result_chars: int = 100_000
    counts_bytes: bool = False
    """Whether that is the bytes of a whole answer: the limit of a client, which no key sets."""
    outline_over: int = 24_000
    """The characters above which `learn` answers with an outline; no key sets it."""
    search: bool | str = "auto"
    """Whether `search_knowledge` comes with `learn`; "auto" means for large topics."""
    embedding_model: str | None = None
    """The model that compares meanings in a search; None for that of the host, "" for none."""
    rewrite: str = ""
    """The model that writes a question in the words of an answer before a search; off if empty."""
    topics: tuple[TopicConfig, ...] = ()
    adjustments: tuple[TopicConfig, ...] = ()
    """Changes to topics whose subjects are not configured; their `root` is not used."""
    check_ignore: tuple[str, ...] = ()
    """The rules whose findings `llm kb check` leaves out."""
    workspace: Path | None = None
    """The directory that owns the workspace layer's file."""
    workspace_file: Path | None = None
    withheld: tuple[str, ...] = ()
    """Dotted keys of the workspace layer that count only once it is trusted."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What the layers set, by dotted key (`kb.topic.project.learned`)."""
