"""Finds the topic that a name stands for, and suggests others if there is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from llm_kb.capture.catalog import TOPIC_ID
from llm_kb.errors import MAX_SHOWN, PatternError
from llm_kb.files.values import suggest
from llm_kb.references.topic_names import find_named
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import REFERENCE_PREFIX, Catalog, Topic

MOST_SUGGESTED = 3
"""Maximum number of subjects in the error for an unknown topic."""


def find_id(
    name: str, ids: Sequence[str], catalogs: Mapping[str, tuple[Topic, Catalog]]
) -> str | None:
    """Return the id that a name stands for: an id, a title, or words for a reference topic.

    The words are those that `llm kb references` takes. None if they may mean several topics.
    """
    if name in ids:
        return name if name in catalogs else None
    wanted = name.strip().casefold()
    there = [id_ for id_ in ids if id_ in catalogs]
    for id_ in there:
        if id_.casefold() == wanted:
            return id_
    topics = [catalogs[id_][0] for id_ in there]
    for topic in topics:
        if topic.title and topic.title.casefold() == wanted:
            return topic.id
    named = find_named(filter(_is_reference, topics), name)
    return named[0].id if len(named) == 1 else None


def suggest_topics(name: str, typed: str, topics: Iterable[tuple[Topic, Catalog]]) -> str:
    """Return suggestions for a topic that does not exist; empty without any."""
    if len(typed) > MAX_SHOWN:
        return ""
    if name == TOPIC_ID:
        return (
            "; nothing was captured in this repository yet ('llm kb knowledge add' adds an entry)"
        )
    offered = [(topic, catalog) for topic, catalog in topics if topic.in_menu]
    if globs := list(islice(_find_globs(offered, typed), MOST_SUGGESTED)):
        return f"; {typed!r} matches subjects, not topics: write {' or '.join(globs)}"
    if found := list(islice(_find_addresses(offered, typed), MOST_SUGGESTED)):
        return f"; {typed!r} is a subject, not a topic: write {' or '.join(found)}"
    if named := find_named((topic for topic, _ in offered if _is_reference(topic)), typed):
        ids = [repr(topic.id) for topic in named[:MOST_SUGGESTED]]
        return f"; did you mean {' or '.join(ids)}?"
    return suggest(
        name, {label: topic.id for topic, _ in offered for label in (topic.label, topic.id)}
    )


def _is_reference(topic: Topic) -> bool:
    return topic.id.startswith(REFERENCE_PREFIX)


def _find_globs(topics: Iterable[tuple[Topic, Catalog]], typed: str) -> Iterator[str]:
    """Yield a glob with each topic in which it matches a subject."""
    try:
        globs = [parse_pattern(text) for text in (typed, f"**/{typed}")]
    except PatternError:
        return
    if globs[0].literal is None:
        for topic, catalog in topics:
            matching = (glob for glob in globs if catalog.match_each([glob])[0])
            yield from (f"{topic.id}/{glob.text}" for glob in islice(matching, 1))


def _find_addresses(topics: Iterable[tuple[Topic, Catalog]], name: str) -> Iterator[str]:
    """Yield the addresses of the listed subjects whose slug is, or ends in, a name."""
    end = f"/{name.casefold()}"
    for topic, catalog in topics:
        slugs = sorted(subject.name for subject in catalog.iter_listed())
        yield from (f"{topic.id}/{slug}" for slug in slugs if f"/{slug.casefold()}".endswith(end))
