"""Documents that are no text (PDF, DOCX, PPTX, EPUB) as Markdown: converted once, and kept."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file

VERSION = 1
"""Of what conversions give: those of another are not used."""

SECONDS = 60
"""How long the conversion of one document may take."""

MOST_SECONDS = 60
"""After how long in all no other conversion begins: a topic may hold thousands of documents, and
a model that asks waits."""

MAX_BYTES = 20_000_000
"""Of a document, and of the text it becomes."""

KEPT_SECONDS, FAILED_SECONDS = 60 * 86_400, 86_400
"""How long a conversion is kept unused, and after how long one that failed is tried again."""

_TEXT, _PROBLEM = ".md", ".problem"


class ConversionError(KbError):
    """A document that cannot be had as text."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Conversions:
    """The texts of documents, kept in a directory by the hash of what they were made of.

    Without a directory nothing is kept.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._spent = 0.0

    def find(self, kind: str, data: bytes) -> bytes | None:
        """Return a text that is kept; raise ConversionError where one failed lately."""
        path = self._path(kind, data)
        try:
            text = path.with_suffix(_TEXT).read_bytes()
        except OSError:
            self._raise_problem(path.with_suffix(_PROBLEM))
            return None
        with suppress(OSError):
            os.utime(path.with_suffix(_TEXT))
        return text

    def convert(self, kind: str, data: bytes) -> bytes:
        """Return the text of a document, converted unless it is kept. Raises ConversionError."""
        kept = self.find(kind, data)
        if kept is not None:
            return kept
        if self._spent > MOST_SECONDS:
            raise ConversionError(
                f"it is not converted yet: others took {self._spent:.0f} s; ask for it again"
            )
        path = self._path(kind, data)
        started = time.monotonic()
        try:
            text = _run(kind, data)
        except ConversionError as error:
            self._keep(path.with_suffix(_PROBLEM), error.reason.encode())
            raise
        finally:
            self._spent += time.monotonic() - started
        self._keep(path.with_suffix(_TEXT), text)
        return text

    def _path(self, kind: str, data: bytes) -> Path:
        digest = hashlib.blake2b(data, digest_size=20, salt=f"{kind}{VERSION}".encode())
        return (self._directory or Path(os.devnull)) / f"{digest.hexdigest()}.md"

    def _raise_problem(self, path: Path) -> None:
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < FAILED_SECONDS:
                raise ConversionError(path.read_text(encoding="utf-8", errors="replace"))

    def _keep(self, path: Path, data: bytes) -> None:
        """Write one file, and delete those no read has asked for in a long time."""
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
    """Convert a document in a process of its own."""
    import subprocess  # noqa: PLC0415 - it takes longer to import than most requests need

    # From where the package lies: what is in the current directory must not be imported.
    package = Path(__file__).parents[2]
    try:
        done = subprocess.run(  # noqa: S603 - our own program, no shell
            [sys.executable, "-m", "llm_kb.references.sources.convert", kind],
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
    if len(done.stdout) > MAX_BYTES:
        raise ConversionError(f"its text is larger than {MAX_BYTES // 1_000_000} MB")
    return done.stdout
