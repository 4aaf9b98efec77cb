"""The documents of a topic as a search reads them, and its index."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from llm_kb import __version__
from llm_kb.capture.catalog import KnowledgeCatalog
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import MemoryDocuments, TopicDocuments
from llm_kb.references.catalog import ReferenceCatalog

if TYPE_CHECKING:
    from llm_kb.knowledge_base.topics import OpenTopic
    from llm_kb.subjects.topics import Topic

UNUSED_SECONDS = 30 * 86_400
"""Age at which an unused index is deleted; it can be rebuilt."""


def open_documents(opened: OpenTopic, index_dir: Path | None) -> TopicDocuments | MemoryDocuments:
    """Return the documents of a topic for the index, with the index's path."""
    topic, catalog = opened.topic, opened.catalog
    if isinstance(catalog, ReferenceCatalog):
        return catalog.documents
    if isinstance(catalog, KnowledgeCatalog):
        return MemoryDocuments(topic.id, catalog)
    database = None
    if index_dir:
        database = index_path(index_dir, topic)
        _remove_unused(index_dir, database)
    return TopicDocuments(topic, cast(DirectoryCatalog, catalog), database, rules=__version__)


def index_path(index_dir: Path, topic: Topic) -> Path:
    """Return the path of a topic's index: topics may have the same directory."""
    key = f"{topic.root.resolve()}\0{topic.id}".encode(errors="surrogateescape")
    return index_dir / f"{hashlib.blake2b(key, digest_size=10).hexdigest()}.sqlite3"


def _remove_unused(index_dir: Path, database: Path) -> None:
    """Delete indexes that no search has used for a long time, before a new one is made."""
    if database.exists() or not index_dir.is_dir():
        return
    from llm_kb.search.index.database import discard  # noqa: PLC0415 - only where one is made

    oldest = time.time() - UNUSED_SECONDS
    for path in index_dir.glob("*.sqlite3"):
        try:
            if path.stat().st_mtime < oldest:
                discard(path)
        except OSError:
            continue  # another process has deleted it
