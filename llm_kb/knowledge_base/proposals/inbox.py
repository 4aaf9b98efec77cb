"""The proposals that wait for a person, in the user's directory: no clone can bring any.

Each is a file of its own with the edits, not their result, and the digest of the text for which
they were made. When it is looked at they are made on the file as it is then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import locked, make_directory, replace_file, writing
from llm_kb.files.containment import read_regular
from llm_kb.knowledge_base.proposals.edits import Edit

_LARGEST = 200_000
"""The most bytes of the file of a proposal."""

_ASK = "which is the most; ask the user to look: llm kb review"


class ChangedError(KbError):
    """A proposal, or its file, that is not what was shown."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the {what} has just been changed; look at the proposal again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Edits of one subject from one conversation."""

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
    conversation: str = ""
    """What the calls of a conversation share."""
    changed_at: str = ""
    kept: str = ""
    """The digest of the text that is being written; empty unless a person has kept it."""

    @property
    def id(self) -> str:
        """Eight digits that name what was proposed: a change of it has another id."""
        return digest(json.dumps(asdict(replace(self, kept="")), sort_keys=True))[:8]

    @property
    def file_name(self) -> str:
        """The file that it waits in: one for each conversation and subject."""
        return f"{digest(json.dumps([self.root, self.path, self.conversation]))[:16]}.json"

    @property
    def size(self) -> int:
        """The characters of all edits."""
        return sum(len(f"{each.reason}{each.new}{each.old}{each.part}") for each in self.edits)

    @property
    def subject(self) -> str:
        """The address of the subject."""
        return f"{self.topic}/{self.name}"

    @property
    def label(self) -> str:
        """What is proposed, in a sentence."""
        return f"{'the new subject' if self.base is None else 'a change of'} {self.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """The proposals for one workspace, and what may wait there."""

    directory: Path
    most_characters: int = 8_000
    """Of all edits of a proposal."""
    most_edits: int = 20
    """Of a proposal: each of a part reads the whole subject again."""
    most_waiting: int = 10
    """Proposals."""
    oldest: timedelta = timedelta(days=30)
    clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)

    def amend(self, new: Proposal, check: Callable[[Proposal], object]) -> Proposal:
        """Store a proposal, whose edits follow those of the same conversation on its subject.

        `check` gets it with all its edits, and may raise. Raises KbError.
        """
        make_directory(self.directory, mode=0o700)
        with self._locked():
            before = self._read(new.file_name)
            whole = new
            if before is not None:
                whole = replace(before, edits=(*before.edits, *new.edits), kept="")
            whole = replace(whole, changed_at=_write_time(self.clock()))
            if problem := self._find_excess(whole, is_first=before is None):
                raise KbError(problem)
            check(whole)
            self._write(whole)
        return whole

    def _find_excess(self, proposal: Proposal, *, is_first: bool) -> str:
        """Return what there would be too much of; empty for nothing."""
        if len(proposal.edits) > self.most_edits:
            return f"the proposal has {self.most_edits} edits, {_ASK}"
        if proposal.size > self.most_characters:
            return (
                f"the proposal would have {proposal.size:,} characters; at most"
                f" {self.most_characters:,} can be reviewed well: propose less"
            )
        if is_first and len(self.read_all()) >= self.most_waiting:
            return f"{self.most_waiting} proposals wait already, {_ASK}"
        return ""

    def mark(self, proposal: Proposal, kept: str) -> None:
        """Record the digest of the text that is about to be written. Raises KbError."""
        with self._locked():
            if not self._holds(proposal):
                raise ChangedError("proposal")
            self._write(replace(proposal, kept=kept))

    def read_all(self) -> list[Proposal]:
        """Return the proposals that wait, oldest first; an unreadable file is none."""
        found = (self._read(path.name) for path in self.directory.glob("*.json"))
        return sorted(filter(None, found), key=lambda each: (each.changed_at, each.id))

    def drop_expired(self) -> list[Proposal]:
        """Delete the proposals that have waited too long, and return them."""
        first = _write_time(self.clock() - self.oldest)
        return [each for each in self.read_all() if each.changed_at < first and self.drop(each)]

    def drop(self, proposal: Proposal) -> bool:
        """Delete a proposal, if it is still the same; tell whether it was."""
        file = self.directory / proposal.file_name
        with self._locked(), writing(file):
            is_same = self._holds(proposal)
            if is_same:
                file.unlink()
        return is_same

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.directory / ".lock")

    def _holds(self, proposal: Proposal) -> bool:
        """Tell whether a proposal waits, and is still the same."""
        found = self._read(proposal.file_name)
        return found is not None and found.id == proposal.id

    def _write(self, proposal: Proposal) -> None:
        data = json.dumps(asdict(proposal), indent=1).encode()
        replace_file(self.directory / proposal.file_name, data, new_mode=0o600)

    def _read(self, name: str) -> Proposal | None:
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            table = json.loads(read_regular(self.directory / name, most=_LARGEST))
            edits, base = table.pop("edits"), table.pop("base")
            texts = [*table.values(), *(text for each in edits for text in each.values())]
            if all(isinstance(text, str) for text in texts) and isinstance(base, str | None):
                return Proposal(**table, base=base, edits=tuple(Edit(**each) for each in edits))
        return None


def _write_time(time: datetime) -> str:
    return time.isoformat(timespec="microseconds")


def digest(text: str) -> str:
    """Return the digest of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
