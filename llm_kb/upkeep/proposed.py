"""A proposal as a person sees it: its effect on the file as it is now, and notes on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_below
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.proposals import ChangedError, Proposal, digest
from llm_kb.knowledge_base.proposing import find_topic, make_edits, open_inbox, read_place
from llm_kb.rendering.differences import render_difference
from llm_kb.texts.safe import visible_text
from llm_kb.upkeep.check import check_text, list_own
from llm_kb.upkeep.links import Links

ASKED = 400
"""The characters of a new text by which a passage is looked for that says the same."""

ALIKE = 0.4
"""The share of the telling words of a new text that such a passage has; measured."""

LEAST_WORDS = 12
"""The fewest words of a text that is looked for: those of a shorter one are in many passages."""


# Without slots: `cached_property` stores values in the instance.
@dataclass(frozen=True, kw_only=True)
class View:
    """What a person was shown, and so what may be kept."""

    proposal: Proposal
    before: str | None = None
    """The text of the file; None if there is none."""
    after: str | None = None
    """Its text with the edits; None if they do not fit."""
    notes: tuple[str, ...] = ()

    @cached_property
    def difference(self) -> list[str]:
        """The lines that differ; of edits that do not fit, these themselves."""
        if self.after is not None:
            return render_difference(self.before or "", self.after, self.proposal.path)
        texts = [
            each for edit in self.proposal.edits for each in (("-", edit.old), ("+", edit.new))
        ]
        return [visible_text(f"{sign}{line}") for sign, text in texts for line in text.splitlines()]


class Desk:
    """Where a person looks at the proposals of a workspace, and keeps them."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.inbox = open_inbox(kb)
        self._links = self._begin()

    def _begin(self) -> Links:
        """Return what pages may lead to as the files are now, which lists and reads each once."""
        self._kb.renew()
        return Links(self._kb, list_own(self._kb))

    def list_waiting(self) -> list[Proposal]:
        """Return the proposals that wait, without those that were kept just before a crash."""
        for each in self.inbox.read_all():
            with suppress(KbError):
                if each.kept and each.kept == digest(self.read(each) or ""):
                    self.inbox.drop(each)
        return self.inbox.read_all()

    def read(self, proposal: Proposal) -> str | None:
        """Return the text of the file as it is; None if there is none. Raises KbError."""
        topic = find_topic(self._kb, proposal.topic)
        if str(topic.config.root) != proposal.root:
            raise KbError(f"topic {proposal.topic!r} is in another directory now")
        return read_place(self._kb, topic, proposal.path)

    def look(self, proposal: Proposal) -> View:
        """Return a proposal as it fits the file now, with notes."""
        view, what = View(proposal=proposal), "reject it"
        try:
            view = replace(view, before=self.read(proposal))
            what = f"edit or {what}"
            view = replace(view, after=make_edits(proposal, view.before))
        except KbError as error:
            return replace(view, notes=(f"it no longer fits: {error}; {what}",))
        return replace(view, notes=tuple(self._iter_notes(view)))

    def take_edited(self, view: View, text: str) -> View:
        """Return a view with the text that a person made of it."""
        edited = replace(view, after=text)
        left = "as you edited it; your edit is lost unless you keep it"
        first = left if text.strip() else "nothing is left of the text; edit it again, or reject it"
        return replace(edited, notes=(first, *self._iter_notes(edited)))

    def _iter_notes(self, view: View) -> Iterator[str]:
        """Yield what speaks against a text, and what only `check` finds in the new one."""
        if view.before is not None and digest(view.before) != view.proposal.base:
            yield "the subject was changed since this was proposed"
        if address := self._find_alike(view):
            yield f"{address} says nearly the same"
        opened = self._kb.find_topic(view.proposal.topic)
        old, new = (
            {(e.rule, e.what) for e in check_text(self._links, opened, view.proposal.path, text)}
            for text in (view.before or "", view.after or "")
        )
        for rule, what in sorted(new - old, key=lambda each: each[1]):
            yield f"{what} [{rule.id}]"

    def _find_alike(self, view: View) -> str:
        """Return the address of the passage that says most of what is new; empty without one."""
        new = " ".join(line[1:] for line in view.difference if line.startswith("+"))
        if len(new.split()) < LEAST_WORDS:
            return ""
        try:
            found = self._kb.find_passages(new[:ASKED], limit=3).passages
        except KbError:
            return ""
        own = (view.proposal.topic, view.proposal.path)
        others = [e for e in found if (e.topic, e.path) != own and e.score >= ALIKE]
        most = max(others, key=lambda each: each.score, default=None)
        return f"{most.topic}/{most.address}" if most else ""

    def keep(self, view: View) -> Path:
        """Write what was shown, and return the file. Raises ChangedError and other KbErrors.

        Killed in between, it is either not written and waits, or written and waits no longer.
        """
        proposal, after = view.proposal, view.after
        if not (after and after.strip()):
            raise KbError(f"{proposal.id}: {view.notes[0]}")
        self.inbox.drop(proposal, kept=digest(after), write=partial(self._write, view, after))
        self._links = self._begin()
        return Path(proposal.root, proposal.path)

    def _write(self, view: View, text: str) -> None:
        if self.read(view.proposal) != view.before:
            raise ChangedError("subject")
        replace_below(Path(view.proposal.root), view.proposal.path, text.encode())
