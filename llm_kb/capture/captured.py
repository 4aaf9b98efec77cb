"""The entries captured in a repository as the topic `repo-knowledge`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from llm_kb.capture import notes
from llm_kb.capture.annotation import read_wisdom
from llm_kb.capture.entries import KINDS, is_outside, normalize_place
from llm_kb.capture.rendering import Section, make_section, make_texts, render_place
from llm_kb.capture.store import NOT_ON_BRANCH, parse_note, read_doubts
from llm_kb.config.settings import Config
from llm_kb.errors import KbError, UnreadableError
from llm_kb.files.repository import Repository, find_repository
from llm_kb.files.topic_documents import TopicDocuments, find_index, stamp_content
from llm_kb.subjects.topics import Content, Kind, Listing, Skipped, Subject, TopicConfig, slugify
from llm_kb.texts.formats import MARKDOWN_ENDING

TOPIC_ID = "repo-knowledge"

KIND = Kind(
    ids=TOPIC_ID,
    advice="'llm kb knowledge add' adds an entry",
)
"""The kind of what was captured in a repository."""


def find(config: Config, cwd: Path | None, user_dir: Path) -> Iterator[CapturedTopic]:
    """Yield the topic of what was captured in the repository of a directory, if there is any."""
    if repository := find_knowledge(cwd) if cwd else None:
        yield CapturedTopic(
            repository,
            branch_only=config.capture_branch_only,
            index=find_index(user_dir, config.workspace),
        )


def find_knowledge(directory: Path) -> Repository | None:
    """Return the repository of a directory if something may be captured in it.

    No process is started.
    """
    repository = find_repository(directory)
    refs = (notes.KNOWLEDGE_REF, notes.ANNOTATIONS_REF)
    is_used = repository and any(notes.may_have_ref(repository, ref) for ref in refs)
    return repository if is_used else None


class CapturedTopic:
    """The entries captured in a repository, one subject for each kind. Implements `Topic`.

    They are rendered from the store on first use. A path of the repository names a subject, too:
    all entries that apply there. If the store cannot be read, there are no subjects but the
    reason. `branch_only` leaves out the entries of commits that are not on the current branch.
    """

    def __init__(
        self, repository: Repository, *, branch_only: bool = False, index: Path | None = None
    ) -> None:
        self.config = TopicConfig(
            id=TOPIC_ID,
            kind=KIND,
            root=repository.root,
            title="Repository conventions",
            introduction=(
                "Conventions, module boundaries and anti-patterns recorded in this repository. "
                "A path gives what applies there."
            ),
            description=(
                "What was learned while working on this repository and holds beyond one commit. "
                "Each entry names the files it applies to and the commit it comes from. Load a "
                "path of the repository, such as `src/` or `src/main.py`, for what applies there."
            ),
        )
        self._repository = repository
        self._branch_only = branch_only
        self._index = index
        self._problem: str | None = None

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether a menu has it: always."""
        return True

    def documents(self) -> TopicDocuments:
        """Return the entries as a search reads them."""
        return TopicDocuments(self, index=self._index)

    def find_file(self, path: str) -> None:
        """Return no file, since entries are in a git note."""

    def find_size(self, subject: Subject) -> int:
        """Return the bytes of the entries of one kind or place. Raises UnreadableError."""
        return self.read(subject, 0).size

    def stamp(self, path: str) -> tuple[int, int, int]:
        """Return a size and times that change with the entries of one kind."""
        return stamp_content(self.read(_make_subject(path.removesuffix(MARKDOWN_ENDING))).data)

    def list_watched(self) -> tuple[Listing, None]:
        """Return the subjects; a change of them is seen by reading them."""
        return self.list(), None

    def list(self, reference: str | None = None) -> Listing:
        """Return the subjects, and the reason if there are none; or what a reference names."""
        subjects = sorted(map(_make_subject, self._texts))
        if reference is not None:
            named = [s for s in subjects if reference in {s.slug, s.path}]
            return Listing(subjects=tuple(named) or self._find_place(reference))
        problem = self._problem
        skipped = () if problem is None else (Skipped(path=notes.KNOWLEDGE_REF, reason=problem),)
        return Listing(subjects=tuple(subjects), skipped=skipped)

    def _find_place(self, reference: str) -> Sequence[Subject]:
        """Return the entries that apply to a path of the repository, as one subject."""
        # Stars alone are a pattern for all subjects, not the place `*`.
        if not set(reference) - {"*", "/"}:
            return ()
        place = normalize_place(reference)
        return () if self._render_place(place) is None else (_make_subject(place),)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Return the entries of one kind or place; raise UnreadableError if there are none."""
        slug = subject.path.removesuffix(MARKDOWN_ENDING)
        text = self._texts.get(slug) or self._render_place(slug)
        if text is None:
            raise UnreadableError(subject.path, "no such entries were captured")
        data = text.encode("utf-8", "replace")
        return Content(data=data if limit is None else data[:limit], size=len(data))

    def _render_place(self, place: str) -> str | None:
        """Return the entries that apply to a path below the root; None for an unknown path."""
        if is_outside(place):
            return None
        exists = bool(self.sections) and os.path.lexists(self._repository.root / place)
        return render_place(place, self.sections, exists=exists)

    @cached_property
    def _texts(self) -> dict[str, str]:
        return make_texts(self.sections)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All entries as lists, one for each kind; empty if the store cannot be read."""
        try:
            return self._load()
        except KbError as error:
            # A request must not fail because of a topic that it may not use.
            self._problem = str(error)
            return ()

    def _load(self) -> tuple[Section, ...]:
        root = self._repository.root
        store = parse_note(notes.read_note(root, notes.KNOWLEDGE_REF))
        doubts = read_doubts(root, store.entries)
        if self._branch_only:
            elsewhere = {anchor for anchor, found in doubts.items() if NOT_ON_BRANCH in found}
            store = store.with_entries(e for e in store.entries if e.anchor not in elsewhere)
        kinds = (make_section(kind, store, doubts) for kind in KINDS)
        return (*kinds, read_wisdom(root))


def _make_subject(slug: str) -> Subject:
    return Subject(slug=slugify(slug + MARKDOWN_ENDING), name=slug, path=slug + MARKDOWN_ENDING)
