"""PDF and DOCX documents as Markdown, converted once and cached on disk."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.files.converters import PROGRAM

VERSION = 1
"""Version of the converted text; texts of other versions are not used."""

SECONDS = 60
"""Time limit for the conversion of one document."""

MOST_SECONDS = 60
"""Time after which no further conversion begins: a topic may hold thousands of documents, and
a model waits for the answer."""

KEPT_SECONDS, FAILED_SECONDS = 60 * 86_400, 86_400
"""How long an unused text is kept, and after how long a failed conversion is tried again."""

_PROBLEM = ".problem"


class ConversionError(KbError):
    """A document that cannot be converted; the message is the reason alone."""


class Conversions:
    """The texts of documents, cached in a directory by the hash of each document.

    Without a directory nothing is cached.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._spent = 0.0

    def find(self, kind: str, data: bytes) -> bytes | None:
        """Return a document's cached text, if any; raise ConversionError after a recent failure."""
        path = self._path(kind, data)
        with suppress(OSError):
            os.utime(path)
            return path.read_bytes()
        failure = path.with_suffix(_PROBLEM)
        with suppress(OSError):
            if time.time() - failure.stat().st_mtime < FAILED_SECONDS:
                raise ConversionError(failure.read_text(encoding="utf-8", errors="replace"))
        return None

    def convert(self, kind: str, data: bytes) -> bytes:
        """Return the text of a document, converting it if needed. Raises ConversionError."""
        kept = self.find(kind, data)
        if kept is not None:
            return kept
        if self._spent > MOST_SECONDS:
            raise ConversionError(
                f"it is not converted yet: other documents took {self._spent:.0f} s; try again"
            )
        path = self._path(kind, data)
        started = time.monotonic()
        try:
            text = _run(kind, data)
        except ConversionError as error:
            self._keep(path.with_suffix(_PROBLEM), str(error).encode())
            raise
        finally:
            self._spent += time.monotonic() - started
        self._keep(path, text)
        return text

    def _path(self, kind: str, data: bytes) -> Path:
        digest = hashlib.blake2b(data, digest_size=20, salt=f"{kind}{VERSION}".encode())
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


def _run(kind: str, data: bytes) -> bytes:
    """Return the text of a document, converted in a separate process."""
    import subprocess  # noqa: PLC0415 - it takes longer to import than most requests need

    # Run in the package's directory, so that nothing in the current one is imported.
    package = Path(__file__).parents[2]
    try:
        done = subprocess.run(  # noqa: S603 - our own program, no shell
            [sys.executable, "-m", PROGRAM, kind],
            input=data,
            capture_output=True,
            timeout=SECONDS,
            cwd=package,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConversionError(f"converting it takes more than {SECONDS} seconds") from error
    except OSError as error:
        raise ConversionError(f"it cannot be converted: {error.strerror}") from error
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        known = last if done.returncode == 2 and last else "over the bounds of memory or time"
        raise ConversionError(f"it cannot be converted: {known}")
    return done.stdout
