"""The records used everywhere, topics and their subjects, and selections of these by patterns.

A selection takes exact references first, then globs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple, NewType, Protocol

from llm_kb import errors
from llm_kb.errors import KbError, PatternError
from llm_kb.subjects.patterns import Pattern, compile_any, parse_pattern
from llm_kb.texts.formats import find_extension, is_picture
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


# Selections

MAX_PATTERNS = 50
"""The most patterns of one call of `learn`; a glob names any number of subjects."""

MAX_CHARACTERS = 10_000
"""The most characters of all patterns of one call together."""

NEAR_SLUGS = 5
"""The most near slugs that an error names."""

MOST_HASHES = 8
"""The most `#` in a reference that are tried as the end of its slug."""

NEAR_PATTERNS = 3
"""The most patterns of one call that get suggestions."""


def require_few(patterns: Sequence[str]) -> None:
    """Raise KbError for more patterns than one call may have."""
    characters = sum(map(len, patterns))
    if len(patterns) > MAX_PATTERNS or characters > MAX_CHARACTERS:
        raise KbError(
            f"{len(patterns):,} subjects of {characters:,} characters in one call; at most "
            f"{MAX_PATTERNS} of {MAX_CHARACTERS:,} are allowed, and a pattern such as "
            "'name/**' names any number of them"
        )


class Listed(Protocol):
    """What subjects are selected from: a topic."""

    def list(self, reference: str | None = None) -> Listing:
        """Return every subject, hidden ones included; with a reference, only those it names.

        A reference is a slug, with or without extension and dots. Disabled subjects are never
        returned.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The subjects that patterns match, and the patterns that match none.

    Subjects are in the order of the patterns, sorted by slug within each; a subject that
    several patterns match is at its first place.
    """

    subjects: tuple[Subject, ...] = ()
    exact: frozenset[str] = frozenset()
    """The identities of the subjects with an exact reference."""
    missing: tuple[str, ...] = ()
    anchors: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """The anchors in the references to a subject, keyed by its identity; None for a reference
    without an anchor. Subjects without any anchor are left out."""

    @property
    def is_single(self) -> bool:
        """Whether one exact reference named exactly one subject, or one part of it."""
        is_one = len(self.subjects) == 1 and len(self.exact) == 1 and not self.missing
        return is_one and all(len(asked) == 1 for asked in self.anchors.values())

    def asked_of(self, subject: Subject) -> tuple[str | None, ...]:
        """Return the anchors asked of a subject; None stands for the subject itself."""
        return self.anchors.get(subject.identity, (None,))

    def names_of(self, subject: Subject) -> list[str]:
        """Return the names of what is asked of a subject: its own name, or those of parts."""
        asked = self.asked_of(subject)
        return [subject.name if each is None else f"{subject.name}#{each}" for each in asked]

    @property
    def names(self) -> list[str]:
        """The names of all subjects and parts."""
        return [name for subject in self.subjects for name in self.names_of(subject)]


def select(topic: Listed, patterns: Iterable[str]) -> Selection:
    """Return the subjects of a topic that patterns match; several globs take one walk.

    A pattern that equals a subject's slug is an exact reference, even if it is also a glob,
    and the only way to a hidden subject and to a picture. `slug#anchor` is an exact reference
    to a part of a subject, unless a subject has that slug. Raises PatternError for an invalid
    pattern, before anything is looked up.
    """
    parsed = {text: parse_pattern(text) for text in patterns}
    listed: Sequence[Subject] | None = None
    chosen: dict[str, Subject] = {}
    asked: dict[str, dict[str | None, None]] = {}
    exact: set[str] = set()
    missing = []
    for text, pattern in parsed.items():
        found, anchor = find_exact(topic, text)
        if not found and pattern.literal and (plain := _read_reference(text)) not in {text, ""}:
            found, anchor = find_exact(topic, plain)
        exact.update(subject.identity for subject in found)
        if not found and pattern.literal is None:
            listed = topic.list().listed if listed is None else listed
            found = [s for s in listed if pattern.matches(s.slug) and not is_picture(s.path)]
        if not found:
            missing.append(text)
        for subject in found:
            chosen.setdefault(subject.identity, subject)
            asked.setdefault(subject.identity, {})[anchor] = None
    return Selection(
        subjects=tuple(chosen.values()),
        exact=frozenset(exact),
        missing=tuple(missing),
        anchors={id_: tuple(each) for id_, each in asked.items() if [*each] != [None]},
    )


def _read_reference(text: str) -> str:
    """Return a reference written as by other tools, or as a line of a listing, in our form."""
    name = text.strip("` \t\n").lstrip("-@` ").removeprefix("./")
    name = re.split(r": | \(~", name, maxsplit=1)[0]
    lines = re.fullmatch(r"(.+):(\d{1,9})(?:-(\d{1,9}))?", name)
    return f"{lines[1]}#L{lines[2]}-L{lines[3] or lines[2]}" if lines else name


def find_exact(topic: Listed, text: str) -> tuple[Sequence[Subject], str | None]:
    """Return the subjects of an exact reference, and the anchor after its `#`.

    A slug may contain a `#` itself, so the last one that ends a slug counts.
    """
    if found := topic.list(text).subjects:
        return found, None
    places = [place for place, character in enumerate(text) if character == "#"]
    for place in reversed(places[-MOST_HASHES:]):
        if place and (found := topic.list(text[:place]).subjects):
            return found, text[place + 1 :]
    return (), None


def find_near(pattern: str, topic: Listed) -> Sequence[str]:
    """Return up to five listed slugs that look like a pattern, the likest first.

    A glob that does match comes first if a pattern lacks a `**` or has a wrong extension.
    Hidden and disabled subjects are never named, so that a guess reveals nothing.
    """
    if len(pattern) > errors.LONGEST_NAME:
        return ()
    listed = topic.list().listed[: errors.MOST_CANDIDATES]
    names = [subject.name for subject in listed]
    matched = [subject.name for subject in listed if not is_picture(subject.path)]
    return (*_widen(pattern, matched), *errors.find_similar(pattern, names, most=NEAR_SLUGS))


def _widen(pattern: str, names: Sequence[str]) -> list[str]:
    """Return a glob near a pattern that matches a name: below, deeper, or without extension."""
    stem = pattern.removesuffix(PurePosixPath(pattern).suffix)
    wider = [f"{pattern}/**", f"**/{pattern}", stem, f"**/{stem}"]
    try:
        is_glob = parse_pattern(pattern).literal is None
        globs = [parse_pattern(text) for text in (wider if is_glob else wider[:1])]
    except PatternError:
        return []
    return list(islice((glob.text for glob in globs if any(map(glob.matches, names))), 1))


def keep_tagged(tags_of_each: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[int]:
    """Return the indices of the topics that have a wanted tag, or all if no tag is wanted.

    Raises KbError if no topic has one.
    """
    folded = {tag.casefold() for tag in wanted}
    kept = [
        number
        for number, tags in enumerate(tags_of_each)
        if not folded or not folded.isdisjoint(map(str.casefold, tags))
    ]
    if wanted and not kept:
        known = sorted({tag for tags in tags_of_each for tag in tags})
        raise KbError(
            f"no topic here has the tag {' or '.join(map(errors.quote, wanted[:3]))};"
            f" tags: {errors.join_names(known) or 'none'}"
        )
    return kept


def compose(path: str) -> str:
    """Return a path in Unicode NFC, as slugs and references are."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def strip_dots(path: str) -> str:
    """Return a path without the leading dots of its components."""
    return "/".join(component.lstrip(".") for component in path.split("/"))


def strip_extension(path: str) -> str:
    """Return a path without its last extension."""
    directory, slash, name = path.rpartition("/")
    bare = name.lstrip(".")
    return directory + slash + name[: len(name) - len(bare)] + strip_suffix(bare)


def spell(path: str) -> set[str]:
    """Return every spelling of the subject at a path."""
    path = compose(path)
    return {path, strip_dots(path), strip_extension(path), slugify(path)}


def pick(reference: str, subjects: Sequence[Subject]) -> list[Subject]:
    """Return the subjects that a reference names.

    Without an extension it names all that share the slug. With one it names the
    file that has it, or else those that differ from it by dots only.
    """
    paths = {subject: compose(subject.path) for subject in subjects}
    is_exact = reference in paths.values()
    return [
        subject
        for subject, path in paths.items()
        if reference in (subject.slug, subject.name, path, *_stems(subject, path))
        or (not is_exact and reference == strip_dots(path))
    ]


def _stems(subject: Subject, path: str) -> Sequence[str]:
    """Return a path without extension, and of a SKILL.md, whose slug is shorter, the directory."""
    stem = strip_extension(path)
    return (stem, stem.rpartition("/")[0]) if stem.count("/") > subject.slug.count("/") else (stem,)


class Disabled:
    """The disabled entries of a topic; without case where its disk ignores case.

    An entry covers the slug that it equals, even if it is also a glob, and then what the glob
    matches, too. Raises PatternError for an entry that cannot be a pattern.
    """

    def __init__(self, entries: Sequence[str], *, ignores_case: bool) -> None:
        self._ignores_case = ignores_case
        self._patterns = {entry: parse_pattern(self._fold(entry)) for entry in entries}
        self._matches = compile_any([*self._patterns.values()])
        self._texts = {pattern.text for pattern in self._patterns.values()}
        self._covered: set[str] = set()

    def covers(self, slug: str, paths: Iterable[str]) -> bool:
        """Tell whether a subject is disabled; `paths` are all that lead to its file."""
        spellings = {*map(self._fold, {slug}.union(*map(spell, paths)))}
        is_covered = not self._texts.isdisjoint(spellings) or any(map(self._matches, spellings))
        self._covered |= spellings if is_covered else set()
        return is_covered

    def list_idle(self) -> list[str]:
        """Return the entries that cover nothing of what was asked about so far."""
        return [entry for entry, pattern in self._patterns.items() if not self._has_met(pattern)]

    def _has_met(self, pattern: Pattern) -> bool:
        if pattern.text in self._covered or pattern.literal is not None:
            return pattern.text in self._covered
        return any(map(pattern.matches, self._covered))

    def _fold(self, text: str) -> str:
        return text.casefold() if self._ignores_case else text
