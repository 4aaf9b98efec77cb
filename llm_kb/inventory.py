"""Take stock of a knowledge base on disk: every subject with state, size and last change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from llm_kb.directory import DirectoryCatalog
from llm_kb.errors import UnreadableError
from llm_kb.knowledge_base import KnowledgeBase, OpenTopic
from llm_kb.selection import is_listed
from llm_kb.stock import State, StockedSubject, StockedTopic
from llm_kb.topics import Catalog, Listing, Subject, Topic

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
