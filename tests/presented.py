"""Subjects and topics as literals, for the tests of what models read."""

from __future__ import annotations

from pathlib import Path

from llm_kb.rendering.presentation import Presented, present
from llm_kb.subjects.topics import Content, Subject, TopicConfig, slugify

PROJECT = TopicConfig(
    id="project",
    root=Path("/kb/project"),
    title="General Project Knowledge",
    introduction="foo bar baz...",
    description="[[topic description here]]",
)

SKILLS = TopicConfig(id="skills", root=Path("/kb/skills"), title="Learnable Assistant Skills")

BARE = TopicConfig(id="bare", root=Path("/kb/bare"))


def make_subject(path: str) -> Subject:
    """Return the subject at a path, named by its slug."""
    return Subject(slug=slugify(path), name=slugify(path), path=path)


def make_presented(
    path: str, data: bytes | str = b"", *, size: int | None = None, origin: str | None = None
) -> Presented:
    """Present a file of these bytes; `size` says that more follow."""
    data = data.encode() if isinstance(data, str) else data
    content = Content(data=data, size=len(data) if size is None else size, origin=origin)
    return present(make_subject(path), content)
