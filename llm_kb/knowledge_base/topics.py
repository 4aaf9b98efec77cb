"""Collects the topics of a request, and opens them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from llm_kb.capture.catalog import TOPIC_ID, find_knowledge, open_knowledge
from llm_kb.errors import NoMatchError, show_place
from llm_kb.files.conversion import Conversions
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.references.catalog import reference_topics
from llm_kb.rendering.parts import WHOLE
from llm_kb.subjects.names import is_readable
from llm_kb.subjects.selection import Selection, subtract
from llm_kb.subjects.topics import Catalog, Config, Subject, Topic

T = TypeVar("T")

CONVERTED = Path("kb", "converted")
"""The directory of converted documents, below the host's user directory."""

SHIPPED = Topic(
    id="llm-kb",
    title="Using llm-kb",
    introduction="How to gather references and to capture what a repository teaches.",
    root=Path(__file__).parent / "skills",
)
"""The subjects that come with the package, for models that gather or capture knowledge."""


class TopicsById(Mapping[str, T]):
    """A value for each topic, by id, made when it is first requested.

    A topic whose maker returns None does not exist.
    """

    def __init__(self, makers: Mapping[str, Callable[[], T | None]]) -> None:
        self._makers = makers
        self._made: dict[str, T | None] = {}

    def ids(self) -> Sequence[str]:
        """Return the ids of all topics, in order, without making any."""
        return list(self._makers)

    def __getitem__(self, id_: str) -> T:
        if id_ not in self._made:
            self._made[id_] = self._makers[id_]()
        made = self._made[id_]
        if made is None:
            raise KeyError(id_)
        return made

    def __iter__(self) -> Iterator[str]:
        return (id_ for id_ in self._makers if id_ in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def open_catalogs(
    config: Config, cwd: Path | None, user_dir: Path, *, shipped: Topic | None = None
) -> TopicsById[tuple[Topic, Catalog]]:
    """Return every enabled topic with its catalog, in the order of the menu.

    Configured topics come first, as written, and override others of the same id. `shipped`
    comes last.
    """
    conversions = Conversions(user_dir / CONVERTED)
    openers: dict[str, Callable[[], tuple[Topic, Catalog] | None]] = {
        topic.id: partial(_open_directory, topic, conversions) for topic in config.topics
    }
    captured = find_knowledge(cwd) if cwd else None
    if captured:
        openers.setdefault(
            TOPIC_ID,
            partial(
                open_knowledge,
                captured,
                branch_only=config.capture.branch_only,
                is_subject=partial(_is_subject, config.topics),
            ),
        )
    for id_, opener in reference_topics(config, user_dir).items():
        openers.setdefault(id_, opener)
    if shipped:
        openers.setdefault(shipped.id, partial(_open_directory, shipped))
    for adjustment in config.adjustments:
        if adjustment.id in openers:
            openers[adjustment.id] = partial(_open_adjusted, openers[adjustment.id], adjustment)
    return TopicsById(openers)


def _open_directory(
    topic: Topic, conversions: Conversions | None = None
) -> tuple[Topic, Catalog] | None:
    return (topic, DirectoryCatalog(topic, conversions)) if topic.enable else None


def _is_subject(topics: Iterable[Topic], path: Path) -> bool:
    """Tell whether a file is listed by one of these topics."""
    return any(
        path == topic.root / subject.path
        for topic in topics
        if topic.enable and path.is_relative_to(topic.root)
        for subject in DirectoryCatalog(topic).iter_listed()
    )


def _open_adjusted(
    opener: Callable[[], tuple[Topic, Catalog] | None], adjustment: Topic
) -> tuple[Topic, Catalog] | None:
    """Open a topic with the settings that the configuration has for it."""
    pair = opener() if adjustment.enable else None
    if pair is None:
        return None
    topic, catalog = pair
    adjusted = replace(
        topic,
        title=adjustment.title or topic.title,
        introduction=adjustment.introduction or topic.introduction,
        description=adjustment.description or topic.description,
        learned=adjustment.learned,
    )
    return adjusted, catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTopic:
    """An enabled topic, the catalog of its subjects, and the subjects pre-loaded."""

    topic: Topic
    catalog: Catalog
    learned: Selection
    known: Selection
    """The subjects that are fragments of the request."""
    is_repeated: bool = False
    """Whether pre-loaded subjects can also be learned, since a model may not have them."""

    @property
    def new(self) -> Selection:
        """The subjects and parts that this section sends."""
        return subtract(self.learned, self.known)

    @property
    def preloaded(self) -> frozenset[str]:
        """The identities of the subjects that are pre-loaded whole and not sent again."""
        if self.is_repeated:
            return frozenset()
        return frozenset(
            subject.identity
            for subject in self.learned.subjects
            if not {None, WHOLE}.isdisjoint(self.learned.asked_of(subject))
        )

    @property
    def preloaded_names(self) -> list[str]:
        """The names of the pre-loaded subjects and parts."""
        if self.is_repeated:
            return []
        return [
            name for subject in self.learned.subjects for name in name_asked(subject, self.learned)
        ]

    def iter_left(self) -> Iterator[Subject]:
        """Yield the listed subjects that are not pre-loaded, in no order."""
        preloaded = self.preloaded
        return (
            s
            for s in self.catalog.iter_listed()
            if s.identity not in preloaded and is_readable(s.path)
        )

    def has_left(self) -> bool:
        """Tell whether any subject is left to learn; stops at the first one."""
        return self.topic.in_menu and next(self.iter_left(), None) is not None


def name_asked(subject: Subject, selection: Selection) -> list[str]:
    """Return the names of the requested pieces of a subject: its own name, or those of parts."""
    asked = selection.asked_of(subject)
    return [subject.name if anchor is None else f"{subject.name}#{anchor}" for anchor in asked]


class EmptyTopicError(NoMatchError):
    """A pattern for a topic that has no subjects at all."""

    def __init__(self, topic: Topic, catalog: Catalog, pattern: str = "**") -> None:
        super().__init__(topic.id, pattern)
        self.root = topic.root
        listing = catalog.list_subjects()
        unreadable = [skipped.reason for skipped in listing.skipped if not skipped.path]
        place = show_place(topic.root)
        if unreadable:
            reason = f"{place}: {unreadable[0]}; correct that, or `subjects` in the configuration"
        elif listing.subjects:
            reason = f"those of {place} are hidden; `llm kb list {topic.id} --all` shows them"
        elif listing.skipped:
            # For example links that leave the topic, or a damaged store.
            first = listing.skipped[0]
            reason = f"{show_place(first.path)}: {first.reason}"
        else:
            reason = f"{place} is empty; `llm kb new {topic.id}/NAME` writes one"
        self.args = (f"topic {topic.id!r} lists no subjects: {reason}",)
