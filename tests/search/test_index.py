"""The index follows the files, even if either is damaged or changes meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from llm_kb.files.topic_documents import TopicDocuments
from llm_kb.search.index import database as index_database
from llm_kb.search.index import update as index_update
from llm_kb.search.index.database import (
    DocumentsGoneError,
    IndexUnusableError,
    discard,
    translated,
)
from llm_kb.search.index.index import Index, forget_topics, open_index
from llm_kb.search.ranking import Hit
from tests.preloaded import Process
from tests.search.folders import count_chunks, folder, index_path, search, update

OLD = time.time_ns() - 10**12
"""A modification time long enough ago to be trusted."""


def write(topic: Path, path: str, text: str | bytes, *, mtime_ns: int = OLD) -> None:
    """Write a file of a topic that was last modified long ago."""
    file = topic / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(file, ns=(mtime_ns, mtime_ns))


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    directory = tmp_path / "references" / "topic-x"
    write(directory, "docs/install.md", "# Install\n\nRun the installer.\n")
    write(directory, "docs/usage.md", "# Usage\n\nCall the walrus.\n")
    write(directory, "topic.md", "+++\n+++\nwalrus\n")
    write(directory, ".provenance.json", '{"walrus": 1}')
    return directory


def paths(topic: Path, question: str) -> list[str]:
    return [hit.path for hit in search([topic], question).hits]


def read_all(index: Index) -> list[tuple[str, int, int, str]]:
    hits = read_texts(index).values()
    return sorted((hit.path, hit.first_line, hit.last_line, hit.text) for hit in hits)


def read_texts(index: Index) -> dict[int, Hit]:
    """Return all chunks by their ids, which are given as their scores."""
    ids = range(1, index.count_chunks() + 100)
    return {int(hit.bm25): hit for hit in index.read_hits({id_: float(id_) for id_ in ids}, {})}


def count(index: Index, *words: str) -> list[int]:
    return list(index.count_words(words)[0].values())


def test_what_was_indexed_is_found_and_counted(topic: Path) -> None:
    assert update(topic) == (2, 2)
    assert paths(topic, "walrus") == ["docs/usage.md"]
    assert index_path(topic) == topic.parent / ".index" / "topics.sqlite3"


def test_an_unchanged_topic_is_not_read_again(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(0.06)  # else its files were changed too shortly before
    update(topic)
    monkeypatch.delattr(TopicDocuments, "read")

    assert update(topic) == (2, 0)
    assert paths(topic, "walrus") == ["docs/usage.md"]


@pytest.mark.parametrize(
    "replace",
    [
        pytest.param(lambda file, new: shutil.copy2(new, file), id="cp -p"),
        pytest.param(lambda file, new: new.rename(file), id="mv"),
        pytest.param(lambda file, new: file.write_bytes(new.read_bytes()), id="touch -d"),
    ],
)
def test_a_text_of_the_same_size_and_modification_time_is_found(
    topic: Path, replace: Callable[[Path, Path], object]
) -> None:
    time.sleep(0.06)
    assert paths(topic, "walrus") == ["docs/usage.md"]
    write(topic.parent, "new.md", "# Usage\n\nCall the ocelot.\n")

    replace(topic / "docs/usage.md", topic.parent / "new.md")
    os.utime(topic / "docs/usage.md", ns=(OLD, OLD))

    assert paths(topic, "ocelot") == ["docs/usage.md"]
    assert paths(topic, "walrus") == []


def test_a_file_modified_just_before_it_was_read_is_compared_by_content(topic: Path) -> None:
    now = time.time_ns() + 10**10
    write(topic, "docs/new.md", "penguin", mtime_ns=now)
    assert paths(topic, "penguin") == ["docs/new.md"]

    write(topic, "docs/new.md", "giraffe", mtime_ns=now)

    assert paths(topic, "penguin") == []
    assert paths(topic, "giraffe") == ["docs/new.md"]


def test_what_another_process_wrote_meanwhile_is_compared_again(topic: Path) -> None:
    write(topic, "new.md", "penguin")
    update(topic)
    write(topic, "new.md", "penguin", mtime_ns=OLD + 1)

    meanwhile = iter(["giraffe"])

    class Slow(TopicDocuments):
        def read(self, path: str) -> bytes:
            data = super().read(path)
            for word in meanwhile:
                write(topic, "new.md", word, mtime_ns=OLD + 2)
                assert paths(topic, word) == ["new.md"]
                write(topic, "new.md", "penguin", mtime_ns=OLD + 1)
            return data

    update(topic, kind=Slow)
    assert paths(topic, "penguin") == ["new.md"]
    assert paths(topic, "giraffe") == []


def test_searching_sees_added_changed_moved_and_removed_files(topic: Path) -> None:
    update(topic)
    write(topic, "docs/usage.md", "# Usage\n\nCall the penguin instead.\n")
    write(topic, "docs/added.md", "giraffe")
    (topic / "docs/install.md").rename(topic / "docs/moved.md")

    assert paths(topic, "walrus") == []
    assert paths(topic, "penguin") == ["docs/usage.md"]
    assert paths(topic, "giraffe") == ["docs/added.md"]
    assert paths(topic, "installer") == ["docs/moved.md"]


def test_a_touched_file_with_the_same_content_is_not_indexed_again(topic: Path) -> None:
    update(topic)
    write(topic, "docs/usage.md", "# Usage\n\nCall the walrus.\n", mtime_ns=OLD + 1)

    assert update(topic) == (2, 0)


def test_an_updated_index_equals_a_new_one(topic: Path) -> None:
    update(topic)
    write(topic, "docs/usage.md", "# Other\n\n" + "Text.\n\n" * 500 + "# End\n")
    write(topic, "docs/usage.py", "def f():\n    pass\n")
    (topic / "docs/install.md").unlink()
    update(topic)
    with open_index(index_path(topic)) as index:
        updated = read_all(index)
        frequencies = count(index, "text", "other", "installer", "f")
    discard(index_path(topic))
    with open_index(index_path(topic)) as index:
        index.update(folder(topic))
        assert read_all(index) == updated
        assert count(index, "text", "other", "installer", "f") == frequencies
    assert (
        "".join(c[3] for c in sorted(updated, key=lambda c: c[1]) if c[0] == "docs/usage.md")
        == (topic / "docs/usage.md").read_text()
    )


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("binary.dat", b"\x7fELF\0walrus", None),
        ("nul.txt", b"giraffe " + b"x " * 5000 + b"\0", "giraffe"),
        ("latin1.txt", "giraffe é".encode("latin-1"), "giraffe"),
        ("utf16.txt", "giraffe".encode("utf-16"), "giraffe"),
        ("empty.txt", b"", None),
        ("line.txt", b"giraffe;" * 100_000, "giraffe"),
        ("minified.js", b"giraffe();" * 10_000, None),
        ("surrogate.txt", b"\xed\xa0\x80 giraffe", "giraffe"),
    ],
)
def test_any_content_is_indexed_or_left_out(
    topic: Path, name: str, data: bytes, word: str | None
) -> None:
    write(topic, name, data)

    assert set(paths(topic, "giraffe")) == ({name} if word else set())
    assert update(topic)[0] == 3


def test_a_machine_made_file_that_was_touched_is_still_left_out(topic: Path) -> None:
    write(topic, "uv.lock", 'name = "giraffe"\n')
    assert update(topic) == (3, 2)
    os.utime(topic / "uv.lock", (1, 1))

    assert update(topic) == (3, 0)


def test_a_notebook_is_searched_as_the_text_a_model_reads(topic: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Say café here."]},
        {"cell_type": "code", "source": "x = 1", "outputs": []},
    ]
    write(topic, "b.ipynb", json.dumps({"cells": cells, "metadata": {"secretword": "kernel"}}))
    write(topic, "c.ipynb", "not a notebook, but plainword")
    write(topic, "d.ipynb", '{"cells": [{"cell_type": "markdown", "source": "halfword \\ud800"}]}')
    assert paths(topic, "café") == ["b.ipynb"]
    assert paths(topic, "secretword") == []
    assert paths(topic, "plainword") == ["c.ipynb"]
    assert paths(topic, "halfword") == ["d.ipynb"]


def test_names_and_links_that_are_no_documents(topic: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("giraffe")
    (topic / "link.md").symlink_to(secret)
    (topic / "loop").symlink_to(topic)
    os.mkfifo(topic / "fifo.md")
    write(topic, ".git/config", "giraffe")
    (topic / os.fsdecode(b"bad\xff.md")).write_text("giraffe")

    assert update(topic) == (2, 2)


def test_a_topic_that_is_not_there_is_an_error_and_loses_nothing(topic: Path) -> None:
    update(topic)
    topic.rename(topic.with_name("gone"))

    with pytest.raises(DocumentsGoneError, match="the files of 'topic-x' are not there"):
        update(topic)
    topic.with_name("gone").rename(topic)
    assert update(topic) == (2, 0)


def test_a_topic_that_is_not_there_gets_no_index(tmp_path: Path) -> None:
    with pytest.raises(DocumentsGoneError):
        update(tmp_path / "topic-x")
    assert list(tmp_path.iterdir()) == []


def test_a_topic_deleted_while_its_index_is_open_is_gone(topic: Path) -> None:
    update(topic)
    with open_index(index_path(topic)) as index:
        topic.rename(topic.with_name("gone"))
        with pytest.raises(DocumentsGoneError):
            index.update(folder(topic))
        topic.write_text("a file where the directory was")
        with pytest.raises(DocumentsGoneError):
            index.update(folder(topic))
        assert index.topics == []


def test_topics_share_an_index_and_each_is_forgotten_alone(topic: Path) -> None:
    other = topic.with_name("topic-y")
    write(other, "docs/usage.md", "# Usage\n\nFeed the walrus.\n")

    both = [(hit.topic, hit.path) for hit in search([topic, other], "walrus").hits]
    assert sorted(both) == [("topic-x", "docs/usage.md"), ("topic-y", "docs/usage.md")]
    assert [hit.topic for hit in search([other], "walrus").hits] == ["topic-y"]
    forget_topics(index_path(topic), ["topic-x"])
    with open_index(index_path(topic)) as index:
        assert index.count_chunks() == index.count_chunks("topic-y") == 1


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_topic_that_is_missing_or_unused_leaves_the_index(
    topic: Path, *, is_missing: bool
) -> None:
    update(topic)
    with open_index(index_path(topic)) as index:
        days = 1 if is_missing else 40
        index.connection.execute("UPDATE topics SET used = used - ?", (days,))
    other = topic.with_name("topic-y")
    write(other, "a.md", "Feed the walrus.\n")
    if is_missing:
        topic.rename(topic.parents[1] / "gone")

    update(other)

    with open_index(index_path(topic)) as index:
        assert index.count_chunks() == index.count_chunks("topic-y") == 1


# A database that is no good


def corrupt_start(database: Path) -> None:
    database.write_bytes(b"not a database at all" * 100)


def corrupt_middle(database: Path) -> None:
    data = bytearray(database.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    database.write_bytes(data)


def truncate(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:5000])


def other_version(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def other_schema(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DROP TABLE chunks_fts")
    connection.close()


def corrupt_schema(database: Path) -> None:
    """Leave a name of which SQLite's message cannot be decoded."""
    data = database.read_bytes()
    assert b"CREATE TABLE chunks (" in data
    database.write_bytes(data.replace(b"CREATE TABLE chunks (", b"CREATE TABLE c \xb4nks ("))


def corrupt_note(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE topics SET note = '[\"' || note")
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        corrupt_start,
        corrupt_middle,
        truncate,
        other_version,
        other_schema,
        corrupt_schema,
        corrupt_note,
    ],
)
def test_a_damaged_database_is_rebuilt(topic: Path, damage: object) -> None:
    update(topic)
    for suffix in ("-wal", "-shm"):
        assert not index_path(topic).with_name(f"topics.sqlite3{suffix}").exists()
    assert callable(damage)
    damage(index_path(topic))

    assert paths(topic, "walrus") == ["docs/usage.md"]


def test_a_locked_database_is_a_clear_error(topic: Path) -> None:
    update(topic)
    write(topic, "new.md", "giraffe")
    with (
        closing(sqlite3.connect(index_path(topic), isolation_level=None)) as holder,
        open_index(index_path(topic)) as index,
    ):
        index.connection.execute("PRAGMA busy_timeout = 100")
        holder.execute("BEGIN IMMEDIATE")
        with (
            pytest.raises(IndexUnusableError, match="another process holds it; try again when"),
            translated(index_path(topic)),
        ):
            index.update(folder(topic))
    assert paths(topic, "giraffe") == ["new.md"]


def test_a_place_that_cannot_be_written_is_a_clear_error(topic: Path) -> None:
    (topic.parent / ".index").write_text("a file where the directory would be")

    with pytest.raises(IndexUnusableError, match="cannot use the index"):
        update(topic)


def test_a_full_disk_is_a_clear_error(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_database, "ROOM_BYTES", 2**62)
    # What SQLite says where it cannot make room for the shared memory of a WAL.
    with (
        pytest.raises(IndexUnusableError, match=r"the disk is full, and .*; make room on it"),
        translated(index_path(topic)),
    ):
        raise sqlite3.OperationalError("disk I/O error")


def test_a_read_only_disk_is_a_clear_error(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write wherever the modes forbid it, so the system is not asked.
    monkeypatch.setattr(os, "access", lambda path, mode: path != topic.parent / ".index")
    index_path(topic).mkdir(parents=True)

    with pytest.raises(IndexUnusableError, match=r"\.index' is read-only, .* make it writable"):
        update(topic)


def test_an_index_that_cannot_be_opened_for_another_reason_says_what_sqlite_says(
    topic: Path,
) -> None:
    index_path(topic).mkdir(parents=True)

    with pytest.raises(IndexUnusableError, match="unable to open database file"):
        update(topic)


# Processes

UPDATE = """
import sys
from pathlib import Path
from llm_kb.search.index.index import open_current
from tests.search.folders import group, index_path
topic = Path(sys.argv[1])
current = index_path(topic), group(topic)
with open_current(*current) as index:
    print(index.count_chunks(topic.name))
"""


def start(topic: Path) -> Process:
    return Process([str(topic)], program=UPDATE)


def fill(topic: Path, files: int) -> None:
    for number in range(files):
        sections = [f"# S{n} of {number}\n\n" + f"Words w{n}. " * 80 + "\n\n" for n in range(20)]
        write(topic, f"many/{number}.md", "".join(sections))


@pytest.mark.slow
def test_killed_while_indexing_and_killed_again(topic: Path) -> None:
    fill(topic, 400)
    for delay in (0.3, 0.6, 0.9):
        process = start(topic)
        time.sleep(delay)
        process.kill()
        process.communicate()

    assert count_chunks(topic) == 2 + 400 * 20
    with open_index(index_path(topic)) as index:
        assert count(index, "w7") == [400]


def test_an_interruption_while_progress_is_shown_leaves_an_index_to_go_on_with(
    topic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_update, "BATCH_CHUNKS", 1)

    def interrupt(done: int, _: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update(topic, progress=interrupt)

    assert update(topic) == (2, 1)


INTERRUPTED = """
import sys
from pathlib import Path
from llm_kb.search.index.index import open_current
from tests.search.folders import group, index_path
topic = Path(sys.argv[1])
current = index_path(topic), group(topic)
print("ready", flush=True)
try:
    with open_current(*current):
        pass
except KeyboardInterrupt:
    sys.exit("interrupted")
"""


@pytest.mark.parametrize("pause", [pytest.param(0.05, marks=pytest.mark.slow), 0.2])
def test_an_interruption_while_the_index_is_written_leaves_an_index_to_go_on_with(
    topic: Path, pause: float
) -> None:
    fill(topic, 500)
    process = Process([str(topic)], program=INTERRUPTED)
    assert process.stdout.readline() == "ready\n"
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]

    # Of a crash, or of an interruption nobody caught, it would be negative. It may be done first.
    assert (process.returncode, error) in {(1, "interrupted\n"), (0, "")}
    with open_index(index_path(topic)) as index:
        assert index.count_chunks() in {0, 10_002}
    assert count_chunks(topic) == 10_002


@pytest.mark.slow
def test_processes_at_once_index_everything_once(topic: Path) -> None:
    fill(topic, 300)

    processes = [start(topic) for _ in range(3)]
    counts = [int(process.communicate(timeout=120)[0]) for process in processes]

    assert counts == [2 + 300 * 20] * 3
    with open_index(index_path(topic)) as index:
        assert count(index, "w7") == [300]
    assert update(topic) == (302, 0)


def test_reading_while_another_process_writes(topic: Path) -> None:
    update(topic)
    with open_index(index_path(topic)) as index:
        fill(topic, 100)
        process = start(topic)
        while process.poll() is None:
            assert list(index.match('"walrus"', 10)) != []
        process.communicate()
        assert count(index, "w7") == [100]
