"""Checks a knowledge base: reads all of it, and reports errors and possible improvements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from llm_kb.capture.catalog import KnowledgeCatalog
from llm_kb.capture.notes import KNOWLEDGE_REF
from llm_kb.config.layers import topic_key
from llm_kb.errors import (
    ConfigError,
    NoMatchError,
    PatternError,
    UnknownTopicError,
    UnreadableError,
)
from llm_kb.files.directory import NO_SKILL, DirectoryCatalog
from llm_kb.files.documents import find_unsearched
from llm_kb.files.fields import suggest
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.knowledge_base.knowledge_base import KnowledgeBase
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.rendering.plain_text import count
from llm_kb.rendering.presentation import Presented, present
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import is_listed, select
from llm_kb.subjects.topics import Layout, Listing, Subject, Topic
from llm_kb.upkeep import text_checks as checks
from llm_kb.upkeep.mentions import Mentions, find_references
from llm_kb.upkeep.rules import RULE_IDS, Finding, Rule
from llm_kb.upkeep.subject_list import find_disabled, find_problem, name_file, name_place

PROSE = frozenset({"", "adoc", "markdown", "md", "mdx", "org", "rst", "text", "txt"})
"""Extensions of files that are written for readers."""

READ_BYTES = 8_000_000
"""The most bytes of a subject that are read; longer ones are too long in any case."""


MOST_PATTERNS = 1_000
"""The most references that are followed: each may need a walk of a topic."""


def inspect_config_error(error: ConfigError, cwd: Path) -> Iterator[Finding]:
    """Yield the problems of a configuration file that cannot be used."""
    file = name_place(error.where, cwd)
    for problem in error.problems:
        yield Finding(Rule.CONFIGURATION, file, problem)


class Inspection:
    """One check of a knowledge base; files below `cwd` are named relative to it.

    `track` iterates over the subjects of a topic, and may show progress.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        cwd: Path,
        track: Callable[[str, Sequence[Subject]], Iterable[Subject]] = lambda _, subjects: subjects,
    ) -> None:
        self._kb = kb
        self._cwd = cwd
        self._track = track
        self._configured = frozenset(topic.id for topic in kb.config.topics)
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._slugs: dict[str, list[str]] = {}
        self._binary: set[str] = set()
        """The binary files found so far; a file of two topics is reported once."""
        self._ambiguous: set[str] = set()
        """The files with a shared slug, which differs from topic to topic."""
        self._is_complete = True
        """Whether all references were followed."""
        self.subjects = 0
        """The number of listed subjects that were read so far."""
        self.hidden = 0
        """The number of hidden ones."""

    def run(self) -> Iterator[Finding]:
        """Yield every finding, in no particular order."""
        if not (self._kb.config.topics or self._kb.config.adjustments):
            yield self._report_no_topics()
        for opened in self._kb.topics.values():
            yield from self._inspect_topic(opened)
        yield from self._inspect_repeated()
        yield from self._inspect_nesting()
        yield from self._inspect_menu()
        yield from self._inspect_ignored_rules()
        if not self._is_complete:
            what = (
                f"subjects refer to more than {MOST_PATTERNS:,} patterns; the rest is not followed"
            )
            yield Finding(Rule.UNCHECKED, str(self._cwd), what)

    def _report_no_topics(self) -> Finding:
        file = self._kb.config.workspace_file
        if file is None:
            what = "there is no llm-kb.toml here or above, and no topic of your own"
            return Finding(Rule.NO_CONFIGURATION, str(self._cwd), what)
        return Finding(Rule.NO_TOPICS, name_place(str(file), self._cwd), "no topics are configured")

    def _inspect_topic(self, opened: OpenTopic) -> Iterator[Finding]:
        listing = opened.listing
        problem = find_problem(opened, listing)
        if problem:
            yield Finding(Rule.NO_DIRECTORY, self._config_file(opened), problem)
            return
        for skipped in listing.skipped:
            if isinstance(opened.catalog, KnowledgeCatalog):
                if skipped.path == KNOWLEDGE_REF:
                    yield Finding(Rule.DAMAGED_STORE, KNOWLEDGE_REF, skipped.reason)
            elif skipped.reason != NO_SKILL:
                file = self._file(opened, skipped.path)
                yield Finding(Rule.SKIPPED, file, skipped.reason)
        if isinstance(opened.catalog, KnowledgeCatalog):
            yield from self._inspect_exports(opened.topic.root, opened.catalog)
        yield from self._inspect_patterns(opened)
        # Fetched and captured subjects cannot be fixed here.
        if opened.topic.id in self._configured:
            yield from self._inspect_words(opened)
            yield from self._inspect_names(opened, listing)
            yield from checks.check_strays(self._file(opened, "").rstrip("/"), listing.skipped)
            yield from self._inspect_subjects(opened, listing.subjects)
            for left in find_unsearched(opened.topic.root, filter(is_listed, listing.subjects)):
                file = self._file(opened, left.path).rstrip("/")
                yield Finding(Rule.NOT_SEARCHED, file, left.reason)

    def _inspect_exports(self, root: Path, catalog: KnowledgeCatalog) -> Iterator[Finding]:
        """Find exported files with lines of entries that were changed or removed since."""
        for place, number in catalog.iter_outdated():
            lines = count(number, "exported entry", "exported entries")
            what = f"{lines} changed or removed since, or unknown here"
            yield Finding(Rule.OUTDATED_EXPORT, name_place(f"{root}/{place}", self._cwd), what)

    def _inspect_repeated(self) -> Iterator[Finding]:
        """Find patterns that a list of a topic has more than once."""
        config = self._kb.config
        for topic in (*config.topics, *config.adjustments):
            for name in ("learned", "disabled"):
                key = topic_key(topic.id, name)
                for pattern, times in Counter(getattr(topic, name)).items():
                    if times > 1:
                        what = f"{key}: {pattern!r} is there {times} times"
                        yield Finding(Rule.REPEATED, self._place(key) or key, what)

    def _inspect_nesting(self) -> Iterator[Finding]:
        """Find topics whose subjects are all subjects of another topic, too."""
        own = [opened for id_, opened in self._kb.topics.items() if id_ in self._configured]
        for number, inner in enumerate(own):
            for other, outer in enumerate(own):
                root = inner.topic.root
                if inner is outer or not root.is_relative_to(outer.topic.root):
                    continue
                is_same = root == outer.topic.root  # reported once
                if not (is_same and other > number) and _holds(outer, inner):
                    what = f"all subjects of topic {inner.topic.id!r} are in {outer.topic.id!r} too"
                    yield Finding(Rule.NESTED, self._config_file(inner), what)

    def _inspect_words(self, opened: OpenTopic) -> Iterator[Finding]:
        """Check the texts of a topic in the configuration."""
        topic, file = opened.topic, self._config_file(opened)
        if not (topic.introduction or "").strip():
            yield Finding(Rule.NO_INTRODUCTION, file, f"topic {topic.id!r} has no introduction")
        for name in ("title", "introduction", "description"):
            where = f" in {topic_key(topic.id, name)}"
            yield from checks.check_characters(file, getattr(topic, name) or "", where)

    def _inspect_patterns(self, opened: OpenTopic) -> Iterator[Finding]:
        topic = opened.topic
        disabled = [pattern for pattern in topic.disabled if not disables_any(topic, pattern)]
        no_parts = [str(each) for each in self._kb.find_missing_parts(topic.id, opened.learned)]
        learned = [_name_unmatched(pattern) for pattern in opened.learned.missing]
        for name, problems in (
            ("learned", learned + no_parts),
            ("disabled", map(_name_unmatched, disabled)),
        ):
            key = topic_key(topic.id, name)
            file = self._place(key) or self._config_file(opened)
            for problem in problems:
                yield Finding(Rule.UNMATCHED, file, f"{key}: {problem}")

    def _inspect_names(self, opened: OpenTopic, listing: Listing) -> Iterator[Finding]:
        named = [(self._file(opened, s.path), s) for s in listing.subjects]
        for file, subject in named:
            yield from checks.check_name(file, subject.path)
        yield from checks.check_alike((file, subject.path) for file, subject in named)
        for finding in checks.check_ambiguous(named):
            if finding.file not in self._ambiguous:
                self._ambiguous.add(finding.file)
                yield finding
        if not any(map(is_listed, listing.subjects)):
            what = f"topic {opened.topic.id!r} has no subject that is listed"
            yield Finding(Rule.EMPTY_TOPIC, self._config_file(opened), what)

    def _inspect_subjects(
        self, opened: OpenTopic, subjects: Sequence[Subject]
    ) -> Iterator[Finding]:
        """Check every subject, then report binary files and hidden subjects without a mention."""
        preloaded = opened.preloaded
        hidden = {s.path for s in subjects if not is_listed(s) and s.identity not in preloaded}
        mentions = Mentions(s for s in subjects if s.path in hidden and _is_read(opened.topic, s))
        mentions.look_at(opened.topic.description or "")
        binary: list[str] = []
        for subject in self._track(opened.topic.id, subjects):
            if is_listed(subject):
                self.subjects += 1
            else:
                self.hidden += 1
            file = self._file(opened, subject.path)
            try:
                presented = present(subject, opened.catalog.read(subject, READ_BYTES))
            except UnreadableError as error:
                yield Finding(Rule.UNREADABLE, file, error.reason)
                continue
            if presented.binary and subject.path in hidden:
                mentions.ignore(subject)  # a picture or a font for the scripts of a skill
            elif presented.binary:
                if file not in self._binary:
                    binary.append(file)
            else:
                text = presented.content.data.decode("utf-8-sig", "replace")
                mentions.look_at(text, subject if subject.path in hidden else None)
                yield from self._inspect_text(opened, subject, presented, text)
        self._binary.update(binary)
        yield from checks.check_binary(self._file(opened, "").rstrip("/"), binary)
        unmentioned = [(self._file(opened, s.path), s.name) for s in mentions.unmentioned()]
        yield from checks.check_unmentioned(unmentioned)

    def _inspect_text(
        self, opened: OpenTopic, subject: Subject, presented: Presented, text: str
    ) -> Iterator[Finding]:
        file = self._file(opened, subject.path)
        most = self._kb.config.max_result_chars if _is_read(opened.topic, subject) else 0
        yield from checks.check_content(file, presented, subject.path, most)
        yield from checks.check_characters(file, text)
        yield from self._inspect_references(file, text)
        path = PurePosixPath(subject.path)
        if opened.topic.layout is Layout.SKILLS and path.name == SKILL_FILE:
            yield from checks.check_skill(file, path.parent.name or opened.topic.root.name, text)

    def _inspect_references(self, file: str, text: str) -> Iterator[Finding]:
        for reference in find_references(text, list(self._kb.topics)):
            try:
                opened = self._kb.find_topic(reference.topic)
            except UnknownTopicError as error:
                yield Finding(Rule.UNKNOWN_TOPIC, file, str(error), reference.line)
                continue
            if reference.pattern is not None:
                problem = self._resolve(opened, reference.pattern)
                if problem:
                    yield Finding(Rule.DANGLING, file, problem, reference.line)

    def _resolve(self, opened: OpenTopic, pattern: str) -> str | None:
        """Return the reason why a pattern matches no subject; None if it matches one."""
        key = (opened.topic.id, pattern)
        if key not in self._resolved and len(self._resolved) < MOST_PATTERNS:
            self._resolved[key] = self._match(opened, pattern)
        self._is_complete = self._is_complete and key in self._resolved
        return self._resolved.get(key)

    def _match(self, opened: OpenTopic, pattern: str) -> str | None:
        try:
            parsed = parse_pattern(pattern)
            # A text may hold thousands of globs, so they are matched against one list.
            is_glob = parsed.literal is None and "#" not in pattern
            if is_glob and not opened.catalog.list(pattern).subjects:
                is_found = any(map(parsed.matches, self._list_slugs(opened)))
                return None if is_found else str(NoMatchError(opened.topic.id, pattern))
            selection = select(opened.catalog, [pattern])
        except PatternError as error:
            return str(error)
        if selection.missing:
            return str(NoMatchError(opened.topic.id, pattern))
        no_parts = self._kb.find_missing_parts(opened.topic.id, selection)
        return str(no_parts[0]) if no_parts else None

    def _list_slugs(self, opened: OpenTopic) -> Sequence[str]:
        """Return the slugs of a topic's listed subjects, listed once for a check."""
        if opened.topic.id not in self._slugs:
            self._slugs[opened.topic.id] = [s.slug for s in opened.listing.listed]
        return self._slugs[opened.topic.id]

    def _inspect_menu(self) -> Iterator[Finding]:
        budget = self._kb.config.menu_budget
        menu = self._kb.menu()
        file = self._place("kb.menu_budget") or "kb.menu_budget"
        if menu.cuts:
            what = f"to fit into {budget:,} tokens, {'; '.join(menu.cuts)}"
            yield Finding(Rule.OVER_BUDGET, file, what)
        if menu.topics and menu.tokens > budget:
            what = f"the menu takes about {menu.tokens:,} tokens of {budget:,}"
            yield Finding(Rule.OVER_BUDGET, file, what)

    def _inspect_ignored_rules(self) -> Iterator[Finding]:
        key = "kb.check.ignore"
        for name in self._kb.config.check_ignore:
            if name not in RULE_IDS:
                what = f"{key}: {name!r} is not a rule{suggest(name, RULE_IDS)}"
                yield Finding(Rule.UNMATCHED, self._place(key) or key, what)

    def _config_file(self, opened: OpenTopic) -> str:
        """Return the file that configures a topic, or its id without one."""
        return self._place(topic_key(opened.topic.id, "subjects")) or opened.topic.id

    def _place(self, key: str) -> str | None:
        """Return the file that sets a key; None without one."""
        origins = self._kb.config.origins.get(key, ())
        places = [origin.place for origin in origins if origin.place]
        return name_place(places[-1], self._cwd) if places else None

    def _file(self, opened: OpenTopic, path: str) -> str:
        return name_file(opened, path, self._cwd)


def _is_read(topic: Topic, subject: Subject) -> bool:
    """Tell whether a subject is meant for readers; the code of a skill is meant to be run."""
    return topic.layout is not Layout.SKILLS or subject.extension in PROSE


def _name_unmatched(pattern: str) -> str:
    return f"{pattern!r} matches nothing"


def _holds(outer: OpenTopic, inner: OpenTopic) -> bool:
    """Tell whether one topic has all the listed subjects of another one inside it."""
    place = inner.topic.root.relative_to(outer.topic.root).as_posix()
    prefix = "" if place == "." else f"{place}/"
    paths = {f"{prefix}{subject.path}" for subject in inner.listing.listed}
    return bool(paths) and paths <= {subject.path for subject in outer.listing.listed}


def disables_any(topic: Topic, pattern: str) -> bool:
    """Tell whether an entry of `disabled` disables anything by itself."""
    listing = DirectoryCatalog(replace(topic, disabled=(pattern,))).list()
    return bool(find_disabled(topic, listing))
