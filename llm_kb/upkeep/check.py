"""The rules of `llm kb check`, and what breaks them in what searches read."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, unique
from functools import cached_property, partial
from hashlib import blake2b
from itertools import combinations, islice, pairwise
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from llm_kb.config.layers import topic_key
from llm_kb.errors import KbError, NoMatchError, UnreadableError
from llm_kb.files.converters import NO_TEXT
from llm_kb.files.directory_topic import NO_SKILL, DirectoryTopic
from llm_kb.files.fields import suggest
from llm_kb.files.layouts import SKILL_FILE, is_shown
from llm_kb.files.repository import find_repository
from llm_kb.files.topic_documents import find_unsearched
from llm_kb.knowledge_base.open_topic import EmptyTopicError, OpenTopic, find_imported
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.subject_list import name_file, name_place
from llm_kb.rendering.plain_text import count, name_some
from llm_kb.rendering.presentation import present
from llm_kb.rendering.summaries import read_front_matter
from llm_kb.search.index.documents import MAX_FILE_BYTES, TOO_LARGE, describe_unread
from llm_kb.subjects.links import LinkTargets, find_imports, is_guide
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Layout, Subject, slugify
from llm_kb.texts.decoding import SNIFFED_BYTES, explain_conversion
from llm_kb.texts.formats import find_format, is_readable, is_unread_document
from llm_kb.texts.outlines.outline import find_outline, has_outline
from llm_kb.texts.safe import REORDERING, TAG_CHARACTERS, visible_line, visible_text
from llm_kb.upkeep.accounts import find_unlisted
from llm_kb.upkeep.named_places import (
    History,
    find_dead_links,
    find_included,
    list_anchors,
    read_history,
)

LEVELS = ("error", "warning", "note")
"""The levels of rules: what does not work, what could be better, and what is good to know."""

_ERROR, _WARNING, _NOTE = LEVELS


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
    UNREAD = _WARNING, "Models cannot read them: install the extra, or disable them."
    ENCODING = (
        _WARNING,
        "Models cannot read it, or not all of it: save it as UTF-8, or disable it.",
    )
    NO_INTRODUCTION = _WARNING, "A model chooses topics by it: say in a sentence what it contains."
    DEAD_LINK = _WARNING, "A model that follows it finds nothing: correct it, or write the page."
    SKILL = _NOTE, "Some clients leave it out: see https://agentskills.io/specification."
    OVERSIZE = (
        _NOTE,
        "It cannot be read in parts: split it, or `llm kb disable` it.",
    )
    NO_TEXT = _NOTE, "A model that loads it learns nothing: write it, or `llm kb disable` it."
    GONE_PATH = _NOTE, "The text may be out of date: name what took its place, or leave it out."
    ABSENT = (
        _NOTE,
        "Models do not see them: git ignores them, or they need a topic of their own.",
    )
    UNLISTED = _NOTE, "No topic has them: `llm kb init` proposes topics, `llm kb add` makes one."
    INCLUDED = (
        _NOTE,
        "Models see the directive, not that text: add the file to a topic if it matters.",
    )
    DUPLICATE = _NOTE, "It takes the place of another passage: keep one, and disable the others."

    def __init__(self, level: str, advice: str) -> None:
        self.level = level
        self.advice = advice

    @property
    def id(self) -> str:
        """The rule's name in reports, in JSON and in `[kb.check] ignore`."""
        return self.name.lower().replace("_", "-")


class Finding(NamedTuple):
    """A finding in a file; `line` counts from one, and None is the whole file."""

    rule: Rule
    file: str
    what: str
    line: int | None = None
    before: str = ""
    """The text of that line before the reason, cut."""
    found: str = ""
    """The reason in the text; empty if no place shows it."""
    after: str = ""


MOST_REFERENCES = 1_000
"""The most different references that are followed: each may need a walk of a topic."""

MOST_LINKS = 200
"""The most links and paths of a page that are findings of their own."""

_MOST_PLACES = 5
"""The most directories with unlisted texts that have a finding each."""

_FOREIGN = 20
"""So many different `[[names]]` of which none leads to a subject are another markup."""

_AROUND = 60
"""The most characters of a line that are shown before and after the reason of a finding."""

_LEAST_COPIED = 200
"""The fewest bytes of a file that is worth a finding if it is there twice."""


class Inspection:
    """One check of a knowledge base; files below `cwd` are named relative to it.

    `progress` is called with the number of subjects that were read, and of all.
    """

    def __init__(self, kb: OpenTopics, cwd: Path, progress: Callable[[int, int], object]) -> None:
        self._kb = kb
        self._cwd = cwd
        self._progress = progress
        # Fetched and captured subjects cannot be fixed here.
        configured = {topic.id for topic in kb.config.topics}
        self._own = [opened for id_, opened in kb.topics.items() if id_ in configured]
        self._resolved: dict[tuple[str, str], str] = {}
        """The reasons why references lead to no subject; empty if they lead to one."""
        self._unread: defaultdict[str, list[str]] = defaultdict(list)
        """The files that cannot be read, by the reason."""
        self._included: list[tuple[str, str]] = []
        """The files that include others of no topic, each with the sentence on one."""
        self._contents: defaultdict[bytes, dict[str, str]] = defaultdict(dict)
        """The files of each content that was read: their real paths with their names."""
        self._targets: dict[str, LinkTargets] = {}
        self._wiki_names: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        """Whether each `[[name]]` in the pages of a topic leads to subjects."""
        self._anchors: dict[str, frozenset[str] | None] = {}
        self._histories: dict[Path, History] = {}
        self.limits: list[tuple[Rule, str]] = []
        """What could not be looked at, and why."""
        self.subjects = 0
        """The number of subjects that were read so far."""

    def run(self) -> list[Finding]:
        """Return every finding once: by rule, errors first, then by file and line."""
        order = list(Rule)
        found = set(self._inspect())
        return sorted(
            found - self._find_foreign(found),
            key=lambda f: (order.index(f.rule), f.file, f.line or 0, f.what),
        )

    def _find_foreign(self, found: Iterable[Finding]) -> set[Finding]:
        """Return the findings on `[[names]]` of topics in which many lead nowhere, and none does.

        Specifications write their references so.
        """
        files: set[str] = set()
        for opened in self._own:
            names = self._wiki_names[opened.config.id]
            if len(names) >= _FOREIGN and not any(names.values()):
                files.update(self._file(opened, each.path) for each in opened.listing.subjects)
                what = f"the {len(names):,} [[names]] of {opened.config.id} lead to no subject"
                self.limits.append((Rule.DEAD_LINK, f"{what}: taken for another markup"))
        return {each for each in found if each.what.startswith("[[") and each.file in files}

    def _inspect(self) -> Iterator[Finding]:
        yield from self._inspect_configuration()
        for opened in self._kb.topics.values():
            yield from self._inspect_patterns(opened)
            yield from self._inspect_files(opened)
        yield from self._inspect_overlaps()
        yield from self._inspect_unlisted()
        read: list[tuple[OpenTopic, Subject]] = []
        for opened in self._own:
            shown = [s for s in opened.listing.subjects if is_shown(s, opened.config.layout)]
            yield from self._inspect_topic(opened, shown)
            read += [(opened, subject) for subject in shown if is_readable(subject.path)]
        for number, (opened, subject) in enumerate(read, start=1):
            self.subjects += not subject.hidden
            yield from self._inspect_subject(opened, subject)
            if number % 100 == 0 or number == len(read):
                self._progress(number, len(read))
        if self._included:
            (_, what), *_ = self._included
            files = list(dict.fromkeys(file for file, _ in self._included))
            yield _sum_up(Rule.INCLUDED, files, f"{what}, which is in no topic")
        for reason, unread in self._unread.items():
            yield _sum_up(Rule.NO_TEXT if reason == NO_TEXT else Rule.SKIPPED, unread, reason)
        for files in (sorted(found.values()) for found in self._contents.values()):
            if len(files) > 1:
                what = f"its content is also in {name_some(files[1:])}"
                yield Finding(Rule.DUPLICATE, files[0], what)

    def _inspect_overlaps(self) -> Iterator[Finding]:
        for (one, other), shared in find_overlaps(self._own):
            what = f"topics {one!r} and {other!r} share {count(shared, 'subject')}"
            yield Finding(Rule.NESTED, self._place(topic_key(other, "subjects"), other), what)

    def _inspect_unlisted(self) -> Iterator[Finding]:
        """Yield a finding for each of the directories with the most texts that no topic has."""
        root = self._kb.config.workspace or Path("/")
        try:
            places = find_unlisted(root, self._own) if self._kb.config.workspace else {}
        except KbError as error:
            self.limits.append((Rule.UNLISTED, f"texts in no topic are not looked for: {error}"))
            return
        ranked = sorted(places, key=lambda place: (-len(places[place]), place))
        for place in ranked[:_MOST_PLACES]:
            paths = places[place]
            where = f"{place}/" if place else "this directory"
            what = f"{count(len(paths), 'text')} in {visible_line(where)} in no topic"
            yield Finding(Rule.UNLISTED, name_place(str(root / paths[0]), self._cwd), what)
        if rest := ranked[_MOST_PLACES:]:
            number = sum(len(places[place]) for place in rest)
            more = count(len(rest), "more directory", "more directories")
            what = f"{count(number, 'text')} in {more} in no topic"
            first = str(root / places[rest[0]][0])
            yield Finding(Rule.UNLISTED, name_place(first, self._cwd), what)

    def _inspect_configuration(self) -> Iterator[Finding]:
        config = self._kb.config
        if not (config.topics or config.adjustments):
            file = name_place(str(config.workspace_file or self._cwd), self._cwd)
            rule = Rule.EMPTY_TOPIC if config.workspace_file else Rule.CONFIGURATION
            yield Finding(rule, file, "no topics are configured; `llm kb init` proposes some")
        ids = [rule.id for rule in Rule]
        for name in config.check_ignore:
            if name not in ids:
                what = f"kb.check.ignore: {name!r} is not a rule{suggest(name, ids)}"
                yield Finding(Rule.UNMATCHED, self._place("kb.check.ignore"), what)

    def _inspect_patterns(self, opened: OpenTopic) -> Iterator[Finding]:
        topic = opened.config
        no_parts = self._kb.find_missing_parts(opened, opened.learned)
        problems = [("learned", str(error)) for error in no_parts]
        missing = [("learned", each) for each in opened.learned.missing]
        missing += [("disabled", each) for each in DirectoryTopic(topic).list_idle()]
        problems += [(name, f"{each!r} matches nothing") for name, each in missing]
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
            yield _sum_up(Rule.SKIPPED, files, reason)
        for note in opened.listing.notes:
            yield Finding(Rule.ABSENT, self._file(opened, "").rstrip("/"), note)

    def _inspect_topic(self, opened: OpenTopic, shown: Sequence[Subject]) -> Iterator[Finding]:
        topic, listing = opened.config, opened.listing
        file = self._place(topic_key(topic.id, "subjects"), topic.id)
        if not listing.listed:
            is_unreadable = any(not skipped.path for skipped in listing.skipped)
            rule = Rule.CONFIGURATION if is_unreadable else Rule.EMPTY_TOPIC
            yield Finding(rule, file, str(EmptyTopicError(topic, listing)))
        if not (topic.introduction or "").strip():
            yield Finding(Rule.NO_INTRODUCTION, file, f"topic {topic.id!r} has no introduction")
        for name in ("title", "introduction", "description"):
            for found in _check_characters(file, getattr(topic, name) or ""):
                yield Finding(found.rule, file, f"{found.what} in {topic_key(topic.id, name)}")
        if unread := [each.path for each in shown if is_unread_document(each.path)]:
            yield Finding(Rule.UNREAD, self._file(opened, unread[0]), describe_unread(unread))
        for reason in find_unsearched(topic.root, shown):
            what = f"no search reads {reason}"
            yield Finding(Rule.OVERSIZE, self._file(opened, "").rstrip("/"), what)

    def _inspect_subject(self, opened: OpenTopic, subject: Subject) -> Iterator[Finding]:
        file = self._file(opened, subject.path)
        try:
            content = opened.topic.read(subject, MAX_FILE_BYTES)
        except UnreadableError as error:
            is_empty = error.reason.endswith(NO_TEXT)
            self._unread[NO_TEXT if is_empty else error.reason].append(file)
            return
        if content.size > MAX_FILE_BYTES:
            yield Finding(Rule.OVERSIZE, file, f"no search reads it: it is {TOO_LARGE}")
            return
        presented = present(subject, content)
        if presented.binary:
            what = f"it is binary: a NUL byte is in its first {SNIFFED_BYTES:,} bytes"
            yield Finding(Rule.ENCODING, file, what)
            return
        if problem := explain_conversion(content.data):
            yield Finding(Rule.ENCODING, file, problem)
        text, place = presented.body, opened.config.root / subject.path
        yield from self._check_size(file, text, subject)
        # As it is on disk: what is presented has no tag characters.
        yield from _check_characters(file, content.data.decode("utf-8", "replace"))
        yield from self.inspect_text(opened, subject.path, text)
        if opened.config.layout is Layout.SKILLS and place.name == SKILL_FILE:
            yield from _check_skill(file, place.parent.name, text)
        if (known := find_format(subject.path)) and known.is_markdown:
            if all(line.startswith("#") for line in text.splitlines() if line.strip()):
                yield Finding(Rule.NO_TEXT, file, "it has no text below its heading")
            if len(content.data) >= _LEAST_COPIED:
                digest = blake2b(content.data, digest_size=16).digest()
                self._contents[digest].setdefault(os.path.realpath(place), file)

    def inspect_text(self, opened: OpenTopic, path: str, text: str) -> Iterator[Finding]:
        """Find what a text of a subject names that is not there."""
        file = self._file(opened, path)
        yield from self._check_references(file, text)
        imports = islice(find_imports(path, text) if is_guide(path) else (), MOST_LINKS)
        leads = f"an import leads to no subject of {opened.config.id}: @"
        problems = [
            (f"{leads}{each.target}", each.span)
            for each in imports
            if each.is_meant and find_imported(opened.topic, each) is None
        ]
        yield from _locate_first(Rule.DEAD_LINK, file, text, problems)
        known = find_format(path, text)
        if known:
            yield from self._check_includes(file, opened, path, text, known.markup)
        if known and known.is_markdown:
            yield from self._check_places(file, opened, path, text)

    def _check_includes(
        self, file: str, opened: OpenTopic, path: str, text: str, markup: str
    ) -> Iterator[Finding]:
        """Report the files that a text includes and that are nowhere; gather those in no topic."""
        root = opened.config.root
        above = [self._kb.config.workspace] if self._kb.config.workspace else []
        included = find_included(text, markup, [(root / path).parent, root, *above])
        problems = []
        for name, place, span in islice(included, MOST_LINKS):
            if place is None:
                problems.append((f"an include leads to nothing: {visible_line(name)}", span))
            elif os.path.normpath(place) not in self._files:
                self._included.append((file, f"it includes {visible_line(name)}"))
        yield from _locate_first(Rule.DEAD_LINK, file, text, problems)

    @cached_property
    def _files(self) -> Mapping[str, tuple[OpenTopic, Subject]]:
        """The subjects of all topics that are checked, by their files."""
        return {
            f"{opened.config.root}{os.sep}{subject.path}": (opened, subject)
            for opened in self._own
            for subject in opened.listing.subjects
        }

    def _find_anchors(self, place: str) -> frozenset[str] | None:
        """Return the anchors of the page in a file; None if they are not known."""
        if place not in self._anchors:
            self._anchors[place] = None
            if place in self._files and len(self._anchors) <= MOST_REFERENCES:
                opened, subject = self._files[place]
                with suppress(UnreadableError):
                    text = present(subject, opened.topic.read(subject, MAX_FILE_BYTES)).body
                    self._anchors[place] = list_anchors(subject.path, text)
        return self._anchors[place]

    def _check_size(self, file: str, text: str, subject: Subject) -> Iterator[Finding]:
        most = self._kb.config.max_result_chars
        if most and len(text) > most:
            parts = [part.start for part in find_outline(subject.path, text).sections]
            longest = max(end - start for start, end in pairwise([0, *parts, len(text)]))
            if longest > most:
                what = f"{longest:,} characters in it have no heading, more than one load returns"
                if not has_outline(subject.path, text):
                    what = (
                        f"{longest:,} characters; llm-kb knows no headings in .{subject.extension}"
                    )
                yield Finding(Rule.OVERSIZE, file, what)

    def _check_places(
        self, file: str, opened: OpenTopic, path: str, text: str
    ) -> Iterator[Finding]:
        """Report the links of a page that lead to nothing, and the paths that git has no longer."""
        place = opened.config.root / path
        find_problem = partial(self._find_wiki_problem, opened, path)
        is_name = partial(self._is_name, opened)
        dead = find_dead_links(text, place, find_problem, self._find_anchors, is_name)
        found = {Rule.DEAD_LINK: [*dead]}
        if "`" in text and (history := self._find_history(opened.config.root)):
            below = PurePosixPath(place.relative_to(history.root))
            found[Rule.GONE_PATH] = [*history.find_gone(text, below)]
        for rule, problems in found.items():
            yield from _locate_first(rule, file, text, problems)

    def _find_wiki_problem(self, opened: OpenTopic, path: str, name: str) -> str:
        """Return to what a `[[name]]` in a page leads in place of one subject; empty if to one."""
        found = self._find_targets(opened).find(name)
        topic, _, rest = name.partition("/")
        if not found and rest and (other := self._kb.topics.get(topic)):
            found = self._find_targets(other).find(rest)
        if not found:  # a page that is not there yet may link to itself
            itself = LinkTargets([Subject(slugify(path), slugify(path), path)])
            found = itself.find(name.removeprefix(f"{opened.config.id}/"))
        self._wiki_names[opened.config.id][name] = bool(found)
        return "" if len(found) == 1 else f"several: {name_some(found)}" if found else "nothing"

    def _is_name(self, opened: OpenTopic, name: str) -> bool:
        """Tell whether ExDoc, which puts all pages into one directory, has one of this name."""
        root = self._kb.config.workspace or opened.config.root
        return (root / "mix.exs").is_file() and len(self._find_targets(opened).find(name)) == 1

    def _find_targets(self, opened: OpenTopic) -> LinkTargets:
        id_ = opened.config.id
        if id_ not in self._targets:
            self._targets[id_] = LinkTargets(opened.listing.subjects)
        return self._targets[id_]

    def _find_history(self, directory: Path) -> History | None:
        """Return the paths that git had where a topic is; None outside a repository."""
        if (repository := find_repository(directory)) is None:
            return None
        root = repository.root
        if root not in self._histories:
            self._histories[root] = history = read_history(repository)
            if history.cut:
                where = name_place(str(root), self._cwd)
                self.limits.append(
                    (
                        Rule.GONE_PATH,
                        f"not all paths that git deleted are known in {where}: {history.cut}",
                    )
                )
        return self._histories[root]

    def _check_references(self, file: str, text: str) -> Iterator[Finding]:
        problems = []
        for reference, span in find_references(text):
            if reference not in self._resolved and len(self._resolved) < MOST_REFERENCES:
                self._resolved[reference] = self._find_problem(*reference)
            if problem := self._resolved.get(reference):
                problems.append((problem, span))
        yield from _locate_first(Rule.DANGLING, file, text, problems, MOST_REFERENCES)

    def _find_problem(self, topic: str, pattern: str) -> str:
        """Return the reason why a reference leads to no subject; empty if it leads to one."""
        try:
            opened = self._kb.find_topic(topic)
            parsed = parse_pattern(pattern or "**")
        except KbError as error:
            return str(error)
        # A text may hold thousands of globs, so they are matched against one list.
        if not pattern or opened.topic.list(pattern).subjects:
            return ""
        is_found = any(parsed.matches(subject.slug) for subject in opened.listing.listed)
        return "" if is_found else str(NoMatchError(opened.config.id, pattern))

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


def _sum_up(rule: Rule, files: Sequence[str], reason: str) -> Finding:
    """Return one finding for all files with the same one."""
    more = f" ({len(files) - 1:,} more like it)" if len(files) > 1 else ""
    return Finding(rule, files[0], f"{reason}{more}")


def find_overlaps(topics: Iterable[OpenTopic]) -> Iterator[tuple[tuple[str, str], int]]:
    """Return the pairs of topics that list the same files, and how many."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for opened in topics:
        for subject in opened.listing.listed:
            owners[f"{opened.config.root}/{subject.path}"].append(opened.config.id)
    pairs = Counter(pair for ids in owners.values() for pair in combinations(ids, 2))
    yield from pairs.items()


# Texts

_UNSEEN = re.compile(f"[{TAG_CHARACTERS}{REORDERING}]")
_MOST_POINTS = 5


def _check_characters(file: str, text: str) -> Iterator[Finding]:
    """Find characters that are invisible or that change the order of the text."""
    # The few different characters of a text take a third of the time of all.
    unseen = set() if text.isascii() else {*filter(_UNSEEN.match, {*text})}
    if unseen:
        found = [each for each in text if each in unseen]
        points = ", ".join(f"U+{ord(c):04X}" for c in sorted(unseen)[:_MOST_POINTS])
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
    elif name != directory or not _SKILL_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        what = f"its name {name!r} is not that of its directory, {directory!r}, in at most"
        letters = "lower-case letters, digits and single hyphens"
        yield Finding(Rule.SKILL, file, f"{what} {_LONGEST_NAME} {letters}")
    if len(description) > _LONGEST_DESCRIPTION:
        what = f"its description has {len(description):,} characters"
        yield Finding(Rule.SKILL, file, f"{what}; the most is {_LONGEST_DESCRIPTION:,}")


_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")
_LEARN = re.compile(
    r"""\blearn\(\s*(?:topic\s*[:=]\s*)?(["'])(?P<topic>[^"'\n]+)\1"""
    r"""(?:\s*,\s*(?:subjects\s*[:=]\s*)?(?P<subjects>\[[^\]]{0,2000}\]|"[^"\n]*"|'[^'\n]*'))?"""
)


def find_references(text: str) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """Yield topic and pattern of each `learn("topic", "pattern")` in a text, with its place.

    Without a pattern it is empty. Parts are left out.
    """
    for match in _LEARN.finditer(text) if "learn(" in text else ():
        for pattern in _QUOTED.findall(match["subjects"] or "") or [""]:
            yield (match["topic"], pattern.partition("#")[0]), match.span()


def _locate_first(
    rule: Rule,
    file: str,
    text: str,
    problems: Sequence[tuple[str, tuple[int, int]]],
    most: int = MOST_LINKS,
) -> Iterator[Finding]:
    """Yield the first findings of a page with their lines, and one that counts the others."""
    line, counted = 1, 0
    for what, span in sorted(problems[:most], key=itemgetter(1)):
        line += text.count("\n", counted, span[0])
        counted = span[0]
        yield Finding(rule, file, what, line, *_cut_around(text, span))
    if len(problems) > most:
        yield Finding(rule, file, f"{len(problems) - most:,} more in this page")


def _cut_around(text: str, span: tuple[int, int]) -> list[str]:
    """Return what is before a finding in its line, the finding, and what is after it."""
    start, end = span
    before = text[max(start - _AROUND, 0) : start].rpartition("\n")[2]
    found = text[start : min(end, start + _AROUND)].partition("\n")[0]
    after = text[start + len(found) : end + _AROUND].partition("\n")[0]
    return [visible_text(each.replace("\t", " ")) for each in (before, found, after)]
