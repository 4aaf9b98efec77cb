"""The records used everywhere: topics as they are configured, and their subjects."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple, NewType

from llm_kb.texts.formats import find_extension
from llm_kb.texts.safe import UNUSABLE

FORBIDDEN_ON_WINDOWS = re.compile(r'[<>:"|?*\\]|[. ](?=/|$)')
"""Characters that Windows refuses in a name, and those it drops from a name's end."""

WINDOWS_DEVICE = re.compile(r"(?i)(?:^|/)(?:con|prn|aux|nul|com\d|lpt\d)(?=[./]|$)")
"""Names that Windows takes for a device, whatever the extension."""

MAX_NAME_BYTES = 250
"""The longest portable name; file systems allow 255 bytes."""


def find_flaw(name: str) -> str | None:
    """Return the reason why a name cannot be in a topic; None if it can."""
    if UNUSABLE.search(name):
        return "its name contains control, invisible or undecodable characters"
    if "\\" in name:
        return "its name contains a backslash, which no pattern may contain"
    return None if name.strip(".") else "its name consists of dots only"


def is_portable(name: str) -> bool:
    """Tell whether a file or directory of this name can be written on every system."""
    return not (
        not name
        or find_flaw(name)
        or FORBIDDEN_ON_WINDOWS.search(name)
        or WINDOWS_DEVICE.search(name)
        or len(name.encode()) > MAX_NAME_BYTES
    )


Slug = NewType("Slug", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is known of all topics of a kind; by default of those that are configured."""

    ids: str = ""
    """The id of its only topic, or the beginning of their ids, which ends in `-`; empty for any."""
    is_users: bool = False
    """Whether only the user's own layers may configure its topics."""
    has_words: bool = False
    """Whether words of their titles name its topics."""
    has_links: bool = False
    """Whether the links between its subjects are names of them."""
    advice: str = ""
    """What to do if there is no topic of it; empty for nothing."""
    yields: bool = False
    """Whether its subjects are the first that a menu counts, when it cannot list all."""

    def covers(self, id_: str) -> bool:
        """Tell whether an id is one of its own."""
        return id_.startswith(self.ids) if self.ids.endswith("-") else id_ == self.ids


CONFIGURED = Kind()


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
    slug = strip_suffix(name.lstrip("."))
    if slash:
        slug = "/".join([*(parent.lstrip(".") for parent in parents.split("/")), slug])
    return Slug(slug if slug.isascii() else unicodedata.normalize("NFC", slug))


def strip_suffix(name: str) -> str:
    """Return a name without leading dots without its last extension.

    That of `page.rst.inc` stays: `page.rst` is another file, which includes it.
    """
    stem = name.rpartition(".")[0]
    return name if not stem or name.endswith(".rst.inc") else stem


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
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
    is_offered: bool = True
    """Whether a menu may have it; other topics are read by name."""
    generated: bool = False
    """Whether a search includes generated files: lock files, minified scripts, tables."""
    tags: tuple[str, ...] = ()
    """Words that narrow a search to topics."""
    kind: Kind = CONFIGURED

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
    absent: Mapping[str, int] = field(default_factory=dict)
    """The number of files and directories that are not part of the topic, by reason."""
    notice: str = ""
    """Why something may be part of it that should not be."""

    @property
    def notes(self) -> Sequence[str]:
        """What is not part of the topic, in a line each."""
        absent = sorted(self.absent.items())
        counts = [f"{number:,} left out: {reason}" for reason, number in absent]
        return [*counts, *filter(None, [self.notice])]

    @property
    def listed(self) -> Sequence[Subject]:
        """The subjects that are not hidden."""
        return [s for s in self.subjects if not s.hidden]
