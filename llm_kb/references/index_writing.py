"""Write batches of documents to an index, preparing one while the one before is finished."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from threading import Lock, Thread, get_ident

from llm_kb.references.index_documents import DocumentTable, Prepared


def write_batches(
    table: DocumentTable, batches: Iterable[Sequence[Prepared]]
) -> Generator[tuple[int, list[bool]], None, None]:
    """Store batches of documents; yield of each how many they are, and what `store` returns.

    What takes longest is one SQL statement, and SQLite runs it without Python's
    lock. So it is left to another thread while the next batch is read and cut
    into chunks. No thread is left when this ends or is closed. An interruption
    keeps what was begun; one more while that is finished gives it up.
    """
    finishing: _Finishing | None = None
    try:
        for documents in batches:
            if finishing:
                finishing.wait()
            outcomes = table.begin(documents)
            finishing = _Finishing(table)
            # Where no thread is to be had, `wait` does the work.
            with suppress(RuntimeError):
                finishing.start()
            yield len(documents), outcomes
        if finishing:
            finishing.wait()
    finally:
        if finishing:
            finishing.settle()


class _Finishing(Thread):
    """A thread that finishes what a table has begun; the table is its own until then.

    Whether it is done is not asked of the thread: before Python 3.13, one whose
    `join` was interrupted counts as dead while it still runs.
    """

    def __init__(self, table: DocumentTable) -> None:
        super().__init__(name="llm-kb index")
        self._table = table
        self._taken: dict[str, int] = {}
        self._is_done = False
        self._done = Lock()
        self._done.acquire()
        self._error: Exception | None = None

    def run(self) -> None:
        """Finish it, unless another thread does already."""
        if self._taken.setdefault("by", get_ident()) != get_ident():
            return
        try:
            self._table.finish()
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            self._error = error
        finally:
            self._is_done = True
            self._done.release()

    def wait(self) -> None:
        """Wait until it is done, or do it if no thread has begun. Raises what it raised."""
        self._wait()
        if self._error:
            raise self._error

    def settle(self) -> None:
        """See to it that it is over, whatever it raised; an interruption only hastens that."""
        interruption: KeyboardInterrupt | None = None
        while not self._is_done:
            try:
                self._wait()
            except KeyboardInterrupt as error:
                interruption = error
                self._table.interrupt()
        if interruption:
            raise interruption

    def _wait(self) -> None:
        if not self._is_done:
            self.run()
        while not self._is_done:
            self._done.acquire()
        if self.is_alive():
            self.join()
