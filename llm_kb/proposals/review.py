"""A proposal as a person sees it: its effect on the file as it is now, and notes on it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_below
from llm_kb.hookspecs import Waiting
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.proposals.inbox import CHANGED, Inbox, Proposal, digest
from llm_kb.proposals.tool import find_topic, make_edits, open_inbox, read_place
from llm_kb.rendering.differences import render_difference
from llm_kb.terminal import screen
from llm_kb.terminal.editor import open_editor
from llm_kb.texts.safe import visible_line, visible_text
from llm_kb.upkeep.check import check_text, list_own
from llm_kb.upkeep.links import Links

_DIRECTIVE = re.compile(
    r"^[ \t]*(?:\.\. +(?:include|literalinclude|raw|csv-table|eval-rst|exec|program-output)\b.*"
    r"|include::.*|#\+(?:include|begin_src|call|setupfile)\b.*|# *eval:.*|```+ *\{.*)",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines by which a builder of pages or an editor includes a file, or runs something."""


def list_waiting(kb: KnowledgeBase) -> Sequence[Waiting]:
    """Return the proposals for a workspace, oldest first."""
    inbox = open_inbox(kb)
    return [ProposalReview(kb, inbox, each) for each in inbox.read_all()]


class ProposalReview:
    """A proposal that waits. Implements `Waiting`."""

    before: str | None = None
    """The text of the file when it was shown; None if there is none."""
    after: str | None = None
    """Its text with the edits; None if they do not fit."""
    notes: Sequence[str] = ()

    def __init__(self, kb: KnowledgeBase, inbox: Inbox, proposal: Proposal) -> None:
        self._kb, self._inbox, self.proposal = kb, inbox, proposal
        self._edited: str | None = None
        self.id = proposal.id

    def _read(self) -> str | None:
        """Return the text of the file as it is; None if there is none. Raises KbError."""
        self._kb.renew()
        topic = find_topic(self._kb, self.proposal.topic)
        if str(topic.config.root) != self.proposal.root:
            raise KbError(f"topic {self.proposal.topic!r} is in another directory now")
        return read_place(topic, self.proposal.path)

    def look(self) -> None:
        """Make the edits on the file as it is now."""
        self.before = self.after = None
        try:
            self.before = self._read()
            self.after = self._edited
            if self._edited is None:
                self.after = make_edits(self.proposal, self.before)
            self.notes = tuple(self._iter_notes(self.before or "", self.after or ""))
        except KbError as error:
            self.notes = (f"it no longer fits: {error}; edit or reject it",)

    def _iter_notes(self, before: str, after: str) -> Iterator[str]:
        """Yield what speaks against a text, and what only `check` finds in the new one."""
        if self._edited is not None:
            yield "as you edited it; your edit is lost unless you keep it"
        if self.before is not None and digest(before) != self.proposal.base:
            yield "the subject was changed since this was proposed"
        for line in dict.fromkeys(_DIRECTIVE.findall(after)):
            if line not in before:
                yield f"a program may include or run something here: {line.strip()}"
        opened, links = (
            self._kb.find_topic(self.proposal.topic),
            Links(self._kb, list_own(self._kb)),
        )
        old, new = (
            {(e.rule, e.what) for e in check_text(links, opened, self.proposal.path, text)}
            for text in (before, after)
        )
        for rule, what in sorted(new - old, key=lambda each: each[1]):
            yield f"{what} [{rule.id}]"

    @property
    def difference(self) -> Sequence[str]:
        """The lines that differ; of edits that do not fit, these themselves."""
        if self.after is not None:
            return render_difference(self.before or "", self.after, self.proposal.path)
        edits = self.proposal.edits
        texts = [each for edit in edits for each in (("-", edit.old), ("+", edit.new))]
        return [visible_text(f"{sign}{line}") for sign, text in texts for line in text.splitlines()]

    def describe(self) -> Mapping[str, object]:
        """Return the record that `--json` prints."""
        self.look()
        proposal = self.proposal
        return {
            "id": proposal.id,
            "subject": proposal.subject,
            "file": f"{proposal.root}/{proposal.path}",
            "is_new": proposal.base is None,
            "reasons": [each.reason for each in proposal.edits],
            "changed_at": proposal.changed_at,
            "fits": self.after is not None,
            "notes": list(self.notes),
            "difference": "\n".join(self.difference),
        }

    def show(self) -> Iterator[str]:
        """Yield its lines for people."""
        record, proposal = self.describe(), self.proposal
        new = " (new)" if record["is_new"] else ""
        subject = screen.style(visible_line(proposal.subject), bold=True)
        yield f"{subject}{new}  {proposal.id}  {proposal.changed_at[:16].replace('T', ' ')}"
        yield f"  file: {visible_line(str(record['file']))}"
        yield from (f"  why: {visible_line(edit.reason)}" for edit in proposal.edits)
        colors = {"-": "red", "+": "green", "@": "cyan"}
        for line in self.difference:
            color = colors.get(line[:1])
            yield screen.style(line, fg=color) if color else line
        yield from (f"  note: {visible_line(note)}" for note in self.notes or ["none"])

    def keep(self) -> str:
        """Write what was shown. Raises KbError if the file is another one now."""
        text = self.after
        if text is None:
            raise KbError(f"{self.id}: {self.notes[0]}")
        if not text.strip():
            raise KbError("nothing is left of the text; edit it again, or reject it")
        self._inbox.drop(self.proposal, partial(self._write, text))
        return f"Written: {visible_line(os.fspath(Path(self.proposal.root, self.proposal.path)))}"

    def _write(self, text: str) -> None:
        def check() -> None:
            if self._read() != self.before:
                raise KbError(CHANGED.format("subject"))

        check()
        root, path = Path(self.proposal.root), self.proposal.path
        replace_below(root, path, text.encode(), check=check)

    def reject(self) -> str:
        """Delete the proposal. Raises KbError if it has changed since."""
        self._inbox.drop(self.proposal)
        return f"Rejected: {self.proposal.subject}"

    def edit(self) -> str:
        """Let a person change the text."""
        self._read()  # raises if no text of it could be kept
        text = self.after or self.before or ""
        with tempfile.TemporaryDirectory(prefix="llm-kb-") as directory:
            file = Path(directory, Path(self.proposal.path).name)
            file.write_bytes(text.encode())
            open_editor(file)
            self._edited = file.read_bytes().decode(errors="replace")
        return ""
