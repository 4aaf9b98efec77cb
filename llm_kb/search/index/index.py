"""The index of the topics of a workspace, or of all fetched ones, rebuilt as needed.

A database that is damaged or of another version is replaced, and changed files are indexed
again, so a lost index costs only time. Several processes may read and update it at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from llm_kb.search.hits import Hit
from llm_kb.search.index.database import (
    DamageError,
    DocumentsGoneError,
    connect,
    discard,
    transaction,
    translated,
)
from llm_kb.search.index.documents import (
    MAX_BYTES,
    Documents,
    File,
    LeftOut,
    TopicGroup,
    bound_files,
)
from llm_kb.search.index.documents_table import DocumentTable, Known, Prepared, prepare
from llm_kb.search.index.vectors import VectorTable
from llm_kb.search.roles import Role, Scope

if TYPE_CHECKING:
    from sqlite3 import Connection

WEIGHTS = (2.0, 1.0, 1.0, 0.5)
"""Weights of a match in a chunk's heading, path and title, text, and parts of identifiers."""

MEMORY_BYTES = 20_000_000
"""Bytes of each topic that are indexed for a single search if no index can be written."""

UNUSED_DAYS = 30
"""Days after which an index, or a topic in one, that no search has used is deleted."""

SPELLINGS = 50
"""Maximum number of texts with a word's stem that are searched for its spelling."""

BATCH_CHUNKS = 20_000
"""Chunks per transaction; an interruption loses at most these."""

_ALLOWED = "SELECT id FROM chunks WHERE document IN temp.allowed"

_DAY = 86_400

Result = TypeVar("Result")

Progress = Callable[[int, int], None]
"""Called with the number of documents indexed so far and the number to index."""


class IndexReport(NamedTuple):
    """The result of an update of one topic: its number of documents, and of changes."""

    documents: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    left_out: tuple[LeftOut, ...] = ()
    """The documents that no search reads."""


class WordCount(NamedTuple):
    """The number of chunks with any form of a word, and the common start of its forms."""

    frequency: int
    stem: str


@contextmanager
def open_index(database: Path | None) -> Iterator[Index]:
    """Open an index, and close it after the block; without a path, one in memory.

    The database is created, or replaced when it is damaged. It is not brought
    up to date: call `update`. Raises IndexUnusableError.
    """
    if database and not database.exists():
        _remove_unused(database)
    try:
        connection = connect(database)
    except DamageError:
        discard(database)
        connection = connect(database)
    try:
        with translated(database):
            yield Index(connection, MAX_BYTES if database else MEMORY_BYTES)
    finally:
        connection.close()


def _remove_unused(database: Path) -> None:
    """Delete indexes beside a new one that no search has used for a long time."""
    oldest = time.time() - UNUSED_DAYS * _DAY
    for path in database.parent.glob("*.sqlite3"):
        try:
            if path.stat().st_mtime < oldest:
                discard(path)
        except OSError:
            continue  # another process has deleted it


Reports = Mapping[str, IndexReport]
"""The reports on topics, keyed by name; topics whose directory is missing have none."""


def with_index(
    group: TopicGroup,
    work: Callable[[Index, Reports], Result],
    *,
    progress: Progress | None = None,
    max_age: float = 0.0,
    in_memory: bool = False,
) -> Result:
    """Bring the topics of a group up to date and return the result of `work` on its index.

    If the index turns out to be damaged, it is rebuilt and `work` runs again. The files
    are not looked at where this process did so less than `max_age` seconds ago. An index
    `in_memory` is made for this one call, of the first `MEMORY_BYTES` of each topic. Raises
    IndexUnusableError, and DocumentsGoneError if the only topic is missing.
    """
    database = None if in_memory else group.database
    # Listed first, so that no index is created for a topic that has been deleted.
    is_new = not (database and database.exists())
    if is_new:
        _forget_checks(database)
    listed = {id(topic): _list(topic) for topic in group.topics} if is_new else {}
    if len(group.topics) == 1 and listed == {id(group.topics[0]): None}:
        raise DocumentsGoneError(database, group.topics[0].name)

    def run() -> Result:
        with open_index(database) as index:
            reports: dict[str, IndexReport] = {}
            for topic in group.topics:
                report = _recent(database, topic, max_age)
                if report is None:
                    report = index.update(topic, progress, listed.get(id(topic)))
                    _checked[database, topic.name, topic.root] = (time.monotonic(), report)
                if report is not None:
                    reports[topic.name] = report
            if len(group.topics) == 1 and not reports:
                raise DocumentsGoneError(database, group.topics[0].name)
            index.narrow_to(group.topics)
            return work(index, reports)

    try:
        return run()
    except DamageError as error:
        if error.database != database or isinstance(error, DocumentsGoneError):
            raise
        discard(database)
    _forget_checks(database)
    return run()


_checked: dict[tuple[Path | None, str, str], tuple[float, IndexReport | None]] = {}
"""The time of this process's last comparison of each topic with its files, and the report."""


def _recent(database: Path | None, topic: Documents, max_age: float) -> IndexReport | None:
    """Return the last report on a topic if it is at most `max_age` seconds old."""
    checked = _checked.get((database, topic.name, topic.root)) if database and max_age else None
    return checked[1] if checked and time.monotonic() - checked[0] < max_age else None


def _forget_checks(database: Path | None) -> None:
    for key in [key for key in _checked if key[0] == database]:
        del _checked[key]


def forget_topic(database: Path, name: str) -> None:
    """Delete a topic from an index, if there is one, and the index if it has no other."""
    if database.exists():
        with open_index(database) as index:
            left = index.remove(name)
        if not left:
            discard(database)


class _Listed(NamedTuple):
    """A list of documents, and the note on the state it depends on."""

    files: Sequence[File]
    note: str


def _list(topic: Documents) -> _Listed | None:
    """Return all documents of a topic, sorted; None if its directory is missing."""
    # The note comes first, so that it shows changes made while listing.
    note = topic.watch.note() if topic.watch else ""
    try:
        return _Listed(sorted(topic.list()), note)
    except OSError:
        return None


class Index:
    """An open index; made by `open_index`."""

    def __init__(self, connection: Connection, most: int) -> None:
        self.vectors = VectorTable(connection)
        self._connection = connection
        self._most = most
        self._is_narrow = False

    # Keeping up with the files

    def update(
        self,
        topic: Documents,
        progress: Progress | None = None,
        listed: _Listed | None = None,
    ) -> IndexReport | None:
        """Index the documents of a topic that have changed since the last update.

        A file is unchanged if its size and modification time are. If it was
        modified too shortly before it was read for these to be reliable, its
        content is compared. `listed` are the documents, if they were listed already. Returns
        None if the directory of the topic is missing.
        """
        if report := None if listed else self._check(topic):
            return report
        listed = listed or _list(topic)
        if listed is None:
            return None
        id_ = self._ensure_topic(topic)
        files, beyond = bound_files(listed.files, self._most)
        table = DocumentTable(self._connection, id_, topic.place)
        known = table.read_known()
        gone = known.keys() - {file.path for file in files}
        changed = [file for file in files if not (of := known.get(file.path)) or not of.is_of(file)]
        if gone:
            table.remove(sorted(gone))
        outcomes: list[bool] = []
        done = 0
        for batch in _prepare(changed, known, topic):
            outcomes += table.store(batch, topic.read)
            done += len(batch)
            if progress:
                progress(done, len(changed))
        if gone or any(outcomes):
            table.write_languages()
        self._write_note(id_, listed.note, len(files), [left.reason for left in beyond])
        return IndexReport(
            documents=len(files),
            added=outcomes.count(True),
            changed=outcomes.count(False),
            removed=len(gone),
            left_out=(*table.read_left_out(), *beyond),
        )

    def _ensure_topic(self, topic: Documents) -> int:
        """Return the id of a topic, made if needed, and note that it is used."""
        execute = self._connection.execute
        today = int(time.time() // _DAY)
        key = (topic.name, topic.root)
        query = "SELECT id FROM topics WHERE name = ? AND root = ? AND used = ?"
        row = execute(query, (*key, today)).fetchone()
        if row is None:
            with transaction(self._connection):
                execute(
                    "INSERT INTO topics (name, root, used) VALUES (?, ?, ?)"
                    " ON CONFLICT DO UPDATE SET used = excluded.used",
                    (*key, today),
                )
            self._remove_unused(today)
            row = execute(query, (*key, today)).fetchone()
        id_: int = row[0]
        return id_

    def _remove_unused(self, today: int) -> None:
        """Delete topics whose directory is missing, or which no search has used for long."""
        rows = self._connection.execute("SELECT id, root, used FROM topics").fetchall()
        for id_, root, used in rows:
            if used < today - UNUSED_DAYS or (root and not Path(root).exists()):
                self._remove_topic(id_)

    def remove(self, name: str) -> int:
        """Delete a topic, its documents and their chunks; return the number of other topics."""
        rows = self._connection.execute("SELECT id, name FROM topics").fetchall()
        found = [id_ for id_, each in rows if each == name]
        for id_ in found:
            self._remove_topic(id_)
        return len(rows) - len(found)

    def _remove_topic(self, id_: int) -> None:
        table = DocumentTable(self._connection, id_)
        table.remove(list(table.read_known()))
        with transaction(self._connection):
            self._connection.execute("DELETE FROM topics WHERE id = ?", (id_,))

    def _check(self, topic: Documents) -> IndexReport | None:
        """Return the report of the last update if no document can have changed since."""
        row = self._connection.execute(
            "SELECT id, note, documents, beyond FROM topics WHERE name = ? AND root = ?",
            (topic.name, topic.root),
        ).fetchone()
        if row is None or not row[1] or topic.watch is None:
            return None
        id_, note, count, beyond = row
        files = self._connection.execute(
            "SELECT path, size, mtime_ns FROM documents WHERE topic = ? AND NOT racy", (id_,)
        ).fetchall()
        if len(files) != count or not topic.watch.holds(note, files):
            return None
        self._ensure_topic(topic)
        left_out = DocumentTable(self._connection, id_).read_left_out()
        left_out += [LeftOut("", reason) for reason in beyond.splitlines()]
        return IndexReport(count, left_out=tuple(left_out))

    def _write_note(self, id_: int, note: str, count: int, beyond: Sequence[str]) -> None:
        """Record the present state of a topic for `_check`.

        No note is written if another process may have removed documents this one listed.
        """
        with transaction(self._connection):
            self._connection.execute(
                "UPDATE topics SET beyond = ?2, documents = ?3, note = iif(?3 ="
                " (SELECT count(*) FROM documents WHERE topic = ?4), ?1, '') WHERE id = ?4",
                (note, "\n".join(beyond), count, id_),
            )

    # Answering

    def narrow_to(self, topics: Sequence[Documents], scope: Scope | None = None) -> bool:
        """Restrict searches to these topics, and to a scope; tell whether there is any document."""
        wanted = {(topic.name, topic.root) for topic in topics}
        rows = self._connection.execute("SELECT id, name, root FROM topics").fetchall()
        names = {id_: name for id_, name, root in rows if (name, root) in wanted}
        self._is_narrow = scope is not None or len(names) < len(rows)
        if not self._is_narrow:
            return True
        execute = self._connection.execute
        allowed = [
            (id_,)
            for topic, name in names.items()
            for id_, path, role, given in execute(
                "SELECT id, path, role, given_role FROM documents WHERE topic = ?", (topic,)
            ).fetchall()
            if scope is None or scope.covers(name, path, Role(given or role))
        ]
        execute("DELETE FROM temp.allowed")
        self._connection.executemany("INSERT INTO temp.allowed VALUES (?)", allowed)
        return bool(allowed)

    def count_chunks(self, topic: str | None = None) -> int:
        """Return the number of chunks of the index, or of a topic."""
        query = "SELECT count(*) FROM chunks"
        if topic is not None:
            query += (
                " WHERE document IN (SELECT documents.id FROM documents"
                " JOIN topics ON topics.id = topic WHERE name = ?)"
            )
        row = self._connection.execute(query, () if topic is None else (topic,)).fetchone()
        count: int = row[0]
        return count

    def count_words(self, words: Iterable[str]) -> dict[str, WordCount]:
        """Return for each word the number of chunks with any of its forms, and its stem."""
        words = list(words)
        counts = {word: WordCount(0, word) for word in words}
        # The words are only there to be stemmed: FTS5 keeps them in memory until a commit.
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO temp.words (rowid, word) VALUES (?, ?)", enumerate(words)
        )
        rows = self._connection.execute(
            "SELECT stems.doc, term, max(coalesce(frequencies.doc, 0)) FROM temp.stems"
            " LEFT JOIN temp.frequencies USING (term) GROUP BY stems.doc"
        ).fetchall()
        self._connection.execute("ROLLBACK")
        for row, term, count in rows:
            counts[words[row]] = WordCount(count, _find_common_start(words[row], term))
        return counts

    def has_spelling(self, word: str) -> bool:
        """Tell whether a word occurs as it is spelled, in some of the chunks with its stem."""
        rows = self._connection.execute(
            "SELECT text FROM chunks WHERE id IN"
            " (SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT ?)",
            (f'"{word}"', SPELLINGS),
        )
        spelled = re.compile(rf"(?<![^\W_]){word}(?![^\W_])", re.IGNORECASE)
        return any(spelled.search(text) for (text,) in rows)

    def match(self, expression: str, limit: int, wanted: Sequence[int] = ()) -> dict[int, float]:
        """Return the best chunks that match an FTS5 expression, and their scores.

        The `wanted` chunks that match come first, in addition to `limit` others.
        """
        weights = ", ".join(map(str, WEIGHTS))
        first = f"rowid IN ({', '.join('?' * len(wanted))}) DESC," if wanted else ""
        # The plus sign keeps SQLite from one full-text query per chunk.
        narrow = f" AND +rowid IN ({_ALLOWED})" if self._is_narrow else ""
        # Ordered by the function and not by the `rank` column, so that SQLite keeps
        # the best few and does not sort all matches.
        rows = self._connection.execute(
            f"SELECT rowid, bm25(chunks_fts, {weights}) AS score"  # noqa: S608 - our numbers
            f" FROM chunks_fts WHERE chunks_fts MATCH ?{narrow}"
            f" ORDER BY {first} score, rowid LIMIT ?",
            (expression, *wanted, limit + len(wanted)),
        ).fetchall()
        return {id_: -score for id_, score in rows}

    def find_allowed(self) -> frozenset[int] | None:
        """Return the ids of the chunks that are searched; None if all are."""
        if not self._is_narrow:
            return None
        return frozenset(id_ for (id_,) in self._connection.execute(_ALLOWED))

    def read_hits(self, scores: Mapping[int, float], cosines: Mapping[int, float]) -> list[Hit]:
        """Return the chunks with these ids as hits; chunks deleted meanwhile are missing."""
        ids = dict.fromkeys([*scores, *cosines])
        rows = self._connection.execute(
            "SELECT chunks.id, topics.name, given_role, role, language, path, first_line,"  # noqa: S608 - our numbers
            " last_line, title, heading, text, chunks.hash FROM chunks"
            " JOIN documents ON documents.id = document JOIN topics ON topics.id = topic"
            f" WHERE chunks.id IN ({', '.join(map(str, ids))})"
        )
        found = {}
        for id_, topic, given, role, language, path, first, last, title, heading, *rest in rows:
            found[id_] = Hit(
                topic=topic,
                path=path,
                first_line=first,
                last_line=last,
                title=title,
                heading=heading,
                text=rest[0],
                hash=rest[1],
                bm25=scores.get(id_, 0.0),
                cosine=cosines.get(id_),
                role=Role(given or role),
                language=language,
            )
        return [found[id_] for id_ in ids if id_ in found]


def _prepare(
    files: Sequence[File], known: Mapping[str, Known], topic: Documents
) -> Iterator[list[Prepared]]:
    """Yield prepared files in batches of about `BATCH_CHUNKS` chunks."""
    batch: list[Prepared] = []
    chunks = 0
    for file in files:
        document = prepare(file, topic.read, known.get(file.path), topic.place)
        batch.append(document)
        chunks += len(document.chunks or ()) + 1
        if chunks >= BATCH_CHUNKS:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


SHORTEST_STEM = 3
"""Shortest common start, in characters; a word with a shorter one is matched as it is."""


def _find_common_start(word: str, stem: str) -> str:
    """Return the common start of a word's forms; the stem itself (`queri`) need not be one."""
    length = next(
        (at for at, (a, b) in enumerate(zip(word, stem, strict=False)) if a != b),
        min(len(word), len(stem)),
    )
    return word[:length] if length >= SHORTEST_STEM else word
