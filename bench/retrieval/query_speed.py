"""The cost of a keyword query at 1,000 to 100,000 chunks, compared with plain FTS5 OR and tantivy.

    python bench/retrieval/query_speed.py [CHUNKS ...]        1,000 10,000 100,000 unless told

The chunks are those of the report sources, repeated with another word in each until there are
enough. Printed are p50 and p95 of the processor time, in milliseconds, of the same questions,
taken in turn, each once before:

plain OR: `MATCH 'a OR b' ORDER BY bm25() LIMIT 60` in memory.
tantivy: its query, in memory.
search: our whole search, which compares the files with the index first.
search / plain OR: the ratio of their p50, and of their p95.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import truediv
from pathlib import Path

from known_items import build_trees
from measure import group_of
from rivals import make_plain, make_tantivy, read_chunks
from sources import CACHE, REPORT, read_source

from llm_kb.search.index.index import open_current
from llm_kb.search.question import parse_question
from llm_kb.search.search import search

SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 100
CHARACTERS = 900
"""Of a chunk, about: by that the files of a tree are counted."""


def make_tree(chunks: int) -> Path:
    """Write files of about so many chunks, once."""
    tree = CACHE / "trees" / "speed" / str(chunks)
    left = chunks * CHARACTERS
    files = [file for name in REPORT for file in read_source(name)]
    round_ = 0
    while left > 0:
        for number, (path, text) in enumerate(files):
            target = tree / str(round_) / path
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(f"copy{round_}of{number}\n\n{text}", "utf-8")
            left -= len(text)
            if left <= 0:
                break
        round_ += 1
    return tree


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return 1000 * (time.process_time() - started)


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    """Return p50 and p95."""
    return statistics.median(times), sorted(times)[int(0.95 * len(times))]


def main(arguments: Sequence[str]) -> None:
    questions = sorted(
        {
            query.text
            for tree in build_trees(REPORT)
            for kind, queries in tree.questions.items()
            if kind not in {"Chinese", "Japanese", "misspelled"}
            for query in queries
        }
    )
    asked = random.Random(7).sample(questions, QUESTIONS)
    print("| chunks | plain OR p50 / p95 | tantivy | search | search / plain OR |")
    print("|---|---|---|---|---|")
    for size in [int(argument) for argument in arguments] or SIZES:
        group = group_of(make_tree(size))
        time.sleep(0.1)  # from then on, the times of directories are reliable
        with open_current(group[0].index, group) as index:
            chunks = read_chunks(index)
        count = len(chunks)
        plain, tantivy = make_plain(chunks), make_tantivy(chunks)
        del chunks
        times: dict[str, list[float]] = {}
        for question in asked:
            read = parse_question(question)
            works: dict[str, Callable[[], object]] = {
                "plain": partial(plain, question),
                "tantivy": partial(tantivy, question),
                "search": partial(search, [group], read),
            }
            for name, work in works.items():
                times.setdefault(name, []).append(min(timed(work) for _ in range(2)))
        found = {name: quantiles(each) for name, each in times.items()}
        ratios = map(truediv, found["search"], found["plain"])
        cells = [f"{p50:.1f} / {p95:.1f}" for p50, p95 in found.values()]
        print(f"| {count:,} | {' | '.join(cells)} | {' / '.join(f'{r:.2f}' for r in ratios)} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
