"""A topic that was fetched: its files, each read with a line on its origin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path

from llm_kb.config.settings import Config
from llm_kb.errors import KbError
from llm_kb.files.containment import resolve_links
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.topic_documents import TopicDocuments
from llm_kb.references import KIND, TOOLBOX
from llm_kb.references.errors import ObsoleteTopicError
from llm_kb.references.library import Library, open_library
from llm_kb.references.topic import topic_directory, topic_file
from llm_kb.references.topic.topic_directory import FileRecord
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time
from llm_kb.subjects.topics import Content, Subject, TopicConfig


def find(config: Config, cwd: Path | None, user_dir: Path) -> Iterator[FetchedTopic]:
    """Yield the fetched topics, sorted by id.

    An unreadable one is left out; `llm kb references list` gives the reason. Outside a workspace,
    menus have all of them.
    """
    library = open_library(config, user_dir, cwd)
    ids = library.ids()
    here = ids if config.workspace is None else library.fetched_here()
    for id_ in ids:
        with suppress(KbError):
            yield FetchedTopic(library.read(id_), library, is_here=id_ in here)


class FetchedTopic(DirectoryTopic):
    """A fetched topic. Implements `Topic`.

    Its files are not their reader's to edit, so none is named. `is_here` tells whether it was
    fetched in this project, or there is no project.
    """

    is_ours = True

    def __init__(self, described: TopicFile, library: Library, *, is_here: bool = False) -> None:
        directory = library.directory(described.id)
        super().__init__(
            _make_config(described, directory),
            lambda: library.conversions,
            index=lambda: library.index,
        )
        self.described = described
        self._library = library
        self._is_here = is_here

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether a menu has it: if it is of here, asked for, or its tools are offered."""
        return self.config.is_offered and (self._is_here or asked or TOOLBOX in tools)

    def documents(self) -> TopicDocuments:
        """Return its files as a search reads them. Raises ObsoleteTopicError."""
        if self.described.status is Status.OBSOLETE:
            raise ObsoleteTopicError(self.config.id)
        return self.index_documents()

    def index_documents(self) -> TopicDocuments:
        """Return its files, hidden ones included, as they are indexed."""
        sources = self.described.sources
        return TopicDocuments(
            self,
            index=self._index(),
            hidden=True,
            trust=self.described.trust_score,
            role_of=topic_directory.find_roles(self.config.root, sources),
            rules=repr([source.role for source in sources]),
        )

    def find_file(self, path: str) -> None:
        """Return no file, since what was fetched is not to be edited."""

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject with its origin. Raises UnreadableError."""
        record = self._records.get(subject.path)
        origin = render_origin(self.described, record, self._library.clock())
        if not self._records:
            origin = "no record of its fetch"
        return super().read(subject, limit)._replace(origin=origin)

    @cached_property
    def _records(self) -> Mapping[str, FileRecord]:
        try:
            return topic_directory.read_provenance(self.config.root).files
        except KbError:  # `verify` reports it; the file can still be read
            return {}


def _make_config(described: TopicFile, directory: Path) -> TopicConfig:
    """Return the topic that a `topic.md` describes."""
    return TopicConfig(
        id=described.id,
        kind=KIND,
        root=resolve_links(directory),
        title=described.title,
        introduction=topic_file.make_snippet(described.body) or None,
        description=topic_file.without_heading(described.title, described.body) or None,
        is_offered=described.status is not Status.OBSOLETE,
        tags=described.tags,
        # Anchored, so that only our files at the topic's root are ignored, not fetched ones.
        ignore=tuple(f"/{name}" for name in sorted(topic_directory.RESERVED)),
    )


def render_origin(topic: TopicFile, record: FileRecord | None, now: datetime) -> str:
    """Return the line above a fetched file: `source @ commit, fetched when, STALE`, or OBSOLETE."""
    if record is None:
        return f"not fetched: added to {topic.id} by hand"
    at = f" @ {record.commit}" if record.commit else ""
    fetched = format_time(topic.fetched_at) if topic.fetched_at else record.fetched_at
    line = f"{record.url}{at}, fetched {fetched}"
    if topic.status is Status.OBSOLETE:
        return f"{line}, OBSOLETE"
    if not topic_file.is_stale(topic, now):
        return line
    since = topic_file.stale_since(topic, now)
    return f"{line}, STALE since {format_time(since)}" if since else f"{line}, STALE"
