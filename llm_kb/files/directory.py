"""The catalog of a directory: which of its files are subjects, and their content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from llm_kb.errors import UnreadableError
from llm_kb.files.containment import Containment
from llm_kb.files.conversion import MAX_BYTES, ConversionError, Conversions
from llm_kb.files.layouts import SKILL_FILE, FilesLayout, SkillsLayout
from llm_kb.files.naming import name_subjects
from llm_kb.files.walk import Enters, FoundFiles, Walk, describe, slugify_component
from llm_kb.subjects.ignore import RULES_FILE, IgnoreRules
from llm_kb.subjects.names import DOCUMENTS, INSTALL, can_convert, find_extension
from llm_kb.subjects.patterns import Pattern
from llm_kb.subjects.spelling import Disabled, compose, pick, strip_dots
from llm_kb.subjects.topics import (
    Content,
    Layout,
    Listing,
    Skipped,
    Slug,
    Subject,
    Topic,
    Visibility,
    slugify,
)

FileId: TypeAlias = "tuple[int, int]"
"""The device and inode that all hard links of a file share."""


START_BYTES = 4096
"""A read of at most so many bytes does not start the conversion of a document."""

MOST_LOOKED_INTO = 1_000
"""Directories that are searched for hidden subjects."""


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
        subjects = scan.find_all()
        skipped = sorted(scan.skipped, key=lambda skipped: (skipped.path, skipped.reason))
        return Listing(subjects=self._drop_disabled_links(subjects, scan), skipped=skipped)

    def iter_listed(self) -> Iterator[Subject]:
        """Yield the listed subjects in no order, as they are found."""
        for subjects in self._scan().find_each(hidden=False):
            yield from self._drop_disabled_links(name_subjects(subjects))

    def has_hidden(self) -> bool:
        """Tell whether there are hidden subjects; True as well if `MOST_LOOKED_INTO` show none."""
        for number, subjects in enumerate(self._scan().find_each()):
            is_found = any(subject.visibility is Visibility.HIDDEN for subject in subjects)
            if is_found or number >= MOST_LOOKED_INTO:
                return True
        return False

    def match(self, pattern: Pattern) -> Sequence[Subject]:
        """Return the listed subjects whose slug the pattern matches, sorted."""
        scan = self._scan()
        subjects = scan.find_all(scan.layout.enters(pattern), hidden=False)
        return self._drop_disabled_links([s for s in subjects if pattern.matches(s.slug)])

    def match_each(self, patterns: Sequence[Pattern]) -> Sequence[Sequence[Subject]]:
        """Return what `match` returns for each pattern, in one walk if the topic has no links.

        If links lead to directories, names depend on the directories that are entered.
        """
        scan = self._scan()
        subjects = scan.find_all(hidden=False) if len(patterns) > 1 else []
        if len(patterns) < 2 or scan.walk.has_linked_directories:
            return [self.match(pattern) for pattern in patterns]
        kept = self._drop_disabled_links(subjects)
        return [[s for s in kept if pattern.matches(s.slug)] for pattern in patterns]

    def find(self, reference: str) -> Sequence[Subject]:
        """Return the subjects that a slug names, with or without extension and dots.

        Only the directories on the way to it are read.
        """
        reference = compose(reference)
        components = strip_dots(reference).split("/")
        if "\0" in reference or not all(components):
            return ()
        bare = "/".join(components)
        stem = components[-1].partition(".")[0]

        def leads_there(name: str) -> bool:
            # A file's name may depend on others with the same stem, so these are kept too.
            is_on_the_way = name == SKILL_FILE or slugify_component(name) in components
            return stem in name or is_on_the_way or not name.isascii()

        subjects = self._scan().find_all(lambda s: f"{bare}/".startswith(f"{s}/"), keep=leads_there)
        slugs = {bare, slugify(bare)}
        if self._topic.layout is Layout.SKILLS:
            slugs.add("/".join(components[:-1]))
        named = pick(reference, [s for s in subjects if s.slug in slugs])
        return self._drop_disabled_links(named)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject, at most its first `limit` bytes."""
        path = subject.path
        try:
            data, size, real = self._containment.read_file(path, limit)
        except OSError as error:
            raise UnreadableError(path, describe(error)) from error
        if real != path and self._excludes(real):
            raise UnreadableError(path, "it leads to a file that is not a subject")
        if find_extension(path) in DOCUMENTS and size:
            return self._convert(path, limit)
        return Content(data, size)

    def _convert(self, path: str, limit: int | None) -> Content:
        """Return the start of a document as Markdown.

        A read of up to `START_BYTES` returns nothing unless the document is converted already,
        so that a menu, which reads the start of every subject, starts no conversion.
        """
        data, size, _ = self._containment.read_file(path, MAX_BYTES)
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

    def _drop_disabled_links(
        self, subjects: Sequence[Subject], scan: SubjectScan | None = None
    ) -> Sequence[Subject]:
        """Return the subjects that are not hard links to disabled files.

        `scan` is a finished scan of the whole topic, if there is one.
        """
        if self._disabled is None or (scan and not scan.disabled_links):
            return subjects
        links = {s: self._containment.find_hard_link(s.path) for s in subjects}
        if not any(links.values()):
            return subjects
        if scan is None:
            # Only a scan of the whole topic finds the other names of a file.
            scan = self._scan()
            scan.find_all()
        return [s for s in subjects if links[s] is None or links[s] not in scan.disabled_links]

    def _excludes(self, path: str) -> bool:
        """Tell whether a path is disabled or ignored, so that no link may lead to it."""
        if Path(path).is_absolute():
            return False  # outside, where links are allowed to lead
        is_disabled = self._disabled is not None and self._disabled.covers(slugify(path), [path])
        return is_disabled or self._scan().walk.ignores_any(path)


_MAX_RULES_BYTES = 1 << 16
"""Bytes of a `.kbignore` that are read."""

NO_SKILL = f"it is not in a directory with a {SKILL_FILE}"


class SubjectScan:
    """One scan of a topic: finds its subjects, and records skipped files with the reason."""

    def __init__(self, topic: Topic, containment: Containment, disabled: Disabled | None) -> None:
        self.skipped: list[Skipped] = []
        self.walk = Walk(containment, _read_ignore(topic, containment, self.skipped), self.skipped)
        is_skills = topic.layout is Layout.SKILLS
        self.layout = SkillsLayout(topic.root) if is_skills else FilesLayout()
        self.disabled_links: set[FileId] = set()
        """Device and inode of disabled files with several hard links."""
        self._containment = containment
        self._disabled = disabled

    def find_all(
        self,
        enters: Enters | None = None,
        *,
        hidden: bool = True,
        keep: Callable[[str], bool] | None = None,
    ) -> list[Subject]:
        """Return the subjects of all directories that are entered, named and sorted."""
        found = self.walk.find_files(enters, hidden=hidden, keep=keep)
        return name_subjects([s for each in found for s in self.make_subjects(each, hidden=hidden)])

    def find_each(self, *, hidden: bool = True) -> Iterator[list[Subject]]:
        """Yield the subjects of each directory, named by their slugs; hidden ones if `hidden`."""
        for found in self.walk.find_files(hidden=hidden):
            yield list(self.make_subjects(found, hidden=hidden))

    def make_subjects(self, found: FoundFiles, *, hidden: bool) -> Iterator[Subject]:
        """Yield the subjects of one directory that are not disabled; hidden ones if `hidden`."""
        owner = self.layout.find_owner(found.place)
        for name in found.names:
            path = found.place.path + name
            slug = self.layout.slug(found.place, name, owner)
            real = None if found.real is None else found.real + name
            if not slug:
                self.skipped.append(Skipped(path=path, reason=NO_SKILL))
            elif self._is_disabled(slug, (path, real, found.targets.get(name)), owner):
                if link := self._containment.find_hard_link(path):
                    self.disabled_links.add(link)
            else:
                is_hidden = self.layout.is_hidden(path)
                if hidden or not is_hidden:
                    visibility = Visibility.HIDDEN if is_hidden else Visibility.LISTED
                    yield Subject(Slug(slug), slug, path, visibility, real)

    def _is_disabled(self, slug: str, paths: Iterable[str | None], owner: str | None) -> bool:
        """Tell whether a subject is disabled: by its slug, one of its paths, or its owner."""
        return self._disabled is not None and (
            self._disabled.covers(slug, filter(None, paths))
            or (owner is not None and self._disabled.covers(owner, ()))
        )


def _read_ignore(topic: Topic, containment: Containment, skipped: list[Skipped]) -> IgnoreRules:
    # Later rules win, so a `.kbignore` cannot re-include what the configuration ignores.
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
