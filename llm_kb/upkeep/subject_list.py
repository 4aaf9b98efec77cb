"""What is on the shelves of a knowledge base: topics and subjects with state and size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from typing import TypeAlias

from llm_kb.errors import UnreadableError
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.knowledge_base import KnowledgeBase, OpenTopic
from llm_kb.subjects.selection import is_listed
from llm_kb.subjects.topics import Catalog, Listing, Skipped, Subject, Topic


class State(Enum):
    """What becomes of a subject in a request."""

    AVAILABLE = "available"
    PRELOADED = "pre-loaded"
    HIDDEN = "hidden"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class StockedSubject:
    """A subject; size and last change are None where they cannot be known.

    `changed` is in seconds since the epoch: a moment is made of it when one is shown.
    """

    name: str
    path: str
    state: State
    size: int | None = None
    changed: float | None = None

    @property
    def tokens(self) -> int | None:
        """The tokens of it, at four bytes each."""
        return None if self.size is None else -(-self.size // 4)

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "slug": self.name,
            "path": self.path,
            "state": self.state.value,
            "size": self.size,
            "tokens": self.tokens,
            "changed": _iso(self.changed),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the listed subjects of a topic come to, and when one changed last."""

    subjects: int
    size: int
    tokens: int
    changed: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StockedTopic:
    """A topic, its subjects in the order of listings, and what is no subject of it.

    `problem` says why there are none. `whole` says that hidden and disabled
    subjects are among them, and that what was skipped is to be named.
    """

    topic: Topic
    subjects: tuple[StockedSubject, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    problem: str | None = None
    whole: bool = False

    @property
    def listed(self) -> tuple[StockedSubject, ...]:
        """The subjects that a model gets, or may find by itself."""
        # Identity, as an enum's hash is computed in Python and there may be many.
        return tuple(
            s for s in self.subjects if s.state is State.AVAILABLE or s.state is State.PRELOADED
        )

    @property
    def totals(self) -> Totals:
        """The listed subjects added up."""
        listed = self.listed
        sizes = [s.size for s in listed if s.size is not None]
        return Totals(
            subjects=len(listed),
            size=sum(sizes),
            tokens=sum(-(-size // 4) for size in sizes),
            changed=max((s.changed for s in listed if s.changed is not None), default=None),
        )

    def count(self, state: State) -> int:
        """Count the subjects of a state."""
        return sum(subject.state is state for subject in self.subjects)

    def is_about(self, terms: Sequence[str]) -> bool:
        """Tell whether every term is in its id, title or introduction, in any case."""
        topic = self.topic
        return _matches_all(terms, topic.id, topic.title, topic.introduction)

    def only(self, terms: Sequence[str]) -> StockedTopic:
        """Return it with only the subjects whose slug has every term, in any case."""
        kept = tuple(s for s in self.subjects if _matches_all(terms, s.name))
        return replace(self, subjects=kept)

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it, with its subjects counted."""
        totals = self.totals
        hidden = {"hidden": self.count(State.HIDDEN), "disabled": self.count(State.DISABLED)}
        return {
            "id": self.topic.id,
            "title": self.topic.title,
            "introduction": self.topic.introduction,
            "enable": self.topic.enable,
            "root": str(self.topic.root),
            "subjects": totals.subjects,
            "size": totals.size,
            "tokens": totals.tokens,
            "changed": _iso(totals.changed),
            "preloaded": self.count(State.PRELOADED),
            **(hidden if self.whole else {}),
            "skipped": len(self.skipped),
            "problem": self.problem,
        }

    def subject_dicts(self) -> list[dict[str, object]]:
        """Return its subjects as JSON has them, then what was skipped."""
        found = [subject.as_dict() for subject in self.subjects]
        skipped = self.skipped if self.whole else ()
        return found + [
            {"slug": None, "path": s.path, "state": "skipped", "reason": s.reason} for s in skipped
        ]


def _matches_all(terms: Sequence[str], *texts: str | None) -> bool:
    folded = [text.casefold() for text in texts if text]
    return all(any(term.casefold() in text for text in folded) for term in terms)


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds")


Measure: TypeAlias = Callable[[Subject], tuple[int | None, float | None]]


def take_stock(kb: KnowledgeBase, *, everything: bool = False) -> Iterator[StockedTopic]:
    """Yield the topics in the order of the menu.

    `everything` takes in hidden and disabled subjects, topics that no menu offers,
    and disabled topics last.
    """
    for opened in kb.topics.values():
        if everything or opened.topic.in_menu:
            yield stock_topic(opened, everything=everything)
    for topic in kb.config.topics:
        if everything and not topic.enable:
            yield StockedTopic(topic=topic, problem="the topic is disabled", whole=True)


def stock_topic(opened: OpenTopic, *, everything: bool = False) -> StockedTopic:
    """Take stock of one topic."""
    listing = opened.catalog.list_subjects()
    preloaded = opened.preloaded
    measure = _measurer(opened)
    found = [
        _stock(subject, _state(subject, preloaded), measure)
        for subject in listing.subjects
        if everything or is_listed(subject) or subject.identity in preloaded
    ]
    if everything and opened.topic.disabled:
        disabled = find_disabled(opened.topic, listing)
        found += [_stock(subject, State.DISABLED, measure) for subject in disabled]
        found.sort(key=lambda subject: subject.name)
    return StockedTopic(
        topic=opened.topic,
        subjects=tuple(found),
        skipped=tuple(skipped for skipped in listing.skipped if skipped.path),
        problem=find_problem(opened, listing),
        whole=everything,
    )


def find_disabled(topic: Topic, listing: Listing) -> list[Subject]:
    """Return the subjects that only `disabled` keeps out of the listing of a directory."""
    kept = {subject.path for subject in listing.subjects}
    whole = DirectoryCatalog(replace(topic, disabled=())).list_subjects()
    return [subject for subject in whole.subjects if subject.path not in kept]


def find_problem(opened: OpenTopic, listing: Listing) -> str | None:
    """Return why the directory of a topic cannot be read; None where it can."""
    reasons = [skipped.reason for skipped in listing.skipped if not skipped.path]
    return f"{opened.topic.root}: {reasons[0]}" if reasons else None


def _state(subject: Subject, preloaded: frozenset[str]) -> State:
    if subject.identity in preloaded:
        return State.PRELOADED
    return State.AVAILABLE if is_listed(subject) else State.HIDDEN


def _stock(subject: Subject, state: State, measure: Measure) -> StockedSubject:
    size, changed = measure(subject)
    return StockedSubject(
        name=subject.name, path=subject.path, state=state, size=size, changed=changed
    )


def _measurer(opened: OpenTopic) -> Measure:
    """Return what tells a subject's size and last change: of a file, one call says both."""
    if not isinstance(opened.catalog, DirectoryCatalog):
        return lambda subject: (_read_size(opened.catalog, subject), None)
    root = str(opened.topic.root)

    def measure(subject: Subject) -> tuple[int | None, float | None]:
        try:
            status = os.stat(f"{root}/{subject.path}")  # noqa: PTH116 - a `Path` for each is slow
        except OSError:
            return None, None  # gone since it was listed, or not ours to look at
        return status.st_size, status.st_mtime

    return measure


def _read_size(catalog: Catalog, subject: Subject) -> int | None:
    try:
        return catalog.read(subject, 0).size
    except UnreadableError:
        return None
