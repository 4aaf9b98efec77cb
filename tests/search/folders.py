"""A directory of files as the documents of a search."""

from __future__ import annotations

from pathlib import Path

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import TopicDocuments
from llm_kb.subjects.topics import Topic


def index_path(directory: Path) -> Path:
    """Return where the index of a directory is kept in these tests."""
    return directory.parent / ".index" / f"{directory.name}.sqlite3"


def folder(directory: Path, *, generated: bool = False) -> TopicDocuments:
    """Return the files below a directory, hidden ones included, its own ones left out."""
    own = ("/topic.md", "/.provenance.json")
    topic = Topic(id=directory.name, root=directory, ignore=own, generated=generated)
    return TopicDocuments(topic, DirectoryCatalog(topic), index_path(directory), hidden=True)
