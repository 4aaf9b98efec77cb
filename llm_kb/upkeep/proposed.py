"""A proposal as a person sees it: its effect on the file as it is now, and notes on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from llm_kb.config.workspace import find_cwd
from llm_kb.errors import KbError
from llm_kb.files.atomic import find_inside, replace_below
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.proposals.inbox import ChangedError, Inbox, Proposal, digest
from llm_kb.knowledge_base.proposals.places import read_place
from llm_kb.knowledge_base.proposing import check_edits, find_topic
from llm_kb.rendering.differences import render_difference
from llm_kb.upkeep.check import Inspection

ASKED = 400
"""The characters of a new text by which a passage is looked for that says the same."""

ALIKE = 0.4
"""The share of the telling words of a new text that such a passage has; measured."""


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


def list_waiting(kb: KnowledgeBase, inbox: Inbox) -> list[Proposal]:
    """Return the proposals that wait, without those that were kept just before a crash."""
    return [each for each in inbox.read_all() if not (_is_written(kb, each) and inbox.drop(each))]


def _is_written(kb: KnowledgeBase, proposal: Proposal) -> bool:
    try:
        return bool(proposal.kept) and digest(_read(kb, proposal) or "") == proposal.kept
    except KbError:
        return False


def _read(kb: KnowledgeBase, proposal: Proposal) -> str | None:
    """Return the text of the file as it is; None if there is none. Raises KbError."""
    topic = find_topic(kb, proposal.topic)
    if str(topic.config.root) != proposal.root:
        raise KbError(f"topic {proposal.topic!r} is in another directory now")
    return read_place(topic, proposal.path)


def make_inspection(kb: KnowledgeBase) -> Inspection:
    """Return what finds faults in the texts of many proposals."""
    return Inspection(kb, find_cwd() or Path("/"), lambda _done, _all: None)


def look(kb: KnowledgeBase, proposal: Proposal, check: Inspection | None = None) -> View:
    """Return a proposal as it fits the file now, with notes."""
    before = None
    try:
        before = _read(kb, proposal)
        after = check_edits(proposal, before)
    except KbError as error:
        notes = (f"it no longer fits: {error}; edit or reject it",)
        return View(proposal=proposal, before=before, notes=notes)
    return View(
        proposal=proposal,
        before=before,
        after=after,
        notes=tuple(_iter_notes(kb, proposal, before, after, check or make_inspection(kb))),
    )


def _iter_notes(
    kb: KnowledgeBase, proposal: Proposal, before: str | None, after: str, check: Inspection
) -> Iterator[str]:
    if before is not None and digest(before) != proposal.base:
        yield "the subject was changed since; the proposal still fits"
    if address := _find_alike(kb, proposal):
        yield f"{address} says nearly the same"
    yield from _iter_findings(kb, proposal, before, after, check)


def _iter_findings(
    kb: KnowledgeBase, proposal: Proposal, before: str | None, after: str, check: Inspection
) -> Iterator[str]:
    """Yield what `check` finds in a text that it does not find in the text before."""
    opened = kb.find_topic(proposal.topic)
    old, new = (
        {(each.rule, each.what) for each in check.inspect_text(opened, proposal.path, text)}
        for text in (before or "", after)
    )
    for rule, what in sorted(new - old, key=lambda each: each[1]):
        yield f"{what} [{rule.id}]"


def take_edited(kb: KnowledgeBase, view: View, after: str, check: Inspection) -> View:
    """Return a view with the text that a person made of it, which fits what was shown."""
    found = _iter_findings(kb, view.proposal, view.before, after, check)
    return replace(view, after=after, notes=("as you edited it", *found))


def _find_alike(kb: KnowledgeBase, proposal: Proposal) -> str:
    """Return the address of the passage that says most of a new text; empty if none says much."""
    new = " ".join(each.new for each in proposal.edits)
    try:
        found = kb.find_passages(new[:ASKED], limit=3).passages
    except KbError:
        return ""
    own = (proposal.topic, proposal.path)
    others = [each for each in found if (each.topic, each.path) != own and each.score >= ALIKE]
    most = max(others, key=lambda each: each.score, default=None)
    return f"{most.topic}/{most.address}" if most else ""


def keep(kb: KnowledgeBase, inbox: Inbox, view: View) -> Path:
    """Write what was shown, and return the file. Raises ChangedError and other KbErrors.

    Killed in between, it is either not written and waits, or written and waits no longer.
    """
    proposal = view.proposal
    if view.after is None:
        raise KbError(f"{proposal.id}: {view.notes[0]}")
    if not view.after.strip():
        raise KbError(f"{proposal.id}: nothing is left of the text; edit it again, or reject it")
    if _read(kb, proposal) != view.before:
        raise ChangedError("subject")
    root, place = Path(proposal.root), Path(proposal.path)
    inbox.mark(proposal, digest(view.after))
    if find_inside(root, place) != place:  # a link that is swapped in just now
        raise ChangedError("subject")
    replace_below(root, place, view.after.encode())
    inbox.drop(proposal)
    return root / place
