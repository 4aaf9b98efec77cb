"""Indexing about 100,000 chunks, against bare FTS5.

    python bench/retrieval/index_speed.py

The tree is that of query_speed.py. Printed are ratios, measured side by side:

build: chunks a second of a first update (walking, reading, chunking and hashing
included) / of bare FTS5 inserts of the same chunks in one transaction.
unchanged: the check before a search, and an update with nothing to do / a bare `stat` of each file.
Times are of the processor, so that a busy machine does not decide, and the least of
several runs, taken in turn; of the build the time that passes is given as well.
memory: the peak of a process that searches once (from /proc, so on Linux).
"""

from __future__ import annotations

import math
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from measure import group_of
from query_speed import make_tree
from sources import CACHE

from llm_kb.search.index.database import discard
from llm_kb.search.index.index import open_current, open_index

CHUNKS = 100_000
QUESTION = "how to configure the cache of a client"
ROUNDS = 3


class Times(NamedTuple):
    """The least a piece of work took: processor time, and time that passed."""

    processor: float
    wall: float


def timed_in_turn(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Return the least times of each of several pieces of work."""
    least = dict.fromkeys(works, Times(math.inf, math.inf))
    for _ in range(rounds):
        for name, work in works.items():
            started = time.perf_counter()
            processor = timed(work)
            wall = time.perf_counter() - started
            least[name] = Times(min(processor, least[name][0]), min(wall, least[name][1]))
    return least


def timed(work: Callable[[], object]) -> float:
    """Return the processor time of some work: other processes do not count."""
    started = time.process_time()
    work()
    return time.process_time() - started


def build(tree: Path) -> None:
    """Index a tree that was not indexed before."""
    group = group_of(tree)
    discard(group.database)
    with open_current(group[0].index, group):
        pass


def read_rows(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return what bare inserts insert of each chunk: title, path and text."""
    return connection.execute(
        "SELECT title, path, text FROM chunks JOIN documents ON documents.id = document"
        " ORDER BY chunks.id"
    ).fetchall()


def insert_bare(database: Path, rows: list[tuple[str, str, str]]) -> None:
    database.unlink(missing_ok=True)
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(
        "CREATE VIRTUAL TABLE bare USING fts5 (title, path, text, tokenize = 'porter unicode61')"
    )
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO bare VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()


def main() -> None:
    tree = make_tree(CHUNKS)
    build(tree)
    with closing(sqlite3.connect(group_of(tree)[0].index)) as connection:
        rows = read_rows(connection)
    bare = CACHE / "bare.sqlite3"
    builds = timed_in_turn(
        {"bare": partial(insert_bare, bare, rows), "ours": partial(build, tree)}, ROUNDS
    )
    group = group_of(tree)
    (topic,) = group.topics
    time.sleep(0.1)  # from then on, the times of directories are reliable
    with open_current(group[0].index, group):
        pass
    with open_index(group.database) as index:
        index.update(topic)
        chunks = index.count_chunks()
        refresh = min(timed(lambda: index.update(topic)) for _ in range(5))
    paths = [tree / file.path for file in topic.list()]
    stat = min(timed(lambda: [path.stat() for path in paths]) for _ in range(5))
    print(f"{len(paths)} files, {chunks} chunks")
    ours, theirs = builds["ours"], builds["bare"]
    print(f"build: {ours.processor:.1f} s, bare inserts {theirs.processor:.1f} s:"
          f" ratio of speeds {theirs.processor / ours.processor:.2f} (at least 0.5);"
          f" as time passes {ours.wall:.1f} s, {theirs.wall:.1f} s:"
          f" {theirs.wall / ours.wall:.2f}")  # fmt: skip
    print(f"unchanged: {1000 * refresh:.0f} ms, stat {1000 * stat:.0f} ms:"
          f" ratio {refresh / stat:.2f} (at most 3.0)")  # fmt: skip
    measure_memory(tree)


def measure_memory(tree: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from measure import group_of;"
        "from llm_kb.search.search import search;"
        "from llm_kb.search.question import parse_question;"
        "search(group_of(Path(sys.argv[1])), parse_question(sys.argv[2]));"
        # Not `getrusage`, whose peak is at least that of the process that started this one.
        "print(Path('/proc/self/status').read_text())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tree, QUESTION],
        cwd=Path(__file__).parent,
        check=True,
        capture_output=True,
        text=True,
    )
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB$", done.stdout, re.MULTILINE)
    print(f"memory: {int(peak) / 1024:.0f} MB at the peak of a searching process (at most 300)")


if __name__ == "__main__":
    main()
