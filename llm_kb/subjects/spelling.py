"""The spellings of a subject: with or without its extension and its leading dots."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from llm_kb.subjects.patterns import compile_any, parse_pattern
from llm_kb.subjects.topics import Subject, slugify


def compose(path: str) -> str:
    """Return a path in Unicode NFC, as slugs and references are."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def strip_dots(path: str) -> str:
    """Return a path without the leading dots of its components."""
    return "/".join(component.lstrip(".") for component in path.split("/"))


def strip_extension(path: str) -> str:
    """Return a path without its last extension."""
    directory, slash, name = path.rpartition("/")
    bare = name.lstrip(".")
    stem, dot, _ = bare.rpartition(".")
    return directory + slash + name[: len(name) - len(bare)] + (stem if dot and stem else bare)


def spell(path: str) -> set[str]:
    """Return every spelling of the subject at a path."""
    path = compose(path)
    return {path, strip_dots(path), strip_extension(path), slugify(path)}


def pick(reference: str, subjects: Iterable[Subject]) -> list[Subject]:
    """Return the subjects that a reference names.

    Without an extension it names all that share the slug. With one it names the
    file that has it, or else those that differ from it by dots only.
    """
    subjects = list(subjects)
    whole = [subject for subject in subjects if _agrees(reference, compose(subject.path))]
    exact = [subject for subject in whole if compose(subject.path) == reference]
    named = set(exact or whole)
    return [
        s for s in subjects if s in named or any(_agrees(reference, stem) for stem in _stems(s))
    ]


def _stems(subject: Subject) -> Sequence[str]:
    """Return the subject's path without its extension, and its slug if it is shorter still."""
    stem = strip_extension(compose(subject.path))
    depth = subject.slug.count("/")
    # The slug of a skill is its directory, so its SKILL.md is one level below.
    return (stem, stem.rpartition("/")[0]) if stem.count("/") > depth else (stem,)


def _agrees(reference: str, path: str) -> bool:
    """Tell whether each component is the path's, or the path's without its dots."""
    wanted, held = reference.split("/"), path.split("/")
    return len(wanted) == len(held) and all(
        want in (hold, hold.lstrip(".")) for want, hold in zip(wanted, held, strict=True)
    )


class Disabled:
    """The disabled entries of a topic; without case where its disk ignores case.

    Raises PatternError for an entry that cannot be a pattern.
    """

    def __init__(self, entries: Sequence[str], *, ignores_case: bool) -> None:
        self._ignores_case = ignores_case
        self._matches = compile_any([parse_pattern(self._fold(entry)) for entry in entries])

    def covers(self, slug: str, paths: Iterable[str]) -> bool:
        """Tell whether a subject is disabled; `paths` are all that lead to its file."""
        spellings = {slug}.union(*map(spell, paths))
        return any(self._matches(self._fold(spelling)) for spelling in spellings)

    def _fold(self, text: str) -> str:
        return text.casefold() if self._ignores_case else text
