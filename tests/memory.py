"""A topic of literals, for tests of modules that use topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.files.topic_documents import TopicDocuments, stamp_content
from llm_kb.knowledge_base.kinds import Topic
from llm_kb.subjects.topics import Content, Listing, Subject, TopicConfig, slugify


class MemoryTopic:
    """Subjects by path; a value of None cannot be read. `reads` records what was."""

    config = TopicConfig(id="t", root=Path("/nowhere"))

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.files = dict(files)
        self.reads: list[tuple[str, int | None]] = []

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether a menu has it."""
        return self.config.is_offered

    def documents(self) -> TopicDocuments:
        """Return the texts as a search reads them."""
        return TopicDocuments(self)

    def list_watched(self) -> tuple[Listing, None]:
        """Return all of them; a change is seen by reading them."""
        return self.list(), None

    def stamp(self, path: str) -> tuple[int, int, int]:
        """Return what changes with a text."""
        return stamp_content((self.files[path] or "").encode())

    def find_file(self, path: str) -> None:
        """Return no file."""

    def find_size(self, subject: Subject) -> int:
        """Return the size of a text."""
        return self.read(subject, 0).size

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


def make_topics(*pairs: tuple[TopicConfig, Topic]) -> dict[str, Topic]:
    """Return topics with their settings, as a knowledge base takes them."""
    for config, topic in pairs:
        topic.config = config
    return {config.id: topic for config, topic in pairs}


def make_topic(id: str, **fields: object) -> TopicConfig:
    """Return a topic that has no directory."""
    return TopicConfig(id=id, root=Path("/nowhere"), **fields)  # type: ignore[arg-type]  # test data


def _subject(path: str) -> Subject:
    hidden = any(part.startswith(".") for part in path.split("/"))
    slug = slugify(path)
    return Subject(slug=slug, name=slug, path=path, hidden=hidden)
