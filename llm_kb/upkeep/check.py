"""The rules of `llm kb check`, what breaks them in what searches read, and the report."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from enum import Enum, unique
from hashlib import blake2b
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

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
from llm_kb.rendering.summaries import read_front_matter
from llm_kb.search.chunking.outline import find_outline
from llm_kb.search.index.documents import describe_unread
from llm_kb.subjects.characters import REORDERING, TAG_CHARACTERS
from llm_kb.subjects.names import is_unread_document
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import is_listed
from llm_kb.subjects.topics import Layout, Subject, Topic

Style: TypeAlias = Callable[..., str]
"""Returns a text with `fg`, `bold` or `dim`."""


class Level(Enum):
    """The level of a rule: what does not work, what could be better, and what is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


_ERROR, _WARNING, _NOTE = Level


@unique
class Rule(Enum):
    """Every rule, in the order of a report, with what it costs and what to do."""

    CONFIGURATION = _ERROR, "Models find nothing to learn until this is corrected."
    UNMATCHED = _ERROR, "It has no effect: correct it after `llm kb list TOPIC --all`."
    SKIPPED = _ERROR, "No model can read it: rename it, repair it, or add it to `ignore`."
    INVISIBLE = _ERROR, "Models read what reviewers do not see: remove it, and ask who wrote it."
    DANGLING = _ERROR, "A model that follows it gets an error: correct it, or write the subject."
    EMPTY_TOPIC = _WARNING, "It is not in the menu: write a subject, or remove the topic."
    NESTED = _WARNING, "They are found twice: remove a topic, or add them to `ignore` of one."
    UNREAD = _WARNING, "Models cannot read them: install the extra, or add them to `ignore`."
    NO_INTRODUCTION = _WARNING, "A model chooses topics by it: say in a sentence what it contains."
    SKILL = _NOTE, "Some clients leave it out: see https://agentskills.io/specification."
    OVERSIZE = _NOTE, "It cannot be read in parts: give it headings, split it, or ignore it."
    DEAD_LINK = _NOTE, "A model that follows it finds nothing: correct it, or write the page."
    DUPLICATE = _NOTE, "It takes the place of another passage: keep one, and ignore the others."

    def __init__(self, level: Level, advice: str) -> None:
        self.level = level
        self.advice = advice

    @property
    def id(self) -> str:
        """The rule's name in reports, in JSON and in `[kb.check] ignore`."""
        return self.name.lower().replace("_", "-")


MOST_SHOWN = 8
"""The most findings of one rule that a report lists."""

RULE_IDS = tuple(rule.id for rule in Rule)

_ORDER = {rule: number for number, rule in enumerate(Rule)}


class Finding(NamedTuple):
    """A finding in a file; `line` counts from one, and None is the whole file."""

    rule: Rule
    file: str
    what: str
    line: int | None = None
    source: str = ""
    """The text of that line, if it shows the reason."""
    start: int = 0
    """The place of the reason in that text, and its length."""
    length: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        return {
            "level": self.rule.level.value,
            "rule": self.rule.id,
            "file": self.file,
            "line": self.line,
            "what": self.what,
            "advice": self.rule.advice,
        }


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by rule, errors first, then by file and line."""
    return sorted(set(findings), key=lambda f: (_ORDER[f.rule], f.file, f.line or 0, f.what))


def has_errors(findings: Iterable[Finding]) -> bool:
    """Tell whether a finding is an error."""
    return any(finding.rule.level is Level.ERROR for finding in findings)


MOST_REFERENCES = 1_000
"""The most different references that are followed: each may need a walk of a topic."""

_LEAST_COPIED = 200
"""The fewest bytes of a file that is worth a finding if it is there twice."""


def inspect_config_error(error: ConfigError, cwd: Path) -> Iterator[Finding]:
    """Yield the problems of a configuration file that cannot be used."""
    for problem in error.problems:
        yield Finding(Rule.CONFIGURATION, name_place(error.where, cwd), problem)


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
        # Fetched and captured subjects cannot be fixed here.
        configured = {topic.id for topic in kb.config.topics}
        self._own = [opened for id_, opened in kb.topics.items() if id_ in configured]
        self._resolved: dict[tuple[str, str], str] = {}
        """The reasons why references lead to no subject; empty if they lead to one."""
        self._contents: defaultdict[bytes, dict[str, str]] = defaultdict(dict)
        """The files of each content that was read: their real paths with their names."""
        self.subjects = 0
        """The number of subjects that were read so far."""

    def run(self) -> Iterator[Finding]:
        """Yield every finding, in no particular order."""
        yield from self._inspect_configuration()
        yield from self._inspect_documents()
        for opened in self._kb.topics.values():
            yield from self._inspect_patterns(opened)
            yield from self._inspect_files(opened)
        for opened in self._own:
            yield from self._inspect_topic(opened)
        read = [(opened, each) for opened in self._own for each in _list_searched(opened)]
        for number, (opened, subject) in enumerate(read, start=1):
            self.subjects += is_listed(subject)
            yield from self._inspect_subject(opened, subject)
            if self._progress and (number % 100 == 0 or number == len(read)):
                self._progress(number, len(read))
        for files in (sorted(found.values()) for found in self._contents.values()):
            if len(files) > 1:
                what = f"its content is also in {name_some(files[1:])}"
                yield Finding(Rule.DUPLICATE, files[0], what)

    def _inspect_configuration(self) -> Iterator[Finding]:
        config = self._kb.config
        if not (config.topics or config.adjustments):
            file = name_place(str(config.workspace_file or self._cwd), self._cwd)
            rule = Rule.EMPTY_TOPIC if config.workspace_file else Rule.CONFIGURATION
            yield Finding(rule, file, "no topics are configured; `llm kb init` proposes some")
        for name in config.check_ignore:
            if name not in RULE_IDS:
                what = f"kb.check.ignore: {name!r} is not a rule{suggest(name, RULE_IDS)}"
                yield Finding(Rule.UNMATCHED, self._place("kb.check.ignore"), what)

    def _inspect_documents(self) -> Iterator[Finding]:
        """Yield one finding for all documents, if they cannot be read."""
        unread = {
            self._file(opened, subject.path)
            for opened in self._own
            for subject in opened.listing.listed
            if is_unread_document(subject.path)
        }
        if unread:
            yield Finding(Rule.UNREAD, min(unread), describe_unread(unread))

    def _inspect_patterns(self, opened: OpenTopic) -> Iterator[Finding]:
        topic = opened.topic
        disabled = [each for each in topic.disabled if not _disables_any(topic, each)]
        no_parts = self._kb.find_missing_parts(topic.id, opened.learned)
        problems = [("learned", f"{each!r} matches nothing") for each in opened.learned.missing]
        problems += [("learned", str(error)) for error in no_parts]
        problems += [("disabled", f"{each!r} matches nothing") for each in disabled]
        for name, problem in problems:
            key = topic_key(topic.id, name)
            file = self._place(key, topic_key(topic.id, "subjects"), topic.id)
            yield Finding(Rule.UNMATCHED, file, f"{key}: {problem}")

    def _inspect_files(self, opened: OpenTopic) -> Iterator[Finding]:
        """Yield one finding for each reason why files are skipped."""
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for skipped in opened.listing.skipped:
            reason = skipped.reason
            if reason == NO_SKILL and skipped.path.lower().endswith(f"/{SKILL_FILE.lower()}"):
                reason = f"its name must be {SKILL_FILE}, in upper case"
            if skipped.path and reason != NO_SKILL:
                reasons[reason].append(self._file(opened, skipped.path))
        for reason, files in reasons.items():
            more = f" ({len(files) - 1:,} more like it)" if len(files) > 1 else ""
            yield Finding(Rule.SKIPPED, files[0], f"{reason}{more}")

    def _inspect_topic(self, opened: OpenTopic) -> Iterator[Finding]:
        topic, listing = opened.topic, opened.listing
        file = self._place(topic_key(topic.id, "subjects"), topic.id)
        if problem := find_problem(opened, listing):
            yield Finding(Rule.CONFIGURATION, file, problem)
        elif not listing.listed:
            hidden = ": those that it has are hidden" if listing.subjects else ""
            disabled = find_disabled(topic, listing) and ": `disabled` covers all of them"
            what = f"topic {topic.id!r} lists no subject{hidden or disabled or ''}"
            yield Finding(Rule.EMPTY_TOPIC, file, what)
        if not (topic.introduction or "").strip():
            yield Finding(Rule.NO_INTRODUCTION, file, f"topic {topic.id!r} has no introduction")
        for name in ("title", "introduction", "description"):
            for found in _check_characters(file, getattr(topic, name) or ""):
                yield Finding(found.rule, file, f"{found.what} in {topic_key(topic.id, name)}")
        readable = (each for each in listing.listed if not is_unread_document(each.path))
        for left in find_unsearched(topic.root, readable):
            what = f"no search reads it: it is {left.reason}"
            yield Finding(Rule.OVERSIZE, self._file(opened, left.path.rstrip("/")), what)
        yield from self._inspect_nesting(file, opened)

    def _inspect_nesting(self, file: str, opened: OpenTopic) -> Iterator[Finding]:
        """Report the topic that has the most subjects of one inside it."""
        most, outer_id = 0, ""
        for outer in self._own:
            is_later = self._own.index(outer) > self._own.index(opened)
            is_twin = outer.topic.root == opened.topic.root and is_later  # reported once
            if outer is not opened and not is_twin:
                shared = count_shared(outer, opened)
                most, outer_id = (shared, outer.topic.id) if shared > most else (most, outer_id)
        if most:
            whole = len(opened.listing.listed)
            of = f"topic {opened.topic.id!r}"
            what = (
                f"{most:,} of the {count(whole, 'subject')} of {of} {'is' if most == 1 else 'are'}"
            )
            if most == whole:
                what = f"all subjects of {of} are"
            yield Finding(Rule.NESTED, file, f"{what} in {outer_id!r} too")

    def _inspect_subject(self, opened: OpenTopic, subject: Subject) -> Iterator[Finding]:
        file = self._file(opened, subject.path)
        try:
            content = opened.catalog.read(subject)
        except UnreadableError as error:
            yield Finding(Rule.SKIPPED, file, error.reason)
            return
        content = read_as_markdown(subject, content)
        presented = present(subject, content)
        if presented.binary:
            return
        text, name = presented.body, subject.path.rpartition("/")[2]
        yield from self._check_size(file, text, subject)
        # As it is on disk: what is presented has no tag characters.
        yield from _check_characters(file, content.data.decode("utf-8", "replace"))
        yield from self._check_references(file, text)
        if opened.topic.layout is Layout.SKILLS and name == SKILL_FILE:
            yield from _check_skill(file, (opened.topic.root / subject.path).parent.name, text)
        if subject.extension in MARKDOWN and isinstance(opened.catalog, DirectoryCatalog):
            place = f"{opened.topic.root}/{subject.path}"
            yield from _check_links(file, place.rpartition("/")[0], text)
            if len(content.data) >= _LEAST_COPIED:
                digest = blake2b(content.data, digest_size=16).digest()
                self._contents[digest].setdefault(os.path.realpath(place), file)

    def _check_size(self, file: str, text: str, subject: Subject) -> Iterator[Finding]:
        most = self._kb.config.max_result_chars
        if most and len(text) > most:
            parts = [part.start for part in find_outline(subject.path, text).sections]
            longest = max(end - start for start, end in pairwise([0, *parts, len(text)]))
            if longest > most:
                what = f"{longest:,} characters in it have no heading, more than one load returns"
                yield Finding(Rule.OVERSIZE, file, what)

    def _check_references(self, file: str, text: str) -> Iterator[Finding]:
        for reference, span in find_references(text):
            if reference not in self._resolved and len(self._resolved) < MOST_REFERENCES:
                self._resolved[reference] = self._find_problem(*reference)
            if problem := self._resolved.get(reference):
                yield _locate(Rule.DANGLING, file, problem, text, span)

    def _find_problem(self, topic: str, pattern: str) -> str:
        """Return the reason why a reference leads to no subject; empty if it leads to one."""
        try:
            opened = self._kb.find_topic(topic)
            parsed = parse_pattern(pattern or "**")
        except (UnknownTopicError, PatternError) as error:
            return str(error)
        # A text may hold thousands of globs, so they are matched against one list.
        if not pattern or opened.catalog.list(pattern).subjects:
            return ""
        is_found = any(parsed.matches(subject.slug) for subject in opened.listing.listed)
        return "" if is_found else str(NoMatchError(opened.topic.id, pattern))

    def _place(self, *keys: str) -> str:
        """Return the file that sets the first of some keys that any file sets, or the last key."""
        for key in keys:
            setting = self._kb.config.settings.get(key)
            for origin in reversed(setting.origins if setting else ()):
                if origin.place:
                    return name_place(origin.place, self._cwd)
        return keys[-1]

    def _file(self, opened: OpenTopic, path: str) -> str:
        return name_file(opened, path, self._cwd)


def _list_searched(opened: OpenTopic) -> list[Subject]:
    """Return the subjects that a search reads, without large ones and unread documents."""
    shown = [s for s in opened.listing.subjects if is_shown(s, opened.topic.layout)]
    is_directory = isinstance(opened.catalog, DirectoryCatalog)
    left_out = find_unsearched(opened.topic.root, shown) if is_directory else ()
    large = {left.path for left in left_out}
    return [s for s in shown if s.path not in large and not is_unread_document(s.path)]


def holds(outer: OpenTopic, inner: OpenTopic) -> bool:
    """Tell whether one topic has all the listed subjects of another one inside it."""
    return 0 < len(inner.listing.listed) == count_shared(outer, inner)


def count_shared(outer: OpenTopic, inner: OpenTopic) -> int:
    """Return how many listed subjects of a topic inside another one's directory are in both."""
    if not inner.topic.root.is_relative_to(outer.topic.root):
        return 0
    place = inner.topic.root.relative_to(outer.topic.root).as_posix()
    prefix = "" if place == "." else f"{place}/"
    paths = {f"{prefix}{subject.path}" for subject in inner.listing.listed}
    return len(paths.intersection(subject.path for subject in outer.listing.listed))


def _disables_any(topic: Topic, pattern: str) -> bool:
    """Tell whether an entry of `disabled` disables anything by itself."""
    whole = DirectoryCatalog(replace(topic, disabled=())).list().subjects
    return len(DirectoryCatalog(replace(topic, disabled=(pattern,))).list().subjects) < len(whole)


# Texts

_UNSEEN = re.compile(f"[{TAG_CHARACTERS}{REORDERING}]")
_MOST_POINTS = 5


def _check_characters(file: str, text: str) -> Iterator[Finding]:
    """Find characters that are invisible or that change the order of the text."""
    found = [] if text.isascii() else _UNSEEN.findall(text)
    if found:
        points = ", ".join(f"U+{ord(c):04X}" for c in sorted(set(found))[:_MOST_POINTS])
        line = text.count("\n", 0, text.index(found[0])) + 1
        what = f"{count(len(found), 'invisible character')}: {points}"
        yield Finding(Rule.INVISIBLE, file, what, line)


_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024


def _check_skill(file: str, directory: str, text: str) -> Iterator[Finding]:
    """Find violations of the specification of Agent Skills in the SKILL.md of a directory."""
    fields, _ = read_front_matter(text)
    name, description = fields.get("name", ""), fields.get("description", "")
    if not (name and description):
        missing = " and ".join(each for each in ("name", "description") if not fields.get(each))
        yield Finding(Rule.SKILL, file, f"its front matter has no {missing}")
    elif not _SKILL_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        what = f"its name {name!r} is not of at most {_LONGEST_NAME} lower-case letters, digits"
        yield Finding(Rule.SKILL, file, f"{what} and single hyphens")
    elif name != directory:
        what = f"its name {name!r} is not the name of its directory, {directory!r}"
        yield Finding(Rule.SKILL, file, what)
    if len(description) > _LONGEST_DESCRIPTION:
        what = f"its description has {len(description):,} characters"
        yield Finding(Rule.SKILL, file, f"{what}; the most is {_LONGEST_DESCRIPTION:,}")


_CODE = re.compile(r"^(?=(`{3,}|~{3,}))\1[^\n]*\n(?:(?!\1)[^\n]*\n)*|`[^`\n]*`", re.MULTILINE)
_LINK = re.compile(
    r"\]\(<?(?![a-z][a-z0-9+.-]*:|[/#?{<])"
    r"(?P<target>[^()<>{}\s#?]{1,300}\.(?:mdx?|markdown|rst|adoc|ipynb|txt|org))(?=[)#?>\s])",
    re.IGNORECASE,
)
"""A relative link to a page; addresses of a site have no extension, or that of HTML."""


def _check_links(file: str, directory: str, text: str) -> Iterator[Finding]:
    """Report the links of a text to pages that do not exist, as one finding."""
    plain = _CODE.sub(lambda code: " " * len(code[0]), text) if "](" in text else ""
    links: dict[str, tuple[int, int]] = {}
    for match in _LINK.finditer(plain):
        links.setdefault(unquote(match["target"]), match.span("target"))
    dead = [target for target in links if not _exists(f"{directory}/{target}")]
    if dead:
        number = count(len(dead), "link leads", "links lead")
        what = f"{number} to nothing: {visible_line(name_some(dead))}"
        yield _locate(Rule.DEAD_LINK, file, what, text, links[dead[0]])


def _exists(path: str) -> bool:
    return "\0" not in path and Path(os.path.normpath(path)).exists()


_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")
_LEARN = re.compile(
    r"""\blearn\(\s*(?:topic\s*[:=]\s*)?(["'])(?P<topic>[^"'\n]+)\1"""
    r"""(?:\s*,\s*(?:subjects\s*[:=]\s*)?(?P<subjects>\[[^\]]{0,2000}\]|"[^"\n]*"|'[^'\n]*'))?"""
)


def find_references(text: str) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """Yield topic and pattern of each `learn("topic", "pattern")` in a text, with its place.

    Without a pattern it is empty. Parts are left out.
    """
    for match in _LEARN.finditer(text):
        for pattern in _QUOTED.findall(match["subjects"] or "") or [""]:
            yield (match["topic"], pattern.partition("#")[0]), match.span()


def _locate(rule: Rule, file: str, what: str, text: str, span: tuple[int, int]) -> Finding:
    """Return a finding with its line, whose number is only counted here."""
    start, end = span
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    source = text[first : last if last >= 0 else len(text)].replace("\t", " ")
    line = text.count("\n", 0, start) + 1
    return Finding(rule, file, what, line, visible_line(source), start - first, end - start)


# The report


def render_findings(
    findings: Iterable[Finding], style: Style | None = None, width: int = 80
) -> Iterator[str]:
    """Yield the lines of a report on sorted findings, with one explanation for each rule.

    With a `style`, as on a terminal, it shows the lines of the files that findings are about, and
    leaves a line free after each rule.
    """
    paint = style or _paint_nothing
    for rule, group in groupby(findings, key=lambda finding: finding.rule):
        of_rule = list(group)
        level = rule.level.value
        for finding in of_rule[:MOST_SHOWN]:
            line = f":{finding.line}" if finding.line else ""
            colored = paint(level, fg=_COLORS[rule.level], bold=True)
            place = paint(f"{finding.file}{line}", bold=True)
            yield f"{place}: {colored}: {finding.what} [{rule.id}]"
            if style and finding.source:
                yield from _show_source(finding, style, width)
        if len(of_rule) > MOST_SHOWN:
            yield f"  and {len(of_rule) - MOST_SHOWN:,} more; --json lists all of them"
        yield paint(f"  {rule.advice}", dim=True)
        if style:
            yield ""


def _paint_nothing(text: str, **_: object) -> str:
    return text


_COLORS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}


def _show_source(finding: Finding, style: Style, width: int) -> Iterator[str]:
    """Yield the line of a finding with a mark below its place, cut to a width."""
    number = str(finding.line)
    bar = style(f"{'':{len(number)}} |", fg="blue")
    room = max(width - len(number) - 4, 20)
    skipped = max(finding.start + min(finding.length, room // 2) - room, 0)
    shown = finding.source[skipped : skipped + room]
    marks = "^" * max(min(finding.length, room - finding.start + skipped), 1)
    yield f"{style(f'{number} |', fg='blue')} {shown}"
    mark = style(marks, fg=_COLORS[finding.rule.level], bold=True)
    yield f"{bar} {'':{finding.start - skipped}}{mark}"


def render_summary(
    findings: Iterable[Finding], subjects: int, ignored: Collection[Finding] = ()
) -> str:
    """Return one line with the numbers of findings and of subjects that were read."""
    levels = [finding.rule.level for finding in findings]
    counts = [count(levels.count(level), level.value) for level in Level if level in levels]
    summary = f"{', '.join(counts) or 'nothing wrong'} in {count(subjects, 'subject')}"
    if not ignored:
        return summary
    names = ", ".join(sorted({finding.rule.id for finding in ignored}))
    return f"{summary}; {len(ignored):,} ignored by kb.check.ignore ({names})"
