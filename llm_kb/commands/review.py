"""`llm kb review`: what models proposed, for a person to keep or reject."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from llm_kb.capture.store import load_store
from llm_kb.commands.new import open_editor
from llm_kb.errors import KbError
from llm_kb.files.repository import find_repository
from llm_kb.host.log import find_conversation
from llm_kb.host.propose_tool import say_expired
from llm_kb.host.reference_calls import find_library, open_plans
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.proposals import ChangedError, Proposal
from llm_kb.rendering.plain_text import count
from llm_kb.terminal import screen
from llm_kb.terminal.output import ask, review_each, say, show, show_content, show_json
from llm_kb.texts.safe import visible_line
from llm_kb.upkeep.proposed import Desk, View


@click.command()
@click.option("--keep", "kept", metavar="ID", multiple=True, help="Keep this proposal")
@click.option("--reject", "rejected", metavar="ID", multiple=True, help="Reject this proposal")
@click.option("-y", "--yes", is_flag=True, help="With --keep, do not ask")
@click.option("json_", "--json", is_flag=True, help="Output the proposals as JSON")
def review(kept: Sequence[str], rejected: Sequence[str], yes: bool, json_: bool) -> None:
    """
    Look at what models proposed to write, one at a time

    Each proposal is shown as a difference from the file as it is now. Keep writes it, edit
    opens the result in your editor and shows it again, reject deletes it. Nothing is staged
    or committed. An ID names exactly what was proposed.

    \b
        llm kb review
        llm kb review --json
        llm kb review --keep fc20180c
    """
    if json_ and (kept or rejected):
        raise click.UsageError("--json lists what waits: without --keep and --reject")
    kb = KnowledgeBase.discover()
    session = _Session(Desk(kb))
    for id_ in kept:
        if session.show(session.find(id_)) and not ask("Write this?", yes=yes):
            raise click.Abort
        show_content(os.fsencode(session.keep()))  # as bytes: a name need not be text
    for id_ in rejected:
        session.reject(session.find(id_))
    if json_:
        show_json([session.describe(each) for each in session.waiting])
    if kept or rejected or json_:
        return
    review_each(session.waiting, session.show, session.act, "--json, --keep ID -y and --reject ID")
    for line in _iter_others(kb):
        say(line)


class _Session:
    """The proposals that wait, and the one that was shown last."""

    _view: View

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        say_expired(desk.inbox)
        self.waiting = desk.list_waiting()

    def find(self, id_: str) -> Proposal:
        """Return the proposal with an id. Raises KbError."""
        waiting = {each.id: each for each in self.waiting}
        if id_ not in waiting:
            ids = ", ".join(waiting) or "none"
            raise KbError(f"no proposal {id_!r} waits here; waiting: {ids}")
        return waiting[id_]

    def show(self, proposal: Proposal, edited: View | None = None) -> bool:
        """Show a proposal as it is now, or as a person edited it; tell whether it fits."""
        self._view = edited or self._desk.look(proposal)
        show("\n".join(_render(self._view)))
        return self._view.after is not None

    def act(self, key: str, proposal: Proposal) -> bool:
        """Do what a key asks for, and tell whether the next one is to be shown."""
        if key == "e":
            self._edit()
        elif key == "k":
            show(f"Written: {visible_line(str(self.keep()))}")
        elif key == "r":
            self.reject(proposal)
        return key != "e"

    def keep(self) -> Path:
        """Write what was shown last, and return the file; show it again if it has changed since."""
        try:
            return self._desk.keep(self._view)
        except ChangedError:
            self.show(self._view.proposal)
            raise

    def reject(self, proposal: Proposal) -> None:
        """Delete a proposal. Raises KbError if it has changed since."""
        self._desk.inbox.drop(proposal)
        say(f"Rejected: {proposal.subject}")

    def _edit(self) -> None:
        """Let a person change the text, and show the result."""
        view = self._view
        self._desk.read(view.proposal)  # raises if no text of it could be kept
        text = view.after
        if text is None:
            text = "\n".join([view.before or "", *(each.new for each in view.proposal.edits), ""])
        with tempfile.TemporaryDirectory(prefix="llm-kb-") as directory:
            file = Path(directory, Path(view.proposal.path).name)
            file.write_bytes(text.encode())
            open_editor(file)
            edited = file.read_bytes().decode(errors="replace")
        self.show(view.proposal, self._desk.take_edited(view, edited))

    def describe(self, proposal: Proposal) -> dict[str, object]:
        """Return the record that `--json` prints."""
        view = self._desk.look(proposal)
        return {
            "id": proposal.id,
            "subject": proposal.subject,
            "file": f"{proposal.root}/{proposal.path}",
            "is_new": proposal.base is None,
            "reasons": [each.reason for each in proposal.edits],
            "changed_at": proposal.changed_at,
            "conversation": find_conversation(proposal.id),
            "fits": view.after is not None,
            "notes": list(view.notes),
            "difference": "\n".join(view.difference),
        }


def _render(view: View) -> Iterator[str]:
    """Yield the lines of a proposal for people."""
    proposal = view.proposal
    new = " (new)" if proposal.base is None else ""
    when = proposal.changed_at[:16].replace("T", " ")
    subject = screen.style(visible_line(proposal.subject), bold=True)
    yield f"{subject}{new}  {proposal.id}  {when}"
    yield f"  file: {visible_line(f'{proposal.root}/{proposal.path}')}"
    for edit in proposal.edits:
        yield f"  why: {visible_line(edit.reason)}"
    if conversation := find_conversation(proposal.id):
        yield f"  from: llm logs --cid {visible_line(conversation)}"
    colors = {"-": "red", "+": "green", "@": "cyan"}
    for line in view.difference:
        color = colors.get(line[:1])
        yield screen.style(line, fg=color) if color else line
    yield from (f"  note: {visible_line(note)}" for note in view.notes or ["none"])


def _iter_others(kb: KnowledgeBase) -> Iterator[str]:
    """Yield a line for fetches that wait, and one for entries."""
    if plans := open_plans(find_library(kb.config, kb.directory)).read_all()[0]:
        yield f"{count(len(plans), 'fetch waits', 'fetches wait')}: llm kb references pending"
    if kb.directory and find_repository(kb.directory):
        waiting = sum(not each.is_settled for each in load_store(kb.directory).entries)
        if waiting:
            yield f"{count(waiting, 'entry waits', 'entries wait')}: llm kb knowledge review"
