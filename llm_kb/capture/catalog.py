"""The entries captured in a repository as the topic `repo-knowledge`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path

from llm_kb.capture.entries import KINDS, KnowledgeStore
from llm_kb.capture.git.notes import KNOWLEDGE_REF
from llm_kb.capture.git.repository import find_repository, has_ref
from llm_kb.capture.rendering import SLUGS, render_kind
from llm_kb.capture.store import load_store
from llm_kb.errors import KbError, UnreadableError
from llm_kb.subjects.patterns import Pattern
from llm_kb.subjects.topics import Catalog, Content, Listing, Read, Skipped, Subject, Topic, slugify

TOPIC_ID = "repo-knowledge"


def repo_knowledge(directory: Path) -> tuple[Topic, Catalog] | None:
    """Return the topic of what was captured in the repository of a directory.

    None where there is no repository, or nothing was ever captured in it: that is
    found out without starting a process, and the store itself is read when needed.
    """
    repository = find_repository(directory, bare=False)
    if repository is None or not has_ref(repository, KNOWLEDGE_REF):
        return None
    topic = Topic(
        id=TOPIC_ID,
        root=repository.root,
        title="Repository conventions",
        introduction=(
            "Conventions, module boundaries and anti-patterns recorded in this repository."
        ),
        description=(
            "What was learned while working on this repository and holds beyond one commit. "
            "Each entry names the files it holds for and the commit it comes from."
        ),
    )
    return topic, KnowledgeCatalog(repository.root)


class KnowledgeCatalog:
    """One subject for each kind that has entries, rendered from the store when first asked.

    A store that cannot be read makes a catalog without subjects, which reports why.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def list_subjects(self) -> Listing:
        """Return the subjects there are, and what kept the store from being read."""
        subjects = tuple(sorted(self.iter_listed(), key=lambda subject: subject.slug))
        skipped = (
            () if self._problem is None else (Skipped(path=KNOWLEDGE_REF, reason=self._problem),)
        )
        return Listing(subjects=subjects, skipped=skipped)

    def iter_listed(self) -> Iterator[Subject]:
        """Yield the subjects; none is ever hidden."""
        for path in self._texts:
            slug = slugify(path)
            yield Subject(slug=slug, name=slug, path=path)

    def match(self, pattern: Pattern) -> Sequence[Subject]:
        """Return the subjects whose slug the pattern matches, sorted."""
        return self.match_each([pattern])[0]

    def match_each(self, patterns: Sequence[Pattern]) -> Sequence[Sequence[Subject]]:
        """Return what `match` returns for each pattern."""
        subjects = self.list_subjects().subjects
        return [[s for s in subjects if pattern.matches(s.slug)] for pattern in patterns]

    def find(self, reference: str) -> Sequence[Subject]:
        """Return the subject of a slug, with or without its extension."""
        return [s for s in self.iter_listed() if reference in {s.slug, s.path}]

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Return the list of one kind; raise UnreadableError when it has no entry."""
        text = self._texts.get(subject.path)
        if text is None:
            raise UnreadableError(subject.path, "no such entries were captured")
        data = text.encode("utf-8", "replace")
        return Content(data=data if limit is None else data[:limit], size=len(data))

    def reading(self) -> AbstractContextManager[Read]:
        """Give `read`: what it reads is in memory."""
        return nullcontext(self.read)

    @cached_property
    def _texts(self) -> dict[str, str]:
        store = self._loaded[0]
        grouped = ((kind, store.of_kind(kind)) for kind in KINDS)
        return {f"{SLUGS[kind]}.md": render_kind(kind, found) for kind, found in grouped if found}

    @property
    def _problem(self) -> str | None:
        return self._loaded[1]

    @cached_property
    def _loaded(self) -> tuple[KnowledgeStore, str | None]:
        try:
            return load_store(self._directory), None
        except KbError as error:
            # A request must not fail for what it may never ask about.
            return KnowledgeStore(), str(error)
