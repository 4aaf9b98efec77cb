"""A topic that is a directory: which of its files are subjects, their names and their content."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.files.containment import Containment
from llm_kb.files.conversion import ConversionError, Conversions
from llm_kb.files.git_ignored import GitIgnored, Ignored
from llm_kb.files.layouts import SKILL_FILE, find_skill
from llm_kb.files.topic_documents import TopicDocuments, find_place
from llm_kb.files.walk import FoundFiles, Stamps, Walk, Way, describe
from llm_kb.subjects.ignore import IgnoreRules, Include
from llm_kb.subjects.topics import (
    Content,
    Disabled,
    Layout,
    Listing,
    Slug,
    Subject,
    TopicConfig,
    compose,
    pick,
    slugify,
    strip_extension,
)
from llm_kb.texts import formats
from llm_kb.texts.decoding import MOST_BYTES, START, TOO_LARGE, to_utf_8

NO_SKILL = f"it is not in a directory with a {SKILL_FILE}"


class DirectoryTopic:
    """A topic that is a directory of files. Implements `Topic`.

    No file is remembered between calls, so each sees the directory as it is then. `index` returns
    the path of the index that it shares with others, None for one in memory; `workspace` is the
    directory to which paths in it are relative; `git` says what git ignores, and may be shared with
    others. After each listing the sizes of documents of
    `sized_bytes` in all are looked up.
    """

    is_ours = False
    """Whether we wrote its directory, so that it does not matter what git ignores."""

    def __init__(  # noqa: PLR0913 - each is one thing to know of the topic
        self,
        config: TopicConfig,
        conversions: Callable[[], Conversions] = lambda: Conversions(None),
        *,
        index: Callable[[], Path | None] = lambda: None,
        workspace: Path | None = None,
        git: GitIgnored | None = None,
        sized_bytes: int = 30_000_000,
    ) -> None:
        self.config = config
        self._sizable = self._sized_bytes = sized_bytes
        self._conversions = conversions
        self._index = index
        self._workspace = workspace
        self._git = None if self.is_ours else git or GitIgnored()
        self._is_skills = config.layout is Layout.SKILLS

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether a menu has it: always, if it may."""
        return self.config.is_offered

    def documents(self) -> TopicDocuments:
        """Return its subjects as a search reads them."""
        place = find_place(self.config.root, self._workspace)
        ignored = self._find_ignored().make_state(f"{self.config.root}/")
        return TopicDocuments(self, index=self._index(), place=place, rules=ignored)

    def find_file(self, path: str) -> Path | None:
        """Return the file at a path, which its owner may edit."""
        return Path(f"{self.config.root}/{path}")

    def list(self, reference: str | None = None) -> Listing:
        """Return every subject, or those that a reference names.

        For a reference only the directories on its way are read.
        """
        if reference is None:
            return self._list(self._open_walk())
        way = Way(reference)
        if not way.is_possible:
            return Listing(subjects=())
        listing = self._list(self._open_walk(), way)
        return replace(listing, subjects=pick(compose(reference), listing.subjects))

    def list_watched(self) -> tuple[Listing, Stamps | None]:
        """Return every subject, and the stamps by which a change of them is seen, if any."""
        walk = self._open_walk()
        return self._list(walk), walk.find_stamps()

    def list_disabled(self) -> Sequence[Subject]:
        """Return the subjects that `disabled` excludes."""
        if not self.config.disabled:
            return ()
        kept = {subject.path for subject in self.list().subjects}
        every = DirectoryTopic(replace(self.config, disabled=()), git=self._git).list().subjects
        return [subject for subject in every if subject.path not in kept]

    def list_idle(self) -> Sequence[str]:
        """Return the entries of `disabled` that disable nothing."""
        if self._disabled is None:
            return ()
        self.list()
        return self._disabled.list_idle()

    def stamp(self, path: str) -> tuple[int, int, int]:
        """Return the size of a file and the times of its last changes. Raises OSError."""
        # Not `Path.stat`: making a Path takes longer than the call.
        status = os.stat(f"{self.config.root}{os.sep}{path}")  # noqa: PTH116
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def find_size(self, subject: Subject) -> int:
        """Return the bytes of a subject as a model reads it. Raises OSError and UnreadableError.

        Those of a document are its file's as long as it is not converted. How long its text is, is
        kept; only so many bytes of documents are read to find a text that was kept without it.
        """
        size = self.stamp(subject.path)[0]
        kind = formats.find_converted(subject.path)
        if not kind or kind.is_unread:
            return size
        if not kind.program:
            return self.read(subject, 0).size
        if length := self._conversions().find_length(kind, self._name_version(subject.path)):
            return length
        self._sizable -= size
        return (self._sizable >= 0 and self.read(subject, 0).size) or size

    def _name_version(self, path: str) -> str:
        """Return the place of a file with its stamp."""
        return f"{self.config.root}{os.sep}{path} {self.stamp(path)}"

    def _list(self, walk: Walk, way: Way | None = None) -> Listing:
        self._sizable = self._sized_bytes
        subjects: list[Subject] = []
        for found in walk.find_files(way):
            place, skill = found.place, None
            if self._is_skills:
                skill = find_skill(self.config.root, place.path, place.slug)
                if skill is None:
                    for name in found.targets:
                        walk.skip(place.path + name, NO_SKILL)
                    continue
            for name, target in found.targets.items():
                subject = self._make_subject(found, name)
                if not self._is_disabled(subject, target, skill):
                    subjects.append(subject)
        skipped = sorted(walk.skipped, key=lambda each: (each.path, each.reason))
        return Listing(
            subjects=_name_subjects(subjects),
            skipped=skipped,
            absent=walk.absent,
            notice=self._find_ignored().problem,
        )

    def _make_subject(self, found: FoundFiles, name: str) -> Subject:
        place = found.place
        is_main = self._is_skills and name == SKILL_FILE
        slug = Slug(place.slug[:-1] if is_main and place.slug else place.slug + slugify(name))
        is_dotted = place.is_hidden or name[0] == "."
        is_hidden = is_dotted and not self._include.names(place.path + name)
        hidden = is_hidden or (self._is_skills and not is_main)
        real = None if found.real is None else found.real + name
        return Subject(slug, slug, place.path + name, hidden, real)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject, at most its first `limit` bytes; a document or notebook as Markdown."""
        path, converter = subject.path, formats.find_converted(subject.path)
        try:
            most = MOST_BYTES if converter else limit
            data, size, real = self._containment.read_file(path, most)
        except OSError as error:
            raise UnreadableError(path, describe(error)) from error
        if real != path and self.excludes(real):
            raise UnreadableError(path, "it leads to a file that is not a subject")
        if formats.is_pointer(data):
            raise UnreadableError(path, formats.POINTER)
        if not converter:
            return _as_utf_8(data, size)
        if not size:
            return Content(data, size)
        if converter.is_unread:
            raise UnreadableError(path, f"it is a document; to read it: {converter.needs}")
        if size > len(data):
            raise UnreadableError(path, f"it is {TOO_LARGE}")
        text = self._convert(path, converter, data, limit)
        if converter.program:
            with suppress(OSError):  # gone since it was read
                self._conversions().keep_length(converter, self._name_version(path), len(text))
        return Content(text[:limit], len(text))

    def _convert(
        self, path: str, converter: formats.Format, data: bytes, limit: int | None
    ) -> bytes:
        """Return the Markdown of a document or a notebook."""
        # A menu reads the start of every subject, which must not start a conversion.
        is_start = limit is not None and limit <= START
        conversions = self._conversions()
        read = conversions.find if is_start else conversions.convert
        try:
            return read(converter, data) or b""
        except ConversionError as error:
            raise UnreadableError(path, str(error)) from error

    @cached_property
    def _containment(self) -> Containment:
        return Containment(self.config.root, self.config.allow_links_to)

    @cached_property
    def _ignore(self) -> IgnoreRules:
        return IgnoreRules(self.config.ignore)

    @cached_property
    def _include(self) -> Include:
        return Include(self.config.include)

    @cached_property
    def _disabled(self) -> Disabled | None:
        entries = self.config.disabled
        return Disabled(entries, ignores_case=self._containment.ignores_case) if entries else None

    def _open_walk(self) -> Walk:
        problems = [*self._ignore.problems, *self._include.problems]
        return Walk(self._containment, self._ignore, self._include, self._find_ignored(), problems)

    def _find_ignored(self) -> Ignored:
        return self._git.find(self.config.root) if self._git else Ignored()

    def _is_disabled(self, subject: Subject, target: str | None, owner: str | None) -> bool:
        """Tell whether a subject is disabled: by its slug, one of its paths, or its owner."""
        if self._disabled is None:
            return False
        paths = filter(None, (subject.path, subject.real_path, target))
        return self._disabled.covers(subject.slug, paths) or bool(
            owner and self._disabled.covers(owner, ())
        )

    def excludes(self, path: str) -> bool:
        """Tell whether a path is disabled or ignored, so that no link may lead to it."""
        if Path(path).is_absolute():
            return False  # outside, where links are allowed to lead
        is_disabled = self._disabled is not None and self._disabled.covers(slugify(path), [path])
        return is_disabled or self._open_walk().leaves_out(path)


def _as_utf_8(data: bytes, size: int) -> Content:
    """Return a file's first bytes as UTF-8, with the size that the file has in that."""
    text, note = to_utf_8(data, whole=len(data) >= size)
    if not note:
        return Content(text, size)
    size = len(text) if len(data) >= size else size * len(text) // len(data)
    return Content(text, size, note=note)


def _name_subjects(subjects: Sequence[Subject]) -> Sequence[Subject]:
    """Return subjects sorted by slug, each with a unique name.

    It is the slug, or more of the path where several would have the same name.
    """
    if len({subject.slug for subject in subjects}) < len(subjects):
        names: dict[str, str] = {subject.path: subject.slug for subject in subjects}
        while clashing := _find_clashes(subjects, names):
            names.update((path, _lengthen(path, names[path])) for path in clashing)
        subjects = [subject._replace(name=names[subject.path]) for subject in subjects]
    return sorted(subjects)


def _find_clashes(subjects: Iterable[Subject], names: Mapping[str, str]) -> list[str]:
    """Return the paths whose name is not unique and can be made longer.

    If only one of those with a name is visible, it keeps the name.
    """
    sharing: dict[str, list[Subject]] = {}
    for subject in subjects:
        sharing.setdefault(names[subject.path], []).append(subject)
    clashing = []
    for name, group in sharing.items():
        visible = [each for each in group if not each.hidden]
        others = [each for each in group if [each] != visible]
        clashing += [each.path for each in others if len(group) > 1 and each.path != name]
    return clashing


def _lengthen(path: str, name: str) -> str:
    """Return the name of a file that is longer than a name: with dots, then as its path."""
    written = compose(path)
    names = [*dict.fromkeys((strip_extension(written), written, path))]
    return names[names.index(name) + 1] if name in names else names[0]
