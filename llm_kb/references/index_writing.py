"""Write batches of documents to an index, preparing one while the one before is finished."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from threading import Thread

from llm_kb.references.index_documents import DocumentTable, Prepared


def write_batches(
    table: DocumentTable, batches: Iterable[Sequence[Prepared]]
) -> Generator[tuple[int, list[bool]], None, None]:
    """Store batches of documents; yield of each how many they are, and what `store` returns.

    What takes longest is one SQL statement, and SQLite runs it without Python's
    lock. So it is left to another thread while the next batch is read and cut
    into chunks. Whatever happens, no thread is left when this ends or is closed.
    """
    finishing: _Finishing | None = None
    try:
        for documents in batches:
            if finishing:
                finishing.wait()
            outcomes = table.begin(documents)
            finishing = _Finishing(table)
            finishing.start()
            yield len(documents), outcomes
        if finishing:
            finishing.wait()
    finally:
        if finishing:
            finishing.join()


class _Finishing(Thread):
    """A thread that finishes what a table has begun; the table is its own until then."""

    def __init__(self, table: DocumentTable) -> None:
        super().__init__(name="llm-kb index")
        self._table = table
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._table.finish()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._error = error

    def wait(self) -> None:
        """Wait until it is done. Raises what it raised."""
        self.join()
        if self._error:
            raise self._error
