"""The reference topics of a request, and the catalog of the files of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.references.topic.provenance import FILE_NAME, FileRecord, Provenance
from llm_kb.references.topic.store import TOPIC_FILE, Store
from llm_kb.references.topic.topic_file import (
    Status,
    TopicFile,
    make_snippet,
    render_origin,
    render_recent_topics,
)
from llm_kb.references.topic.topic_text import without_heading
from llm_kb.subjects.patterns import Pattern
from llm_kb.subjects.topics import (
    Catalog,
    Config,
    Content,
    Listing,
    Read,
    References,
    Subject,
    Topic,
)

DIRECTORY = Path("kb", "references")
"""Where topics are kept below the host's user directory."""


def references_root(settings: References, user_dir: Path) -> Path:
    """Return the directory of all reference topics: `[kb.references] dir`, else the default."""
    return settings.dir or user_dir / DIRECTORY


def reference_topics(
    config: Config, user_dir: Path
) -> dict[str, Callable[[], tuple[Topic, Catalog] | None]]:
    """Return what opens each reference topic, by id, sorted.

    A topic is opened when it is asked for: its `topic.md` lists all its files. One that
    cannot be read opens as None; `llm kb references list` says why. Costs one `stat` when
    there are no references.
    """
    root = references_root(config.references, user_dir)
    if not _is_directory(root):
        return {}
    store = Store(root)
    return {id_: partial(_open_topic, store, id_) for id_ in store.ids()}


def _open_topic(store: Store, topic_id: str) -> tuple[Topic, Catalog] | None:
    described = _read_topic(store, topic_id)
    if described is None:
        return None
    topic = reference_topic(described, store.directory(topic_id))
    return topic, ReferenceCatalog(topic, described, store)


def recent_references(config: Config, user_dir: Path) -> str | None:
    """Return the prompt's list of recently fetched topics; None without any."""
    root = references_root(config.references, user_dir)
    if not _is_directory(root):
        return None
    store = Store(root)
    topics = filter(None, (_read_topic(store, id_) for id_ in store.ids()))
    return render_recent_topics([t for t in topics if t.status is not Status.OBSOLETE])


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # one above it that nobody may look into
        return False


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


def _read_topic(store: Store, topic_id: str) -> TopicFile | None:
    try:
        return store.read(topic_id)
    except KbError:
        return None  # `llm kb references list` says what is wrong with it


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
        return self._with_origin(subject, self._catalog.read(subject, limit))

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """Give what reads many subjects with their origins."""
        with self._catalog.reading() as read:
            yield lambda subject, limit=None: self._with_origin(subject, read(subject, limit))

    def _with_origin(self, subject: Subject, content: Content) -> Content:
        origin = render_origin(self._described, self._record(subject.path), self._clock())
        return content._replace(origin=origin)

    def _record(self, path: str) -> FileRecord | None:
        if self._provenance is None:
            try:
                self._provenance = self._store.read_provenance(self._described.id)
            except KbError:  # `verify` tells of it; the file can still be read
                self._provenance = Provenance()
        return self._provenance.files.get(path)
