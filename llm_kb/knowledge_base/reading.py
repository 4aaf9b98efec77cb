"""Reads subjects: whole, by parts, their start, and the files of a skill."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from llm_kb.errors import NoPartError, UnreadableError
from llm_kb.files.layouts import SKILL_FILE, find_bundled, list_bundled
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.rendering.learn_text import BYTES_A_CHARACTER, list_files
from llm_kb.rendering.parts import WHOLE, AnchorError, present_asked
from llm_kb.rendering.presentation import Presented, present_unreadable, read_as_markdown
from llm_kb.rendering.summaries import describe, summarize
from llm_kb.subjects.selection import Selection
from llm_kb.subjects.topics import Catalog, Content, Layout, Subject

SUMMARY_BYTES = 4096
"""Number of bytes of a subject that are read for its summary."""

MOST_READ = 20_000_000
"""Maximum number of bytes of a subject that are searched for parts."""


def read_asked(  # noqa: PLR0913 - what to read, and how much of it
    catalog: Catalog,
    subject: Subject,
    asked: Sequence[str | None],
    *,
    topic: str,
    limit: int | None = None,
    outline_over: int = 0,
) -> tuple[list[Presented], list[AnchorError]]:
    """Read a subject and return the requested pieces, and the unknown anchors.

    `limit` is the number of bytes of a whole subject that can be shown; None for all.
    """
    try:
        content = _read_content(catalog, subject, asked, limit, outline_over)
    except UnreadableError as error:
        return [present_unreadable(subject, error)], []
    content = read_as_markdown(subject, content)
    return present_asked(subject, content, asked, topic=topic, outline_over=outline_over)


def _read_content(
    catalog: Catalog,
    subject: Subject,
    asked: Sequence[str | None],
    limit: int | None,
    outline_over: int,
) -> Content:
    """Read as much of a subject as the request needs."""
    if subject.extension == "ipynb":
        return catalog.read(subject, MOST_READ)  # no part of a notebook can be read by itself
    if WHOLE in asked:
        return catalog.read(subject, limit)
    if None in asked and len(asked) == 1:
        if limit is None or not outline_over:
            return catalog.read(subject, limit)
        content = catalog.read(subject, max(limit, outline_over * BYTES_A_CHARACTER))
        if content.size <= len(content.data):
            return content
    return catalog.read(subject, MOST_READ)


def find_missing_parts(
    topic: str, selection: Selection, unknown: Sequence[tuple[Subject, AnchorError]]
) -> list[NoPartError]:
    """Return an error for each anchor that no subject of its slug has."""
    slugs = Counter(subject.slug for subject in selection.subjects)
    lacking = Counter((subject.slug, error.anchor) for subject, error in unknown)
    errors = {
        (subject.slug, error.anchor): NoPartError(
            topic, subject.name, error.anchor, error.near, is_ambiguous=error.is_ambiguous
        )
        for subject, error in unknown
    }
    return [error for key, error in errors.items() if lacking[key] == slugs[key[0]]]


def summarize_each(opened: OpenTopic, subjects: Sequence[Subject]) -> list[str]:
    """Return the summaries of subjects, in their order."""
    return [
        summarize(_read_start(opened.catalog, subject), subject.extension, subject.slug)
        for subject in subjects
    ]


def describe_skill(catalog: Catalog, subject: Subject) -> str:
    """Return the whole description of a skill, by which models choose it."""
    return describe(_read_start(catalog, subject), subject.extension, subject.slug)


def _read_start(catalog: Catalog, subject: Subject) -> bytes:
    """Return the start of a subject, or all of a notebook; empty if it cannot be read."""
    limit = MOST_READ if subject.extension == "ipynb" else SUMMARY_BYTES
    try:
        return read_as_markdown(subject, catalog.read(subject, limit)).data
    except UnreadableError:
        return b""  # the menu still names it; loading it gives the reason


class NamedFiles:
    """Files that other files of a topic refer to: those of skills, and linked pages.

    They are found by these names, which are relative to the referring file.
    """

    def __init__(self, opened: OpenTopic) -> None:
        self._catalog = opened.catalog
        self._layout = opened.topic.layout

    @cached_property
    def _subjects(self) -> Sequence[Subject]:
        return self._catalog.list().subjects

    def complete(self, patterns: Sequence[str]) -> list[str]:
        """Return the patterns, with bare names of files completed to their slugs."""
        slugs = {pattern: pattern.partition("#")[0] for pattern in patterns}
        found = {pattern: self._catalog.list(slug).subjects for pattern, slug in slugs.items()}
        skills = [subject for subjects in found.values() for subject in subjects]
        return [
            pattern if found[pattern] or "*" in pattern else self._complete(pattern, skills)
            for pattern in patterns
        ]

    def _complete(self, pattern: str, skills: Sequence[Subject]) -> str:
        name, sign, anchor = pattern.partition("#")
        name = re.sub(r"^(?:\.{1,2}/)+", "", name)
        bundled = find_bundled(self._subjects, name, skills)
        return f"{bundled.path}{sign}{anchor}" if bundled else pattern

    def append_to(self, piece: Presented, subject: Subject) -> Presented:
        """Return a SKILL.md with a list of its bundled files."""
        if self._layout is not Layout.SKILLS:
            return piece
        if subject.path.rpartition("/")[2] != SKILL_FILE or piece.name != subject.name:
            return piece
        names = [bundled.name for bundled in list_bundled(self._subjects, subject)]
        return piece._replace(below="\n\n".join(filter(None, (piece.below, list_files(names)))))
