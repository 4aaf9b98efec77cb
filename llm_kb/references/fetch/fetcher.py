"""Fetch a planned topic, publish it whole or not at all, and index it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from llm_kb.errors import KbError
from llm_kb.files.atomic import WriteError
from llm_kb.references.errors import (
    FetchError,
    NothingFetchedError,
    NotIndexedError,
    PlanChangedError,
    TopicTooLargeError,
    refuse_hostile,
)
from llm_kb.references.library import Library
from llm_kb.references.plan.kind import Progress, Step
from llm_kb.references.plan.make import open_kind
from llm_kb.references.plan.plan import Plan, PlannedSource
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.file_names import unused_name
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.provenance import FileRecord, Provenance, hash_content
from llm_kb.references.topic.staging import OldTopic, PageLinks, Staged
from llm_kb.references.topic.topic_directory import write_provenance, write_topic_text
from llm_kb.references.topic.topic_file import format_time
from llm_kb.search.index.database import IndexUnusableError
from llm_kb.search.index.documents import TopicGroup
from llm_kb.search.index.index import Index, Reports, with_index
from llm_kb.search.index.vectors import EmbeddingError, update_vectors


def fetch_sources(
    sources: Sequence[PlannedSource], staged: Staged, remotes: Remotes, progress: Progress
) -> None:
    """Fetch every source; one that fails is a warning, and keeps its old files.

    Raises PlanChangedError if a source differs from the approved plan, and
    TopicTooLargeError if all of them together exceed `max_bytes`.
    """
    folders = choose_folders([planned.source for planned in sources], staged.old.files)
    for index, planned in enumerate(sources):
        kind = open_kind(index, planned.source, staged.old, remotes, progress)
        try:
            if planned.problem:
                raise FetchError(planned.source.url, planned.problem)
            with refuse_hostile(planned.source.url):
                kind.fetch(planned, staged, folders.get(index, ""))
        except (PlanChangedError, TopicTooLargeError, WriteError):
            raise
        except KbError as error:
            staged.warnings.append(str(error))
            staged.fail_source(index)
    _link_pages(staged)


def _link_pages(staged: Staged) -> None:
    """Make links between pages relative, after all pages have their names."""
    links = PageLinks(staged.directory, staged.files)
    for path, record in links.pages.items():
        data = staged.read(path)
        linked = links.localize(path, data.decode("utf-8", "replace")).encode()
        # A file that was edited here is not changed.
        if linked != data and hash_content(data) == record.hash:
            staged.rewrite(path, linked)
        staged.reuse(path)


def choose_folders(sources: Sequence[Source], old: Mapping[str, FileRecord]) -> Mapping[int, str]:
    """Give each repository and directory a folder of its own if there are several.

    A folder with `old` files of another source stays that source's, which may fail
    and keep them.
    """
    trees = [(index, source) for index, source in enumerate(sources) if source.is_tree]
    folders: dict[int, str] = {}
    for index, source in trees if len(trees) > 1 else []:
        others = {path.split("/")[0] for path, record in old.items() if record.source != index}
        folders[index] = unused_name(source.folder, [*folders.values(), *others])
    return folders


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
