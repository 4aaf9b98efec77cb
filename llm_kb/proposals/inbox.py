"""The proposals that wait for a person, in files of the user's directory, so that no clone has any.

A proposal has the edits, not their result, and the digest of the text for which they were made.
When it is looked at they are made on the file as it is then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import locked, make_directory, replace_file, writing
from llm_kb.files.containment import read_regular
from llm_kb.proposals.edits import Edit

_LARGEST = 200_000
"""The most bytes of the file of a proposal."""

_ASK = "which is the most; ask the user to look: llm kb review"


CHANGED = "the {} has just been changed; look at the proposal again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Edits of one subject."""

    topic: str
    root: str
    """The directory of the topic."""
    path: str
    """The file, below that directory."""
    name: str
    """The name of its subject."""
    base: str | None
    """The digest of the text for which the edits were made; None for a new subject."""
    edits: tuple[Edit, ...] = ()
    changed_at: str = ""

    @property
    def id(self) -> str:
        """Eight digits that name what was proposed: a change of it has another id."""
        return digest(json.dumps(asdict(self), sort_keys=True))[:8]

    @property
    def file_name(self) -> str:
        """The file that it waits in: one for each subject."""
        return f"{digest(json.dumps([self.root, self.path]))[:16]}.json"

    @property
    def subject(self) -> str:
        """The address of the subject."""
        return f"{self.topic}/{self.name}"

    @property
    def label(self) -> str:
        """What is proposed, in a sentence."""
        return f"{'the new subject' if self.base is None else 'a change of'} {self.subject}"


class Inbox:
    """The proposals for one workspace, in a directory, and what may wait there.

    Of a proposal: at most so many edits, since each of a part reads the subject anew, and
    characters of all edits.
    """

    def __init__(
        self,
        directory: Path,
        *,
        most_characters: int = 8_000,
        most_edits: int = 20,
        most_waiting: int = 10,
    ) -> None:
        self.directory = directory
        self.most_characters = most_characters
        self.most_edits = most_edits
        self.most_waiting = most_waiting

    def amend(self, new: Proposal, check: Callable[[Proposal], object]) -> Proposal:
        """Store a proposal, whose edits follow those that wait on its subject already.

        `check` gets it with all its edits, and may raise. Raises KbError.
        """
        make_directory(self.directory, mode=0o700)
        with locked(self.directory / ".lock"):
            before = self._read(new.file_name)
            edits = (*before.edits, *new.edits) if before else new.edits
            now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
            whole = replace(before or new, edits=edits, changed_at=now)
            self._require_room(whole, is_first=before is None)
            check(whole)
            self._write(whole)
        return whole

    def _require_room(self, proposal: Proposal, *, is_first: bool) -> None:
        """Raise KbError for more than may wait."""
        size = sum(len("".join(astuple(each))) for each in proposal.edits)
        if len(proposal.edits) > self.most_edits:
            raise KbError(f"the proposal has {self.most_edits} edits, {_ASK}")
        if size > self.most_characters:
            most = f"at most {self.most_characters:,} can be reviewed well"
            raise KbError(f"the proposal would have {size:,} characters; {most}")
        if is_first and len(self.read_all()) >= self.most_waiting:
            raise KbError(f"{self.most_waiting} proposals wait already, {_ASK}")

    def read_all(self) -> list[Proposal]:
        """Return the proposals that wait, oldest first; an unreadable file is none."""
        found = (self._read(path.name) for path in self.directory.glob("*.json"))
        return sorted(filter(None, found), key=lambda each: (each.changed_at, each.id))

    def drop(self, proposal: Proposal, write: Callable[[], object] = lambda: None) -> None:
        """Delete a proposal after `write`.

        Raises KbError if it is not the same any more, and what `write` does.
        """
        file = self.directory / proposal.file_name
        with locked(self.directory / ".lock"):
            found = self._read(file.name)
            if found is None or found.id != proposal.id:
                raise KbError(CHANGED.format("proposal"))
            write()
            with writing(file):
                file.unlink()

    def _write(self, proposal: Proposal) -> None:
        data = json.dumps(asdict(proposal), indent=1).encode()
        replace_file(self.directory / proposal.file_name, data, new_mode=0o600)

    def _read(self, name: str) -> Proposal | None:
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            table = json.loads(read_regular(self.directory / name, most=_LARGEST))
            edits, base = table.pop("edits"), table.pop("base")
            texts = [*table.values(), *(text for each in edits for text in each.values())]
            # No NUL, and nothing that is no text at all, is in a path that was written.
            is_text = b"\0" not in os.fsencode("".join(texts))
            if is_text and isinstance(base, str | None):
                return Proposal(**table, base=base, edits=tuple(Edit(**each) for each in edits))
        return None


def digest(text: str) -> str:
    """Return the digest of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
