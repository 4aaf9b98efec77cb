"""Inspect a knowledge base: read all of it, and find what is wrong or could be better."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from llm_kb.config.layers import topic_key
from llm_kb.errors import (
    ConfigError,
    NoMatchError,
    PatternError,
    UnknownTopicError,
    UnreadableError,
)
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.knowledge_base import KnowledgeBase, OpenTopic
from llm_kb.rendering.presentation import present
from llm_kb.subjects.selection import is_listed, select
from llm_kb.subjects.topics import Listing, Read, Subject, Topic
from llm_kb.upkeep import rules as checks
from llm_kb.upkeep.mentions import Mentions, find_references
from llm_kb.upkeep.rules import Finding, Rule
from llm_kb.upkeep.subject_list import find_disabled, find_problem

READ_BYTES = 8_000_000
"""How much of a subject is looked at; what is longer is too long in any case."""


def inspect_config_error(error: ConfigError, cwd: Path) -> Iterator[Finding]:
    """Yield the problems of a configuration file that cannot be used."""
    file = _name_file(error.where, cwd)
    for problem in error.problems:
        yield Finding(rule=Rule.CONFIGURATION, file=file, what=problem)


Track: TypeAlias = Callable[[str, Sequence[Subject]], Iterable[Subject]]


def iter_subjects(_topic: str, subjects: Sequence[Subject]) -> Iterable[Subject]:
    """Go through the subjects of a topic without telling anyone how far it is."""
    return subjects


class Inspection:
    """One inspection of a knowledge base; files are named relative to `cwd` below it.

    `track` goes through the subjects of a topic, and may show how far it is.
    """

    def __init__(self, kb: KnowledgeBase, cwd: Path, track: Track = iter_subjects) -> None:
        self._kb = kb
        self._cwd = cwd
        self._track = track
        self._configured = frozenset(topic.id for topic in kb.config.topics)
        self.subjects = 0
        """How many subjects were looked at so far."""

    def run(self) -> Iterator[Finding]:
        """Yield every finding, in no order."""
        for opened in self._kb.topics.values():
            yield from self._inspect_topic(opened)
        yield from self._inspect_menu()

    def _inspect_topic(self, opened: OpenTopic) -> Iterator[Finding]:
        listing = opened.catalog.list_subjects()
        problem = find_problem(opened, listing)
        if problem:
            yield Finding(rule=Rule.NO_DIRECTORY, file=self._config_file(opened), what=problem)
            return
        for skipped in listing.skipped:
            yield checks.check_skipped(self._file(opened, skipped.path), skipped)
        yield from self._inspect_patterns(opened)
        # What was fetched or captured is not written here, so it cannot be mended here.
        if opened.topic.id in self._configured:
            yield from self._inspect_words(opened)
            yield from self._inspect_names(opened, listing)
            yield from self._inspect_subjects(opened, listing.subjects)

    def _inspect_words(self, opened: OpenTopic) -> Iterator[Finding]:
        """Look at what the configuration says of a topic."""
        topic, file = opened.topic, self._config_file(opened)
        if not (topic.introduction or "").strip():
            what = f"topic {topic.id!r} has no introduction"
            yield Finding(rule=Rule.NO_INTRODUCTION, file=file, what=what)
        for name in ("title", "introduction", "description"):
            where = f" in {topic_key(topic.id, name)}"
            yield from checks.check_characters(file, getattr(topic, name) or "", where)

    def _inspect_patterns(self, opened: OpenTopic) -> Iterator[Finding]:
        topic = opened.topic
        disabled = [pattern for pattern in topic.disabled if not disables_any(topic, pattern)]
        for name, unmatched in (("learned", opened.learned.missing), ("disabled", disabled)):
            key = topic_key(topic.id, name)
            file = self._place(key) or self._config_file(opened)
            yield from checks.check_patterns(file, key, unmatched)

    def _inspect_names(self, opened: OpenTopic, listing: Listing) -> Iterator[Finding]:
        named = [(self._file(opened, s.path), s) for s in listing.subjects]
        for file, subject in named:
            yield from checks.check_name(file, subject.path)
        yield from checks.check_alike((file, subject.path) for file, subject in named)
        yield from checks.check_ambiguous(named)
        if not any(map(is_listed, listing.subjects)):
            what = f"topic {opened.topic.id!r} has no subject that is listed"
            yield Finding(rule=Rule.EMPTY_TOPIC, file=self._config_file(opened), what=what)

    def _inspect_subjects(
        self, opened: OpenTopic, subjects: Sequence[Subject]
    ) -> Iterator[Finding]:
        """Look into every subject, and for those that none of them mentions."""
        preloaded = opened.preloaded
        mentions = Mentions(s for s in subjects if not is_listed(s) and s.identity not in preloaded)
        mentions.look_at(opened.topic.description or "")
        with opened.catalog.reading() as read:
            for subject in self._track(opened.topic.id, subjects):
                self.subjects += 1
                is_visible = is_listed(subject) or subject.identity in preloaded
                yield from self._inspect_subject(
                    opened, subject, read, mentions, is_visible=is_visible
                )
        for subject in mentions.unmentioned.values():
            what = f"no visible subject mentions {subject.name!r}"
            file = self._file(opened, subject.path)
            yield Finding(rule=Rule.UNMENTIONED, file=file, what=what)

    def _inspect_subject(
        self,
        opened: OpenTopic,
        subject: Subject,
        read: Read,
        mentions: Mentions,
        *,
        is_visible: bool,
    ) -> Iterator[Finding]:
        file = self._file(opened, subject.path)
        try:
            content = read(subject, READ_BYTES)
        except UnreadableError as error:
            yield Finding(rule=Rule.UNREADABLE, file=file, what=error.reason)
            return
        presented = present(subject, content)
        if presented.binary and not is_visible:
            mentions.ignore(subject)  # a picture or a font of a skill, for its scripts
            return
        yield from checks.check_content(file, presented, self._kb.config.max_result_chars)
        if presented.binary:
            return
        text = content.data.decode("utf-8-sig", "replace")
        yield from checks.check_characters(file, text)
        yield from self._inspect_references(file, text)
        if is_visible:
            mentions.look_at(text)

    def _inspect_references(self, file: str, text: str) -> Iterator[Finding]:
        for reference in find_references(text, list(self._kb.topics)):
            try:
                opened = self._kb.find_topic(reference.topic)
            except UnknownTopicError as error:
                yield Finding(
                    rule=Rule.UNKNOWN_TOPIC, file=file, line=reference.line, what=str(error)
                )
                continue
            if reference.pattern is not None:
                problem = self._resolve(opened, reference.pattern)
                if problem:
                    yield Finding(rule=Rule.DANGLING, file=file, line=reference.line, what=problem)

    def _resolve(self, opened: OpenTopic, pattern: str) -> str | None:
        """Return why a pattern names no subject; None when it names one."""
        try:
            missing = select(opened.catalog, [pattern]).missing
        except PatternError as error:
            return str(error)
        return str(NoMatchError(opened.topic.id, pattern)) if missing else None

    def _inspect_menu(self) -> Iterator[Finding]:
        budget = self._kb.config.menu_budget
        menu = self._kb.menu()
        file = self._place("kb.menu_budget") or "kb.menu_budget"
        for cut in menu.cuts:
            what = f"to fit into {budget:,} tokens, {cut}"
            yield Finding(rule=Rule.OVER_BUDGET, file=file, what=what)
        if menu.topics and menu.tokens > budget:
            what = f"the menu takes about {menu.tokens:,} tokens of {budget:,}"
            yield Finding(rule=Rule.OVER_BUDGET, file=file, what=what)

    def _config_file(self, opened: OpenTopic) -> str:
        """Return the file that configures a topic, or its id where none does."""
        return self._place(topic_key(opened.topic.id, "subjects")) or opened.topic.id

    def _place(self, key: str) -> str | None:
        """Return the file a key was last set in."""
        origins = self._kb.config.origins.get(key, ())
        places = [origin.place for origin in origins if origin.place]
        return _name_file(places[-1], self._cwd) if places else None

    def _file(self, opened: OpenTopic, path: str) -> str:
        if not isinstance(opened.catalog, DirectoryCatalog):
            return f"{opened.topic.id}/{path}"
        return _name_file(f"{opened.topic.root}/{path}", self._cwd)


def disables_any(topic: Topic, pattern: str) -> bool:
    """Tell whether an entry of `disabled` disables anything by itself."""
    listing = DirectoryCatalog(replace(topic, disabled=(pattern,))).list_subjects()
    return bool(find_disabled(topic, listing))


def _name_file(path: str, cwd: Path) -> str:
    """Return a path relative to the current directory where it is below it."""
    return path.removeprefix(f"{cwd}{os.sep}")
