"""The entries captured in a repository as the topic `repo-knowledge`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from llm_kb.capture import notes
from llm_kb.capture.annotation import read_wisdom
from llm_kb.capture.entries import KINDS, is_outside, normalize_place
from llm_kb.capture.rendering import Section, make_section, make_texts, render_place
from llm_kb.capture.store import parse_note, read_doubts
from llm_kb.errors import KbError
from llm_kb.files.repository import Repository
from llm_kb.files.text_topic import TextTopic, make_subject
from llm_kb.subjects.topics import Kind, Listing, Skipped, Subject, TopicConfig


class CapturedTopic(TextTopic):
    """The entries captured in a repository, one subject for each kind.

    They are rendered from the store on first use. A path of the repository names a subject, too:
    all entries that apply there. If the store cannot be read, there are no subjects but the
    reason.
    """

    def __init__(
        self, kind: Kind, repository: Repository, *, index: Callable[[], Path | None] = lambda: None
    ) -> None:
        config = TopicConfig(
            id=kind.ids,
            kind=kind,
            root=repository.root,
            title="Repository conventions",
            introduction=(
                "Conventions, module boundaries and anti-patterns recorded in this repository. "
                "A path gives what applies there."
            ),
            description=(
                "What was learned while working on this repository and holds beyond one commit. "
                "Each entry names the files it applies to and the commit it comes from. Load a "
                "path of the repository, such as `src/` or `src/main.py`, for what applies there."
            ),
        )
        super().__init__(config, lambda: make_texts(self.sections), index)
        self._problem: str | None = None

    def list(self, reference: str | None = None) -> Listing:
        """Return the subjects, and the reason if there are none; or what a reference names."""
        listing = super().list(reference)
        if reference is not None:
            return Listing(subjects=listing.subjects or self._find_place(reference))
        problem = self._problem
        skipped = () if problem is None else (Skipped(path=notes.KNOWLEDGE_REF, reason=problem),)
        return replace(listing, skipped=skipped)

    def _find_place(self, reference: str) -> Sequence[Subject]:
        """Return the entries that apply to a path of the repository, as one subject."""
        # Stars alone are a pattern for all subjects, not the place `*`.
        if not set(reference) - {"*", "/"}:
            return ()
        place = normalize_place(reference)
        return () if self._render_place(place) is None else (make_subject(place),)

    def find_text(self, name: str) -> str | None:
        """Return the entries of one kind or place."""
        return super().find_text(name) or self._render_place(name)

    def _render_place(self, place: str) -> str | None:
        """Return the entries that apply to a path below the root; None for an unknown path."""
        if is_outside(place):
            return None
        exists = bool(self.sections) and os.path.lexists(self.config.root / place)
        return render_place(place, self.sections, exists=exists)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All entries as lists, one for each kind; empty if the store cannot be read."""
        try:
            store = parse_note(notes.read_note(self.config.root, notes.KNOWLEDGE_REF))
            doubts = read_doubts(self.config.root, store.entries)
            kinds = (make_section(kind, store, doubts) for kind in KINDS)
            return (*kinds, read_wisdom(self.config.root))
        except KbError as error:
            # A request must not fail because of a topic that it may not use.
            self._problem = str(error)
            return ()
