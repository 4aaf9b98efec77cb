"""Collects the topics of a request, and opens them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from llm_kb.capture.catalog import TOPIC_ID, find_knowledge, open_knowledge
from llm_kb.errors import MAX_SHOWN, NoMatchError, PatternError, show_place
from llm_kb.files import fields
from llm_kb.files.conversion import Conversions
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.references.catalog import reference_topics
from llm_kb.references.find_topics import find_named
from llm_kb.rendering.parts import WHOLE
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import Selection, select
from llm_kb.subjects.topics import REFERENCE_PREFIX, Catalog, Config, Listing, Subject, Topic
from llm_kb.texts.formats import is_readable

CONVERTED = Path("kb", "converted")
"""The directory of converted documents, below the host's user directory."""

SHIPPED = Topic(
    id="llm-kb",
    title="Using llm-kb",
    introduction="How to gather references and to capture what a repository teaches.",
    root=Path(__file__).parent / "skills",
)
"""The subjects that come with the package, for models that gather or capture knowledge."""


def open_catalogs(
    config: Config, cwd: Path | None, user_dir: Path, *, shipped: Topic | None = None
) -> dict[str, tuple[Topic, Catalog]]:
    """Return every enabled topic with its catalog, by id, in the order of the menu.

    Configured topics come first, as written, and override others of the same id. `shipped`
    comes last.
    """
    conversions = Conversions(user_dir / CONVERTED)
    found: dict[str, tuple[Topic, Catalog]] = {
        topic.id: (topic, DirectoryCatalog(topic, conversions)) for topic in config.topics
    }
    captured = find_knowledge(cwd) if cwd else None
    if captured and TOPIC_ID not in found:
        found[TOPIC_ID] = open_knowledge(captured, branch_only=config.capture.branch_only)
    for topic, catalog in reference_topics(config, user_dir):
        found.setdefault(topic.id, (topic, catalog))
    if shipped:
        found.setdefault(shipped.id, (shipped, DirectoryCatalog(shipped)))
    for adjustment in config.adjustments:
        if adjustment.id in found:
            topic, catalog = found[adjustment.id]
            found[adjustment.id] = _adjust(topic, adjustment), catalog
    return {id_: pair for id_, pair in found.items() if pair[0].enable}


def _adjust(topic: Topic, adjustment: Topic) -> Topic:
    """Return a topic with the settings that the configuration has for it."""
    return replace(
        topic,
        title=adjustment.title or topic.title,
        introduction=adjustment.introduction or topic.introduction,
        description=adjustment.description or topic.description,
        learned=adjustment.learned,
        enable=adjustment.enable,
    )


class OpenTopic:
    """An enabled topic, its content, and the subjects that the request sends of it.

    `topic.learned` has the patterns of the subjects pre-loaded.
    """

    is_repeated = False
    """Whether pre-loaded subjects can also be learned, since a model may not have them."""

    def __init__(self, topic: Topic, catalog: Catalog) -> None:
        self.topic = topic
        self.catalog = catalog

    @cached_property
    def listing(self) -> Listing:
        """The subjects when the prompt was made; answers of tools list them anew."""
        return self.catalog.list()

    @cached_property
    def learned(self) -> Selection:
        """The subjects and parts that are pre-loaded."""
        return select(self.catalog, self.topic.learned)

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

    @cached_property
    def left(self) -> Sequence[Subject]:
        """The subjects to learn when the prompt was made; none if menus do not have the topic."""
        preloaded = self.preloaded
        return [
            subject
            for subject in self.listing.listed
            if self.topic.in_menu
            and subject.identity not in preloaded
            and is_readable(subject.path)
        ]


class EmptyTopicError(NoMatchError):
    """A pattern for a topic that has no subjects at all."""

    def __init__(self, topic: Topic, listing: Listing, pattern: str = "**") -> None:
        super().__init__(topic.id, pattern)
        self.root = topic.root
        unreadable = [skipped.reason for skipped in listing.skipped if not skipped.path]
        place = show_place(topic.root)
        if unreadable:
            reason = f"{place}: {unreadable[0]}; correct that, or `subjects` in the configuration"
        elif listing.subjects:
            reason = f"those of {place} are hidden; `llm kb list {topic.id} --all` shows them"
        elif topic.disabled and DirectoryCatalog(replace(topic, disabled=())).list().subjects:
            reason = f"those of {place} are all disabled; `llm kb disable --remove` takes one back"
        elif listing.skipped:
            # For example links that leave the topic, or a damaged store.
            first = listing.skipped[0]
            reason = f"{show_place(first.path)}: {first.reason}"
        else:
            reason = f"{place} is empty; `llm kb new {topic.id}/NAME` writes one"
        self.args = (f"topic {topic.id!r} lists no subjects: {reason}",)


# The names of topics, and suggestions for names that no topic has

MOST_SUGGESTED = 3
"""Maximum number of subjects in the error for an unknown topic."""


def find_id(name: str, topics: Sequence[Topic]) -> str | None:
    """Return the id that a name stands for: an id, a title, or words for a reference topic.

    The words are those that `llm kb references` takes. None if they may mean several topics.
    """
    ids = {(topic.title or topic.id).casefold(): topic.id for topic in reversed(topics)}
    ids |= {topic.id.casefold(): topic.id for topic in reversed(topics)}
    if any(topic.id == name for topic in topics):
        return name
    if id_ := ids.get(name.strip().casefold()):
        return id_
    named = find_named(filter(_is_reference, topics), name)
    return named[0].id if len(named) == 1 else None


def suggest(name: str, typed: str, topics: Iterable[OpenTopic]) -> str:
    """Return suggestions for a topic that does not exist; empty without any."""
    if len(typed) > MAX_SHOWN:
        return ""
    if name == TOPIC_ID:
        return (
            "; nothing was captured in this repository yet ('llm kb knowledge add' adds an entry)"
        )
    offered = [opened for opened in topics if opened.topic.in_menu]
    if found := list(islice(_find_addresses(offered, typed), MOST_SUGGESTED)):
        return f"; {typed!r} names subjects, not a topic: write {' or '.join(found)}"
    known = [opened.topic for opened in offered]
    if named := find_named(filter(_is_reference, known), typed):
        ids = [repr(topic.id) for topic in named[:MOST_SUGGESTED]]
        return f"; did you mean {' or '.join(ids)}?"
    return fields.suggest(
        name, {label: topic.id for topic in known for label in (topic.label, topic.id)}
    )


def _is_reference(topic: Topic) -> bool:
    return topic.id.startswith(REFERENCE_PREFIX)


def _find_addresses(topics: Iterable[OpenTopic], typed: str) -> Iterator[str]:
    """Yield the addresses of the listed subjects that a pattern names at any level."""
    try:
        is_glob = parse_pattern(typed).literal is None
        pattern = parse_pattern(f"**/{typed.casefold()}")
    except PatternError:
        return
    for opened in topics:
        names = [subject.name for subject in opened.catalog.list().listed]
        found = [name for name in names if pattern.matches(name.casefold())]
        shown = [f"**/{typed}"] if found and is_glob else found
        yield from (f"{opened.topic.id}/{name}" for name in shown)
