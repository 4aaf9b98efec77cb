"""Lists topics and subjects, with the state and size of each, and renders them for people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from llm_kb.errors import NoMatchError, UnreadableError
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.rendering.plain_text import count, format_size, name_some, shorten, visible_line
from llm_kb.rendering.presentation import read_as_markdown
from llm_kb.rendering.tokens import estimate_tokens
from llm_kb.search.index.documents import File, LeftOut, find_left_out
from llm_kb.subjects.names import is_readable, is_unread_document
from llm_kb.subjects.selection import find_near, is_listed, select
from llm_kb.subjects.topics import REFERENCE_PREFIX, Listing, Skipped, Subject, Topic

_MOST_NOTEBOOK = 20_000_000


class State(Enum):
    """The state of a subject in a request."""

    AVAILABLE = "available"
    PRELOADED = "pre-loaded"
    HIDDEN = "hidden"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSubject:
    """A subject with its size and the time of its last change, in seconds since the epoch.

    `size` and `changed` are None if they are unknown.
    """

    name: str
    path: str
    state: State
    size: int | None = None
    changed: float | None = None

    @property
    def tokens(self) -> int | None:
        """Its estimated tokens, at four bytes each; none if it is not text that can be sent."""
        if self.size is None:
            return None
        return estimate_tokens(self.size) if is_readable(self.path) else 0

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        return {
            "slug": self.name,
            "path": self.path,
            "state": self.state.value,
            "size": self.size,
            "tokens": self.tokens,
            "changed": _iso(self.changed),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The sums over the visible subjects of a topic, and the time of the last change."""

    subjects: int
    size: int
    tokens: int
    changed: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTopic:
    """A topic, its subjects in the order of listings, and the files that were skipped.

    `problem` is the reason why there are no subjects. `whole` is set when hidden and
    disabled subjects are included, and skipped files are named. `is_aside` is set for a
    reference topic that prompts and searches have here only on request.
    """

    topic: Topic
    subjects: tuple[ListedSubject, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    problem: str | None = None
    whole: bool = False
    is_aside: bool = False

    @property
    def unsearched(self) -> tuple[LeftOut, ...]:
        """The visible subjects that no search finds."""
        return find_left_out(
            File(s.path, s.size, 0)
            for s in self.visible
            if s.size is not None and (is_readable(s.path) or is_unread_document(s.path))
        )

    @property
    def visible(self) -> tuple[ListedSubject, ...]:
        """The subjects that are pre-loaded or listed."""
        # `is` is faster than hashing an enum, and there may be many subjects.
        return tuple(
            s for s in self.subjects if s.state is State.AVAILABLE or s.state is State.PRELOADED
        )

    @property
    def totals(self) -> Totals:
        """The sums over the visible subjects."""
        visible = self.visible
        return Totals(
            subjects=len(visible),
            size=sum(s.size or 0 for s in visible),
            tokens=sum(s.tokens or 0 for s in visible),
            changed=max((s.changed for s in visible if s.changed is not None), default=None),
        )

    def count(self, state: State) -> int:
        """Return the number of subjects in a state."""
        return sum(subject.state is state for subject in self.subjects)

    def is_about(self, terms: Sequence[str]) -> bool:
        """Tell whether its id, title or introduction contains every term, ignoring case."""
        topic = self.topic
        return _matches_all(terms, topic.id, topic.title, topic.introduction)

    def only(self, terms: Sequence[str]) -> ListedTopic:
        """Return it with only the subjects whose slug contains every term, ignoring case."""
        kept = tuple(s for s in self.subjects if _matches_all(terms, s.name))
        return replace(self, subjects=kept)

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        totals = self.totals
        hidden = {"hidden": self.count(State.HIDDEN), "disabled": self.count(State.DISABLED)}
        return {
            "id": self.topic.id,
            "title": self.topic.title,
            "introduction": self.topic.introduction,
            "enable": self.topic.enable,
            "root": str(self.topic.root),
            "subjects": totals.subjects,
            "size": totals.size,
            "tokens": totals.tokens,
            "changed": _iso(totals.changed),
            "preloaded": self.count(State.PRELOADED),
            **(hidden if self.whole else {}),
            "skipped": len(self.skipped),
            "not_searched": list(map(str, self.unsearched)),
            "problem": self.problem,
        }

    def subject_dicts(self) -> list[dict[str, object]]:
        """Return the records of its subjects, then those of skipped files."""
        found = [subject.as_dict() for subject in self.subjects]
        skipped = self.skipped if self.whole else ()
        return found + [
            {"slug": None, "path": s.path, "state": "skipped", "reason": s.reason} for s in skipped
        ]


def _matches_all(terms: Sequence[str], *texts: str | None) -> bool:
    folded = [text.casefold() for text in texts if text]
    return all(any(term.casefold() in text for text in folded) for term in terms)


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds")


def list_topics(kb: OpenTopics, *, everything: bool = False) -> Iterator[ListedTopic]:
    """Yield the topics in the order of the menu.

    `everything` includes hidden and disabled subjects, topics that are not in the menu,
    and, last, disabled topics.
    """
    requested = set(kb.menu_ids)
    for id_, opened in kb.topics.items():
        if everything or opened.topic.in_menu:
            listed = list_topic(opened, everything=everything)
            is_aside = id_.startswith(REFERENCE_PREFIX) and id_ not in requested
            yield replace(listed, is_aside=is_aside)
    for topic in kb.config.topics:
        if everything and not topic.enable:
            yield ListedTopic(topic=topic, problem="the topic is disabled", whole=True)


def list_topic(
    opened: OpenTopic, patterns: Sequence[str] = (), *, everything: bool = False
) -> ListedTopic:
    """Return one topic with its subjects, or those that patterns name. Raises NoMatchError."""
    if patterns:
        selection = select(opened.catalog, patterns)
        for pattern in selection.missing:
            raise NoMatchError(opened.topic.id, pattern, find_near(pattern, opened.catalog))
        named = [
            _list_subject(opened, subject, _state(subject, opened.preloaded))
            for subject in selection.subjects
        ]
        return ListedTopic(topic=opened.topic, subjects=tuple(named))
    listing = opened.listing
    preloaded = opened.preloaded
    found = [
        _list_subject(opened, subject, _state(subject, preloaded))
        for subject in listing.subjects
        if everything or is_listed(subject) or subject.identity in preloaded
    ]
    if everything and opened.topic.disabled:
        disabled = find_disabled(opened.topic, listing)
        found += [_list_subject(opened, subject, State.DISABLED) for subject in disabled]
        found.sort(key=lambda subject: subject.name)
    return ListedTopic(
        topic=opened.topic,
        subjects=tuple(found),
        skipped=tuple(skipped for skipped in listing.skipped if skipped.path),
        problem=find_problem(opened, listing),
        whole=everything,
    )


def find_disabled(topic: Topic, listing: Listing) -> list[Subject]:
    """Return the subjects of a directory that `disabled` excludes."""
    kept = {subject.path for subject in listing.subjects}
    whole = DirectoryCatalog(replace(topic, disabled=())).list()
    return [subject for subject in whole.subjects if subject.path not in kept]


def find_problem(opened: OpenTopic, listing: Listing) -> str | None:
    """Return the reason why the directory of a topic cannot be read; None if it can."""
    reasons = [skipped.reason for skipped in listing.skipped if not skipped.path]
    return f"{opened.topic.root}: {reasons[0]}" if reasons else None


def name_file(opened: OpenTopic, path: str, cwd: Path) -> str:
    """Return the name of a subject's file, or topic and path for a captured subject."""
    if not isinstance(opened.catalog, DirectoryCatalog):
        return f"{opened.topic.id}/{path}"
    return name_place(f"{opened.topic.root}/{path}", cwd)


def name_place(path: str, cwd: Path) -> str:
    """Return a path relative to the current directory, if it is below that."""
    return path.removeprefix(f"{cwd}{os.sep}")


def _state(subject: Subject, preloaded: frozenset[str]) -> State:
    if subject.identity in preloaded:
        return State.PRELOADED
    return State.AVAILABLE if is_listed(subject) else State.HIDDEN


def _list_subject(opened: OpenTopic, subject: Subject, state: State) -> ListedSubject:
    size: int | None = None
    changed: float | None = None
    # The file may be deleted since it was listed, or not readable.
    with suppress(OSError, UnreadableError):
        if isinstance(opened.catalog, DirectoryCatalog):
            status = os.stat(f"{opened.topic.root}/{subject.path}")  # noqa: PTH116 - a `Path` for each is slow
            size, changed = status.st_size, status.st_mtime
            if subject.extension == "ipynb":  # as a model reads it, without pictures
                content = opened.catalog.read(subject, _MOST_NOTEBOOK)
                size = read_as_markdown(subject, content).size
        else:
            size = opened.catalog.read(subject, 0).size
    return ListedSubject(
        name=subject.name, path=subject.path, state=state, size=size, changed=changed
    )


# Rendering for people

WIDTH = 80

_SPECIAL = (State.PRELOADED, State.HIDDEN, State.DISABLED)

_WIDEST_COLUMN = 100
"""The greatest width of the column of slugs."""
_NARROWEST_COLUMN = 20
_FIGURES = 38
"""The width of the columns beside it."""


def render_topic(listed: ListedTopic) -> Iterator[str]:
    """Yield a topic's heading and its totals."""
    topic = listed.topic
    heading = f"{topic.id}: {visible_line(topic.title)}" if topic.title else topic.id
    yield shorten(heading, WIDTH)
    yield f"  {_summary(listed)}"
    if listed.is_aside:
        yield "  only on request: -T References or -k for prompts, -t for searches"
    special = _special(listed)
    if special:
        yield f"  {special}"
    # With no subject at all, a skipped file is the reason.
    if not (listed.whole or listed.subjects):
        listed = replace(listed, whole=True, skipped=listed.skipped[:1])
    yield from _skipped_lines(listed, "  ")
    if listed.unsearched:
        yield f"  not searched: {visible_line(name_some(map(str, listed.unsearched)))}"


MANY = 200
"""From this number of subjects on, a listing is folded by directory."""
_MOST_ROWS = 60
_DEPTHS = (3, 2, 1)


def render_subjects(listed: ListedTopic, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a topic's subjects, in columns that fit a width.

    Many subjects are folded by directory, unless the whole topic is asked for.
    """
    rows = [(s.name, _figures(s.size, s.tokens, s.changed), _label(s)) for s in listed.subjects]
    if len(rows) >= MANY and not listed.whole:
        rows = list(_fold(listed.subjects))[:MANY]
    widest = max((len(name) for name, _, _ in rows), default=0)
    room = _WIDEST_COLUMN if width is None else max(width - _FIGURES - 2, _NARROWEST_COLUMN)
    column = min(widest, room)
    for name, figures, state in rows:
        shown = name if width is None else shorten(name, column)
        yield f"{shown:{column}}  {figures}{state}".rstrip()
    if len(rows) < len(listed.subjects):
        yield f"{count(len(listed.subjects), 'subject')}; --all lists each of them"
    if listed.problem:
        yield f"no subjects: {listed.problem}"
    yield from _skipped_lines(listed, "")
    for left in listed.unsearched:
        yield f"not searched: {visible_line(str(left))}"


def _fold(subjects: Sequence[ListedSubject]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each directory, as deep as a screen or two allow, and each other subject."""
    for depth in _DEPTHS:
        groups: dict[str, list[ListedSubject]] = {}
        for subject in subjects:
            groups.setdefault(_name_group(subject.name, depth), []).append(subject)
        if len(groups) <= _MOST_ROWS:
            break
    for name, inner in groups.items():
        changed = max((s.changed for s in inner if s.changed is not None), default=None)
        sums = sum(s.size or 0 for s in inner), sum(s.tokens or 0 for s in inner)
        number = f"  {count(len(inner), 'subject')}" if name.endswith("/") else _label(inner[0])
        yield name, _figures(*sums, changed), number


def _name_group(name: str, depth: int) -> str:
    parts = name.split("/")
    return f"{'/'.join(parts[:depth])}/" if len(parts) > depth else name


def render_tree(listed: ListedTopic) -> Iterator[str]:
    """Yield a topic's subjects as a tree of their slugs, each level indented."""
    yield f"{listed.topic.id}/"
    above: Sequence[str] = ()
    for subject in sorted(listed.subjects, key=lambda subject: subject.name.split("/")):
        *parents, name = subject.name.split("/")
        for depth in range(_common(parents, above), len(parents)):
            yield f"{'  ' * (depth + 1)}{parents[depth]}/"
        size = "" if subject.size is None else f"  {format_size(subject.size)}"
        yield f"{'  ' * (len(parents) + 1)}{name}{size}{_label(subject)}"
        above = parents
    if listed.problem:
        yield f"  no subjects: {listed.problem}"
    yield from _skipped_lines(listed, "  ")


def _common(parents: Sequence[str], above: Sequence[str]) -> int:
    """Return the number of directories that two subjects share."""
    pairs = zip(parents, above, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _summary(listed: ListedTopic) -> str:
    """Return the number, size and age of a topic's subjects."""
    if listed.problem:
        return f"no subjects: {listed.problem}"
    totals = listed.totals
    parts = [count(totals.subjects, "subject"), format_size(totals.size)]
    parts.append(f"~{totals.tokens:,} tokens")
    if totals.changed is not None:
        parts.append(f"changed {_format_day(totals.changed)}")
    if not listed.topic.in_menu:
        parts.append("not in the menu")
    return ", ".join(parts)


def _special(listed: ListedTopic) -> str:
    """Return the numbers of special subjects, of files that are not text, and of skipped ones."""
    counts = [(listed.count(state), state.value) for state in _SPECIAL]
    counts.append((sum(not is_readable(s.path) for s in listed.subjects), "not text"))
    counts.append((len(listed.skipped), "skipped"))
    return ", ".join(f"{number:,} {name}" for number, name in counts if number)


def _figures(size: int | None, tokens: int | None, changed: float | None) -> str:
    shown = "" if tokens is None else f"~{tokens:,} tokens"
    day = "" if changed is None else _format_day(changed)
    return f"{'' if size is None else format_size(size):>9}  {shown:>15}  {day:10}"


def _label(subject: ListedSubject) -> str:
    return "" if subject.state is State.AVAILABLE else f"  {subject.state.value}"


def _skipped_lines(listed: ListedTopic, indent: str) -> Iterator[str]:
    for skipped in listed.skipped if listed.whole else ():
        yield f"{indent}skipped {visible_line(skipped.path)}: {visible_line(skipped.reason)}"


def _format_day(seconds: float) -> str:
    return _name_day(int(seconds // 86_400))


@lru_cache
def _name_day(days: int) -> str:
    """Return the date of a day after the epoch, cached since files share few days."""
    return str(date(1970, 1, 1) + timedelta(days=days))
