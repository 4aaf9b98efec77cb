"""The guides that apply in a directory: those of the workspace and of each directory below it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.rendering.plain_text import CHARACTERS
from llm_kb.rendering.presentation import Presented, present
from llm_kb.subjects.topics import Subject, TopicConfig
from llm_kb.texts.outlines.outline import read_document

NAMES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
)
"""The files that may be the guide of a directory; the first one that is there is."""

MOST_TOKENS = 4_000
"""Of the root guides of 22 projects 8 have over 2,000 tokens, and 3 over this."""

_IMPORT = re.compile(r"\s*@(\S+)\s*")
"""A guide that stands for another file."""

Locate = Callable[[str], str | None]
"""Returns the address of a file of the workspace, by its path; None for one that is disabled."""


def find_guides(
    workspace: Path, directory: Path, locate: Locate, sent: Sequence[str] = ()
) -> list[Presented]:
    """Return the guides of a workspace from its root down to a directory, the nearest last.

    Each text comes once, and none that is in `sent`. Together they have at most `MOST_TOKENS`,
    filled from the nearest; what is left out is named at the end of its guide.
    """
    topic = DirectoryTopic(TopicConfig(id="guides", root=workspace))
    seen, room = set(map(str.strip, sent)), CHARACTERS * MOST_TOKENS
    found: list[Presented] = []
    for place in _iter_places(workspace, directory):
        guide = _find_guide(topic, place, locate)
        if guide is not None and guide.body.strip() and guide.body.strip() not in seen:
            seen.add(guide.body.strip())
            shown = _cut(guide, room, locate(guide.name) or guide.name)
            room -= len(shown.text)
            found.insert(0, shown)
    return found


def _iter_places(workspace: Path, directory: Path) -> Iterator[str]:
    """Yield the directories on the way up to the workspace, each as the start of a path in it."""
    directory = directory.resolve()
    if not directory.is_relative_to(workspace):
        directory = workspace
    below = directory.relative_to(workspace).parts
    for depth in range(len(below), -1, -1):
        yield "".join(f"{name}/" for name in below[:depth])


def _find_guide(topic: DirectoryTopic, place: str, locate: Locate) -> Presented | None:
    """Return the guide of a directory; a file that only imports another stands for that one."""
    for name in NAMES:
        guide = _read(topic, place + name, locate)
        if guide is not None:
            target = _IMPORT.fullmatch(guide.body)
            return _read(topic, place + target[1].removeprefix("./"), locate) if target else guide
    return None


def _read(topic: DirectoryTopic, path: str, locate: Locate) -> Presented | None:
    """Return a file as a model reads it; None if it is not there, or disabled, or leads outside."""
    found: Sequence[Subject] = [each for each in topic.list(path).subjects if each.path == path]
    if not found or locate(path) is None:
        return None
    try:
        shown = present(found[0], topic.read(found[0], CHARACTERS * MOST_TOKENS * 4))
    except UnreadableError:
        return None
    return None if shown.binary else shown._replace(name=path)


def _cut(guide: Presented, room: int, address: str) -> Presented:
    """Return what fits of a guide, up to a heading or a blank line, and a line on the rest."""
    if len(guide.text) <= room:
        return guide
    room = max(0, room - len(guide.head))
    starts = [each.start for each in read_document(guide.name, guide.body).sections]
    fitting = max((start for start in starts if start <= room), default=0)
    end = fitting or len("".join(guide.body[:room].rpartition("\n\n")[:2]))
    lines = guide.body[end:].count("\n") + (not guide.body.endswith("\n"))
    more = "more than " * guide.is_cut + f"{lines:,}"
    body = guide.body[:end]
    return guide._replace(body=body, shown=guide.size, below=f"… {more} lines more: {address}")
