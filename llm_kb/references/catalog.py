"""The reference topics of a request, and the catalog of one topic's files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.containment import resolve_links
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import TopicDocuments
from llm_kb.references.library import Library, open_library
from llm_kb.references.topic.provenance import FILE_NAME, FileRecord
from llm_kb.references.topic.staleness import render_origin
from llm_kb.references.topic.topic_directory import TOPIC_FILE, read_provenance
from llm_kb.references.topic.topic_file import Status, TopicFile, make_snippet, without_heading
from llm_kb.subjects.topics import Catalog, Config, Content, Listing, Subject, Topic


def reference_topics(config: Config, user_dir: Path) -> Iterator[tuple[Topic, Catalog]]:
    """Yield the reference topics with their catalogs, sorted by id.

    An unreadable one is left out; `llm kb references list` gives the reason.
    """
    library = open_library(config, user_dir)
    for id_ in library.store.ids():
        with suppress(KbError):
            described = library.read(id_)
            topic = reference_topic(described, library.store.directory(id_))
            yield topic, ReferenceCatalog(topic, described, library)


def recent_references(config: Config, user_dir: Path, listed: Collection[str] = ()) -> str | None:
    """Return the prompt's list of recently fetched topics; None without any.

    Topics that are `listed` in a menu next to it are left out.
    """
    topics, _ = open_library(config, user_dir).topics()
    return render_recent_topics(
        [t for t in topics if t.status is not Status.OBSOLETE and t.id not in listed]
    )


def reference_topic(described: TopicFile, directory: Path) -> Topic:
    """Return the topic that a `topic.md` describes."""
    return Topic(
        id=described.id,
        root=resolve_links(directory),
        title=described.title,
        introduction=make_snippet(described.body) or None,
        description=without_heading(described.title, described.body) or None,
        in_menu=described.status is not Status.OBSOLETE,
        tags=described.tags,
        # Anchored, so that only our files at the topic's root are ignored, not fetched ones.
        ignore=(f"/{TOPIC_FILE}", f"/{FILE_NAME}"),
    )


MOST_RECENT = 10

_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def render_recent_topics(topics: Sequence[TopicFile]) -> str | None:
    """List the most recently fetched topics, newest first; None without any."""
    if not topics:
        return None
    newest = sorted(topics, key=lambda topic: topic.id)
    newest.sort(key=lambda topic: topic.fetched_at or _NEVER, reverse=True)
    lines = ["## Available Reference Topics", ""]
    for topic in newest[:MOST_RECENT]:
        tags = ", ".join(" ".join(tag.split()) for tag in topic.tags)
        lines.append(f"- {topic.title} (`{topic.id}`)" + (f" — {tags}" if tags else ""))
    return "\n".join(lines)


class ReferenceCatalog:
    """The fetched files of a topic, each read with a line on its origin. Implements `Catalog`.

    It is not a `DirectoryCatalog`: commands that write into a directory's files, or name them
    by their place, leave fetched files alone.
    """

    def __init__(self, topic: Topic, described: TopicFile, library: Library) -> None:
        self._catalog = DirectoryCatalog(topic, library.store.conversions)
        self._described = described
        self._directory = topic.root
        self._library = library

    @property
    def documents(self) -> TopicDocuments:
        """The documents that a search indexes, the same as for `reference_search`."""
        return self._library.store.documents(self._described.id)

    @property
    def index(self) -> Path:
        """The path of the index of all fetched topics."""
        return self._library.store.index

    def list(self, reference: str | None = None) -> Listing:
        """Return every subject, or those that a reference names."""
        return self._catalog.list(reference)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject with its origin; raise UnreadableError like any catalog."""
        record = self._records.get(subject.path)
        origin = render_origin(self._described, record, self._library.clock())
        return self._catalog.read(subject, limit)._replace(origin=origin)

    @cached_property
    def _records(self) -> Mapping[str, FileRecord]:
        try:
            return read_provenance(self._directory).files
        except KbError:  # `verify` reports it; the file can still be read
            return {}
