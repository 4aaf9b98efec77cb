"""The proposals that wait for a person, in the user's directory: no clone can bring any.

Each is a file of its own with the edits, not their result, and the digest of the text for which
they were made. When it is looked at they are made on the file as it is then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import locked, make_directory, replace_file, writing
from llm_kb.files.containment import read_regular
from llm_kb.knowledge_base.proposals.edits import Edit

_ENDING = ".json"
_LARGEST = 200_000
"""The most bytes of the file of a proposal."""


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
    def size(self) -> int:
        """The characters of all edits."""
        return sum(len(f"{each.reason}{each.new}{each.old}{each.part}") for each in self.edits)

    @property
    def subject(self) -> str:
        """The address of the subject."""
        return f"{self.topic}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may wait."""

    characters: int = 8_000
    """Of all edits of a proposal."""
    edits: int = 20
    """Of a proposal: each of a part reads the whole subject again."""
    waiting: int = 10
    """Proposals of a workspace."""
    age: timedelta = timedelta(days=30)


class Inbox:
    """The proposals for one workspace, None for none."""

    def __init__(
        self,
        user_dir: Path,
        workspace: Path | None,
        limits: Limits = Limits(),
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self.directory = user_dir / "kb" / "proposals" / digest(str(workspace or ""))[:16]
        self._limits = limits
        self._clock = clock

    def amend(self, new: Proposal, check: Callable[[Proposal], object]) -> Proposal:
        """Store a proposal, whose edits follow those of the same conversation on its subject.

        `check` gets it with all its edits, and may raise. Raises KbError.
        """
        limits = self._limits
        make_directory(self.directory, mode=0o700)
        with locked(self.directory / ".lock"):
            before = [each for each in self.read_all() if _place(each) == _place(new)]
            kept = before[0] if before else replace(new, edits=())
            whole = replace(
                kept,
                edits=(*kept.edits, *new.edits),
                kept="",
                changed_at=self._clock().isoformat(timespec="microseconds"),
            )
            if len(whole.edits) > limits.edits:
                raise KbError(
                    f"the proposal has {limits.edits} edits, which is the most; ask the user to"
                    " look at it: llm kb review"
                )
            check(whole)
            if whole.size > limits.characters:
                raise KbError(
                    f"the proposal would have {whole.size:,} characters; at most"
                    f" {limits.characters:,} can be reviewed well: propose less"
                )
            if not before and len(self.read_all()) >= limits.waiting:
                raise KbError(
                    f"{limits.waiting} proposals wait already, which is the most; ask the user to"
                    " look at them: llm kb review"
                )
            self._write(whole)
        return whole

    def mark(self, proposal: Proposal, kept: str) -> None:
        """Record the digest of the text that is about to be written. Raises KbError."""
        with locked(self.directory / ".lock"):
            if not self._holds(proposal):
                raise KbError("the proposal has just been changed; look at it again")
            self._write(replace(proposal, kept=kept))

    def _write(self, proposal: Proposal) -> None:
        data = json.dumps(asdict(proposal), ensure_ascii=True, indent=1)
        replace_file(self.directory / _name(proposal), data.encode(), new_mode=0o600)

    def read_all(self) -> list[Proposal]:
        """Return the proposals that wait, oldest first; an unreadable file is none."""
        found = [self._read(name) for name in self._names()]
        return sorted(filter(None, found), key=lambda each: (each.changed_at, each.id))

    def drop_expired(self) -> list[Proposal]:
        """Delete the proposals that have waited too long, and return them."""
        oldest = (self._clock() - self._limits.age).isoformat(timespec="microseconds")
        return [each for each in self.read_all() if each.changed_at < oldest and self.drop(each)]

    def drop(self, proposal: Proposal) -> bool:
        """Delete a proposal, if it is still the same; tell whether it was."""
        if not self._names():
            return False
        with locked(self.directory / ".lock"):
            is_same = self._holds(proposal)
            if is_same:
                with writing(self.directory / _name(proposal)):
                    (self.directory / _name(proposal)).unlink()
        return is_same

    def _holds(self, proposal: Proposal) -> bool:
        """Tell whether a proposal waits, and is still the same."""
        found = self._read(_name(proposal))
        return found is not None and found.id == proposal.id

    def _names(self) -> Sequence[str]:
        with suppress(OSError):
            return sorted(n for n in os.listdir(self.directory) if n.endswith(_ENDING))  # noqa: PTH208
        return ()

    def _read(self, name: str) -> Proposal | None:
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            table = json.loads(read_regular(self.directory / name, most=_LARGEST))
            edits = tuple(Edit(**_as_texts(edit)) for edit in table.pop("edits"))
            base = table.pop("base")
            return Proposal(
                **_as_texts(table), base=None if base is None else str(base), edits=edits
            )
        return None


def _as_texts(table: Mapping[str, object]) -> dict[str, str]:
    """Return the fields of a record, of which every one is text."""
    return {name: str(value) for name, value in table.items()}


def _place(proposal: Proposal) -> tuple[str, str, str]:
    return proposal.root, proposal.path, proposal.conversation


def _name(proposal: Proposal) -> str:
    return f"{digest(json.dumps(_place(proposal)))[:16]}{_ENDING}"


def digest(text: str) -> str:
    """Return the digest of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
