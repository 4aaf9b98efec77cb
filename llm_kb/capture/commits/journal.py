"""The record of the commits that were looked at, a file in this clone's git directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llm_kb.capture.git.repository import Repository
from llm_kb.errors import KbError


class JournalError(KbError):
    """A record that cannot be read or written."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"the record of captured commits, {str(path)!r}, cannot be used: {error.strerror}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The results of looking at a commit."""

    written: int = 0
    """The number of new entries, over all runs."""
    failed: str | None = None
    """The reason why the model failed in the latest run; None if it did not."""
    is_finished: bool = True
    """Whether it was looked at; not if every run stopped at it."""


class Journal:
    """The record of one repository, a line of JSON for every commit."""

    def __init__(self, repository: Repository) -> None:
        self.path = repository.common_dir / "llm-kb" / "captured.jsonl"

    def read(self) -> Mapping[str, Record]:
        """Return the record of each commit that a model was asked about."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise JournalError(self.path, error) from error
        records: dict[str, Record] = {}
        for commit, record in filter(None, map(_parse_line, lines)):
            before = records.get(commit, Record(is_finished=False))
            latest = record if record.is_finished else before
            records[commit] = replace(latest, written=before.written + record.written)
        return records

    def append(  # noqa: PLR0913 - the fields of a line
        self,
        commit: str,
        *,
        model: str,
        written: int,
        duplicates: int,
        failed: str | None = None,
        stopped: str | None = None,
    ) -> None:
        """Append the result of a commit to the file; one that `stopped` is not looked at yet."""
        record: dict[str, object] = {"commit": commit, "model": model}
        record |= {"written": written, "duplicates": duplicates}
        if failed:
            record["failed"] = failed[:500]
        if stopped:
            record["stopped"] = stopped[:500]
        try:
            self.path.parent.mkdir(exist_ok=True)
            # Opened to append, a line this short is written in one piece.
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise JournalError(self.path, error) from error


def _parse_line(line: str) -> tuple[str, Record] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None  # an incomplete line: its commit is looked at again
    if not isinstance(record, dict) or not isinstance(record.get("commit"), str):
        return None
    written, failed = record.get("written"), record.get("failed")
    return record["commit"], Record(
        written=written if isinstance(written, int) else 0,
        failed=failed if isinstance(failed, str) else None,
        is_finished="stopped" not in record,
    )
