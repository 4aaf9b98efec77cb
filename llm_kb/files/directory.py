"""The catalog of a directory: which of its files are subjects, and what they hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from llm_kb.errors import UnreadableError
from llm_kb.files.containment import Containment, FileReader
from llm_kb.files.layouts import SKILL_FILE, FilesReader, Reader, SkillsReader
from llm_kb.files.naming import Rows
from llm_kb.files.walk import Batch, Place, Walk, describe, slugify_component
from llm_kb.subjects.ignore import RULES_FILE, IgnoreRules
from llm_kb.subjects.patterns import Pattern
from llm_kb.subjects.spelling import Disabled, compose, pick, strip_dots
from llm_kb.subjects.topics import Content, Layout, Listing, Read, Skipped, Subject, Topic, slugify

ReadFile: TypeAlias = Callable[[str, "int | None"], tuple[bytes, int, str]]


class DirectoryCatalog:
    """The subjects of a topic that is a directory of files. Implements `Catalog`.

    No file is remembered between calls, so each sees the directory as it is then.
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def list_subjects(self) -> Listing:
        """Return every subject, hidden ones included, sorted by slug."""
        gathering = self._gather()
        for batch in gathering.walk.batches():
            gathering.add(batch)
        skipped = sorted(gathering.skipped, key=lambda skipped: (skipped.path, skipped.reason))
        return Listing(subjects=gathering.rows.settle(), skipped=skipped)

    def iter_listed(self) -> Iterator[Subject]:
        """Yield the listed subjects in no order, as they are found."""
        gathering = self._gather()
        for batch in gathering.walk.batches(hidden=False):
            gathering.start_over()
            gathering.add(gathering.reader.listed(batch))
            yield from gathering.rows.settle()

    def match(self, pattern: Pattern) -> Sequence[Subject]:
        """Return the listed subjects whose slug the pattern matches, sorted."""
        gathering = self._gather()
        reader = gathering.reader
        for batch in gathering.walk.batches(reader.enters(pattern), hidden=False):
            gathering.add(reader.listed(batch))
        return gathering.rows.settle(pattern.matches)

    def find(self, reference: str) -> Sequence[Subject]:
        """Return the subjects a slug, with or without extension and dots, names.

        Only the directories it may lie in are looked into.
        """
        reference = compose(reference)
        components = strip_dots(reference).split("/")
        if "\0" in reference or not all(components):
            return ()
        gathering = self._gather()
        stem = components[-1].partition(".")[0]
        for place in find_places(gathering.walk, self._containment, components[:-1]):
            # What a file is called may depend on all whose names start alike, so they are kept.
            gathering.scan(place, lambda name: stem in name or not name.isascii())
        bare = "/".join(components)
        slugs = {bare, slugify(bare)}
        if self._topic.layout is Layout.SKILLS:
            for place in find_places(gathering.walk, self._containment, components):
                gathering.scan(place, SKILL_FILE.__eq__)
            slugs.add("/".join(components[:-1]))
        return pick(reference, gathering.rows.settle(slugs.__contains__))

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject, at most its first `limit` bytes."""
        return self._read(self._containment.read_file, subject, limit)

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """Give what reads subjects fast that lie in one directory and are read in a row."""
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
            raise UnreadableError(path, "it leads to a file that is no subject")
        return Content(data, size)

    @cached_property
    def _containment(self) -> Containment:
        return Containment(self._topic.root, self._topic.allow_links_to)

    @cached_property
    def _disabled(self) -> Disabled | None:
        entries = self._topic.disabled
        return Disabled(entries, ignores_case=self._containment.ignores_case) if entries else None

    def _gather(self) -> Gathering:
        return Gathering(self._topic, self._containment, self._disabled)

    def _excludes(self, path: str) -> bool:
        """Tell whether a file may not be read under another name either."""
        if Path(path).is_absolute():
            return False  # outside, where links are allowed to lead
        is_disabled = self._disabled is not None and self._disabled.covers(slugify(path), [path])
        return is_disabled or self._gather().walk.ignores_any(path)


_MOST_RULES = 1 << 16
"""Bytes of a `.kbignore` that are read."""

NO_SKILL = f"it lies in no directory with a {SKILL_FILE}"


class Gathering:
    """The rows of the subjects seen so far, and in `skipped` what is none, and why."""

    def __init__(self, topic: Topic, containment: Containment, disabled: Disabled | None) -> None:
        self.skipped: list[Skipped] = []
        self.walk = Walk(containment, _read_ignore(topic, containment, self.skipped), self.skipped)
        self.reader = _open_reader(topic, containment)
        self._disabled = disabled
        self.start_over()

    def start_over(self) -> None:
        """Forget the rows, and nothing else."""
        self.rows = Rows(self.reader.is_hidden)

    def scan(self, place: Place, keep: Callable[[str], bool]) -> None:
        """Add the subjects of one directory whose file names are to be kept."""
        entries = self.walk.list_place(place)
        if entries is not None:
            files, links = (list(filter(keep, names)) for names in (entries.files, entries.links))
            narrowed = entries._replace(files=files, links=links, directories=[], others=[])
            self.add(self.walk.sort_entries(place, narrowed)[0])

    def add(self, batch: Batch) -> None:
        """Add the subjects of one directory that are not disabled."""
        place, names, bare = batch.place, batch.names, batch.bare
        slugs = self.reader.slugs(batch)
        in_place = self.reader.has_slugs_in_place
        if self._disabled is not None or not in_place:
            self._report_strays(place, names, slugs)
            kept = [
                (slug, name)
                for slug, name in zip(slugs, names, strict=True)
                if slug and not self._is_disabled(batch, slug, name)
            ]
            slugs, names, bare = [slug for slug, _ in kept], [name for _, name in kept], 0
        files = names
        if not in_place or place.path != place.slug:
            files = [place.path + name for name in names]
        if batch.real is not None:
            self.rows.real_paths.update((place.path + n, batch.real + n) for n in names)
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

    def _is_disabled(self, batch: Batch, slug: str, name: str) -> bool:
        if self._disabled is None:
            return False
        paths = [batch.place.path + name]
        if batch.real is not None:
            paths.append(batch.real + name)
        if name in batch.targets:
            paths.append(batch.targets[name])
        owner = self.reader.owner(batch)
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
        data, _, _ = containment.read_file(RULES_FILE, _MOST_RULES)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        skipped.append(Skipped(path=RULES_FILE, reason=describe(error)))
        return ()
    return data.decode("utf-8-sig", errors="replace").splitlines()


def find_places(walk: Walk, containment: Containment, components: Sequence[str]) -> list[Place]:
    """Return the directories whose slug these components make, whatever their dots."""
    places = [Place()]
    for component in components:
        found: dict[str, Place] = {}
        for place in places:
            for name in _find_names(walk, containment, place, component):
                child = _enter(walk, containment, place, name)
                if child is None:
                    continue
                try:
                    real = os.path.realpath(containment.prefix + child.path, strict=True)
                except OSError:
                    continue  # it has gone, or has become something else, since it was looked at
                # A directory that links reach in many ways is looked into once.
                found.setdefault(real, child)
        places = list(found.values())
    return places


def _enter(walk: Walk, containment: Containment, place: Place, name: str) -> Place | None:
    full = containment.prefix + place.path + name
    if os.path.islink(full):
        real = walk.resolve_link(place, name)
        return walk.enter(place, name, linked=True) if real and os.path.isdir(real) else None
    if os.path.isdir(full) and walk.admits(place, name, "/"):
        return walk.enter(place, name)
    return None


def _find_names(
    walk: Walk, containment: Containment, place: Place, component: str
) -> Sequence[str]:
    """Return the names in a directory that become this component of a slug.

    They are guessed where that is safe, as the directory may hold a million others.
    """
    if component.isascii():
        guesses = [dots + component for dots in ("", ".", "..")]
        found = [name for name in guesses if _exists(containment, place, name)]
        if found and not any(_ignores_case(containment, place, name) for name in found):
            return found
    # Another case, other dots, or another Unicode form: only a look at all names can tell.
    entries = walk.list_place(place)
    names = [*entries.directories, *entries.links] if entries else []
    return [name for name in names if slugify_component(name) == component]


def _exists(containment: Containment, place: Place, name: str) -> bool:
    return look_at(containment, place, name) is not None


def _ignores_case(containment: Containment, place: Place, name: str) -> bool:
    """Tell whether the disk finds this entry under another case as well."""
    other = name.swapcase()
    if other == name:
        return False
    here, there = (look_at(containment, place, each) for each in (name, other))
    return here is not None and there is not None and os.path.samestat(here, there)


def look_at(containment: Containment, place: Place, name: str) -> os.stat_result | None:
    """Return what an entry of a directory is, links not followed; None without one."""
    try:
        return os.lstat(containment.prefix + place.path + name)
    except OSError:
        return None
