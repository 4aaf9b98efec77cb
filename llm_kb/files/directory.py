"""The catalog of a directory: which of its files are subjects, their names, and their content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import UnreadableError
from llm_kb.files.containment import Containment
from llm_kb.files.conversion import ConversionError, Conversions
from llm_kb.files.converters import MAX_BYTES
from llm_kb.files.layouts import SKILL_FILE, FilesLayout, SkillsLayout
from llm_kb.files.walk import FoundFiles, Places, Walk, describe, slugify_component
from llm_kb.subjects.ignore import RULES_FILE, IgnoreRules
from llm_kb.subjects.names import DOCUMENTS, INSTALL, can_convert, find_extension
from llm_kb.subjects.selection import Disabled, compose, pick, strip_dots, strip_extension
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

START_BYTES = 4096
"""A read of at most so many bytes does not start the conversion of a document."""

NO_SKILL = f"it is not in a directory with a {SKILL_FILE}"

_MAX_RULES_BYTES = 1 << 16
"""Bytes of a `.kbignore` that are read."""


class _Way(NamedTuple):
    """The way to the files that a reference can name, through the directories above them."""

    path: str
    """The reference without dots."""
    components: Sequence[str]
    stem: str
    """The beginning of the last component, up to its first dot."""

    @classmethod
    def to(cls, reference: str) -> _Way | None:
        """Return the way to a reference; None if it cannot name a file."""
        components = strip_dots(compose(reference)).split("/")
        if "\0" in reference or not all(components):
            return None
        return cls("/".join(components), components, components[-1].partition(".")[0])

    def enters(self, slug: str) -> bool:
        """Tell whether the directory with a slug is on the way."""
        return f"{self.path}/".startswith(f"{slug}/")

    def keeps(self, name: str) -> bool:
        """Tell whether a file or directory of this name is on the way, or may share its slug."""
        if self.stem in name or name == SKILL_FILE or not name.isascii():
            return True
        return slugify_component(name) in self.components


class DirectoryCatalog:
    """The subjects of a topic that is a directory of files. Implements `Catalog`.

    No file is remembered between calls, so each sees the directory as it is then.
    """

    def __init__(self, topic: Topic, conversions: Conversions | None = None) -> None:
        self._topic = topic
        self._conversions = conversions
        is_skills = topic.layout is Layout.SKILLS
        self._layout = SkillsLayout(topic.root) if is_skills else FilesLayout()

    def list(self, reference: str | None = None) -> Listing:
        """Return every subject, or those that a reference names.

        For a reference only the directories on its way are read.
        """
        way = None if reference is None else _Way.to(reference)
        if reference is not None and way is None:
            return Listing(subjects=())
        return self._list(self._open_walk(), way, reference)

    def list_watched(self) -> tuple[Listing, Places]:
        """Return every subject, and the places by which a change of them is seen."""
        walk = self._open_walk()
        return self._list(walk), walk.places

    def hold(self, note: str) -> bool:
        """Tell whether the places of a note are as they were."""
        return Places(self._containment.prefix).hold(note)

    def _list(self, walk: Walk, way: _Way | None = None, reference: str | None = None) -> Listing:
        subjects: list[Subject] = []
        for found in walk.find_files(way):
            owner = self._layout.find_owner(found.place)
            for name in found.names:
                subject = self._make_subject(found, name, owner)
                if not subject.slug:
                    walk.skip(subject.path, NO_SKILL)
                elif not self._is_disabled(subject, found.targets.get(name), owner):
                    subjects.append(subject)
        named = _name_subjects(subjects)
        kept = named if reference is None else pick(compose(reference), named)
        skipped = sorted(walk.skipped, key=lambda each: (each.path, each.reason))
        return Listing(subjects=kept, skipped=skipped)

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

    def _open_walk(self) -> Walk:
        lines, skipped = self._read_rules()
        # Later rules win, so a `.kbignore` cannot re-include what the configuration ignores.
        rules = IgnoreRules(((RULES_FILE, lines), ("ignore", self._topic.ignore)))
        return Walk(self._containment, rules, [*skipped, *rules.problems])

    def _read_rules(self) -> tuple[Sequence[str], Sequence[Skipped]]:
        """Return the lines of the topic's `.kbignore`, or the reason why it cannot be read."""
        try:
            data, _, _ = self._containment.read_file(RULES_FILE, _MAX_RULES_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return (), ()
        except OSError as error:
            return (), [Skipped(path=RULES_FILE, reason=describe(error))]
        return data.decode("utf-8-sig", errors="replace").splitlines(), ()

    def _make_subject(self, found: FoundFiles, name: str, owner: str | None) -> Subject:
        """Return the subject of a file, named by its slug, which is empty if it is none."""
        path = found.place.path + name
        slug = self._layout.slug(found.place, name, owner)
        visibility = Visibility.HIDDEN if self._layout.is_hidden(path) else Visibility.LISTED
        real = None if found.real is None else found.real + name
        return Subject(Slug(slug), slug, path, visibility, real)

    def _is_disabled(self, subject: Subject, target: str | None, owner: str | None) -> bool:
        """Tell whether a subject is disabled: by its slug, one of its paths, or its owner."""
        if self._disabled is None:
            return False
        paths = filter(None, (subject.path, subject.real_path, target))
        return self._disabled.covers(subject.slug, paths) or bool(
            owner and self._disabled.covers(owner, ())
        )

    def _excludes(self, path: str) -> bool:
        """Tell whether a path is disabled or ignored, so that no link may lead to it."""
        if Path(path).is_absolute():
            return False  # outside, where links are allowed to lead
        is_disabled = self._disabled is not None and self._disabled.covers(slugify(path), [path])
        return is_disabled or self._open_walk().ignores_any(path)


# The names of subjects: their slugs, or more of the path where files share a slug


def _name_subjects(subjects: Sequence[Subject]) -> Sequence[Subject]:
    """Return subjects sorted by slug, each with a unique name."""
    if len({subject.slug for subject in subjects}) < len(subjects):
        names = _choose_names(subjects)
        subjects = [subject._replace(name=names[subject.path]) for subject in subjects]
    return sorted(subjects)


def _choose_names(subjects: Iterable[Subject]) -> dict[str, str]:
    """Return a unique name for each subject, keyed by path."""
    by_slug: dict[str, list[Subject]] = {}
    for subject in subjects:
        by_slug.setdefault(subject.slug, []).append(subject)
    names: dict[str, str] = {}
    for slug, sharing in by_slug.items():
        names.update(
            _propose_names(slug, sharing) if len(sharing) > 1 else [(sharing[0].path, slug)]
        )
    while clashing := _find_clashes(names):
        for path in clashing:
            written = compose(path)
            names[path] = written if names[path] != written else path
    return names


def _find_clashes(names: dict[str, str]) -> list[str]:
    """Return the paths whose name is not unique and can be made longer."""
    times = Counter(names.values())
    return [path for path, name in names.items() if times[name] > 1 and name != path]


def _propose_names(slug: str, sharing: Sequence[Subject]) -> Iterator[tuple[str, str]]:
    """Yield path and name of files that share a slug; a single visible file keeps it."""
    visible = [s.path for s in sharing if s.visibility is Visibility.LISTED]
    for path in visible:
        yield path, slug if len(visible) == 1 else compose(path)
    hidden = [s.path for s in sharing if s.visibility is Visibility.HIDDEN]
    dotted = {path: strip_extension(compose(path)) for path in hidden}
    times = Counter((slug, *dotted.values()))
    for path, name in dotted.items():
        yield path, name if times[name] == 1 else compose(path)
