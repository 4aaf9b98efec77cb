"""The rules of `llm kb check`: functions from a knowledge base to findings."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from llm_kb import addons, hookspecs
from llm_kb.config.layers import topic_key
from llm_kb.errors import UnreadableError
from llm_kb.files.conversion import NO_TEXT
from llm_kb.files.directory_topic import NO_SKILL, DirectoryTopic
from llm_kb.files.fields import suggest
from llm_kb.files.layouts import SKILL_FILE, is_shown
from llm_kb.files.topic_documents import find_unsearched
from llm_kb.files.walk import OUTSIDE
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import EmptyTopicError, OpenTopic
from llm_kb.rendering.plain_text import count, estimate_tokens, name_place
from llm_kb.rendering.presentation import present
from llm_kb.search.index.documents import describe_unread
from llm_kb.search.roles import explain_unsearched
from llm_kb.subjects.ignore import LEFTOVER
from llm_kb.subjects.topics import Content, Subject
from llm_kb.texts.decoding import MOST_BYTES, START, TOO_LARGE, explain_conversion, open_text
from llm_kb.texts.formats import is_readable, is_unread_document
from llm_kb.texts.outlines.outline import read_document
from llm_kb.texts.safe import REORDERING, TAG_CHARACTERS, visible_text
from llm_kb.upkeep.links import Links, Problem

LEVELS = ("error", "warning", "note")
"""The levels of rules: what does not work, what could be better, and what is good to know."""

_ERROR, _WARNING, _NOTE = LEVELS


class Rule(NamedTuple):
    """A rule: its name in reports and in `[kb.check] ignore`, its level, and what to do."""

    id: str
    level: str
    advice: str


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


CONFIGURATION = Rule("configuration", _ERROR, "Models find nothing to learn until it is corrected.")
UNMATCHED = Rule("unmatched", _ERROR, "It has no effect: `llm kb list TOPIC --all` has all names.")
SKIPPED = Rule("skipped", _ERROR, "No model can read it: rename or repair it, or `ignore` it.")
INVISIBLE = Rule(
    "invisible", _ERROR, "No reviewer sees what models read: remove it, ask its author."
)
DANGLING = Rule("dangling", _ERROR, "A model gets an error: correct it, or write the subject.")
SAME_TITLE = Rule("configuration", _WARNING, "It always means the first: give one another title.")
EMPTY_TOPIC = Rule("empty-topic", _WARNING, "No menu has it: write a subject, or remove the topic.")
NESTED = Rule("nested", _WARNING, "They are found twice: remove a topic, or `ignore` them in one.")
ENCODING = Rule(
    "encoding", _WARNING, "Models cannot read all of it: save it as UTF-8, or disable it."
)
NO_INTRODUCTION = Rule(
    "no-introduction", _WARNING, "Models choose by it: say what the topic contains."
)
DEAD_LINK = Rule("dead-link", _WARNING, "A model finds nothing: correct it, or write the page.")
UNSEARCHED = Rule("skipped", _NOTE, "No search finds it: `ignore` what nobody needs to find.")
PRELOADED = Rule("oversize", _NOTE, "Every -T learn sends it: name fewer pages in `learned`.")
OVERSIZE = Rule("oversize", _NOTE, "It has no parts to read: split it, or `llm kb disable` it.")

RULES = (
    CONFIGURATION, UNMATCHED, SKIPPED, INVISIBLE, DANGLING,
    SAME_TITLE, EMPTY_TOPIC, NESTED, ENCODING, NO_INTRODUCTION, DEAD_LINK,
    UNSEARCHED, PRELOADED, OVERSIZE,
)  # fmt: skip
"""The rules of the core, in the order of a report."""

MOST_PRELOADED = 4_000
"""The most tokens that requests may pre-load without a note."""

MOST_REFERENCES = 1_000
"""The most different references that are followed: each may need a walk of a topic."""

MOST_LINKS = 200
"""The most links of a page that are findings of their own."""

_MOST_POINTS = 5
"""The most characters that a finding on invisible ones names."""

_AROUND = 60
"""The most characters of a line that are shown before and after the reason of a finding."""


def find_problems(
    kb: KnowledgeBase, progress: Callable[[int, int], object] = lambda _done, _all: None
) -> list[Finding]:
    """Return every finding once: errors first, then by rule, file and line.

    `progress` is called with the number of subjects that were read, and of all.
    """
    checks = [partial(each, progress=progress) if each is check_pages else each for each in CHECKS]
    found = {_weigh(kb, each) for check in checks for each in check(kb)}
    found |= {_weigh(kb, each) for _, each in addons.gather(hookspecs.checks, kb)}
    order = {rule: number for number, rule in enumerate(RULES)}
    return sorted(
        found,
        key=lambda f: (
            LEVELS.index(f.rule.level), order.get(f.rule, len(order)), f.file, f.line or 0, f.what,
        ),
    )  # fmt: skip


def _weigh(kb: KnowledgeBase, finding: Finding) -> Finding:
    """Return a finding, which is at most a warning if it is in no file of the project."""
    workspace = kb.config.workspace
    if workspace is None or finding.rule.level != _ERROR:
        return finding
    place = Path(os.path.realpath(_find_cwd(kb) / finding.file))
    is_own = place.is_relative_to(os.path.realpath(workspace))
    return finding if is_own else finding._replace(rule=finding.rule._replace(level=_WARNING))


def list_own(kb: KnowledgeBase) -> list[OpenTopic]:
    """Return the configured topics: what was fetched or captured cannot be fixed here."""
    configured = {topic.id for topic in kb.config.topics}
    return [opened for id_, opened in kb.topics.items() if id_ in configured]


def count_pages(kb: KnowledgeBase) -> int:
    """Return the number of visible texts that are checked."""
    return sum(not page.hidden for opened in list_own(kb) for page in list_pages(opened))


def list_pages(opened: OpenTopic) -> list[Subject]:
    """Return the subjects of a topic that are texts and may be shown."""
    shown = (s for s in opened.listing.subjects if is_shown(s, opened.config.layout))
    return [subject for subject in shown if is_readable(subject.path)]


# The configuration


def check_configuration(kb: KnowledgeBase) -> Iterator[Finding]:
    """Find a configuration without topics, unknown rules, and titles that mean several topics."""
    config = kb.config
    if not (config.topics or config.adjustments):
        file = name_place(str(config.workspace_file or _find_cwd(kb)), _find_cwd(kb))
        rule = EMPTY_TOPIC if config.workspace_file else CONFIGURATION
        yield Finding(rule, file, "no topics are configured; `llm kb init` proposes some")
    ids = list(dict.fromkeys(rule.id for rule in RULES))
    for name in config.check_ignore:
        # Any other one may be a rule of an add-on, which has no finding now.
        if name not in ids and (near := suggest(name, ids)):
            what = f"kb.check.ignore: {name!r} is not a rule{near}"
            yield Finding(UNMATCHED, _find_setting(kb, "kb.check.ignore"), what)
    first: dict[str, str] = {}
    for topic in (opened.config for opened in list_own(kb)):
        other = first.setdefault(topic.label.casefold(), topic.id)
        if other != topic.id:
            what = f"topics {other!r} and {topic.id!r} have one title in any case"
            keys = [topic_key(topic.id, name) for name in ("title", "subjects")]
            yield Finding(SAME_TITLE, _find_setting(kb, *keys), what)


def check_patterns(kb: KnowledgeBase) -> Iterator[Finding]:
    """Find patterns of `learned` and `disabled` that name nothing, or very much."""
    for opened in kb.topics.values():
        topic = opened.config
        no_parts = kb.find_missing_parts(opened, opened.learned)
        problems = [("learned", str(error)) for error in no_parts]
        missing = [("learned", each) for each in opened.learned.missing]
        missing += [("disabled", each) for each in DirectoryTopic(topic).list_idle()]
        problems += [(name, f"{each!r} matches nothing") for name, each in missing]
        for name, problem in problems:
            key = topic_key(topic.id, name)
            file = _find_setting(kb, key, topic_key(topic.id, "subjects"), topic.id)
            yield Finding(UNMATCHED, file, f"{key}: {problem}")
    tokens = sum(estimate_tokens(each.text) for _, sent in kb.preloaded for each in sent)
    if tokens > MOST_PRELOADED:
        keys = [topic_key(topic.id, "learned") for topic, _ in kb.preloaded]
        what = f"~{tokens:,} tokens are pre-loaded"
        yield Finding(PRELOADED, _find_setting(kb, *keys), what)


def check_topics(kb: KnowledgeBase) -> Iterator[Finding]:
    """Find topics without subjects or introduction, and invisible characters of their settings."""
    for opened in list_own(kb):
        topic, listing = opened.config, opened.listing
        file = _find_setting(kb, topic_key(topic.id, "subjects"), topic.id)
        if not listing.listed:
            is_unreadable = any(not skipped.path for skipped in listing.skipped)
            rule = CONFIGURATION if is_unreadable else EMPTY_TOPIC
            yield Finding(rule, file, str(EmptyTopicError(topic, listing)))
        if not (topic.introduction or "").strip():
            yield Finding(NO_INTRODUCTION, file, f"topic {topic.id!r} has no introduction")
        for name in ("title", "introduction", "description"):
            for found in check_characters(file, getattr(topic, name) or ""):
                yield Finding(found.rule, file, f"{found.what} in {topic_key(topic.id, name)}")


def check_overlaps(kb: KnowledgeBase) -> Iterator[Finding]:
    """Find topics that list the same files."""
    for (one, other), shared in find_overlaps(list_own(kb)):
        what = f"topics {one!r} and {other!r} share {count(shared, 'subject')}"
        yield Finding(NESTED, _find_setting(kb, topic_key(other, "subjects"), other), what)


def find_overlaps(topics: Iterable[OpenTopic]) -> Iterator[tuple[tuple[str, str], int]]:
    """Return the pairs of topics that list the same files, and how many."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for opened in topics:
        for subject in opened.listing.listed:
            owners[f"{opened.config.root}/{subject.path}"].append(opened.config.id)
    yield from Counter(pair for ids in owners.values() for pair in combinations(ids, 2)).items()


# The files


def check_files(kb: KnowledgeBase) -> Iterator[Finding]:
    """Find the files of topics that are skipped, and those that no search reads."""
    for opened in list_own(kb):
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for skipped in opened.listing.skipped:
            reason = skipped.reason
            if reason == NO_SKILL and skipped.path.lower().endswith(f"/{SKILL_FILE.lower()}"):
                reason = f"its name must be {SKILL_FILE}, in upper case"
            elif reason == OUTSIDE:
                reason = f"{reason}; allow_links_to in your own kb.toml permits it"
            if skipped.path and reason != NO_SKILL:
                reasons[reason].append(_name(kb, opened, skipped.path))
        yield from (_sum_up(SKIPPED, files, reason) for reason, files in reasons.items())
        if unread := [s.path for s in opened.listing.subjects if is_unread_document(s.path)]:
            yield Finding(UNSEARCHED, _name(kb, opened, unread[0]), describe_unread(unread))
        place = _name(kb, opened, "").rstrip("/")
        for reason in find_unsearched(opened.config.root, list_pages(opened)):
            yield Finding(UNSEARCHED, place, f"no search reads {reason}")
        if opened.listing.notice:
            yield Finding(UNSEARCHED, place, opened.listing.notice)
        if left := opened.listing.absent.get(LEFTOVER):
            yield Finding(UNSEARCHED, place, f"{left:,} left out: {LEFTOVER}")


def check_pages(
    kb: KnowledgeBase, progress: Callable[[int, int], object] = lambda _done, _all: None
) -> Iterator[Finding]:
    """Find what is wrong in the texts of subjects, each of which is read once."""
    links = Links(kb, list_own(kb))
    unread: defaultdict[tuple[Rule, str], list[str]] = defaultdict(list)
    pages = [(opened, each) for opened in list_own(kb) for each in list_pages(opened)]
    for number, (opened, subject) in enumerate(pages, start=1):
        file = _name(kb, opened, subject.path)
        try:
            content = opened.topic.read(subject, MOST_BYTES)
        except UnreadableError as error:
            is_empty = error.reason.endswith(NO_TEXT)
            key = (UNSEARCHED, NO_TEXT) if is_empty else (SKIPPED, error.reason)
            unread[key].append(file)
        else:
            if reason := _explain_unsearched(subject, content):
                unread[UNSEARCHED, f"no search reads it: it is {reason}"].append(file)
            if content.size <= MOST_BYTES:
                yield from _check_page(links, opened, subject, content)
        if number % 100 == 0 or number == len(pages):
            progress(number, len(pages))
    yield from (_sum_up(rule, files, reason) for (rule, reason), files in unread.items())


CHECKS: tuple[Callable[[KnowledgeBase], Iterable[Finding]], ...] = (
    check_configuration, check_patterns, check_topics, check_overlaps, check_files, check_pages,
)  # fmt: skip
"""Everything that is looked for."""


def _explain_unsearched(subject: Subject, content: Content) -> str:
    """Return why no search reads a text; empty if it is searched."""
    if content.size > MOST_BYTES:
        return TOO_LARGE
    return explain_unsearched(subject.path, open_text(content.data).text)


def _sum_up(rule: Rule, files: Sequence[str], reason: str) -> Finding:
    """Return one finding for all files with the same one."""
    more = f" ({len(files) - 1:,} more like it)" if len(files) > 1 else ""
    return Finding(rule, files[0], f"{reason}{more}")


def _find_cwd(kb: KnowledgeBase) -> Path:
    return kb.directory or Path("/")


def _name(kb: KnowledgeBase, opened: OpenTopic, path: str) -> str:
    file = opened.topic.find_file(path)
    return name_place(str(file), _find_cwd(kb)) if file else f"{opened.config.id}/{path}"


def _find_setting(kb: KnowledgeBase, *keys: str) -> str:
    """Return the file that sets the first of some keys that any file sets, or the last key."""
    for key in keys:
        setting = kb.config.settings.get(key)
        for origin in reversed(setting.origins if setting else ()):
            if origin.place:
                return name_place(origin.place, _find_cwd(kb))
    return keys[-1]


# The texts


def _check_page(
    links: Links, opened: OpenTopic, subject: Subject, content: Content
) -> Iterator[Finding]:
    """Find what is wrong in a page that was read."""
    file = _name(links.kb, opened, subject.path)
    presented = present(subject, content)
    if presented.binary:
        what = f"it is binary: a NUL byte is in its first {START:,} bytes"
        yield Finding(ENCODING, file, what)
        return
    if problem := explain_conversion(content.data):
        yield Finding(ENCODING, file, problem)
    # As it is on disk: what is presented has no tag characters.
    yield from check_characters(file, content.data.decode("utf-8", "replace"))
    most, text = links.kb.config.max_result_chars, presented.body
    if most and len(text) > most:
        starts = [part.start for part in read_document(subject.path, text).sections]
        longest = max(end - start for start, end in pairwise([0, *starts, len(text)]))
        if longest > most:
            what = f"{longest:,} characters in it have no heading, more than one load returns"
            yield Finding(OVERSIZE, file, what)
    yield from check_text(links, opened, subject.path, text)


def check_text(links: Links, opened: OpenTopic, path: str, text: str) -> Iterator[Finding]:
    """Find what the text of a subject names that is not there."""
    file = _name(links.kb, opened, path)
    dangling = [*links.find_dangling(text, MOST_REFERENCES)]
    yield from locate(DANGLING, file, text, dangling, MOST_REFERENCES)
    yield from locate(DEAD_LINK, file, text, [*links.find_dead(opened, path, text)])


_UNSEEN = re.compile(f"[{TAG_CHARACTERS}{REORDERING}]")


def check_characters(file: str, text: str) -> Iterator[Finding]:
    """Find characters that are invisible or that change the order of the text."""
    # The few different characters of a text take a third of the time of all.
    unseen = set() if text.isascii() else {*filter(_UNSEEN.match, {*text})}
    if unseen:
        found = [each for each in text if each in unseen]
        points = ", ".join(f"U+{ord(c):04X}" for c in sorted(unseen)[:_MOST_POINTS])
        line = text.count("\n", 0, text.index(found[0])) + 1
        what = f"{count(len(found), 'invisible character')}: {points}"
        yield Finding(INVISIBLE, file, what, line)


def locate(
    rule: Rule, file: str, text: str, problems: Sequence[Problem], most: int = MOST_LINKS
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
