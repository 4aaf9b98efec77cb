"""Skills: directories with a SKILL.md, which are one subject each, and the files in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.containment import Containment
from llm_kb.subjects.ignore import find_fault
from llm_kb.subjects.topics import Layout, Subject, is_portable, slugify, strip_extension
from llm_kb.texts.decoding import START
from llm_kb.texts.formats import MARKDOWN_ENDING, find_extension, find_format
from llm_kb.texts.safe import visible_line

MAX_LEVELS = 100
"""Deepest nesting that is entered; hostile trees are thousands of directories deep."""

SKILL_FILE = "SKILL.md"
"""The file that makes a directory a skill."""

AGENT_SKILL = "project-knowledge"
"""The directory of the skill that tells coding agents about the knowledge base."""

AGENT_MARK = "<!-- written by `llm kb connect`, which replaces it -->"
"""A line of that skill, by which we know it: it is about the topics, so it is not a subject."""


def is_agent_skill(containment: Containment, path: str) -> bool:
    """Tell whether a file is the skill that `llm kb connect` wrote; others are not opened."""
    if not f"{containment.prefix}{path}".endswith(f"/{AGENT_SKILL}/{SKILL_FILE}"):
        return False
    try:
        return AGENT_MARK.encode() in containment.read_file(path, START)[0]
    except OSError:
        return False


def find_skill(root: Path, path: str, slug: str) -> str | None:
    """Return the slug of the innermost skill that holds a directory; None without one."""
    # `Path.is_file` raises for a path that is too long.
    while not os.path.isfile(root / path / SKILL_FILE):  # noqa: PTH113
        if not path:
            return None
        path, slug = _parent(path), _parent(slug)
    return slug[:-1] or slugify(SKILL_FILE)


def _parent(directory: str) -> str:
    """Return the parent of a directory; paths end in `/`, and the root is empty."""
    return directory[: directory.rfind("/", 0, -1) + 1]


def place_subject(slug: str, layout: Layout) -> str:
    """Return the path of a new subject below its topic. Raises KbError."""
    path = slug if find_extension(slug) and find_format(slug) else f"{slug}{MARKDOWN_ENDING}"
    if layout is Layout.SKILLS:
        path = f"{slug}/{SKILL_FILE}"
    if path.count("/") > MAX_LEVELS:
        raise KbError(f"cannot make a subject more than {MAX_LEVELS} directories deep")
    for part in (*slug.split("/"), *path.split("/")):
        is_usual = visible_line(part) == part and part.strip(".") and not re.search(r"[\[\]]", part)
        if find_fault(part) or not (is_usual and is_portable(part)):
            raise KbError(
                f"cannot make a subject {slug!r}: {part[:40]!r} cannot be the name of a subject"
            )
    return path


def list_bundled(subjects: Iterable[Subject], skill: Subject) -> list[Subject]:
    """Return the files that come with a skill; those that start with a dot are not shown."""
    subjects = list(subjects)
    root = _parent(skill.path)
    inner = {
        _parent(other.path)
        for other in subjects
        if _is_skill(other) and other.path != skill.path and other.path.startswith(root)
    }
    return [
        subject
        for subject in subjects
        if _is_bundled(subject)
        and subject.path.startswith(root)
        and not subject.path.startswith(tuple(inner))
    ]


def is_shown(subject: Subject, layout: Layout) -> bool:
    """Tell whether listings show a subject, or the skill that it comes with names it."""
    is_named = layout is Layout.SKILLS and _is_bundled(subject)
    return is_named or not subject.hidden


def find_bundled(
    subjects: Iterable[Subject], reference: str, skills: Iterable[Subject]
) -> Subject | None:
    """Return the file of a skill that a name in a SKILL.md refers to; None if it is ambiguous.

    Case does not matter, and the skill's directory may be left out if only one file has
    this name, or only one in these `skills`. A directory stands for its index page.
    """
    wanted = reference.casefold().removeprefix("./").rstrip("/")
    ends = tuple(f"/{each}" for each in {wanted, strip_extension(wanted)})
    found = [
        subject
        for subject in subjects
        if _is_bundled(subject)
        and any(each.endswith(ends) for each in _spell(subject.path.casefold()))
    ]
    roots = tuple(_parent(skill.path) for skill in skills)
    here = [subject for subject in found if roots and subject.path.startswith(roots)]
    return next((each[0] for each in (found, here) if len(each) == 1), None)


def _spell(path: str) -> Iterator[str]:
    """Yield a path with and without extension; of an index page, also that of its directory."""
    bare = f"/{strip_extension(path)}"
    yield from (f"/{path}", bare)
    directory, _, name = bare.rpartition("/")
    if name in {"index", "_index", "readme"}:
        yield directory


def _is_skill(subject: Subject) -> bool:
    return subject.path.rpartition("/")[2] == SKILL_FILE


def _is_bundled(subject: Subject) -> bool:
    return not _is_skill(subject) and "/." not in f"/{subject.path}"
