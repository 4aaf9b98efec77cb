"""Fetch a planned topic, publish it whole or not at all, and index it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from llm_kb.references.errors import NothingFetchedError, NotIndexedError
from llm_kb.references.fetch.fetcher import fetch_sources
from llm_kb.references.library import Library
from llm_kb.references.plan.kind import Progress, Step
from llm_kb.references.plan.plan import Plan, PlannedSource
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.old_topic import OldTopic
from llm_kb.references.topic.provenance import Provenance
from llm_kb.references.topic.staging import Staged
from llm_kb.references.topic.topic_directory import write_provenance, write_topic_text
from llm_kb.references.topic.topic_file import format_time
from llm_kb.search.index.database import IndexUnusableError
from llm_kb.search.index.documents import TopicGroup
from llm_kb.search.index.index import Index, Reports, with_index
from llm_kb.search.index.vectors import EmbeddingError, update_vectors


def fetch_topic(  # noqa: PLR0913 - what a topic is made of
    library: Library,
    plan: Plan,
    old: OldTopic,
    remotes: Remotes,
    render: Callable[[Staged], str],
    *,
    progress: Progress,
) -> Staged:
    """Fetch the sources of a plan, and replace the old topic by the new one.

    `render` returns its `topic.md`. The caller must hold the topic's lock. Raises
    NothingFetchedError if there is no file.
    """
    topic_id = plan.request.id
    with library.store.staging(topic_id) as directory:
        staged = Staged(
            directory=directory,
            now=format_time(library.clock()),
            most_bytes=library.settings.max_bytes,
            old=old,
            warnings=[warning for planned in plan.sources for warning in planned.warnings],
        )
        fetch_sources(plan.sources, staged, remotes, progress)
        if not staged.files:
            raise NothingFetchedError(plan.request.title, staged.warnings)
        staged.restored = old.count_restored(staged.files)
        staged.keep_own_files()
        sources = asked_sources(plan.sources, staged.failed, old)
        record = Provenance(
            request=old.record.request or plan.request.digest,
            files=staged.files,
            sources=sources,
        )
        write_topic_text(directory, render(staged))
        write_provenance(directory, record)
        library.store.publish(topic_id, directory)
        library.approve_hosts(topic_id, plan.hosts)
    return staged


def asked_sources(
    sources: Sequence[PlannedSource], failed: Collection[int], old: OldTopic
) -> tuple[Source, ...]:
    """Return the sources to record: as fetched now, or for failed ones as fetched before."""
    return tuple(
        (before if index in failed else None) or planned.source
        for index, (planned, before) in enumerate(zip(sources, old.asked, strict=True))
    )


def index_topic(library: Library, topic_id: str, progress: Progress) -> tuple[int, list[str]]:
    """Bring a topic's index up to date; return the number of its chunks, and warnings.

    Embedding may fail without a key or a network; search works without it. Raises
    NotIndexedError if the index itself cannot be made.
    """

    def embed(index: Index, _: Reports) -> tuple[int, list[str]]:
        chunks = index.count_chunks(topic_id)
        try:
            if embedder := library.find_embedder():
                embedding = partial(progress, Step("embedding"))
                update_vectors(index, embedder.model, embedder.embed, progress=embedding)
        except EmbeddingError as error:
            return chunks, [str(error)]
        return chunks, []

    try:
        topic = library.store.documents(topic_id)
        group = TopicGroup(database=library.store.index, topics=[topic])
        return with_index(group, embed, progress=partial(progress, Step("indexing")))
    except IndexUnusableError as error:
        raise NotIndexedError(topic_id, str(error)) from error
