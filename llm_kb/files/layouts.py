"""How the files of a directory become subjects: one a file, or one a skill."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from llm_kb.files.walk import FoundFiles
from llm_kb.subjects.patterns import Pattern
from llm_kb.subjects.spelling import strip_extension
from llm_kb.subjects.topics import Subject, slugify

SKILL_FILE = "SKILL.md"
"""What makes a directory a skill."""


class Reader(Protocol):
    """Turns the files of directories into subjects."""

    has_slugs_in_place: bool
    """Whether every slug starts with its directory's."""

    def slugs(self, found: FoundFiles) -> list[str]:
        """Return the slug of each file of a directory; empty for one that is not a subject."""

    def owner(self, found: FoundFiles) -> str | None:
        """Return the slug of the subject that a directory's files are parts of, if any."""

    def listed(self, found: FoundFiles) -> FoundFiles:
        """Leave out the files that are hidden subjects, if all that start with a dot are gone."""

    def is_hidden(self, path: str) -> bool:
        """Tell whether the subject at a path is hidden."""

    def enters(self, pattern: Pattern) -> Callable[[str], bool]:
        """Return a test, by its slug, of whether a directory can hold a match."""


class FilesReader:
    """Every file is a subject."""

    has_slugs_in_place = True

    def slugs(self, found: FoundFiles) -> list[str]:
        """Return the slug of each file."""
        directory = found.place.slug
        names, bare = found.names, found.bare
        # Nearly all slugs are made here, at a fraction of what `slugify` costs.
        slugs = [directory + (name.rpartition(".")[0] or name) for name in names[:bare]]
        if bare < len(names):
            slugs += [directory + slugify(name) for name in names[bare:]]
        return slugs

    def owner(self, found: FoundFiles) -> str | None:
        """Return nothing: files belong to themselves."""
        return None

    def listed(self, found: FoundFiles) -> FoundFiles:
        """Leave out nothing more."""
        return found

    def is_hidden(self, path: str) -> bool:
        """Tell whether any component starts with a dot."""
        return path.startswith(".") or "/." in path

    def enters(self, pattern: Pattern) -> Callable[[str], bool]:
        """Enter what lies on the way to a match."""
        return pattern.may_match_below


class SkillsReader:
    """Every directory with a SKILL.md is a subject, the other files in it hidden ones."""

    has_slugs_in_place = False

    def __init__(self, is_skill: Callable[[str], bool]) -> None:
        """`is_skill` tells whether the directory at a path, which ends in `/`, is a skill."""
        self._is_skill = is_skill
        self._owners: dict[str, str | None] = {}

    def slugs(self, found: FoundFiles) -> list[str]:
        """Return the directory's slug for a SKILL.md, and none outside of all skills."""
        if self.owner(found) is None:
            return [""] * len(found.names)
        directory = found.place.slug
        return [
            # A topic that is itself a skill has no directory to be named by.
            (directory[:-1] if name == SKILL_FILE else "") or slugify(directory + name)
            for name in found.names
        ]

    def owner(self, found: FoundFiles) -> str | None:
        """Return the slug of the innermost skill the directory is or lies in."""
        return self._find_owner(found.place.path, found.place.slug)

    def _find_owner(self, path: str, slug: str) -> str | None:
        if path not in self._owners:
            if self._is_skill(path):
                self._owners[path] = slug[:-1] or slugify(SKILL_FILE)
            else:
                parent, upper = _parent(path), _parent(slug)
                self._owners[path] = self._find_owner(parent, upper) if path else None
        return self._owners[path]

    def listed(self, found: FoundFiles) -> FoundFiles:
        """Leave out the parts of skills."""
        return found._replace(names=[name for name in found.names if name == SKILL_FILE])

    def is_hidden(self, path: str) -> bool:
        """Tell whether it is a part of a skill, or any component starts with a dot."""
        is_part = path.rpartition("/")[2] != SKILL_FILE
        return is_part or path.startswith(".") or "/." in path

    def enters(self, pattern: Pattern) -> Callable[[str], bool]:
        """Enter what may be a match itself, or lies on the way to one."""
        return lambda slug: bool(pattern.matches(slug)) or pattern.may_match_below(slug)


def _parent(directory: str) -> str:
    """Return the directory a directory lies in; both end in `/`, and the root is empty."""
    return directory[: directory.rfind("/", 0, -1) + 1]


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


def find_bundled(
    subjects: Iterable[Subject], reference: str, skills: Iterable[Subject]
) -> Subject | None:
    """Return the file of a skill that a name in a SKILL.md file stands for.

    Case does not matter, and the skill's directory may be left out where one file alone has
    this name, or one alone in these `skills`.
    """
    wanted = reference.casefold().removeprefix("./")
    stems = {wanted, strip_extension(wanted)}
    found = [
        subject
        for subject in subjects
        if _is_bundled(subject) and stems & set(_tails(subject.path.casefold(), wanted))
    ]
    roots = tuple(_parent(skill.path) for skill in skills)
    here = [subject for subject in found if roots and subject.path.startswith(roots)]
    for candidates in (found, here):
        if len(candidates) == 1:
            return candidates[0]
    return None


def _tails(path: str, wanted: str) -> tuple[str, str]:
    """Return as many components of the end of a path as are wanted, with and without extension."""
    depth = wanted.count("/") + 1
    tail = "/".join(path.split("/")[-depth:])
    return tail, strip_extension(tail)


def _is_skill(subject: Subject) -> bool:
    return subject.path.rpartition("/")[2] == SKILL_FILE


def _is_bundled(subject: Subject) -> bool:
    return not _is_skill(subject) and "/." not in f"/{subject.path}"
