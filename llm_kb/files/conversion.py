"""Documents and notebooks as Markdown; a document is converted once and cached on disk."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.texts.decoding import MOST_BYTES, TOO_LARGE
from llm_kb.texts.formats import Format

VERSION = 3
"""Version of the converted text; texts of other versions are not used."""

KEPT_SECONDS, FAILED_SECONDS = 60 * 86_400, 86_400
"""How long an unused text is kept, and after how long a failed conversion is tried again."""

_PROBLEM, _LENGTH = ".problem", ".length"

NO_TEXT = "it has no text, perhaps only pictures of it"
"""Why a document is not converted that was scanned, or is a picture."""


class ConversionError(KbError):
    """A document that cannot be converted; the message is the reason alone."""


class NotYetError(ConversionError):
    """A document that may be converted another time, when there is time and room."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"it is not converted yet: {reason}; try again")


class _TooSlowError(ConversionError):
    """A document that took all the time that was left."""


class Conversions:
    """The texts of documents, cached in a directory by the hash of each document.

    Without a directory nothing is cached. Each may take this many `seconds`, and after
    `most_seconds` for all of them, or at the time `until`, no further conversion begins: a topic
    may hold thousands of documents, and somebody waits for the answer. The `program` is a Python.
    """

    def __init__(
        self,
        directory: Path | None,
        *,
        seconds: float = 10,
        most_seconds: float = 60,
        until: float = math.inf,
        program: str = sys.executable,
    ) -> None:
        self._directory = directory
        self._seconds = seconds
        self._left = most_seconds
        self._until = until
        self._program = program

    def find(self, kind: Format, data: bytes) -> bytes | None:
        """Return a document's cached text, if any; raise ConversionError after a recent failure."""
        if kind.convert:
            return kind.convert(data)
        path = self._path(kind, data)
        with suppress(OSError):
            os.utime(path)
            return path.read_bytes()
        failure = path.with_suffix(_PROBLEM)
        with suppress(OSError):
            if time.time() - failure.stat().st_mtime < FAILED_SECONDS:
                raise ConversionError(failure.read_text(encoding="utf-8", errors="replace"))
        return None

    def convert(self, kind: Format, data: bytes) -> bytes:
        """Return the text of a document, converting it if needed. Raises ConversionError."""
        kept = self.find(kind, data)
        if kept is not None:
            return kept
        started = time.monotonic()
        seconds = min(self._seconds, self._until - started)
        if self._left <= 0 or seconds <= 0:
            raise NotYetError("others took too long")
        path = self._path(kind, data)
        # It is told the most seconds, not those that are left: what it leaves out stays missing.
        try:
            command = [self._program, "-m", kind.program, kind.converter, str(self._seconds)]
            text = _run(command, data, seconds)
        except ConversionError as error:
            if isinstance(error, _TooSlowError) and seconds < self._seconds:
                raise NotYetError("others took too long") from error
            if not isinstance(error, NotYetError):
                self._keep(path.with_suffix(_PROBLEM), str(error).encode())
            raise
        finally:
            self._left -= time.monotonic() - started
        self._keep(path, text)
        return text

    def find_length(self, kind: Format, place: str) -> int:
        """Return the bytes of the text of a document as it was at a place; 0 if not known.

        `place` is its path with its stamp: to know it by its content would take reading all of it.
        """
        path = self._path(kind, os.fsencode(place)).with_suffix(_LENGTH)
        with suppress(OSError, ValueError):
            os.utime(path)
            return int(path.read_bytes())
        return 0

    def keep_length(self, kind: Format, place: str, length: int) -> None:
        """Keep the bytes of the text of a document as it is at a place."""
        if length and self.find_length(kind, place) != length:
            path = self._path(kind, os.fsencode(place)).with_suffix(_LENGTH)
            self._keep(path, str(length).encode())

    def _path(self, kind: Format, data: bytes) -> Path:
        version = f"{kind.converter} {VERSION}".encode()
        digest = hashlib.blake2b(data, digest_size=20, key=version)
        return (self._directory or Path(os.devnull)) / f"{digest.hexdigest()}.md"

    def _keep(self, path: Path, data: bytes) -> None:
        """Write a file to the cache, and delete files that were not used for `KEPT_SECONDS`."""
        if self._directory is None:
            return
        with suppress(OSError, KbError):  # then it is converted again next time
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(path, data)
            oldest = time.time() - KEPT_SECONDS
            for other in self._directory.iterdir():
                if other.stat().st_mtime < oldest:
                    other.unlink()


def _run(command: Sequence[str], data: bytes, seconds: float) -> bytes:
    """Return the text of a document, converted in a separate process."""
    # Imported here, since it takes longer to import than most requests need.
    from llm_kb.files.processes import TimedOutError, TooMuchOutputError, run_program  # noqa: PLC0415

    try:
        ended = run_program(
            command,
            max_output=MOST_BYTES,
            stdin=data,
            # In the package's directory, so that nothing in the current one is imported.
            cwd=Path(__file__).parents[2],
            timeout=seconds,
        )
    except TimedOutError as error:
        raise _TooSlowError(f"converting it takes more than {seconds:g} seconds") from error
    except TooMuchOutputError as error:
        reason = f"its text is {TOO_LARGE}"
        raise ConversionError(reason) from error
    except OSError as error:
        raise NotYetError(error.strerror or str(error)) from error
    if ended.code:
        last = ended.messages.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        known = last if ended.code == 2 and last else "over the bounds of memory or time"
        raise ConversionError(f"it cannot be converted: {known}")
    return ended.output
