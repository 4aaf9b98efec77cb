"""Put a fetched topic in its place, whole or not at all, and index it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from llm_kb.references.errors import NothingFetchedError, NotIndexedError
from llm_kb.references.fetch.fetcher import Fetcher, FoundSource
from llm_kb.references.fetch.outcomes import Progress
from llm_kb.references.fetch.staging import Staged
from llm_kb.references.library import Library
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.provenance import Provenance
from llm_kb.references.topic.topic_directory import write_provenance, write_topic_text
from llm_kb.search.index.database import IndexUnusableError
from llm_kb.search.index.index import Index, IndexReport, with_index
from llm_kb.search.index.vectors import EmbeddingError, update_vectors


def fetch_sources(
    found: Sequence[FoundSource], title: str, staged: Staged, remotes: Remotes, progress: Progress
) -> None:
    """Fetch sources into a staging directory; raise NothingFetchedError if there is no file."""
    Fetcher(remotes=remotes, staged=staged, progress=progress.fetching).fetch(found)
    if not staged.files:
        raise NothingFetchedError(title, staged.warnings)


def publish(library: Library, topic_id: str, staged: Staged, text: str, record: Provenance) -> None:
    """Complete a staged topic with our own two files, and swap it in.

    The caller must hold the topic's lock.
    """
    write_topic_text(staged.directory, text)
    write_provenance(staged.directory, record)
    library.store.publish(topic_id, staged.directory)


def asked_sources(
    found: Sequence[FoundSource],
    failed: Collection[int],
    before: Sequence[Source | None],
) -> tuple[Source, ...]:
    """Return the sources to record: as they were fetched now, or before where they failed."""
    return tuple(
        (old if index in failed else None) or each.planned.source
        for index, (each, old) in enumerate(zip(found, before, strict=True))
    )


def index_topic(library: Library, topic_id: str, progress: Progress) -> tuple[int, list[str]]:
    """Bring a topic's index up to date; return the number of its chunks, and warnings.

    Embedding may fail, for want of a key or a network: search works without it. Raises
    NotIndexedError where the index itself cannot be made.
    """

    def embed(index: Index, report: IndexReport) -> tuple[int, list[str]]:
        try:
            if embedder := library.find_embedder():
                update_vectors(index, embedder.model, embedder.embed, progress=progress.embedding)
        except EmbeddingError as error:
            return report.chunks, [str(error)]
        return report.chunks, []

    try:
        documents = library.store.documents(topic_id)
        return with_index(documents, embed, progress=progress.indexing)
    except IndexUnusableError as error:
        raise NotIndexedError(topic_id, str(error)) from error
