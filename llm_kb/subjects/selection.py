"""Which subjects of a topic a list of patterns names: exact references first, then globs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice
from pathlib import PurePosixPath

from llm_kb.errors import KbError, NoTagError, PatternError
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Catalog, Subject, Visibility

MAX_PATTERNS = 50
"""The most patterns of one call of `learn`; a glob names any number of subjects."""

MAX_CHARACTERS = 10_000
"""The most characters of all patterns of one call together."""

NEAR_SLUGS = 5
"""How many near slugs an error names at most."""

NEAR_RATIO = 0.6
"""How alike a slug must be to be named, from 0 to 1 (difflib's own default)."""

MOST_HASHES = 8
"""How many of the `#` in a reference are tried as the end of its slug."""

NEAR_CANDIDATES = 5000
"""Above this many listed subjects none is compared: a suggestion must not cost seconds."""

NEAR_PATTERNS = 3
"""How many patterns of one call get suggestions."""

NEAR_CHARACTERS = 100
"""Longer patterns and slugs are not compared: the time grows with the cube of the length."""


_COMPARED = 20
"""How many names are compared exactly."""


_WHOLE = frozenset({None, "*"})
"""What is asked of a subject when all of it is."""


def require_few(patterns: Sequence[str]) -> None:
    """Raise KbError for more patterns than one call may have."""
    characters = sum(map(len, patterns))
    if len(patterns) > MAX_PATTERNS or characters > MAX_CHARACTERS:
        raise KbError(
            f"{len(patterns):,} subjects of {characters:,} characters in one call; at most "
            f"{MAX_PATTERNS} of {MAX_CHARACTERS:,} are allowed, and a pattern such as "
            "'name/**' names any number of them"
        )


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
    anchors: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """What follows the `#` in the references to a subject, by its identity; None for one
    without. A subject that no reference has a `#` for is not in it."""

    @property
    def is_single(self) -> bool:
        """Whether one exact reference named exactly one subject, or one part of it."""
        is_one = len(self.subjects) == 1 and len(self.exact) == 1 and not self.missing
        return is_one and all(len(asked) == 1 for asked in self.anchors.values())

    def asked_of(self, subject: Subject) -> tuple[str | None, ...]:
        """Return what is asked of a subject: anchors, and None for the subject itself."""
        return self.anchors.get(subject.identity, (None,))


def select(catalog: Catalog, patterns: Iterable[str]) -> Selection:
    """Resolve patterns against a topic; PatternError when one is malformed.

    A pattern that equals a subject's slug is an exact reference, also where it
    could be read as a glob, and the only way to a hidden subject. `slug#anchor` is an
    exact reference to a part of it, where no subject is called that.
    """
    return join_selections(select_each(catalog, dict.fromkeys(patterns)))


def select_each(catalog: Catalog, patterns: Iterable[str]) -> list[Selection]:
    """Resolve each pattern against a topic; several globs in one walk of the topic.

    Raises PatternError when one is malformed, before anything is looked up.
    """
    parsed = {text: parse_pattern(text) for text in patterns}
    exact = {text: _find_exact(catalog, text) for text in parsed}
    globs = [p for text, p in parsed.items() if exact[text] is None and p.literal is None]
    matched = dict(zip(globs, catalog.match_each(globs) if globs else (), strict=True))
    return [
        exact[text] or _select_glob(text, matched.get(pattern, ()))
        for text, pattern in parsed.items()
    ]


def _select_glob(text: str, found: Sequence[Subject]) -> Selection:
    return Selection(subjects=tuple(found), missing=() if found else (text,))


def _find_exact(catalog: Catalog, text: str) -> Selection | None:
    """Return what a reference names; None where it is not one."""
    found, anchor = catalog.find(text), None
    if not found and "#" in text:
        found, anchor = _find_with_anchor(catalog, text)
    if not found:
        return None
    identities = frozenset(subject.identity for subject in found)
    asked = {} if anchor is None else dict.fromkeys(identities, (anchor,))
    return Selection(subjects=tuple(found), exact=identities, anchors=asked)


def subtract(selection: Selection, known: Selection) -> Selection:
    """Return a selection without the subjects and parts that another one holds."""
    asked_before = {subject.identity: known.asked_of(subject) for subject in known.subjects}
    left: dict[str, tuple[str | None, ...]] = {}
    for subject in selection.subjects:
        before = asked_before.get(subject.identity, ())
        if _WHOLE.isdisjoint(before):
            asked = selection.asked_of(subject)
            left[subject.identity] = tuple(each for each in asked if each not in before)
    return replace(
        selection,
        subjects=tuple(s for s in selection.subjects if left.get(s.identity)),
        anchors={id_: asked for id_, asked in left.items() if asked and asked != (None,)},
    )


def join_selections(selections: Iterable[Selection]) -> Selection:
    """Return one selection of what several hold, in their order."""
    selections = list(selections)
    chosen: dict[str, Subject] = {}
    for selection in selections:
        for subject in selection.subjects:
            chosen.setdefault(subject.identity, subject)
    return Selection(
        subjects=tuple(chosen.values()),
        exact=frozenset().union(*(selection.exact for selection in selections)),
        missing=tuple(text for selection in selections for text in selection.missing),
        anchors=_join_anchors(selections),
    )


def _join_anchors(selections: Sequence[Selection]) -> Mapping[str, tuple[str | None, ...]]:
    """Return what is asked of each subject that any reference has a `#` for, each thing once."""
    with_anchor = {identity for selection in selections for identity in selection.anchors}
    asked: dict[str, dict[str | None, None]] = {identity: {} for identity in with_anchor}
    for selection in selections if with_anchor else ():
        for subject in selection.subjects:
            if subject.identity in asked:
                asked[subject.identity] |= dict.fromkeys(selection.asked_of(subject))
    return {identity: tuple(each) for identity, each in asked.items()}


def _find_with_anchor(catalog: Catalog, text: str) -> tuple[Sequence[Subject], str | None]:
    """Return the subjects that a reference with a `#` names, and what follows the `#`.

    A slug may hold a `#` itself, so the last that ends a slug counts.
    """
    places = [place for place, character in enumerate(text) if character == "#"]
    for place in reversed(places[-MOST_HASHES:]):
        if place and (found := catalog.find(text[:place])):
            return found, text[place + 1 :]
    return (), None


def find_near(pattern: str, catalog: Catalog) -> tuple[str, ...]:
    """Return up to five listed slugs that look like a pattern, the likest first."""
    return find_near_each([pattern], catalog)[0]


def find_near_each(patterns: Sequence[str], catalog: Catalog) -> list[tuple[str, ...]]:
    """Return the listed slugs that look like each pattern; of the first few patterns only.

    Globs that do match come first, where a pattern lacks a `**` or has an extension too much.
    Hidden and disabled subjects are never named, so that a guess reveals nothing.
    """
    compared = [p for p in patterns[:NEAR_PATTERNS] if len(p) <= NEAR_CHARACTERS]
    names = _list_names(catalog) if compared else []
    return [(*_widen(p, names), *_rank(p, names)) if p in compared else () for p in patterns]


def _widen(pattern: str, names: Sequence[str]) -> list[str]:
    """Return a glob near a pattern that matches a name: below, deeper, or without extension."""
    stem = pattern.removesuffix(PurePosixPath(pattern).suffix)
    wider = [f"{pattern}/**", f"**/{pattern}", stem, f"**/{stem}"]
    try:
        is_glob = parse_pattern(pattern).literal is None
        globs = [parse_pattern(text) for text in (wider if is_glob else wider[:1])]
    except PatternError:
        return []
    return list(islice((glob.text for glob in globs if any(map(glob.matches, names))), 1))


def _list_names(catalog: Catalog) -> list[str]:
    names = [subject.name for subject in islice(catalog.iter_listed(), NEAR_CANDIDATES + 1)]
    if len(names) > NEAR_CANDIDATES:
        return []
    return [name for name in names if len(name) <= NEAR_CHARACTERS]


def _rank(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that look like a pattern, the likest first.

    Each is compared as a whole and by its last component. An upper bound, found in
    linear time, picks the few that are compared exactly.
    """
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(pattern.casefold())
    bounds: list[tuple[float, str, str]] = []
    for name in names:
        for candidate in {name, name.rpartition("/")[2]}:
            matcher.set_seq1(candidate.casefold())
            if matcher.real_quick_ratio() >= NEAR_RATIO and matcher.quick_ratio() >= NEAR_RATIO:
                bounds.append((matcher.quick_ratio(), name, candidate))
    best: dict[str, float] = {}
    for _, name, candidate in nlargest(_COMPARED, bounds):
        matcher.set_seq1(candidate.casefold())
        best[name] = max(best.get(name, 0.0), matcher.ratio())
    near = sorted((-ratio, name) for name, ratio in best.items() if ratio >= NEAR_RATIO)
    return tuple(name for _, name in near[:NEAR_SLUGS])


def is_listed(subject: Subject) -> bool:
    """Tell whether a subject shows in listings."""
    return subject.visibility is Visibility.LISTED


def keep_tagged(tags_of_each: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[int]:
    """Return the numbers of the topics that have a wanted tag, all where none is wanted.

    Raises NoTagError where there are none.
    """
    folded = {tag.casefold() for tag in wanted}
    kept = [
        number
        for number, tags in enumerate(tags_of_each)
        if not folded or not folded.isdisjoint(map(str.casefold, tags))
    ]
    if wanted and not kept:
        raise NoTagError(wanted, sorted({tag for tags in tags_of_each for tag in tags}))
    return kept
