"""What is on the shelves of a knowledge base: topics and subjects with state and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum

from llm_kb.topics import Skipped, Topic


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
