"""The records used everywhere: topics, subjects and their catalogs."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple, NewType, Protocol, TypeAlias

from llm_kb.texts.formats import find_extension

Slug = NewType("Slug", str)


BUILT_IN_TOPICS = frozenset({"llm-kb", "repo-knowledge"})
"""The ids of the topics that need no configuration: shipped, and captured in a repository."""

REFERENCE_PREFIX = "topic-"
"""The prefix of the ids of reference topics."""


class Layout(Enum):
    """How a topic's directory is read: one subject for each file, or for each SKILL.md."""

    FILES = "files"
    SKILLS = "skills"


def slugify(path: str) -> Slug:
    """Return the slug of a file's path below its topic.

    `path` is `/`-separated. The last extension and the leading dots of every
    component come off, and the rest is brought to Unicode NFC.
    """
    parents, slash, name = path.rpartition("/")
    name = name.lstrip(".")
    slug = name.rpartition(".")[0] or name
    if slash:
        slug = "/".join([*(parent.lstrip(".") for parent in parents.split("/")), slug])
    return Slug(slug if slug.isascii() else unicodedata.normalize("NFC", slug))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One configured topic; `root` is absolute and without links, patterns are as written."""

    id: str
    root: Path
    title: str | None = None
    introduction: str | None = None
    description: str | None = None
    enable: bool = True
    learned: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    """Patterns of the files that it takes; without any it takes all."""
    ignore: tuple[str, ...] = ()
    layout: Layout = Layout.FILES
    allow_links_to: tuple[Path, ...] = ()
    """Directories outside `root` that links may lead to, without links; set by the user layer."""
    in_menu: bool = True
    """Whether it is in the menu; other topics are read by name."""
    generated: bool = False
    """Whether a search includes generated files: lock files, minified scripts, tables."""
    tags: tuple[str, ...] = ()
    """Words that narrow a search to topics."""

    @property
    def label(self) -> str:
        """The title, or the id without a title."""
        return self.title or self.id


# A named tuple: a topic may have 100,000 subjects, and a dataclass takes three times as long.
class Subject(NamedTuple):
    """One subject of a topic.

    `name` is its name in listings: its slug, or more of its path if two files
    share a slug. `path` is its `/`-separated path below the topic's root,
    as on disk.
    """

    slug: Slug
    name: str
    path: str
    hidden: bool = False
    """Whether only those who know its slug may see it."""
    real_path: str | None = None
    """Its path in the topic with links to directories resolved, if that is different."""

    @property
    def identity(self) -> str:
        """The path that two subjects share if they are the same file, reached through a link."""
        return self.real_path or self.path

    @property
    def extension(self) -> str:
        """The last extension without its dot, in lower case; empty without one."""
        return find_extension(self.path)


class Content(NamedTuple):
    """The first bytes of a subject, and its size."""

    data: bytes
    size: int
    origin: str | None = None
    """A line about the origin of fetched content, shown above it."""
    note: str = ""
    """How it was decoded, if it is not UTF-8 on disk; shown above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A path of a topic that is not a subject, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The subjects of a topic that are not disabled, sorted by slug, and what was left out."""

    subjects: Sequence[Subject]
    skipped: Sequence[Skipped] = ()

    @property
    def listed(self) -> Sequence[Subject]:
        """The subjects that are not hidden."""
        return [s for s in self.subjects if not s.hidden]


class Catalog(Protocol):
    """The content of one topic, whatever its kind: what there is to read, and its text.

    A directory of files, a fetched topic, and the entries captured in a repository implement
    it. Each call sees the content as it is then. Disabled subjects are never returned.
    """

    def list(self, reference: str | None = None) -> Listing:
        """Return every subject, hidden ones included.

        With a reference, only those that it names: by slug, with or without extension and dots.
        Less is read then, and it may name what no list has, as a path does for captured entries.
        """

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject, at most its first `limit` bytes.

        Raises UnreadableError if it is missing, denied, not a regular file, or now outside
        the topic.
        """


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
class References:
    """`[kb.references]`: limits of fetching, and the topics in menus."""

    menu: bool | tuple[str, ...] = ()
    """The ids of the topics in menus; True for all, False for none."""

    ask_first: bool = False
    """Whether a model's request needs approval before a new host is contacted."""
    allow_hosts: tuple[str, ...] = ()
    allow_protocols: tuple[str, ...] = ()
    dir: Path | None = None
    embedding_model: str | None = None
    max_bytes: int = 500_000_000
    max_files: int = 50_000
    timeout: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """`[kb.capture]`: the use of knowledge captured in a repository."""

    offer: bool = False
    """Whether `emit_knowledge` comes with `learn`."""
    branch_only: bool = False
    """Whether entries of commits that are not on this branch are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective configuration after all layers, with the origin of each value."""

    auto: bool = False
    menu: str = "topics"
    menu_budget: int = 1200
    max_result_chars: int = 100_000
    counts_bytes: bool = False
    """Whether that is the bytes of a whole answer: the limit of a client, which no key sets."""
    outline_over: int = 24_000
    search: bool | str = "auto"
    """Whether `search_knowledge` comes with `learn`; "auto" means for large topics."""
    topics: tuple[Topic, ...] = ()
    adjustments: tuple[Topic, ...] = ()
    """Changes to topics whose subjects are not configured; their `root` is not used."""
    references: References = References()
    capture: Capture = Capture()
    check_ignore: tuple[str, ...] = ()
    """The rules whose findings `llm kb check` leaves out."""
    workspace: Path | None = None
    """The directory that owns the workspace layer's file."""
    workspace_file: Path | None = None
    withheld: tuple[str, ...] = ()
    """Dotted keys of the workspace layer that count only once it is trusted."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What the layers set, by dotted key (`kb.topic.project.learned`)."""
