"""A catalog of literals, for tests of modules that use catalogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.knowledge_base.topics import TopicsById
from llm_kb.subjects.patterns import Pattern
from llm_kb.subjects.topics import (
    Catalog,
    Content,
    Listing,
    Subject,
    Topic,
    Visibility,
    slugify,
)


class MemoryCatalog:
    """Subjects by path; a value of None cannot be read. `reads` records what was."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.files = dict(files)
        self.reads: list[tuple[str, int | None]] = []

    def list_subjects(self) -> Listing:
        """Return all of them."""
        return Listing(subjects=[_subject(path) for path in sorted(self.files, key=slugify)])

    def iter_listed(self) -> Iterator[Subject]:
        """Yield those that are not hidden."""
        return (s for s in self.list_subjects().subjects if s.visibility is Visibility.LISTED)

    def has_hidden(self) -> bool:
        """Tell whether any path has a component that starts with a dot."""
        return any("/." in f"/{path}" for path in self.files)

    def match_each(self, patterns: Sequence[Pattern]) -> Sequence[Sequence[Subject]]:
        """Return those of each pattern."""
        return [[s for s in self.iter_listed() if p.matches(s.slug)] for p in patterns]

    def find(self, reference: str) -> Sequence[Subject]:
        """Return those of this slug or path."""
        return [s for s in self.list_subjects().subjects if reference in (s.slug, s.path)]

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Return the text, and record that it was read."""
        self.reads.append((subject.path, limit))
        text = self.files[subject.path]
        if text is None:
            raise UnreadableError(subject.path, "permission denied")
        data = text.encode()
        return Content(data=data if limit is None else data[:limit], size=len(data))


def make_catalogs(*pairs: tuple[Topic, Catalog]) -> TopicsById[tuple[Topic, Catalog]]:
    """Return topics and their catalogs as a knowledge base takes them."""

    def make(pair: tuple[Topic, Catalog]) -> Callable[[], tuple[Topic, Catalog]]:
        return lambda: pair

    return TopicsById({pair[0].id: make(pair) for pair in pairs})


def make_topic(id: str, **fields: object) -> Topic:
    """Return a topic that has no directory."""
    return Topic(id=id, root=Path("/nowhere"), **fields)  # type: ignore[arg-type]  # test data


def _subject(path: str) -> Subject:
    hidden = any(part.startswith(".") for part in path.split("/"))
    slug = slugify(path)
    visibility = Visibility.HIDDEN if hidden else Visibility.LISTED
    return Subject(slug=slug, name=slug, path=path, visibility=visibility)
