"""A catalog of literals, for tests of modules that use catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.subjects.topics import (
    Catalog,
    Content,
    Listing,
    Subject,
    Topic,
    slugify,
)


class MemoryCatalog:
    """Subjects by path; a value of None cannot be read. `reads` records what was."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.files = dict(files)
        self.reads: list[tuple[str, int | None]] = []

    def list(self, reference: str | None = None) -> Listing:
        """Return all of them, or those of this slug or path."""
        subjects = [_subject(path) for path in sorted(self.files, key=slugify)]
        if reference is not None:
            subjects = [s for s in subjects if reference in (s.slug, s.path)]
        return Listing(subjects=subjects)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Return the text, and record that it was read."""
        self.reads.append((subject.path, limit))
        text = self.files[subject.path]
        if text is None:
            raise UnreadableError(subject.path, "permission denied")
        data = text.encode()
        return Content(data=data if limit is None else data[:limit], size=len(data))


def make_catalogs(*pairs: tuple[Topic, Catalog]) -> dict[str, tuple[Topic, Catalog]]:
    """Return topics and their catalogs as a knowledge base takes them."""
    return {topic.id: (topic, catalog) for topic, catalog in pairs}


def make_topic(id: str, **fields: object) -> Topic:
    """Return a topic that has no directory."""
    return Topic(id=id, root=Path("/nowhere"), **fields)  # type: ignore[arg-type]  # test data


def _subject(path: str) -> Subject:
    hidden = any(part.startswith(".") for part in path.split("/"))
    slug = slugify(path)
    return Subject(slug=slug, name=slug, path=path, hidden=hidden)
