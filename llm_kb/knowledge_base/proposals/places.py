"""Which files a model may propose to write or to change."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import KbError, quote
from llm_kb.files.atomic import read_below
from llm_kb.files.containment import resolve_links
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import find_skill, place_subject
from llm_kb.subjects.topics import Layout, Subject
from llm_kb.texts.formats import find_format

MOST_BYTES = 2_000_000
"""The most bytes of a subject that is changed."""

_OBEYED = re.compile(
    r"agents?|claude|gemini|skills?|qwen|warp|crush|replit|iflow|codebuddy|codex|copilot(?:-instructions)?|.*rules"
    r"|(?:.*\.)?(?:instructions|prompt|chatmode|agent|local|override)"
)
"""Names, without extension, of files that programs obey: only people write these."""


class Place(NamedTuple):
    """A file of a topic that may be written."""

    name: str
    """The name of its subject."""
    path: str
    """Its path below the root of the topic."""
    part: str
    """The anchor that was asked for; empty for the whole subject."""


def find_place(topic: DirectoryTopic, asked: str) -> Place:
    """Return the place of a subject, there or not, with or without a part. Raises KbError.

    The topic's id may be before the name.
    """
    config = topic.config
    if config.layout is not Layout.FILES:
        raise KbError(f"topic {config.id!r} has skills, which only people write")
    below = asked.removeprefix(f"{config.id}/")
    # A name may have a `#`; after the last one is else the part.
    for name, part in ((asked, ""), _split(asked), (below, ""), _split(below)):
        subjects = topic.list(name).subjects
        if len(subjects) > 1:
            several = ", ".join(subject.name for subject in subjects)
            raise KbError(f"{quote(name)} names several subjects: {several}")
        if subjects:
            return Place(subjects[0].name, subjects[0].path, part)
    name, part = _split(asked if (config.root / config.id).is_dir() else below)
    return Place(name, place_subject(name, config.layout), part)


def _split(name: str) -> tuple[str, str]:
    """Return the name of a subject, and of its part."""
    before, sign, after = name.rpartition("#")
    return (before, after) if sign else (name, "")


def _find_problem(topic: DirectoryTopic, path: str, subject: Subject | None) -> str:
    """Return why a file may not be written; empty if it may."""
    known, root = find_format(path), topic.config.root
    stem = unicodedata.normalize("NFKC", Path(path).stem).casefold()
    if known is None or not known.proposable:
        return "its format is not one of prose, such as Markdown in .md"
    directory = "".join(path.rpartition("/")[:2])
    if _OBEYED.fullmatch(stem) or find_skill(root, directory, directory) is not None:
        return "programs obey such files, so people write them"
    if any(name.startswith(".") for name in path.split("/")) or (subject and subject.hidden):
        return "it is hidden"
    if topic.excludes(path):
        return "the topic ignores or disables it"
    return _find_obstacle(root / path, is_there=subject is not None)


def _find_obstacle(file: Path, *, is_there: bool) -> str:
    """Return what is in the way of writing a file; empty for nothing."""
    if resolve_links(file) != file:
        return "a link leads to it"
    nearest = next(each for each in (file, *file.parents) if os.path.lexists(each))
    if is_there or (nearest != file and nearest.is_dir()):
        return ""
    return "a file is there, or in the way of its directory"


def read_place(topic: DirectoryTopic, path: str) -> str | None:
    """Return the text of a file as it is; None if it does not exist.

    Raises KbError for a file that may not be written now.
    """
    subjects = [each for each in topic.list(path).subjects if each.path == path]
    if problem := _find_problem(topic, path, subjects[0] if subjects else None):
        raise KbError(f"{quote(path)} of topic {topic.config.id!r} cannot be proposed: {problem}")
    return read_below(topic.config.root, path, MOST_BYTES) if subjects else None
