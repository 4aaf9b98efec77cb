"""The index of the topics of a workspace, or of all fetched ones: words, vectors, rebuilding.

A database that is damaged or of another version is replaced, and changed files are indexed
again, so a lost index costs only time. Several processes may read and update it at once.
"""

from __future__ import annotations

import math
import os
import re
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from heapq import nsmallest
from pathlib import Path
from sqlite3 import Connection
from struct import Struct
from typing import TypeVar

from llm_kb.errors import KbError
from llm_kb.search.index import database as db
from llm_kb.search.index.documents import MAX_BYTES, Documents
from llm_kb.search.index.update import UNUSED_DAYS, Progress, remove_topic, update_topic
from llm_kb.search.ranking import CANDIDATES, Hit
from llm_kb.search.roles import Role, Scope
from llm_kb.texts.folding import fold

MEMORY_BYTES = 20_000_000
"""Bytes of each topic that are indexed for a single search if no index can be written."""

Result = TypeVar("Result")


@contextmanager
def open_index(database: Path | None) -> Iterator[Index]:
    """Open an index, and close it after the block; without a path, one in memory.

    The database is created, or replaced when it is damaged. It is not brought
    up to date: call `update`. Raises IndexUnusableError.
    """
    if database and not database.exists():
        _remove_unused(database)
    try:
        connection = db.connect(database)
    except db.DamageError:
        db.discard(database)
        connection = db.connect(database)
    try:
        with db.translated(database):
            yield Index(connection, MAX_BYTES if database else MEMORY_BYTES)
    finally:
        connection.close()


def _remove_unused(database: Path) -> None:
    """Delete indexes beside a new one that no search has used for a long time."""
    oldest = time.time() - timedelta(days=UNUSED_DAYS).total_seconds()
    for path in database.parent.glob("*.sqlite3"):
        try:
            if path.stat().st_mtime < oldest:
                db.discard(path)
        except OSError:
            continue  # another process has deleted it


@contextmanager
def open_current(
    database: Path | None, topics: Sequence[Documents], progress: Progress | None = None
) -> Iterator[Index]:
    """Open an index as `open_index` does, and bring some topics in it up to date.

    An index in memory has the first `MEMORY_BYTES` of each topic. Raises IndexUnusableError, and
    DocumentsGoneError if all topics are missing.
    """
    # Looked for first, so that no index is created for a topic that has been deleted.
    if not any(Path(topic.root).is_dir() for topic in topics):
        raise db.DocumentsGoneError(topics[0].name)
    with open_index(database) as index:
        for topic in topics:
            with suppress(db.DocumentsGoneError):
                index.update(topic, progress)
        if not index.topics:
            raise db.DocumentsGoneError(topics[0].name)
        yield index


def rebuild_damaged(work: Callable[[], Result]) -> Result:
    """Return the result of work on indexes; if one is damaged, with a new one in its place."""
    try:
        return work()
    except db.DamageError as error:
        db.discard(error.database)
        return work()


def forget_topics(database: Path, names: Sequence[str]) -> None:
    """Delete topics from an index, if there is one, and the index if it has no others."""
    if database.exists():
        with open_index(database) as index:
            execute = index.connection.execute
            for id_, name in execute("SELECT id, name FROM topics").fetchall():
                if name in names:
                    remove_topic(index.connection, id_)
            (left,) = execute("SELECT count(*) FROM topics").fetchone()
        if not left:
            db.discard(database)


class Index:
    """An open index; made by `open_index`."""

    def __init__(self, connection: Connection, most: int) -> None:
        self.connection = connection
        self.topics: list[Documents] = []
        """The topics that were brought up to date, which are searched."""
        self.left_out: list[str] = []
        """Notices on their documents that no search reads."""
        self.most = most
        """Bytes of each topic that are indexed."""
        self.narrow = ""
        """Whether searches are restricted to the documents `IN` temp.listed, or to those `NOT IN`
        it; empty for all."""

    def update(self, topic: Documents, progress: Progress | None = None) -> None:
        """Bring a topic up to date with its documents. Raises DocumentsGoneError."""
        self.left_out += update_topic(self.connection, topic, self.most, progress)
        self.topics.append(topic)

    def narrow_to(self, scope: Scope | None) -> bool:
        """Restrict searches to its topics and to a scope; tell whether there is any document."""
        execute, insert = self.connection.execute, self.connection.executemany
        execute("DELETE FROM temp.listed")
        searched = {(topic.name, topic.root) for topic in self.topics}
        inside, outside = list[tuple[int]](), list[tuple[int]]()
        for id_, *key in execute("SELECT id, name, root FROM topics").fetchall():
            (inside if tuple(key) in searched else outside).append((id_,))
        if scope is None:
            # The fewer: of a whole library, all are searched but the descriptions of its topics.
            is_inside = len(inside) < len(outside)
            self.narrow = ("IN" if is_inside else "NOT IN") if outside else ""
            topics = inside if is_inside else outside
            insert("INSERT INTO temp.listed SELECT id FROM documents WHERE topic = ?", topics)
            return True
        query = (
            "SELECT documents.id, name, path, role FROM documents JOIN topics ON topics.id = topic"
            " WHERE topic = ?"
        )
        allowed = [
            (id_,)
            for topic in inside
            for id_, name, path, role in execute(query, topic).fetchall()
            if scope.covers(name, path, Role(role))
        ]
        self.narrow = "IN"
        insert("INSERT INTO temp.listed VALUES (?)", allowed)
        return bool(allowed)

    def count_chunks(self, topic: str | None = None) -> int:
        """Return the number of chunks of the index, or of a topic."""
        query = "SELECT count(*) FROM chunks"
        if topic is not None:
            query += (
                " WHERE document IN (SELECT documents.id FROM documents"
                " JOIN topics ON topics.id = topic WHERE name = ?)"
            )
        row = self.connection.execute(query, () if topic is None else (topic,)).fetchone()
        count: int = row[0]
        return count

    def count_words(self, words: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
        """Return the number of chunks with each word or phrase, and the start of a word's forms."""
        counts = dict.fromkeys(words, 0)
        counts |= {w: len(self.match(f'"{w}"', CANDIDATES)) for w in words if " " in w}
        stems = {each: each for each in words}
        # The words are only there to be stemmed: FTS5 keeps them in memory until a commit.
        self.connection.execute("BEGIN")
        self.connection.executemany(
            "INSERT INTO temp.words (rowid, word) VALUES (?, ?)",
            ((row, each) for row, each in enumerate(words) if " " not in each),
        )
        rows = self.connection.execute(
            "SELECT stems.doc, term, max(coalesce(frequencies.doc, 0)) FROM temp.stems"
            " LEFT JOIN temp.frequencies USING (term) GROUP BY stems.doc"
        ).fetchall()
        self.connection.execute("ROLLBACK")
        for row, term, count in rows:
            word = words[row]
            counts[word] = count
            # The stem itself (`queri`) need not be the start of a form, nor distinctive.
            start = os.path.commonprefix([word, term])  # noqa: RUF071 - of characters
            stems[word] = start if len(start) >= 3 else word
        return counts, stems

    def has_spelling(self, word: str) -> bool:
        """Tell whether a word occurs as it is spelled, in 50 of the chunks with its stem."""
        rows = self.connection.execute(
            "SELECT text FROM chunks WHERE id IN"
            " (SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT 50)",
            (f'"{word}"',),
        )
        spelled = re.compile(rf"(?<![^\W_]){word}(?![^\W_])")
        return any(spelled.search(fold(text)) for (text,) in rows)

    def match(self, expression: str, limit: int) -> dict[int, float]:
        """Return the best chunks that match an FTS5 expression, and their scores."""
        # The plus sign keeps SQLite from one full-text query per chunk.
        listed = "(SELECT id FROM chunks WHERE document IN temp.listed)"
        narrow = f" AND +rowid {self.narrow} {listed}" if self.narrow else ""
        # Ordered by the function and not by the `rank` column, so that SQLite keeps
        # the best few and does not sort all matches.
        # The weights are of matches in heading, path and title, text, parts of identifiers.
        rows = self.connection.execute(
            "SELECT rowid, bm25(chunks_fts, 2.0, 1.0, 1.0, 0.5) AS score"  # noqa: S608 - our own
            f" FROM chunks_fts WHERE chunks_fts MATCH ?{narrow}"
            " ORDER BY score, rowid LIMIT ?",
            (expression, limit),
        ).fetchall()
        return {id_: -score for id_, score in rows}

    def read_hits(self, scores: Mapping[int, float], cosines: Mapping[int, float]) -> list[Hit]:
        """Return the chunks with these ids as hits; chunks deleted meanwhile are missing."""
        ids = dict.fromkeys([*scores, *cosines])
        rows = self.connection.execute(
            "SELECT chunks.id, role, topics.name, path, first_line, last_line, title,"  # noqa: S608 - our numbers
            " heading, text FROM chunks"
            " JOIN documents ON documents.id = document JOIN topics ON topics.id = topic"
            f" WHERE chunks.id IN ({', '.join(map(str, ids))})"
        )
        trust = {topic.name: topic.trust for topic in self.topics if topic.trust is not None}
        found = {}
        for id_, role, topic, path, first, last, title, heading, text in rows:
            found[id_] = Hit(
                *(topic, path, first, last, title, heading, text),
                bm25=scores.get(id_, 0.0),
                cosine=cosines.get(id_),
                role=Role(role),
                trust=trust.get(topic, 5),  # another process may have indexed it just now
            )
        return [found[id_] for id_ in ids if id_ in found]


# Vectors, of one model at a time

Embed = Callable[[Sequence[str]], Iterable[Sequence[float]]]
"""Returns the vectors of texts, in order and all of one length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """An embedding model: its id, the function that embeds texts, and how much at a time."""

    model: str
    embed: Embed
    batch: int = 32
    """Texts embedded and stored at a time; an interruption loses at most these."""
    search_seconds: float = 3.0
    """Time in which a search embeds chunks, the likely ones first; fetching a topic embeds all."""


class EmbeddingError(KbError):
    """An embedding model that returned unusable vectors."""

    def __init__(self, model: str, reason: str) -> None:
        self.model = model
        self.reason = reason
        super().__init__(f"embedding model {model!r} {reason}")


def update_vectors(
    index: Index,
    embedder: Embedder,
    *,
    seconds: float = math.inf,
    first: Iterable[int] = (),
    progress: Progress | None = None,
) -> None:
    """Embed chunks without a vector of the model.

    Those that come `first` are embedded before others, and a batch at least. Every batch is stored
    at once, so what ran out of `seconds` or was interrupted continues where it was. Raises
    EmbeddingError.
    """
    started = time.monotonic()
    model, batch = embedder.model, embedder.batch
    missing = find_missing(index, model, first)
    done = 0
    while done < len(missing) and (not done or time.monotonic() - started < seconds):
        texts = _read_texts(index, missing[done : done + batch])
        vectors = [_encode(vector) for vector in embedder.embed(list(texts.values()))]
        if len(vectors) != len(texts):
            raise EmbeddingError(model, f"returned {len(vectors)} vectors for {len(texts)} texts")
        _check_dimensions(model, vectors, _find_size(index, model))
        _store(index, model, dict(zip(texts, vectors, strict=True)))
        done = min(done + batch, len(missing))
        if progress:
            progress(done, len(missing))
    if missing:
        with db.transaction(index.connection):
            # Of chunks that no longer exist.
            index.connection.execute(
                "DELETE FROM vectors WHERE model = ? AND hash NOT IN (SELECT hash FROM chunks)",
                (model,),
            )


def find_missing(index: Index, model: str, first: Iterable[int] = ()) -> list[int]:
    """Return the ids of chunks without a vector of a model; of equal chunks, one."""
    places = {id_: place for place, id_ in enumerate(first)}
    query = (
        "SELECT id, hash FROM chunks"
        " WHERE hash NOT IN (SELECT hash FROM vectors WHERE model = ?) ORDER BY id"
    )
    rows = index.connection.execute(query, (model,)).fetchall()
    rows.sort(key=lambda row: places.get(row[0], len(places)))
    missing: dict[bytes, int] = {}
    for id_, hash_ in rows:
        missing.setdefault(hash_, id_)
    return list(missing.values())


def _read_texts(index: Index, ids: Sequence[int]) -> dict[bytes, str]:
    """Return the texts to embed, title and text of each chunk, keyed by hash."""
    rows = index.connection.execute(
        "SELECT hash, title, text FROM chunks"  # noqa: S608 - our numbers
        f" WHERE id IN ({', '.join(map(str, ids))}) ORDER BY id"
    )
    return {hash_: f"{title}\n\n{text}" for hash_, title, text in rows}


def _find_size(index: Index, model: str) -> int | None:
    """Return the size of a model's vectors in bytes; None if there are none."""
    row = index.connection.execute(
        "SELECT length(vector) FROM vectors WHERE model = ? AND vector != x'' LIMIT 1", (model,)
    ).fetchone()
    return row[0] if row else None


def _store(index: Index, model: str, vectors: Mapping[bytes, bytes]) -> None:
    """Store vectors by the hash of their chunk; an empty one marks a chunk without a vector."""
    with db.transaction(index.connection):
        index.connection.execute("CREATE INDEX IF NOT EXISTS chunks_hash ON chunks (hash)")
        index.connection.executemany(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
            ((model, hash_, vector) for hash_, vector in vectors.items()),
        )


def _encode(vector: Sequence[float]) -> bytes:
    """Return the unit vector as 32-bit floats; empty if it has no direction."""
    numbers = [float(number) for number in vector]
    length = math.hypot(*numbers)
    if not length or not math.isfinite(length):
        return b""
    return array("f", [number / length for number in numbers]).tobytes()


def _check_dimensions(model: str, vectors: Sequence[bytes], known: int | None) -> None:
    """Raise EmbeddingError if vectors of one model differ in length."""
    for size in (len(vector) for vector in vectors if vector):
        known = known or size
        if size != known:
            raise EmbeddingError(
                model,
                f"returned {size // 4} numbers where it returned {known // 4} before; "
                "if the model behind this name has changed, delete the index to embed anew",
            )


def rank_by_vector(
    index: Index, model: str, vector: Sequence[float], limit: int, others: Collection[int] = ()
) -> dict[int, float]:
    """Return the chunks nearest to a vector and their cosines, nearest first, then the `others`."""
    query = _encode(vector)
    known = _find_size(index, model)
    if not query or known is None:
        return {}
    _check_dimensions(model, [query], known)
    read = Struct(f"{len(query) // 4}f").unpack
    wanted = read(query)
    narrow = f" AND document {index.narrow} temp.listed" if index.narrow else ""
    # Equal chunks share a vector.
    rows = index.connection.execute(
        "SELECT vector, chunks.id FROM vectors JOIN chunks USING (hash)"  # noqa: S608 - our own
        f" WHERE model = ? AND vector != x''{narrow}",
        (model,),
    )
    # For unit vectors distance and cosine rank alike, and the distance is one call in C.
    distances = {id_: math.dist(read(stored), wanted) for stored, id_ in rows}
    near = nsmallest(limit, distances, key=distances.__getitem__)
    return {id_: 1 - distances[id_] ** 2 / 2 for id_ in (*near, *distances.keys() & others)}
