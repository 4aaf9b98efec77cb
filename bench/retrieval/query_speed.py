"""What a keyword query costs at 1,000 to 100,000 chunks, beside plain FTS5 OR and tantivy.

    python bench/retrieval/query_speed.py [CHUNKS ...]        1,000 10,000 100,000 unless told

The chunks are those of the report sources, repeated with another word in each until there are
enough. Printed are p50 and p95 of the processor time, in milliseconds, of the same questions,
taken in turn, each once before: of our query with the texts of its hits, of the ranking in it
alone, of plain `MATCH 'a OR b' ORDER BY bm25() LIMIT 60` in memory, and of tantivy; and of `search`
as a whole, which looks at the files first.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from known_items import build_trees
from measure import documents
from rivals import make_plain, make_tantivy, read_chunks
from sources import CACHE, REPORT, read_source

from llm_kb.search.index.index import open_index
from llm_kb.search.ranking import rank
from llm_kb.search.search import find_candidates, search

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


def main(arguments: Sequence[str]) -> None:
    questions = sorted(
        {
            query.text
            for tree in build_trees("report")
            for kind, queries in tree.questions.items()
            if kind not in {"Chinese", "Japanese", "misspelled"}
            for query in queries
        }
    )
    asked = random.Random(7).sample(questions, QUESTIONS)
    print("| chunks | ours p50 / p95 | ranking | plain OR | tantivy | search as a whole |")
    print("|---|---|---|---|---|---|")
    for size in [int(argument) for argument in arguments] or SIZES:
        tree = documents(make_tree(size))
        times: dict[str, list[float]] = {}
        with open_index(tree) as index:
            count = index.update().chunks
            chunks = read_chunks(index)
            rivals = {"plain": make_plain(chunks), "tantivy": make_tantivy(chunks)}
            for question in asked:
                candidates = find_candidates(index, question, {})
                works: dict[str, Callable[[], object]] = {
                    "ours": lambda q=question: rank(find_candidates(index, q, {}), 10),
                    "ranking": lambda c=candidates: rank(c, 10),
                    **{name: lambda r=r, q=question: r(q)[:10] for name, r in rivals.items()},
                    "search": lambda t=tree, q=question: search([t], q),
                }
                for name, work in works.items():
                    times.setdefault(name, []).append(min(timed(work) for _ in range(2)))
        cells = [
            f"{statistics.median(found):.1f} / {sorted(found)[int(0.95 * len(found))]:.1f}"
            for found in times.values()
        ]
        print(f"| {count:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
