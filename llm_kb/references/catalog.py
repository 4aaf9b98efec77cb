"""Reference topics as topics: what `learn`, `-k` and the menu read, with an origin line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from llm_kb.directory import DirectoryCatalog
from llm_kb.errors import KbError
from llm_kb.patterns import Pattern
from llm_kb.references.library import Library
from llm_kb.references.provenance import FILE_NAME, FileRecord, Provenance
from llm_kb.references.recent import render_origin, render_recent_topics
from llm_kb.references.store import TOPIC_FILE, Store
from llm_kb.references.topic_file import Status, TopicFile, without_heading
from llm_kb.references.topic_search import make_snippet
from llm_kb.topics import Catalog, Config, Content, Listing, References, Subject, Topic

DIRECTORY = Path("kb", "references")
"""Where topics are kept below the host's user directory."""


def references_root(settings: References, user_dir: Path) -> Path:
    """Return the directory of all reference topics: `[kb.references] dir`, else the default."""
    return settings.dir or user_dir / DIRECTORY


def open_library(config: Config, user_dir: Path) -> Library:
    """Return the reference topics of a user, under the settings of a configuration."""
    return Library(root=references_root(config.references, user_dir), settings=config.references)


def reference_catalogs(config: Config, user_dir: Path) -> list[tuple[Topic, Catalog]]:
    """Pair every reference topic with its catalog, sorted by id.

    For the composition (`open_catalogs`): append these to the configured ones. A
    `[kb.topic.ID]` of the same id comes first there and hides ours, which is how
    a user disables or renames one. Costs one `scandir` that fails when there are
    no references. A `topic.md` that cannot be read is left out here; `llm kb
    references list` says what is wrong with it.
    """
    store = Store(references_root(config.references, user_dir))
    pairs: list[tuple[Topic, Catalog]] = []
    for topic_id in store.ids():
        try:
            described = store.read(topic_id)
        except KbError:
            continue
        topic = reference_topic(described, store.directory(topic_id))
        pairs.append((topic, ReferenceCatalog(topic, described, store)))
    return pairs


def reference_topics(config: Config, user_dir: Path) -> Sequence[Topic]:
    """Return every reference topic, sorted by id."""
    return [topic for topic, _ in reference_catalogs(config, user_dir)]


def reference_topic(described: TopicFile, directory: Path) -> Topic:
    """Return the topic that a `topic.md` describes."""
    return Topic(
        id=described.id,
        root=directory,
        title=described.title,
        introduction=make_snippet(described.body) or None,
        description=without_heading(described.title, described.body) or None,
        # Anchored: only ours, at the topic's root, and not what was fetched.
        ignore=(f"/{TOPIC_FILE}", f"/{FILE_NAME}"),
    )


def recent_references(config: Config, user_dir: Path) -> str | None:
    """Return the prompt's list of recently fetched topics; None without any."""
    topics, _ = open_library(config, user_dir).topics()
    return render_recent_topics([t for t in topics if t.status is not Status.OBSOLETE])


class ReferenceCatalog:
    """A directory of fetched files, each read with a line on where it came from."""

    def __init__(
        self,
        topic: Topic,
        described: TopicFile,
        store: Store,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._catalog: Catalog = DirectoryCatalog(topic)
        self._described = described
        self._store = store
        self._clock = clock
        self._provenance: Provenance | None = None

    def list_subjects(self) -> Listing:
        """Return every subject, hidden ones included, sorted by slug."""
        return self._catalog.list_subjects()

    def iter_listed(self) -> Iterator[Subject]:
        """Yield the listed subjects in no order, as they are found."""
        return self._catalog.iter_listed()

    def match(self, pattern: Pattern) -> Sequence[Subject]:
        """Return the listed subjects whose slug the pattern matches, sorted."""
        return self._catalog.match(pattern)

    def find(self, reference: str) -> Sequence[Subject]:
        """Return the subjects a slug, with or without extension and dots, names."""
        return self._catalog.find(reference)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject with its origin; raise UnreadableError like any catalog."""
        content = self._catalog.read(subject, limit)
        origin = render_origin(self._described, self._record(subject.path), self._clock())
        return Content(data=content.data, size=content.size, origin=origin)

    def _record(self, path: str) -> FileRecord | None:
        if self._provenance is None:
            try:
                self._provenance = self._store.read_provenance(self._described.id)
            except KbError:  # `verify` tells of it; the file can still be read
                self._provenance = Provenance()
        return self._provenance.files.get(path)
