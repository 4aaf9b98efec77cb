"""The catalog of a directory: which of its files are subjects, and what they hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from llm_kb.errors import UnreadableError
from llm_kb.files.containment import Containment, FileReader
from llm_kb.files.conversion import MAX_BYTES, ConversionError, Conversions
from llm_kb.files.layouts import SKILL_FILE, FilesReader, Reader, SkillsReader
from llm_kb.files.naming import Rows
from llm_kb.files.places import find_places
from llm_kb.files.walk import FoundFiles, Place, Walk, describe
from llm_kb.subjects.ignore import RULES_FILE, IgnoreRules
from llm_kb.subjects.names import DOCUMENTS, INSTALL, can_convert, find_extension
from llm_kb.subjects.patterns import Pattern
from llm_kb.subjects.spelling import Disabled, compose, pick, strip_dots
from llm_kb.subjects.topics import Content, Layout, Listing, Read, Skipped, Subject, Topic, slugify

FileId: TypeAlias = "tuple[int, int]"
"""The device and inode that all hard links of a file share."""

ReadFile: TypeAlias = Callable[[str, "int | None"], "tuple[bytes, int, str]"]


START_BYTES = 4096
"""Of a document that was not converted yet, no more than this is not worth it."""

MOST_LOOKED_INTO = 1_000
"""Directories that are looked into for hidden subjects."""


class DirectoryCatalog:
    """The subjects of a topic that is a directory of files. Implements `Catalog`.

    No file is remembered between calls, so each sees the directory as it is then.
    """

    def __init__(self, topic: Topic, conversions: Conversions | None = None) -> None:
        self._topic = topic
        self._conversions = conversions

    def list_subjects(self) -> Listing:
        """Return every subject, hidden ones included, sorted by slug."""
        scan = self._scan()
        for found in scan.walk.find_files():
            scan.add(found)
        subjects: Sequence[Subject] = scan.rows.settle()
        if scan.disabled_links:
            subjects = [s for s in subjects if self._find_link(s) not in scan.disabled_links]
        skipped = sorted(scan.skipped, key=lambda skipped: (skipped.path, skipped.reason))
        return Listing(subjects=subjects, skipped=skipped)

    def iter_listed(self) -> Iterator[Subject]:
        """Yield the listed subjects in no order, as they are found."""
        scan = self._scan()
        for found in scan.walk.find_files(hidden=False):
            scan.start_over()
            scan.add(scan.reader.listed(found))
            yield from self._drop_disabled_links(scan.rows.settle())

    def has_hidden(self) -> bool:
        """Tell whether there are hidden subjects; also true where that takes long to know."""
        scan = self._scan()
        for number, found in enumerate(scan.walk.find_files()):
            scan.start_over()
            scan.add(found)
            if scan.rows.hidden or number >= MOST_LOOKED_INTO:
                return True
        return False

    def match(self, pattern: Pattern) -> Sequence[Subject]:
        """Return the listed subjects whose slug the pattern matches, sorted."""
        scan = self._scan()
        for found in scan.walk.find_files(scan.reader.enters(pattern), hidden=False):
            scan.add(scan.reader.listed(found))
        return self._drop_disabled_links(scan.rows.settle(pattern.matches))

    def match_each(self, patterns: Sequence[Pattern]) -> Sequence[Sequence[Subject]]:
        """Return what `match` returns for each pattern, in one walk if the topic has no links.

        What a file is called that links lead to depends on the directories that are entered.
        """
        if len(patterns) < 2:
            return [self.match(pattern) for pattern in patterns]
        scan = self._scan()
        for found in scan.walk.find_files(hidden=False):
            scan.add(scan.reader.listed(found))
        if scan.walk.has_linked_directories:
            return [self.match(pattern) for pattern in patterns]
        subjects = self._drop_disabled_links(scan.rows.settle())
        return [[s for s in subjects if pattern.matches(s.slug)] for pattern in patterns]

    def find(self, reference: str) -> Sequence[Subject]:
        """Return the subjects that a slug names, with or without extension and dots.

        Only the directories it may lie in are looked into.
        """
        reference = compose(reference)
        components = strip_dots(reference).split("/")
        if "\0" in reference or not all(components):
            return ()
        scan = self._scan()
        stem = components[-1].partition(".")[0]
        for place in find_places(scan.walk, self._containment, components[:-1]):
            # What a file is called may depend on all whose names start alike, so they are kept.
            scan.add_place(place, lambda name: stem in name or not name.isascii())
        bare = "/".join(components)
        slugs = {bare, slugify(bare)}
        if self._topic.layout is Layout.SKILLS:
            for place in find_places(scan.walk, self._containment, components):
                scan.add_place(place, SKILL_FILE.__eq__)
            slugs.add("/".join(components[:-1]))
        named = pick(reference, scan.rows.settle(slugs.__contains__))
        return self._drop_disabled_links(named)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject, at most its first `limit` bytes."""
        return self._read(self._containment.read_file, subject, limit)

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """Give a function that reads subjects, fastest when they lie in one directory."""
        files = FileReader(self._containment)
        try:
            yield partial(self._read, files.read)
        finally:
            files.close()

    def _read(self, read_file: ReadFile, subject: Subject, limit: int | None = None) -> Content:
        path = subject.path
        try:
            data, size, real = read_file(path, limit)
        except OSError as error:
            raise UnreadableError(path, describe(error)) from error
        if real != path and self._excludes(real):
            raise UnreadableError(path, "it leads to a file that is not a subject")
        if find_extension(path) in DOCUMENTS and size:
            return self._convert(read_file, path, limit)
        return Content(data, size)

    def _convert(self, read_file: ReadFile, path: str, limit: int | None) -> Content:
        """Return the start of a document as Markdown; nothing if little is asked of an unread one.

        So a menu, which looks at the beginning of every subject, starts no conversion.
        """
        data, size, _ = read_file(path, MAX_BYTES)
        if not can_convert():
            raise UnreadableError(path, f"it is a document; to read it: {INSTALL}")
        if size > len(data):
            raise UnreadableError(path, f"it is larger than {MAX_BYTES // 1_000_000} MB")
        kept = self._conversions or Conversions(None)
        read = kept.find if limit is not None and limit <= START_BYTES else kept.convert
        try:
            text = read(find_extension(path), data) or b""
        except ConversionError as error:
            raise UnreadableError(path, error.reason) from error
        return Content(text[:limit], len(text))

    @cached_property
    def _containment(self) -> Containment:
        return Containment(self._topic.root, self._topic.allow_links_to)

    @cached_property
    def _disabled(self) -> Disabled | None:
        entries = self._topic.disabled
        return Disabled(entries, ignores_case=self._containment.ignores_case) if entries else None

    def _scan(self) -> SubjectScan:
        return SubjectScan(self._topic, self._containment, self._disabled)

    def _drop_disabled_links(self, subjects: Sequence[Subject]) -> Sequence[Subject]:
        """Return the subjects without hard links to disabled files."""
        if self._disabled is None:
            return subjects
        links = {subject: link for subject in subjects if (link := self._find_link(subject))}
        if not links:
            return subjects
        # Only a look at the whole topic finds the other names of a file.
        scan = self._scan()
        for found in scan.walk.find_files():
            scan.add(found)
        return [s for s in subjects if links.get(s) not in scan.disabled_links]

    def _find_link(self, subject: Subject) -> FileId | None:
        return self._containment.find_hard_link(subject.path)

    def _excludes(self, path: str) -> bool:
        """Tell whether a file may not be read under another name either."""
        if Path(path).is_absolute():
            return False  # outside, where links are allowed to lead
        is_disabled = self._disabled is not None and self._disabled.covers(slugify(path), [path])
        return is_disabled or self._scan().walk.ignores_any(path)


_MAX_RULES_BYTES = 1 << 16
"""Bytes of a `.kbignore` that are read."""

NO_SKILL = f"it lies in no directory with a {SKILL_FILE}"


class SubjectScan:
    """One scan of a topic: the rows of its subjects, and what was skipped and why."""

    def __init__(self, topic: Topic, containment: Containment, disabled: Disabled | None) -> None:
        self.skipped: list[Skipped] = []
        self.walk = Walk(containment, _read_ignore(topic, containment, self.skipped), self.skipped)
        self.reader = _open_reader(topic, containment)
        self.disabled_links: set[FileId | None] = set()
        """The disabled files that have other names, by device and inode."""
        self._containment = containment
        self._disabled = disabled
        self.start_over()

    def start_over(self) -> None:
        """Forget the rows, and nothing else."""
        self.rows = Rows(self.reader.is_hidden)

    def add_place(self, place: Place, keep: Callable[[str], bool]) -> None:
        """Add the subjects of one directory whose file names are to be kept."""
        entries = self.walk.list_place(place)
        if entries is not None:
            files, links = (list(filter(keep, names)) for names in (entries.files, entries.links))
            narrowed = entries._replace(files=files, links=links, directories=[], others=[])
            self.add(self.walk.sort_entries(place, narrowed)[0])

    def add(self, found: FoundFiles) -> None:
        """Add the subjects of one directory that are not disabled."""
        place, names, bare = found.place, found.names, found.bare
        slugs = self.reader.slugs(found)
        in_place = self.reader.has_slugs_in_place
        if self._disabled is not None or not in_place:
            self._report_strays(place, names, slugs)
            kept = list(self._drop_disabled(found, zip(slugs, names, strict=True)))
            slugs, names, bare = [slug for slug, _ in kept], [name for _, name in kept], 0
        files = names
        if not in_place or place.path != place.slug:
            files = [place.path + name for name in names]
        if found.real is not None:
            self.rows.real_paths.update((place.path + n, found.real + n) for n in names)
        self.rows.add(slugs, files)
        # A bare name hides nothing by itself.
        start = bare if in_place and not place.is_hidden else 0
        if start < len(names):
            self.rows.hidden.update(
                slug
                for slug, name in zip(slugs[start:], names[start:], strict=True)
                if self.reader.is_hidden(place.path + name)
            )

    def _report_strays(self, place: Place, names: Sequence[str], slugs: Sequence[str]) -> None:
        self.skipped += [
            Skipped(path=place.path + name, reason=NO_SKILL)
            for name, slug in zip(names, slugs, strict=True)
            if not slug
        ]

    def _drop_disabled(
        self, found: FoundFiles, rows: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[str, str]]:
        """Yield the slugs and names that are not disabled; note the hard links of the others."""
        for slug, name in rows:
            if slug and not self._is_disabled(found, slug, name):
                yield slug, name
            elif slug:
                link = self._containment.find_hard_link(found.place.path + name)
                if link is not None:
                    self.disabled_links.add(link)

    def _is_disabled(self, found: FoundFiles, slug: str, name: str) -> bool:
        if self._disabled is None:
            return False
        paths = [found.place.path + name]
        if found.real is not None:
            paths.append(found.real + name)
        if name in found.targets:
            paths.append(found.targets[name])
        owner = self.reader.owner(found)
        return self._disabled.covers(slug, paths) or (
            owner is not None and self._disabled.covers(owner, ())
        )


def _open_reader(topic: Topic, containment: Containment) -> Reader:
    if topic.layout is Layout.SKILLS:
        return SkillsReader(lambda path: os.path.isfile(containment.prefix + path + SKILL_FILE))
    return FilesReader()


def _read_ignore(topic: Topic, containment: Containment, skipped: list[Skipped]) -> IgnoreRules:
    # Later rules win: what the configuration ignores, no file in the topic brings back.
    groups = ((RULES_FILE, _read_rules(containment, skipped)), ("ignore", topic.ignore))
    rules = IgnoreRules(groups)
    skipped += rules.problems
    return rules


def _read_rules(containment: Containment, skipped: list[Skipped]) -> Sequence[str]:
    try:
        data, _, _ = containment.read_file(RULES_FILE, _MAX_RULES_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        skipped.append(Skipped(path=RULES_FILE, reason=describe(error)))
        return ()
    return data.decode("utf-8-sig", errors="replace").splitlines()
