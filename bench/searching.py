"""What an index and the parts of pages cost, beside the least that they can.

    python bench/searching.py [FILES [CHARACTERS]]     20,000 of 1,500 unless told

build: chunks a second of a first update (walking, reading, chunking and hashing included) / of bare
FTS5 inserts of the same chunks in one transaction.
unchanged: an update with nothing to do / a bare `stat` of each file.
memory: the peak of a process that searches once (from /proc, so on Linux).
part: `llm kb show --as-model` of one part of Django's largest pages / of the whole page.
first index: of Django's documentation, 8 MB, as a whole command, without what `llm` itself takes.

All is processor time, but for "as time passes". What whole commands cost by the number of files is
in growth.py.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from harness import (
    BIN,
    CACHE,
    Cost,
    compare,
    least,
    make_tree,
    median,
    processor_time,
    report,
    run,
    use_new_user,
)
from reading import write_workspace

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.topic_documents import TopicDocuments
from llm_kb.search.index.database import discard
from llm_kb.search.index.index import open_current, open_index
from llm_kb.search.question import parse_question
from llm_kb.search.search import search
from llm_kb.subjects.topics import TopicConfig

QUESTION = "how to configure the cache of a client"
PAGES = {
    "ref/settings": "session_cookie_age",
    "ref/models/querysets": "select_for_update",
    "ref/contrib/admin/index": "modeladmin-options",
}
PAIRS = 7


def group_of(root: Path) -> list[TopicDocuments]:
    """Return the files of a tree as a topic with an index beside it."""
    topic = DirectoryTopic(TopicConfig(id="docs", root=root / "docs"))
    return [TopicDocuments(topic, index=root / "bench.sqlite3", hidden=True)]


def build(root: Path) -> None:
    """Index a tree that was not indexed before."""
    group = group_of(root)
    discard(root / "bench.sqlite3")
    with open_current(group[0].index, group):
        pass


def insert_bare(database: Path, rows: list[tuple[str, str, str]]) -> None:
    database.unlink(missing_ok=True)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "CREATE VIRTUAL TABLE b USING fts5 (title, path, text, tokenize = 'porter unicode61')"
        )
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO b VALUES (?, ?, ?)", rows)
        connection.execute("COMMIT")


def measure_index(root: Path) -> None:
    build(root)
    with closing(sqlite3.connect(root / "bench.sqlite3")) as connection:
        rows = connection.execute(
            "SELECT title, path, text FROM chunks JOIN documents ON documents.id = document"
        ).fetchall()
    works = {
        "bare": partial(insert_bare, CACHE / "bare.sqlite3", rows),
        "ours": partial(build, root),
    }
    for clock, about in ((processor_time, ""), (time.perf_counter, ", as time passes")):
        best = least(works, 3, clock)
        report(f"build: {len(rows):,} chunks, speed{about}", best["bare"] / best["ours"])
    (topic,) = group_of(root)
    time.sleep(0.1)  # from then on, the times of directories are reliable
    with open_current(topic.index, [topic]):
        pass
    paths = [root / "docs" / file.path for file in topic.list()]
    with open_index(root / "bench.sqlite3") as index:
        index.update(topic)
        best = least(
            {
                "ours": lambda: index.update(topic),
                "bare": lambda: [path.stat() for path in paths],
            },
            5,
        )
    report(f"unchanged: {len(paths):,} files, update / stat", best["ours"] / best["bare"], 3)


def measure_memory(root: Path) -> None:
    # Not `getrusage`, whose peak is at least that of the process that started this one.
    done = subprocess.run(
        [sys.executable, __file__, "--search", root], check=True, capture_output=True, text=True
    )
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB$", done.stdout, re.MULTILINE)
    report("memory: MB at the peak of a searching process", int(peak) / 1024, 300)


def measure_parts(django: Path) -> None:
    def learn(address: str) -> Cost:
        return run([BIN / "llm", "kb", "show", "--as-model", f"docs/{address}"], django)

    for page, part in PAGES.items():
        ratio = compare(partial(learn, f"{page}#{part}"), partial(learn, f"{page}#*"), PAIRS)
        report(f"part of {page} / the page", ratio.seconds)


def main(files: int = 20_000, characters: int = 1_500) -> None:
    use_new_user("searching")
    django = CACHE / "reading" / "django"
    write_workspace(django, "django==5.2.19", "docs")
    without = median([run([BIN / "llm", "--version"]) for _ in range(PAIRS)]).seconds
    first = run([BIN / "llm", "kb", "search", "session"], django).seconds
    report("first index of Django's documentation, s", first - without, 2)
    measure_parts(django)
    root = make_tree(CACHE / "files" / f"{files}-{characters}", files, characters)
    measure_index(root)
    measure_memory(root)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--search"]:
        search(group_of(Path(sys.argv[2])), parse_question(QUESTION))
        print(Path("/proc/self/status").read_text())
    else:
        main(*map(int, sys.argv[1:]))
