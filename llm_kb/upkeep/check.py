"""Checks a knowledge base: reads what searches read, and reports what does not work."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from llm_kb.capture.catalog import KnowledgeCatalog
from llm_kb.characters import REORDERING, TAG_CHARACTERS
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
from llm_kb.files.layouts import SKILL_FILE, is_shown
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.subject_list import find_disabled, find_problem, name_file, name_place
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.rendering.plain_text import count, name_some, visible_line
from llm_kb.rendering.presentation import MARKDOWN, present, read_as_markdown
from llm_kb.search.chunking.outline import find_outline
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import is_listed, select
from llm_kb.subjects.topics import Layout, Skipped, Subject, Topic
from llm_kb.upkeep.rules import RULE_IDS, Finding, Rule
from llm_kb.upkeep.skills import check_skill, check_strays

MOST_PATTERNS = 1_000
"""The most references that are followed: each may need a walk of a topic."""

_LEAST_COPIED = 200
"""The fewest bytes of a file that is worth a finding if it is there twice."""


def inspect_config_error(error: ConfigError, cwd: Path) -> Iterator[Finding]:
    """Yield the problems of a configuration file that cannot be used."""
    file = name_place(error.where, cwd)
    for problem in error.problems:
        yield Finding(Rule.CONFIGURATION, file, problem)


class Inspection:
    """One check of a knowledge base; files below `cwd` are named relative to it.

    `progress` is called with the number of subjects that were read, and of all.
    """

    def __init__(
        self, kb: OpenTopics, cwd: Path, progress: Callable[[int, int], None] | None = None
    ) -> None:
        self._kb = kb
        self._cwd = cwd
        self._progress = progress
        self._configured = frozenset(topic.id for topic in kb.config.topics)
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._contents: defaultdict[bytes, dict[str, str]] = defaultdict(dict)
        """The files of each content that was read: their real paths with their names."""
        self._exists: dict[str, bool] = {}
        self._unchecked = ""
        """The first file with a reference that was not looked up."""
        self.subjects = 0
        """The number of subjects that were read so far."""

    def run(self) -> Iterator[Finding]:
        """Yield every finding, in no particular order."""
        if not (self._kb.config.topics or self._kb.config.adjustments):
            yield self._report_no_topics()
        for opened in self._kb.topics.values():
            yield from self._inspect_topic(opened)
        yield from self._inspect_subjects()
        yield from self._inspect_nesting()
        yield from self._inspect_menu()
        yield from self._inspect_ignored_rules()
        if self._unchecked:
            what = f"only the first {MOST_PATTERNS:,} references in texts were looked up"
            yield Finding(Rule.UNCHECKED, self._unchecked, what)

    def _report_no_topics(self) -> Finding:
        file = self._kb.config.workspace_file
        if file is None:
            what = "there is no llm-kb.toml here or above, and no topic of your own"
            return Finding(Rule.CONFIGURATION, str(self._cwd), what)
        place = name_place(str(file), self._cwd)
        return Finding(Rule.EMPTY_TOPIC, place, "no topics are configured")

    def _inspect_topic(self, opened: OpenTopic) -> Iterator[Finding]:
        listing = opened.listing
        problem = find_problem(opened, listing)
        if problem:
            yield Finding(Rule.NO_DIRECTORY, self._config_file(opened), problem)
            return
        if isinstance(opened.catalog, KnowledgeCatalog):
            for skipped in listing.skipped:
                yield Finding(Rule.DAMAGED_STORE, skipped.path, skipped.reason)
        else:
            yield from self._inspect_skipped(opened, listing.skipped)
        yield from self._inspect_patterns(opened)
        # Fetched and captured subjects cannot be fixed here.
        if opened.topic.id in self._configured:
            yield from self._inspect_words(opened)
            if not listing.listed:
                what = f"topic {opened.topic.id!r} lists no subject{_name_cause(opened)}"
                yield Finding(Rule.EMPTY_TOPIC, self._config_file(opened), what)
            yield from check_strays(self._file(opened, "").rstrip("/"), listing.skipped)
            for left in find_unsearched(opened.topic.root, listing.listed):
                file = self._file(opened, left.path).rstrip("/")
                yield Finding(Rule.NOT_SEARCHED, file, left.reason)

    def _inspect_skipped(self, opened: OpenTopic, skipped: Iterable[Skipped]) -> Iterator[Finding]:
        """Yield one finding for each reason why files are skipped."""
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for each in skipped:
            if each.reason != NO_SKILL:
                reasons[each.reason].append(self._file(opened, each.path))
        for reason, files in reasons.items():
            more = f" ({len(files) - 1:,} more like it)" if len(files) > 1 else ""
            yield Finding(Rule.SKIPPED, files[0], f"{reason}{more}")

    def _inspect_nesting(self) -> Iterator[Finding]:
        """Find topics whose subjects are all subjects of another topic, too; one for each."""
        own = [opened for id_, opened in self._kb.topics.items() if id_ in self._configured]
        for number, inner in enumerate(own):
            for other, outer in enumerate(own):
                is_same = inner.topic.root == outer.topic.root  # reported once
                if inner is outer or (is_same and other > number) or not holds(outer, inner):
                    continue
                what = f"all subjects of topic {inner.topic.id!r} are in {outer.topic.id!r} too"
                yield Finding(Rule.NESTED, self._config_file(inner), what)
                break

    def _inspect_words(self, opened: OpenTopic) -> Iterator[Finding]:
        """Check the texts of a topic in the configuration."""
        topic, file = opened.topic, self._config_file(opened)
        if not (topic.introduction or "").strip():
            yield Finding(Rule.NO_INTRODUCTION, file, f"topic {topic.id!r} has no introduction")
        for name in ("title", "introduction", "description"):
            for finding in _check_characters(file, getattr(topic, name) or ""):
                what = f"{finding.what} in {topic_key(topic.id, name)}"
                yield Finding(finding.rule, file, what)

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

    def _inspect_subjects(self) -> Iterator[Finding]:
        """Read the subjects that searches read, and check their texts."""
        read = [
            (opened, subject)
            for id_, opened in self._kb.topics.items()
            if id_ in self._configured
            for subject in _list_searched(opened)
        ]
        for number, (opened, subject) in enumerate(read, start=1):
            self.subjects += is_listed(subject)
            yield from self._inspect_subject(opened, subject)
            if self._progress and (number % 100 == 0 or number == len(read)):
                self._progress(number, len(read))
        yield from self._report_copies()

    def _inspect_subject(self, opened: OpenTopic, subject: Subject) -> Iterator[Finding]:
        file = self._file(opened, subject.path)
        try:
            content = opened.catalog.read(subject)
        except UnreadableError as error:
            yield Finding(Rule.SKIPPED, file, error.reason)
            return
        presented = present(subject, read_as_markdown(subject, content))
        if presented.binary:
            return
        text, path = presented.body, PurePosixPath(subject.path)
        if len(content.data) >= _LEAST_COPIED and subject.extension in MARKDOWN:
            digest = blake2b(content.data, digest_size=16).digest()
            real = f"{opened.topic.root}/{subject.identity}"
            self._contents[digest].setdefault(real, file)
        yield from self._check_size(file, text, subject)
        yield from _check_characters(file, text)
        yield from self._inspect_references(file, text)
        if subject.extension in MARKDOWN and "](" in text:
            yield from self._inspect_links(opened, subject, text)
        if opened.topic.layout is Layout.SKILLS and path.name == SKILL_FILE:
            yield from check_skill(file, path.parent.name or opened.topic.root.name, text)

    def _check_size(self, file: str, text: str, subject: Subject) -> Iterator[Finding]:
        most = self._kb.config.max_result_chars
        if most and len(text) > most:
            starts = [
                0,
                *(part.start for part in find_outline(subject.path, text).sections),
                len(text),
            ]
            longest = max(end - start for start, end in pairwise(starts))
            if longest > most:
                what = f"{longest:,} characters in it have no heading, more than one load returns"
                yield Finding(Rule.OVERSIZE, file, what)

    def _inspect_references(self, file: str, text: str) -> Iterator[Finding]:
        for reference in find_references(text, list(self._kb.topics)):
            try:
                opened = self._kb.find_topic(reference.topic)
            except UnknownTopicError as error:
                yield _locate(Rule.DANGLING, file, str(error), text, reference.span)
                continue
            problem = reference.pattern and self._resolve(opened, reference.pattern, file)
            if problem:
                yield _locate(Rule.DANGLING, file, problem, text, reference.span)

    def _resolve(self, opened: OpenTopic, pattern: str, file: str) -> str | None:
        """Return the reason why a pattern of a file matches no subject; None if it matches one."""
        key = (opened.topic.id, pattern)
        if key not in self._resolved:
            if len(self._resolved) >= MOST_PATTERNS:
                self._unchecked = self._unchecked or file
                return None
            self._resolved[key] = self._match(opened, pattern)
        return self._resolved[key]

    def _match(self, opened: OpenTopic, pattern: str) -> str | None:
        try:
            parsed = parse_pattern(pattern)
            # A text may hold thousands of globs, so they are matched against one list.
            is_glob = parsed.literal is None and "#" not in pattern
            if is_glob and not opened.catalog.list(pattern).subjects:
                is_found = any(parsed.matches(each.slug) for each in opened.listing.listed)
                return None if is_found else str(NoMatchError(opened.topic.id, pattern))
            selection = select(opened.catalog, [pattern])
        except PatternError as error:
            return str(error)
        if selection.missing:
            return str(NoMatchError(opened.topic.id, pattern))
        no_parts = self._kb.find_missing_parts(opened.topic.id, selection)
        return str(no_parts[0]) if no_parts else None

    def _inspect_links(self, opened: OpenTopic, subject: Subject, text: str) -> Iterator[Finding]:
        """Report the links of a text to pages that do not exist, as one finding."""
        if not isinstance(opened.catalog, DirectoryCatalog):
            return
        above = f"{opened.topic.root}/{subject.path}".rpartition("/")[0]
        plain = _CODE.sub(lambda code: " " * len(code[0]), text)
        dead: dict[str, tuple[int, int]] = {}
        for match in _LINK.finditer(plain):
            target = unquote(match["target"])
            if target not in dead and not self._leads_to_page(above, target):
                dead[target] = match.span("target")
        if dead:
            number = count(len(dead), "link leads", "links lead")
            what = f"{number} to nothing: {visible_line(name_some(list(dead)))}"
            file = self._file(opened, subject.path)
            yield _locate(Rule.DEAD_LINK, file, what, text, next(iter(dead.values())))

    def _leads_to_page(self, above: str, target: str) -> bool:
        path = os.path.normpath(f"{above}/{target}")
        if path not in self._exists:
            try:
                self._exists[path] = os.path.exists(path)  # noqa: PTH110 - thousands of links
            except ValueError:  # a NUL
                self._exists[path] = False
        return self._exists[path]

    def _report_copies(self) -> Iterator[Finding]:
        """Report each group of files with the same content as one finding."""
        for places in self._contents.values():
            if len(places) < 2:
                continue
            files = {os.path.realpath(place): file for place, file in sorted(places.items())[::-1]}
            if len(files) > 1:
                first, *others = sorted(files.values())
                what = f"its content is also in {name_some(others)}"
                yield Finding(Rule.DUPLICATE, first, what)

    def _inspect_menu(self) -> Iterator[Finding]:
        budget = self._kb.config.menu_budget
        menu = self._kb.menu()
        file = self._place("kb.menu_budget") or "kb.menu_budget"
        if menu.cuts:
            what = f"to fit into {budget:,} tokens, {'; '.join(menu.cuts)}"
            yield Finding(Rule.OVER_BUDGET, file, what)
        if menu.tokens > budget:
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


def _list_searched(opened: OpenTopic) -> list[Subject]:
    """Return the subjects that a search reads, without those that are too large for it."""
    shown = [s for s in opened.listing.subjects if is_shown(s, opened.topic.layout)]
    if not isinstance(opened.catalog, DirectoryCatalog):
        return shown
    left_out = {left.path for left in find_unsearched(opened.topic.root, shown)}
    return [subject for subject in shown if subject.path not in left_out]


def _name_cause(opened: OpenTopic) -> str:
    """Return the reason why a topic with files lists none of them."""
    if opened.listing.subjects:
        return ": those that it has are hidden"
    return ": `disabled` covers all of them" if find_disabled(opened.topic, opened.listing) else ""


def _name_unmatched(pattern: str) -> str:
    return f"{pattern!r} matches nothing"


def holds(outer: OpenTopic, inner: OpenTopic) -> bool:
    """Tell whether one topic has all the listed subjects of another one inside it."""
    if not inner.topic.root.is_relative_to(outer.topic.root):
        return False
    place = inner.topic.root.relative_to(outer.topic.root).as_posix()
    prefix = "" if place == "." else f"{place}/"
    paths = {f"{prefix}{subject.path}" for subject in inner.listing.listed}
    return bool(paths) and paths <= {subject.path for subject in outer.listing.listed}


def disables_any(topic: Topic, pattern: str) -> bool:
    """Tell whether an entry of `disabled` disables anything by itself."""
    whole = DirectoryCatalog(replace(topic, disabled=())).list().subjects
    return len(DirectoryCatalog(replace(topic, disabled=(pattern,))).list().subjects) < len(whole)


# Texts

_UNSEEN = (
    ("tag character", re.compile(f"[{TAG_CHARACTERS}]")),
    ("bidirectional control", re.compile(f"[{REORDERING}]")),
)
_MOST_POINTS = 5


def _check_characters(file: str, text: str) -> Iterator[Finding]:
    """Find characters that are invisible or that change the order of the text."""
    if text.isascii():
        return
    for name, pattern in _UNSEEN:
        if found := pattern.findall(text):
            points = ", ".join(f"U+{ord(c):04X}" for c in sorted(set(found))[:_MOST_POINTS])
            line = text.count("\n", 0, text.index(found[0])) + 1
            yield Finding(Rule.INVISIBLE, file, f"{count(len(found), name)}: {points}", line)


_CODE = re.compile(r"^(?=(`{3,}|~{3,}))\1[^\n]*\n(?:(?!\1)[^\n]*\n)*|`[^`\n]*`", re.MULTILINE)
_LINK = re.compile(
    r"\]\(<?(?![a-z][a-z0-9+.-]*:|[/#?{<])"
    r"(?P<target>[^()<>{}\s#?]{1,300}\.(?:mdx?|markdown|rst|adoc|ipynb|txt|org))(?=[)#?>\s])",
    re.IGNORECASE,
)
"""A relative link to a page; addresses of a site have no extension, or that of HTML."""

_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")
_LEARN = re.compile(
    r"""\blearn\(\s*(?:topic\s*[:=]\s*)?(["'])(?P<topic>[^"'\n]+)\1"""
    r"""(?:\s*,\s*(?:subjects\s*[:=]\s*)?(?P<subjects>\[[^\]]{0,2000}\]|"[^"\n]*"|'[^'\n]*'))?"""
)
_OPTION = re.compile(
    r"""(?:(?<!\S)(?:-k|--knowledge)[ =]|\bkb:|\bkb show )"""
    r"""(["']?)(?P<topic>[A-Za-z0-9][\w.-]*)/(?P<pattern>[^\s"'`)\]>,;]+)"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A topic, and perhaps a pattern, that a text refers to, with its place in the text."""

    topic: str
    pattern: str | None
    span: tuple[int, int]


def find_references(text: str, topics: Sequence[str]) -> Iterator[Reference]:
    """Yield the references to topics and subjects in a text.

    `learn("topic", "pattern")` counts with any topic; `-k topic/pattern`,
    `kb:topic/pattern` and `llm kb show topic/pattern` only with one of `topics`, since
    others may belong to another project.
    """
    if "learn(" in text:
        for match in _LEARN.finditer(text):
            patterns: Sequence[str | None] = _QUOTED.findall(match["subjects"] or "") or [None]
            for pattern in patterns:
                yield Reference(topic=match["topic"], pattern=pattern, span=match.span())
    if any(mark in text for mark in ("-k", "--knowledge", "kb:", "kb show ")):
        for match in _OPTION.finditer(text):
            if match["topic"] in topics:
                pattern = match["pattern"].rstrip(".:!?")
                yield Reference(topic=match["topic"], pattern=pattern, span=match.span())


def _locate(rule: Rule, file: str, what: str, text: str, span: tuple[int, int]) -> Finding:
    """Return a finding with its line, whose number is only counted here."""
    start, end = span
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    source = text[first : last if last >= 0 else len(text)].replace("\t", " ")
    line = text.count("\n", 0, start) + 1
    return Finding(rule, file, what, line, visible_line(source), start - first, end - start)
