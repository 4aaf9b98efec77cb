"""Lists topics and subjects, with the state and size of each, and renders them for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from llm_kb.config.settings import Config
from llm_kb.errors import NoMatchError
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import OpenTopic, explain_empty
from llm_kb.knowledge_base.learning import describe_each
from llm_kb.rendering.learn_text import MOST_LISTED
from llm_kb.rendering.plain_text import count, estimate_tokens, shorten
from llm_kb.rendering.summaries import find_label
from llm_kb.subjects.topics import Skipped, Subject, TopicConfig, find_near, select
from llm_kb.texts.formats import is_readable
from llm_kb.texts.safe import visible_line

State: TypeAlias = Literal["available", "pre-loaded", "hidden", "disabled"]
"""The state of a subject in a request."""

MANY = 200
"""A longer list of subjects is folded by directory."""

ON_REQUEST = "on request"
"""The note on a topic that nobody asked for in this directory."""

HOW_TO_REQUEST = f"{ON_REQUEST}: -k for prompts, -t for searches"
"""What that note means, once below all topics."""

BESIDE, LONGEST_STATE = 33, 14
"""The width of the columns beside the slugs or titles, and of the last one of them."""

NARROWEST, WIDEST = 20, 100
"""The least and the greatest width of the column of slugs; titles have half of it."""


class ListedSubject(NamedTuple):
    """A subject with its tokens, estimated at four bytes each.

    `tokens` is None if the subject is not text, or cannot be read.
    """

    name: str
    path: str
    state: State = "available"
    tokens: int | None = None
    text: str = ""
    """What a listing has beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTopic:
    """A topic, its subjects in the order of listings, and the files that were skipped.

    `problem` is the reason why there are no subjects. `whole` is set when hidden and
    disabled subjects are included, and skipped files are named. `note` says why menus do not
    have it.
    """

    topic: TopicConfig
    subjects: Sequence[ListedSubject] = ()
    skipped: Sequence[Skipped] = ()
    absent: Sequence[str] = ()
    problem: str | None = None
    whole: bool = False
    note: str = ""

    @property
    def visible(self) -> list[ListedSubject]:
        """The subjects that are pre-loaded or listed."""
        return [s for s in self.subjects if s.state in ("available", "pre-loaded")]

    @property
    def tokens(self) -> int:
        """The tokens of the visible subjects."""
        return sum(subject.tokens or 0 for subject in self.visible)

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        return {
            "id": self.topic.id,
            "title": self.topic.title,
            "introduction": self.topic.introduction,
            "enable": self.topic.enable,
            "root": str(self.topic.root),
            "subjects": len(self.visible),
            "tokens": self.tokens,
            "skipped": len(self.skipped),
            "problem": self.problem,
        }

    def subject_dicts(self) -> list[dict[str, object]]:
        """Return the records of its subjects, then those of skipped files."""
        found: list[dict[str, object]] = [
            {"slug": s.name, "path": s.path, "state": s.state, "tokens": s.tokens}
            for s in self.subjects
        ]
        skipped = self.skipped if self.whole else ()
        return found + [
            {"slug": None, "path": s.path, "state": "skipped", "reason": s.reason} for s in skipped
        ]


def list_topics(kb: KnowledgeBase, *, everything: bool = False) -> Iterator[ListedTopic]:
    """Yield the topics in the order of the menu.

    `everything` includes hidden and disabled subjects, topics that are not in the menu,
    and, last, disabled topics.
    """
    requested = set(kb.menu_ids)
    for id_, opened in kb.topics.items():
        if everything or opened.config.is_offered or id_ in requested:
            why = ON_REQUEST if opened.config.is_offered else "not in the menu"
            listed = list_topic(opened, everything=everything)
            yield replace(listed, note="" if id_ in requested else why)
    for topic in kb.config.topics:
        if everything and not topic.enable:
            yield ListedTopic(topic=topic, problem="the topic is disabled", whole=True)


def list_topic(
    opened: OpenTopic, patterns: Sequence[str] = (), *, everything: bool = False
) -> ListedTopic:
    """Return one topic with its subjects, or those that patterns name. Raises NoMatchError."""
    if patterns:
        selection = select(opened.topic, patterns)
        for pattern in selection.missing:
            raise NoMatchError(opened.config.id, pattern, find_near(pattern, opened.topic))
        return ListedTopic(topic=opened.config, subjects=_list_each(opened, selection.subjects))
    listing, preloaded = opened.listing, opened.preloaded
    shown = [s for s in listing.subjects if everything or not s.hidden or s.identity in preloaded]
    found = _list_each(opened, shown)
    if everything and opened.config.disabled:
        disabled = DirectoryTopic(opened.config).list_disabled()
        found += [each._replace(state="disabled") for each in _list_each(opened, disabled)]
        found.sort(key=lambda subject: subject.name)
    return ListedTopic(
        topic=opened.config,
        subjects=found,
        skipped=[skipped for skipped in listing.skipped if skipped.path],
        absent=listing.notes,
        problem=None if found else explain_empty(opened.config, listing),
        whole=everything,
    )


def add_texts(opened: OpenTopic, listed: ListedTopic, config: Config) -> ListedTopic:
    """Return a topic with the texts that a listing for models has beside its visible subjects."""
    if len(listed.subjects) > MOST_LISTED:
        return listed
    shown = {subject.name for subject in listed.visible}
    subjects = [subject for subject in opened.listing.subjects if subject.name in shown]
    texts = {e.name: e.summary for e in describe_each(opened, subjects, config, find_label)}
    return replace(
        listed, subjects=[s._replace(text=texts.get(s.name, "")) for s in listed.subjects]
    )


def _list_each(opened: OpenTopic, subjects: Iterable[Subject]) -> list[ListedSubject]:
    preloaded = opened.preloaded
    found = []
    for subject in subjects:
        state: State = "hidden" if subject.hidden else "available"
        if subject.identity in preloaded:
            state = "pre-loaded"
        size = opened.find_size(subject) if is_readable(subject.path) else None
        tokens = None if size is None else estimate_tokens(size)
        found.append(ListedSubject(subject.name, subject.path, state, tokens))
    return found


# Rendering for people


def render_topics(topics: Sequence[ListedTopic], width: int | None = None) -> Iterator[str]:
    """Yield a line for each topic, in columns that fit a width, with indented notes below it."""
    titles = [visible_line(listed.topic.title or "") for listed in topics]
    ids = max((len(listed.topic.id) for listed in topics), default=0)
    most = max(width - ids - 2 - BESIDE, NARROWEST) if width else WIDEST // 2
    column = min(max(map(len, titles), default=0), most)
    for listed, title in zip(topics, titles, strict=True):
        name = f"{listed.topic.id:{ids}}"
        if column:
            name += f"  {shorten(title, column):{column}}"
        yield f"{name}{_summarize(listed)}".rstrip()
        yield from (f"  {line}" for line in _render_notes(listed))
    if any(listed.note == ON_REQUEST for listed in topics):
        yield f"  {HOW_TO_REQUEST}"


def render_subjects(listed: ListedTopic, width: int | None = None) -> Iterator[str]:
    """Yield a line for each subject of a topic, in columns that fit a width.

    Many subjects are folded by directory, unless the whole topic is asked for.
    """
    rows: list[tuple[str, int | None, str]] = [
        (s.name, s.tokens, s.text if s.state == "available" else f"{s.state}  {s.text}".rstrip())
        for s in listed.subjects
    ]
    if len(rows) > MANY and not listed.whole:
        rows = list(_fold(listed.subjects))[:MANY]
    widest = max((len(name) for name, _, _ in rows), default=0)
    column = min(widest, max(width - BESIDE, NARROWEST) if width else WIDEST)
    for name, tokens, note in rows:
        shown = shorten(name, column) if width else name
        cost = "" if tokens is None else f"~{tokens:,} tokens"
        room = max(width - column - BESIDE + LONGEST_STATE, LONGEST_STATE) if width else len(note)
        yield f"{shown:{column}}  {cost:>15}  {shorten(note, room)}".rstrip()
    if len(rows) < len(listed.subjects):
        yield f"{count(len(listed.subjects), 'subject')}; --all lists each of them"
    yield from _render_notes(listed)


def _fold(subjects: Sequence[ListedSubject]) -> Iterator[tuple[str, int | None, str]]:
    """Yield a row for each directory of slugs and each subject beside them."""
    groups: dict[str, list[ListedSubject]] = {}
    for subject in subjects:
        directory, slash, _ = subject.name.partition("/")
        groups.setdefault(directory + slash, []).append(subject)
    for name, inside in groups.items():
        tokens = sum(subject.tokens or 0 for subject in inside)
        yield name, tokens, count(len(inside), "subject") if name.endswith("/") else inside[0].text


def _summarize(listed: ListedTopic) -> str:
    """Return the columns with the number of a topic's subjects, their tokens, and their states."""
    if listed.problem:
        return ""
    states = [subject.state for subject in listed.subjects]
    special: Sequence[State] = ("pre-loaded", "hidden", "disabled")
    counts = [(states.count(state), str(state)) for state in special]
    counts.append((sum(not is_readable(subject.path) for subject in listed.subjects), "not text"))
    counts.append((len(listed.skipped), "skipped"))
    parts = [listed.note, *(f"{number:,} {name}" for number, name in counts if number)]
    subjects, tokens = count(len(listed.visible), "subject"), f"~{listed.tokens:,} tokens"
    return f"  {subjects:>14}  {tokens:>15}  {', '.join(filter(None, parts))}"


def _render_notes(listed: ListedTopic) -> Iterator[str]:
    if listed.problem:
        yield f"no subjects: {listed.problem}"
    yield from listed.absent
    for each in listed.skipped if listed.whole else ():
        yield f"skipped {visible_line(each.path)}: {visible_line(each.reason)}"
