"""Indexing and keyword queries on about 100,000 chunks, against bare FTS5.

    python bench/index_speed.py

The tree holds the known-item sets `code` and `headings` (see known_items.py) among
the files of other projects. Printed are ratios, measured side by side:

build: chunks a second of a first update (walking, reading, chunking and hashing
included) / of bare FTS5 inserts of the same chunks in one transaction.
unchanged: an update with nothing to do / a bare `stat` of every file.
Times are of the processor, so that a busy machine does not decide, and the least of
several runs, taken in turn; of the build the time that passes is given as well.

query: our keyword search with the texts of its hits / `... MATCH 'a OR b' ORDER BY
rank LIMIT 10` with stop words left out; and the recall of known items of both.
memory: the peak of a process that searches once (from /proc, so on Linux).
"""

from __future__ import annotations

import math
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from known_items import CACHE, Query, build_set, fetch, folder

from llm_kb.search.chunking.code_syntax import find_parser
from llm_kb.search.index.database import discard
from llm_kb.search.index.index import open_index
from llm_kb.search.question import STOP_WORDS, parse_question
from llm_kb.search.search import find_candidates

FILLER = ["sqlalchemy==2.1.9", "celery==5.7.0", "scrapy==2.19.0"]
TEXTS = (".py", ".rst", ".md", ".txt", ".c", ".h", ".js", ".toml", ".cfg", ".html", ".css")
QUERIES = 60
ROUNDS = 3


def make_tree() -> tuple[Path, list[Query]]:
    """Write the tree, once, and return the questions about it."""
    tree = CACHE / "speed"
    queries = []
    for name in ("code", "headings"):
        found = build_set(name, tree / name)
        queries += [query._replace(path=f"{name}/{query.path}") for query in found]
    for requirement in FILLER:
        source = fetch(requirement)
        target = tree / "filler" / requirement
        if not target.exists():
            for file in source.rglob("*"):
                if file.suffix in TEXTS and file.is_file():
                    copy = target / file.relative_to(source)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(file, copy)
    return tree, random.Random(7).sample(queries, 2 * QUERIES)


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


def build(tree: Path, *, with_syntax: bool) -> None:
    """Index a tree that was not indexed before."""
    # None in sys.modules makes an import fail, as where the extra is missing.
    with patch.dict(sys.modules, {} if with_syntax else {"tree_sitter": None}):
        find_parser.cache_clear()
        discard(folder(tree).database)
        with open_index(folder(tree)) as index:
            index.update()


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


def plain_query(question: str) -> str:
    words = [w for w in parse_question(question) if " " not in w]
    return " OR ".join(f'"{word}"' for word in words if word not in STOP_WORDS)


def main() -> None:
    tree, queries = make_tree()
    build(tree, with_syntax=True)
    with closing(sqlite3.connect(folder(tree).database)) as connection:
        syntax_rows = read_rows(connection)
    build(tree, with_syntax=False)
    with closing(sqlite3.connect(folder(tree).database)) as connection:
        rows = read_rows(connection)
    bare = CACHE / "bare.sqlite3"
    builds = timed_in_turn(
        {
            "bare": partial(insert_bare, bare, rows),
            "without": partial(build, tree, with_syntax=False),
            "bare, its chunks": partial(insert_bare, bare, syntax_rows),
            "with llm-kb[code]": partial(build, tree, with_syntax=True),
        },
        ROUNDS,
    )
    with open_index(folder(tree)) as index:
        unchanged = min(timed(index.update) for _ in range(5))
        paths = [tree / file.path for file in folder(tree).list()]
        stat = min(timed(lambda: [path.stat() for path in paths]) for _ in range(5))
        report = index.update()
    insert_bare(bare, syntax_rows)
    print(f"{report.documents} files, {report.chunks} chunks")
    for extra, plain in (("without", "bare"), ("with llm-kb[code]", "bare, its chunks")):
        ours, theirs = builds[extra], builds[plain]
        print(f"build {extra}: {ours.processor:.1f} s, bare inserts {theirs.processor:.1f} s:"
              f" ratio of speeds {theirs.processor / ours.processor:.2f} (at least 0.5);"
              f" as time passes {ours.wall:.1f} s, {theirs.wall:.1f} s:"
              f" {theirs.wall / ours.wall:.2f}")  # fmt: skip
    print(f"unchanged: {1000 * unchanged:.0f} ms, stat {1000 * stat:.0f} ms:"
          f" ratio {unchanged / stat:.2f} (at most 3.0)")  # fmt: skip
    measure_queries(tree, bare, queries)
    measure_memory(tree, queries[0].text)


def measure_queries(tree: Path, bare: Path, queries: list[Query]) -> None:
    plain = sqlite3.connect(bare)
    times: dict[str, list[float]] = {"ours": [], "rank": [], "bm25(bare)": []}
    found = plainly = 0
    with open_index(folder(tree)) as index:

        def ask_us(question: str) -> list[tuple[str, int, int]]:
            hits = rank(find_candidates(index, question, {}), 10)
            return [(hit.path, hit.first_line, hit.last_line) for hit in hits]

        def ask_plainly(question: str, order: str) -> list[int]:
            rows = plain.execute(
                f"SELECT rowid, title, text FROM bare WHERE bare MATCH ? ORDER BY {order} LIMIT 10",
                (plain_query(question),),
            ).fetchall()
            return [row[0] for row in rows]

        for query in queries:
            places: list[tuple[str, int, int]] = []
            ids: list[int] = []
            times["ours"].append(timed(partial(collect, places, ask_us, query.text)))
            for order in ("rank", "bm25(bare)"):
                ids.clear()
                times[order].append(timed(partial(collect, ids, ask_plainly, query.text, order)))
            found += any(query.is_answered_by(*place) for place in places)
            plain_hits = index.read_hits(dict.fromkeys(ids, 1.0))
            plainly += any(query.is_answered_by(*hit.place[1:]) for hit in plain_hits)
    ours, rank, function = (1000 * statistics.mean(values) for values in times.values())
    print(f"query: ours {ours:.1f} ms, plain {rank:.1f} ms (ORDER BY bm25() {function:.1f} ms):"
          f" ratio {ours / rank:.2f} (at most 0.5) and {ours / function:.2f}")  # fmt: skip
    print(f"recall@10 of known items: ours {100 * found / len(queries):.1f},"
          f" plain {100 * plainly / len(queries):.1f}")  # fmt: skip


def collect(target: list[Any], work: Callable[..., list[Any]], *arguments: object) -> None:
    """Keep what timed work returns."""
    target += work(*arguments)


def measure_memory(tree: Path, question: str) -> None:
    code = (
        "import sys; from pathlib import Path; from known_items import folder;"
        "from llm_kb.search.search import search; search([folder(Path(sys.argv[1]))], sys.argv[2]);"
        # Not `getrusage`, whose peak is at least that of the process that started this one.
        "print(Path('/proc/self/status').read_text())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tree, question], check=True, capture_output=True, text=True
    )
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB$", done.stdout, re.MULTILINE)
    print(f"memory: {int(peak) / 1024:.0f} MB at the peak of a searching process (at most 300)")


if __name__ == "__main__":
    main()
