"""Directories of files as the topics of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.topic_documents import TopicDocuments
from llm_kb.search import search as search_module
from llm_kb.search.index.database import connect
from llm_kb.search.index.index import open_current
from llm_kb.search.question import parse_question
from llm_kb.search.search import SearchResult
from llm_kb.subjects.topics import TopicConfig


def index_path(directory: Path) -> Path:
    """Return where the index of the topics beside a directory is kept in these tests."""
    return directory.parent / ".index" / "topics.sqlite3"


def folder(
    directory: Path, *, kind: type[TopicDocuments] = TopicDocuments, **options: Any
) -> TopicDocuments:
    """Return the files below a directory, hidden ones included, its own ones left out."""
    own = ("/topic.md", "/.provenance.json")
    topic = TopicConfig(id=directory.name, root=directory, ignore=own)
    merged: dict[str, Any] = {"index": index_path(directory), "hidden": True} | options
    return kind(DirectoryTopic(topic), **merged)


def group(*directories: Path, **options: Any) -> list[TopicDocuments]:
    """Return directories as topics that share an index."""
    return [folder(each, index=index_path(directories[0]), **options) for each in directories]


@contextmanager
def taken_as_current() -> Iterator[None]:
    """Let a search take each index as it is, as if its files had changed since it was looked at."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(TopicDocuments, "holds", lambda *_: True)
        yield


def update(directory: Path, *, progress: Any = None, **options: Any) -> tuple[int, int]:
    """Bring the index of one directory up to date.

    Returns the number of its documents, and of those that were written with text.
    """
    before = _read_chunks(directory)
    with open_current(index_path(directory), group(directory, **options), progress):
        pass
    after = _read_chunks(directory)
    return len({path for path, _ in after}), len({path for path, id_ in after - before if id_})


def _read_chunks(directory: Path) -> set[tuple[str, int | None]]:
    """Return path and id of each chunk of the index of a directory; no id for an empty file."""
    if not index_path(directory).exists():
        return set()
    with closing(connect(index_path(directory))) as connection:
        return set(
            connection.execute(
                "SELECT path, chunks.id FROM documents JOIN topics ON topics.id = topic"
                " LEFT JOIN chunks ON documents.id = document WHERE root = ?",
                (str(directory),),
            )
        )


def count_chunks(directory: Path) -> int:
    """Bring the index of one directory up to date, and return the number of its chunks."""
    with open_current(index_path(directory), group(directory)) as index:
        return index.count_chunks(directory.name)


def search(directories: Sequence[Path], question: str, **options: Any) -> SearchResult:
    """Search directories that share an index."""
    return search_module.search(group(*directories), parse_question(question), **options)
