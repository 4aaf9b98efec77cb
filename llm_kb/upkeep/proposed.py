"""A proposal as a person sees it: its effect on the file as it is now, and notes on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from llm_kb.config.workspace import find_cwd
from llm_kb.errors import KbError
from llm_kb.files.atomic import find_inside, replace_below
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.proposals import ChangedError, Proposal, digest
from llm_kb.knowledge_base.proposing import check_edits, find_topic, open_inbox, read_place
from llm_kb.rendering.differences import render_difference
from llm_kb.upkeep.check import Inspection

ASKED = 400
"""The characters of a new text by which a passage is looked for that says the same."""

ALIKE = 0.4
"""The share of the telling words of a new text that such a passage has; measured."""

LEAST_WORDS = 12
"""The fewest words of a text that is looked for: those of a shorter one are in many passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a person was shown, and so what may be kept."""

    proposal: Proposal
    before: str | None = None
    """The text of the file; None if there is none."""
    after: str | None = None
    """Its text with the edits; None if they do not fit."""
    notes: tuple[str, ...] = ()

    @property
    def difference(self) -> list[str]:
        """The lines that differ; of edits that do not fit, these themselves."""
        if self.after is not None:
            return render_difference(self.before or "", self.after)
        texts = [
            [f"{text}\n" if text else "" for text in (e.old, e.new)] for e in self.proposal.edits
        ]
        return [line for old, new in texts for line in render_difference(old, new)]


class Desk:
    """Where a person looks at the proposals of a workspace, and keeps them."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.inbox = open_inbox(kb)
        self._check = self._begin()

    def _begin(self) -> Inspection:
        """Return an inspection of the files as they are now, which lists and reads each once."""
        self._kb.renew()
        return Inspection(self._kb, find_cwd() or Path("/"), lambda _done, _all: None)

    def list_waiting(self) -> list[Proposal]:
        """Return the proposals that wait, without those that were kept just before a crash."""
        waiting = self.inbox.read_all()
        return [each for each in waiting if not (self._is_written(each) and self.inbox.drop(each))]

    def _is_written(self, proposal: Proposal) -> bool:
        try:
            return bool(proposal.kept) and digest(self._read(proposal) or "") == proposal.kept
        except KbError:
            return False

    def _read(self, proposal: Proposal) -> str | None:
        """Return the text of the file as it is; None if there is none. Raises KbError."""
        topic = find_topic(self._kb, proposal.topic)
        if str(topic.config.root) != proposal.root:
            raise KbError(f"topic {proposal.topic!r} is in another directory now")
        return read_place(topic, proposal.path)

    def look(self, proposal: Proposal) -> View:
        """Return a proposal as it fits the file now, with notes."""
        view = View(proposal=proposal)
        try:
            view = replace(view, before=self._read(proposal))
            view = replace(view, after=check_edits(proposal, view.before))
        except KbError as error:
            return replace(view, notes=(f"it no longer fits: {error}; edit or reject it",))
        return replace(view, notes=(*self._iter_notes(view), *self._iter_findings(view)))

    def take_edited(self, view: View, text: str) -> View:
        """Return a view with the text that a person made of it."""
        edited = replace(view, after=text)
        return replace(edited, notes=("as you edited it", *self._iter_findings(edited)))

    def _iter_notes(self, view: View) -> Iterator[str]:
        if view.before is not None and digest(view.before) != view.proposal.base:
            yield "the subject was changed since; the proposal still fits"
        if address := self._find_alike(view.proposal):
            yield f"{address} says nearly the same"

    def _iter_findings(self, view: View) -> Iterator[str]:
        """Yield what `check` finds in a text that it does not find in the text before."""
        opened = self._kb.find_topic(view.proposal.topic)
        old, new = (
            {(e.rule, e.what) for e in self._check.inspect_text(opened, view.proposal.path, text)}
            for text in (view.before or "", view.after or "")
        )
        for rule, what in sorted(new - old, key=lambda each: each[1]):
            yield f"{what} [{rule.id}]"

    def _find_alike(self, proposal: Proposal) -> str:
        """Return the address of the passage that says most of a new text; empty without one."""
        new = " ".join(each.new for each in proposal.edits)
        if len(new.split()) < LEAST_WORDS:
            return ""
        try:
            found = self._kb.find_passages(new[:ASKED], limit=3).passages
        except KbError:
            return ""
        own = (proposal.topic, proposal.path)
        others = [e for e in found if (e.topic, e.path) != own and e.score >= ALIKE]
        most = max(others, key=lambda each: each.score, default=None)
        return f"{most.topic}/{most.address}" if most else ""

    def keep(self, view: View) -> Path:
        """Write what was shown, and return the file. Raises ChangedError and other KbErrors.

        Killed in between, it is either not written and waits, or written and waits no longer.
        """
        proposal = view.proposal
        if view.after is None:
            raise KbError(f"{proposal.id}: {view.notes[0]}")
        if not view.after.strip():
            raise KbError(
                f"{proposal.id}: nothing is left of the text; edit it again, or reject it"
            )
        if self._read(proposal) != view.before:
            raise ChangedError("subject")
        root, place = Path(proposal.root), Path(proposal.path)
        self.inbox.mark(proposal, digest(view.after))
        if find_inside(root, place) != place:  # a link that is swapped in just now
            raise ChangedError("subject")
        replace_below(root, place, view.after.encode())
        self.inbox.drop(proposal)
        self._check = self._begin()
        return root / place
