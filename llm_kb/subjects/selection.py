"""Which subjects of a topic a list of patterns names: exact references first, then globs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Catalog, Subject, Visibility

NEAR_SLUGS = 5
"""How many near slugs an error names at most."""

NEAR_RATIO = 0.6
"""How alike a slug must be to be named, from 0 to 1 (difflib's own default)."""

NEAR_CANDIDATES = 5000
"""Above this many listed subjects none is compared: a suggestion must not cost seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The subjects that patterns name, and the patterns that name none.

    Subjects stand in the order of the patterns, sorted by slug within each; one
    that several patterns name stands where it was named first.
    """

    subjects: tuple[Subject, ...] = ()
    exact: frozenset[str] = frozenset()
    """The identities of the subjects that an exact reference named."""
    missing: tuple[str, ...] = ()

    @property
    def is_single(self) -> bool:
        """Whether one exact reference named exactly one subject."""
        return len(self.subjects) == 1 and len(self.exact) == 1 and not self.missing


def select(catalog: Catalog, patterns: Iterable[str]) -> Selection:
    """Resolve patterns against a topic; PatternError when one is malformed.

    A pattern that equals a subject's slug is an exact reference, also where it
    could be read as a glob, and the only way to a hidden subject.
    """
    return join_selections(_select(catalog, text) for text in patterns)


def join_selections(selections: Iterable[Selection]) -> Selection:
    """Return one selection of what several hold, in their order."""
    chosen: dict[str, Subject] = {}
    exact: set[str] = set()
    missing: list[str] = []
    for selection in selections:
        exact |= selection.exact
        missing += selection.missing
        for subject in selection.subjects:
            chosen.setdefault(subject.identity, subject)
    return Selection(
        subjects=tuple(chosen.values()), exact=frozenset(exact), missing=tuple(missing)
    )


def _select(catalog: Catalog, text: str) -> Selection:
    pattern = parse_pattern(text)
    exact = catalog.find(text)
    found = exact or (catalog.match(pattern) if pattern.literal is None else ())
    return Selection(
        subjects=tuple(found),
        exact=frozenset(subject.identity for subject in exact),
        missing=() if found else (text,),
    )


def find_near(pattern: str, catalog: Catalog) -> tuple[str, ...]:
    """Return up to five listed slugs that look like a pattern, the likest first.

    Hidden and disabled subjects are never named, so that a guess reveals nothing.
    """
    names: list[str] = []
    for subject in catalog.iter_listed():
        names.append(subject.name)
        if len(names) > NEAR_CANDIDATES:
            return ()
    wanted = pattern.casefold()
    scored = sorted((-_likeness(wanted, name.casefold()), name) for name in names)
    return tuple(name for score, name in scored[:NEAR_SLUGS] if -score >= NEAR_RATIO)


def _likeness(wanted: str, name: str) -> float:
    """Compare with the whole slug and with its last component, whichever is nearer."""
    matcher = SequenceMatcher(None, wanted, autojunk=False)
    best = 0.0
    for candidate in {name, name.rpartition("/")[2]}:
        matcher.set_seq2(candidate)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            best = max(best, matcher.ratio())
    return best


def is_listed(subject: Subject) -> bool:
    """Tell whether a subject shows in listings."""
    return subject.visibility is Visibility.LISTED
