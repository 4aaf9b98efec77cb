"""Batches are written in the background, and nothing of it is left behind."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from llm_kb.search.index.database import Connection, connect
from llm_kb.search.index.documents_table import DocumentTable, Prepared, prepare, write_batches

NAMES = ["one.md", "two.md", "three.md"]


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text(f"# {name}\n\nThe walrus of {name}.\n")
    return tmp_path


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with closing(connect(tmp_path / ".index" / "x.sqlite3")) as connection:
        yield connection


def batches(topic: Path) -> Iterator[list[Prepared]]:
    """Prepare each file as a batch of its own."""
    for name in NAMES:
        yield [prepare(topic, name)]


def indexed(connection: Connection) -> tuple[list[str], int]:
    """Return the paths in the index, and in how many chunks full-text search finds a word."""
    paths = [path for (path,) in connection.execute("SELECT path FROM documents ORDER BY id")]
    found = connection.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'walrus'")
    return paths, found.fetchone()[0]


def test_every_batch_is_written_in_order(topic: Path, connection: Connection) -> None:
    table = DocumentTable(topic, connection)

    assert list(write_batches(table, batches(topic))) == [(1, [True])] * 3
    assert indexed(connection) == (NAMES, 3)
    assert list(write_batches(table, batches(topic))) == [(1, [])] * 3


def test_an_interruption_keeps_what_was_begun(topic: Path, connection: Connection) -> None:
    def interrupted() -> Iterator[list[Prepared]]:
        yield next(batches(topic))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(write_batches(DocumentTable(topic, connection), interrupted()))

    assert threading.active_count() == 1
    assert not connection.in_transaction
    assert indexed(connection) == (NAMES[:1], 1)


def test_what_fails_in_the_background_is_raised_and_undone(
    topic: Path, connection: Connection
) -> None:
    connection.execute("DROP TABLE chunks_fts")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        list(write_batches(DocumentTable(topic, connection), batches(topic)))

    assert threading.active_count() == 1
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)


def test_where_no_thread_can_be_started_everything_is_written_all_the_same(
    topic: Path, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert (
        list(write_batches(DocumentTable(topic, connection), batches(topic))) == [(1, [True])] * 3
    )
    assert indexed(connection) == (NAMES, 3)


def test_where_no_thread_can_be_started_an_interruption_keeps_what_was_begun(
    topic: Path, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    written = write_batches(DocumentTable(topic, connection), batches(topic))
    next(written)
    written.close()

    assert not connection.in_transaction
    assert indexed(connection) == (NAMES[:1], 1)


def test_a_connection_is_not_closed_while_another_thread_uses_it(connection: Connection) -> None:
    begun, go_on = threading.Event(), threading.Event()
    rows = []

    def use() -> None:
        with connection.in_use:
            begun.set()
            go_on.wait()
            rows.extend(connection.execute("SELECT 1").fetchall())

    user = threading.Thread(target=use)
    closer = threading.Thread(target=connection.close)
    user.start()
    begun.wait()
    closer.start()
    closer.join(timeout=0.1)
    assert closer.is_alive()
    go_on.set()
    user.join()
    closer.join()

    assert rows == [(1,)]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
