"""Exact changes of a text, and the proposals of them that wait for a person.

A proposal is a file of the user's directory, so that no clone can bring any. It has the edits, not
their result, and the digest of the text for which they were made. When it is looked at they are
made on the file as it is then.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

from llm_kb.errors import KbError, quote
from llm_kb.files.atomic import locked, make_directory, replace_file, writing
from llm_kb.files.containment import read_regular
from llm_kb.rendering.parts import find_spans
from llm_kb.texts.outlines.outline import read_document
from llm_kb.texts.safe import UNSEEN

BOM = "\ufeff"


MOST_OUTLINED = 2_000_000
"""Characters that the edits of a proposal read to find their parts: each reads the subject anew."""


class EditError(KbError):
    """A change that does not fit the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change, as a model proposed it."""

    reason: str
    new: str = ""
    old: str = ""
    part: str = ""
    """The anchor of the part that it is about; empty for the whole subject."""


def apply_edits(path: str, text: str | None, edits: Sequence[Edit]) -> str:
    """Return the text of a file after some edits; None is a file that does not exist.

    Line ends and a byte order mark stay as they are. Raises EditError.
    """
    mark = BOM if text and text.startswith(BOM) else ""
    ends = "\r\n" if text and "\r\n" in text else "\n"
    result = None if text is None else text.removeprefix(mark)
    if sum(bool(each.part) for each in edits) * len(result or "") > MOST_OUTLINED:
        raise EditError("the subject is too large to name another part: quote `old` alone")
    for edit in edits:
        result = _apply(path, result, edit, ends)
    return f"{mark}{result}"


def _apply(path: str, text: str | None, edit: Edit, ends: str) -> str:
    """Return a text after one edit, whose line ends become `ends`."""
    new, old = (each.replace("\r\n", "\n").replace("\n", ends) for each in (edit.new, edit.old))
    if text and old not in text and edit.old in text:  # whose line ends are not all alike
        old = edit.old
    part = edit.part
    if text is None:
        if old or part or not new.strip():
            raise EditError("there is no such subject: without `old` and a part, `new` makes it")
        return new if new.endswith(ends) else f"{new}{ends}"
    start, end = _find_span(path, text, part)
    if not old:
        if not new.strip():
            raise EditError("`new` is missing: it is added, or replaces `old`")
        return _append(text[:end], new, text[end:], ends)
    found = text.count(old, start, end)
    if old.strip() == text.strip():
        raise EditError("`old` is the whole subject; replace a passage of it")
    if found != 1 or text.find(old, start, end) != text.rfind(old, start, end):
        where = f"part {quote(f'#{part}')}" if part else "the subject"
        times = f"occurs {found:,} times in" if found else "does not occur in"
        raise EditError(f"`old` {times} {where}; it must be there exactly once, to the letter")
    place = text.index(old, start, end)
    return text[:place] + new + text[place + len(old) :]


def _find_span(path: str, text: str, part: str) -> tuple[int, int]:
    if not part:
        return 0, len(text)
    spans, unknown = find_spans(read_document(path, text), [part])
    if not spans:
        near = f"; did you mean: {', '.join(unknown[part])}" if unknown[part] else ""
        raise EditError(f"the subject has no part {quote(f'#{part}')}{near}")
    return spans[0].start, spans[0].end


def _append(before: str, new: str, after: str, ends: str) -> str:
    """Return a text with an addition, which an empty line separates from what is around it."""
    above = f"{before.rstrip()}{ends}{ends}" if before.strip() else ""
    below = f"{ends}{after.lstrip(ends)}" if after.strip() else ""
    return f"{above}{new.strip(ends)}{ends}{below}"


# What no text of a model may have

_TOKEN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20}|github_pat_\w{20}|glpat-[\w-]{20}|sk-[\w-]{20}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[a-z]-[\w-]{10}|xapp-\d-\w{10}|AIza[\w-]{30}|ya29\.[\w-]{20}"
    r"|[rs]k_(?:live|test)_\w{16}|npm_\w{30}|pypi-\w{20}|hf_[A-Za-z]{30})"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
)
"""Passwords and keys known by how they begin."""


def find_flaw(text: str) -> str:
    """Return why a text cannot be proposed; empty if it can."""
    if unseen := UNSEEN.search(text):
        return f"has a character that nobody sees, U+{ord(unseen[0]):04X}; leave it out"
    if found := _TOKEN.search(text):
        return f"seems to have a key or a password ({found[0][:6]}…); name where to find it"
    return ""


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
        with locked(self.directory / ".lock"):
            before = self._read(new.file_name)
            edits = (*before.edits, *new.edits) if before else new.edits
            now = _write_time(self.clock())
            whole = replace(before or new, edits=edits, kept="", changed_at=now)
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
            raise KbError(
                f"the proposal would have {size:,} characters; at most"
                f" {self.most_characters:,} can be reviewed well: propose less"
            )
        if is_first and len(self.read_all()) >= self.most_waiting:
            raise KbError(f"{self.most_waiting} proposals wait already, {_ASK}")

    def read_all(self) -> list[Proposal]:
        """Return the proposals that wait, oldest first; an unreadable file is none."""
        found = (self._read(path.name) for path in self.directory.glob("*.json"))
        return sorted(filter(None, found), key=lambda each: (each.changed_at, each.id))

    def drop_expired(self) -> list[Proposal]:
        """Delete the proposals that have waited too long, and return them."""
        first = _write_time(self.clock() - self.oldest)
        dropped: list[Proposal] = []
        for each in self.read_all():
            with suppress(ChangedError):  # another process drops them too
                if each.changed_at < first:
                    self.drop(each)
                    dropped.append(each)
        return dropped

    def drop(
        self, proposal: Proposal, *, kept: str = "", write: Callable[[], object] = lambda: None
    ) -> None:
        """Delete a proposal after `write`, before which the digest of what it writes is recorded.

        Raises ChangedError if it is not the same any more, and what `write` does.
        """
        file = self.directory / proposal.file_name
        with locked(self.directory / ".lock"):
            found = self._read(file.name)
            if found is None or found.id != proposal.id:
                raise ChangedError("proposal")
            if kept:
                self._write(replace(proposal, kept=kept))
            try:
                write()
            except (KbError, OSError):
                self._write(replace(proposal, kept=""))
                raise
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


def _write_time(time: datetime) -> str:
    return time.isoformat(timespec="microseconds")


def digest(text: str) -> str:
    """Return the digest of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
