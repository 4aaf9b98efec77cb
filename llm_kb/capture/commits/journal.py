"""Which commits have been looked at: a file in the git directory, for this clone alone."""

from __future__ import annotations

import json
from pathlib import Path

from llm_kb.capture.git.repository import Repository
from llm_kb.errors import KbError


class JournalError(KbError):
    """A record that cannot be read or written."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.path = path
        self.error = error
        super().__init__(
            f"the record of captured commits, {str(path)!r}, cannot be used: {error.strerror}"
        )


class Journal:
    """The record of one repository, a line of JSON for every commit."""

    def __init__(self, repository: Repository) -> None:
        self.path = repository.common_dir / "llm-kb" / "captured.jsonl"

    def read(self) -> frozenset[str]:
        """Return the commits that have been looked at."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise JournalError(self.path, error) from error
        return frozenset(commit for line in lines if (commit := _commit_of(line)))

    def append(self, commit: str, *, model: str, written: int, duplicates: int) -> None:
        """Record a commit; it is on disk as far as the system promises when this returns."""
        record = {"commit": commit, "model": model, "written": written, "duplicates": duplicates}
        try:
            self.path.parent.mkdir(exist_ok=True)
            # Opened to append, a line this short is written in one piece.
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise JournalError(self.path, error) from error


def _commit_of(line: str) -> str | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None  # a line that was cut short: its commit is looked at again
    commit = record.get("commit") if isinstance(record, dict) else None
    return commit if isinstance(commit, str) else None
