"""Directories of files as the topics of a search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import TopicDocuments
from llm_kb.search import search as search_module
from llm_kb.search.index.documents import TopicGroup
from llm_kb.search.index.index import IndexReport, with_index
from llm_kb.search.question import parse_question
from llm_kb.search.search import SearchResult
from llm_kb.subjects.topics import Topic


def index_path(directory: Path) -> Path:
    """Return where the index of the topics beside a directory is kept in these tests."""
    return directory.parent / ".index" / "topics.sqlite3"


def folder(directory: Path, **options: Any) -> TopicDocuments:
    """Return the files below a directory, hidden ones included, its own ones left out."""
    own = ("/topic.md", "/.provenance.json")
    generated = options.pop("generated", False)
    topic = Topic(id=directory.name, root=directory, ignore=own, generated=generated)
    return TopicDocuments(topic, DirectoryCatalog(topic), hidden=True, **options)


def group(*directories: Path, **options: Any) -> TopicGroup:
    """Return directories as topics that share an index."""
    topics = [folder(each, **options) for each in directories]
    return TopicGroup(database=index_path(directories[0]), topics=topics)


def update(directory: Path, *, progress: Any = None, **options: Any) -> IndexReport:
    """Bring the index of one directory up to date."""
    return with_index(
        group(directory, **options), lambda _, reports: reports[directory.name], progress=progress
    )


def count_chunks(directory: Path) -> int:
    """Bring the index of one directory up to date, and return the number of its chunks."""
    return with_index(group(directory), lambda index, _: index.count_chunks(directory.name))


def search(directories: Sequence[Path], question: str, **options: Any) -> SearchResult:
    """Search directories that share an index."""
    groups = [group(*directories)] if directories else []
    return search_module.search(groups, parse_question(question), **options)
