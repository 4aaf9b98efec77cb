"""A topic in one request, and the names and suggestions by which topics are found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice

from llm_kb.config.load import find_kind
from llm_kb.errors import MAX_SHOWN, NoMatchError, PatternError, UnreadableError, show_place
from llm_kb.files import fields
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.kinds import Topic, given_kinds
from llm_kb.rendering.parts import WHOLE
from llm_kb.search.titles import find_named
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import Selection, select
from llm_kb.subjects.topics import Listing, Subject, TopicConfig
from llm_kb.texts.formats import is_readable


class OpenTopic:
    """A topic in one request: its content when the prompt was made, and what is sent of it.

    `asked` are the patterns that the request pre-loads, besides those of the configuration.
    """

    is_repeated = False
    """Whether pre-loaded subjects can also be learned, since a model may not have them."""

    def __init__(self, topic: Topic, asked: Iterable[str] = ()) -> None:
        self.topic = topic
        self.config: TopicConfig = topic.config
        self.patterns = tuple(dict.fromkeys((*topic.config.learned, *asked)))
        """The patterns of the subjects that are pre-loaded."""

    @cached_property
    def listing(self) -> Listing:
        """The subjects when the prompt was made; answers of tools list them anew."""
        return self.topic.list()

    @cached_property
    def learned(self) -> Selection:
        """The subjects and parts that are pre-loaded."""
        return select(self.topic, self.patterns)

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
        """The subjects to learn when the prompt was made."""
        preloaded = self.preloaded
        return [
            subject
            for subject in self.listing.listed
            if subject.identity not in preloaded and is_readable(subject.path)
        ]

    def find_size(self, subject: Subject) -> int | None:
        """Return the bytes of a subject as a model reads it; None if it is gone or unreadable."""
        with suppress(OSError, UnreadableError):
            return self.topic.find_size(subject)
        return None


class EmptyTopicError(NoMatchError):
    """A pattern for a topic that has no subjects at all."""

    def __init__(self, config: TopicConfig, listing: Listing, pattern: str = "**") -> None:
        reason = explain_empty(config, listing)
        message = f"topic {config.id!r} lists no subjects: {reason}"
        super().__init__(config.id, pattern, message=message)


def explain_empty(config: TopicConfig, listing: Listing) -> str:
    """Return the reason why a topic lists no subjects, and what to do."""
    place = show_place(config.root)
    if unreadable := [skipped.reason for skipped in listing.skipped if not skipped.path]:
        return f"{place}: {unreadable[0]}; correct that, or `subjects` in the configuration"
    if listing.subjects:
        return f"those of {place} are hidden; `llm kb list {config.id} --all` shows them"
    if config.disabled and DirectoryTopic(config).list_disabled():
        return f"those of {place} are all disabled; `llm kb disable --undo` takes one back"
    if listing.skipped:
        # For example links that leave the topic, or a damaged store.
        first = listing.skipped[0]
        return f"{show_place(first.path)}: {first.reason}"
    return f"{place} is empty; `llm kb new {config.id}/NAME` writes one"


# The names of topics, and suggestions for names that no topic has

MOST_SUGGESTED = 3
"""Maximum number of subjects in the error for an unknown topic."""


def find_id(name: str, topics: Collection[TopicConfig]) -> str | None:
    """Return the id that a name stands for: an id, a title, or words that name a topic by it.

    None if the words may mean several topics.
    """
    if any(topic.id == name for topic in topics):
        return name
    ids = {topic.label.casefold(): topic.id for topic in reversed([*topics])}
    ids |= {topic.id.casefold(): topic.id for topic in reversed([*topics])}
    if id_ := ids.get(name.strip().casefold()):
        return id_
    named = find_named((topic for topic in topics if topic.kind.has_words), name)
    return named[0].id if len(named) == 1 else None


def suggest(name: str, typed: str, topics: Iterable[Topic]) -> str:
    """Return suggestions for a topic that does not exist; empty without any."""
    if len(typed) > MAX_SHOWN:
        return ""
    if (kind := find_kind(name, given_kinds())) and kind.advice:
        return f"; nothing is in it yet ({kind.advice})"
    offered = [topic for topic in topics if topic.config.is_offered]
    if found := list(islice(_find_addresses(offered, typed), MOST_SUGGESTED)):
        return f"; {typed!r} names subjects, not a topic: write {' or '.join(found)}"
    known = [topic.config for topic in offered]
    if named := find_named((topic for topic in known if topic.kind.has_words), typed):
        ids = [repr(topic.id) for topic in named[:MOST_SUGGESTED]]
        return f"; did you mean {' or '.join(ids)}?"
    return fields.suggest(
        name, {label: topic.id for topic in known for label in (topic.label, topic.id)}
    )


def _find_addresses(topics: Iterable[Topic], typed: str) -> Iterator[str]:
    """Yield the addresses of the listed subjects that a pattern names at any level."""
    try:
        is_glob = parse_pattern(typed).literal is None
        pattern = parse_pattern(f"**/{typed.casefold()}")
    except PatternError:
        return
    for topic in topics:
        names = [subject.name for subject in topic.list().listed]
        found = [name for name in names if pattern.matches(name.casefold())]
        shown = [f"**/{typed}"] if found and is_glob else found
        yield from (f"{topic.config.id}/{name}" for name in shown)
