"""Batches are written in the background, and nothing of it is left behind."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from llm_kb.references.index_database import connect
from llm_kb.references.index_documents import DocumentTable, Prepared, prepare
from llm_kb.references.index_writing import write_batches

NAMES = ["one.md", "two.md", "three.md"]


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text(f"# {name}\n\nThe walrus of {name}.\n")
    return tmp_path


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(tmp_path / ".index" / "x.sqlite3")) as connection:
        yield connection


def batches(topic: Path) -> Iterator[list[Prepared]]:
    """Prepare each file as a batch of its own."""
    for name in NAMES:
        yield [prepare(topic, name)]


def indexed(connection: sqlite3.Connection) -> tuple[list[str], int]:
    """Return the paths in the index, and in how many chunks full-text search finds a word."""
    paths = [path for (path,) in connection.execute("SELECT path FROM documents ORDER BY id")]
    found = connection.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'walrus'")
    return paths, found.fetchone()[0]


def test_every_batch_is_written_in_order(topic: Path, connection: sqlite3.Connection) -> None:
    table = DocumentTable(topic, connection)

    assert list(write_batches(table, batches(topic))) == [(1, [True])] * 3
    assert indexed(connection) == (NAMES, 3)
    assert list(write_batches(table, batches(topic))) == [(1, [])] * 3


def test_an_interruption_keeps_what_was_begun(topic: Path, connection: sqlite3.Connection) -> None:
    def interrupted() -> Iterator[list[Prepared]]:
        yield next(batches(topic))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(write_batches(DocumentTable(topic, connection), interrupted()))

    assert threading.active_count() == 1
    assert not connection.in_transaction
    assert indexed(connection) == (NAMES[:1], 1)


def test_what_fails_in_the_background_is_raised_and_undone(
    topic: Path, connection: sqlite3.Connection
) -> None:
    connection.execute("DROP TABLE chunks_fts")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        list(write_batches(DocumentTable(topic, connection), batches(topic)))

    assert threading.active_count() == 1
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)
