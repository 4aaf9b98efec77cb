"""Dense search in a cold process: ours, and llm's own.

    python bench/retrieval/dense.py [CHUNKS [DIMENSIONS]]

Vectors are random around cluster centres, 20,000 of 384 numbers unless told otherwise, the
same for all. Each way is a new process that opens its store, searches once and prints the ten
best: `llm`'s `Collection.similar_by_vector`, and our `rank_by_vector`. Printed are the processor
time of whole processes, the least of several runs of each, taken in turn; the ratio to llm's; and
the recall of its ten best. All start from cached bytecode, as what is installed does.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import llm
import sqlite_utils
from measure import group_of
from sources import processor_time, report

from llm_kb.search.index.index import Embedder, open_current, update_vectors

LLM = """
import json, sys, llm, sqlite_utils
class Model(llm.EmbeddingModel):
    model_id = "m"
    embed_batch = None
collection = llm.Collection("c", sqlite_utils.Database(sys.argv[1]), model=Model())
vector = json.loads(sys.argv[2])
print(json.dumps([int(e.id) for e in collection.similar_by_vector(vector, number=10)]))
"""
OURS = """
import json, os, sys
from pathlib import Path
from llm_kb.search.index import index as index_module
from llm_kb.search.index.index import open_index
topic = Path(sys.argv[1])
database = topic.parents[1] / "index" / topic.parent.name / f"{topic.name}.sqlite3"
with open_index(database) as index:
    found = index_module.rank_by_vector(index, "m", json.loads(sys.argv[2]), 10)
    print(json.dumps([int(hit.text.split()[1]) for hit in index.read_hits({}, found)]))
"""
QUERIES = 3
ROUNDS = 4
CENTRES = 200


class Model(llm.EmbeddingModel):
    """A model that is never asked."""

    model_id = "m"
    embed_batch = None


def main(chunks: int = 20_000, dimensions: int = 384) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name, "trees", "topic-x")
        directory.mkdir(parents=True)
        chance = random.Random(1)
        centres = [[chance.gauss(0, 1) for _ in range(dimensions)] for _ in range(CENTRES)]

        def around(number: int) -> list[float]:
            local = random.Random(number)
            return [value + local.gauss(0, 0.7) for value in centres[number % CENTRES]]

        def embed(texts: list[str]) -> list[list[float]]:
            return [around(int(text.split()[1])) for text in texts]

        for start in range(0, chunks, 1000):
            for number in range(start, min(start + 1000, chunks)):
                (directory / f"{number}.txt").write_text(f"Number {number}\n")
        group = group_of(directory)
        with open_current(group[0].index, group) as index:
            update_vectors(index, Embedder(model="m", embed=embed))
        store = Path(name, "llm.db")
        fill_collection(store, chunks, around)
        queries = [json.dumps(around(number * 37 + 5)) for number in range(QUERIES)]
        run(OURS, directory, queries)  # makes the bytecode
        ours = theirs = math.inf
        for _ in range(ROUNDS):
            seconds, expected = run(LLM, store, queries)
            theirs = min(theirs, seconds)
            seconds, found = run(OURS, directory, queries)
            ours = min(ours, seconds)
        shared = [len(set(a) & set(b)) / 10 for a, b in zip(expected, found, strict=True)]
        print(f"{chunks} of {dimensions} numbers: llm Collection {theirs:.2f} s")
        report("ours / llm's Collection", ours / theirs, 0.5)
        report("recall of its ten best, %", 100 * statistics.mean(shared))


def fill_collection(store: Path, chunks: int, around: object) -> None:
    """Write an llm collection as llm does, without asking a model."""
    database = sqlite_utils.Database(store)
    collection = llm.Collection("c", database, model=Model())
    assert callable(around)
    database["embeddings"].insert_all(
        {
            "collection_id": collection.id,
            "id": str(number),
            "embedding": llm.encode(around(number)),
            "content": None,
            "content_blob": None,
            "content_hash": str(number).encode(),
            "metadata": None,
            "updated": 0,
        }
        for number in range(chunks)
    )


def run(code: str, store: Path, queries: list[str]) -> tuple[float, list[list[int]]]:
    """Return the least processor time of a process, and the results of each query."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    times, results = [], []
    for query in queries:
        command = [sys.executable, "-c", code, store, query]
        before = processor_time()
        done = subprocess.run(command, check=True, capture_output=True, env=environment)
        times.append(processor_time() - before)
        results.append(json.loads(done.stdout))
    return min(times), results


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
