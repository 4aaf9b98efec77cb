"""Answers calls of `learn`, with the text of subjects or a listing, and makes the menu."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llm_kb.errors import NoMatchError, UnreadableError
from llm_kb.files.documents import find_size, find_unsearched
from llm_kb.knowledge_base.reading import (
    MOST_READ,
    NamedFiles,
    describe_skill,
    find_missing_parts,
    read_asked,
    summarize_each,
)
from llm_kb.knowledge_base.topics import OpenTopic, name_asked
from llm_kb.rendering.learn_text import (
    BYTES_A_CHARACTER,
    MOST_LISTED,
    Answer,
    join_groups,
    render_listing,
)
from llm_kb.rendering.menu import Menu, MenuSubject, MenuTopic, fit_menu
from llm_kb.rendering.parts import (
    LONGEST_OUTLINE,
    OPENING,
    AnchorError,
    decode_exactly,
    describe_size,
)
from llm_kb.rendering.plain_text import one_line
from llm_kb.rendering.presentation import read_as_markdown
from llm_kb.search.chunking.outline import find_outline
from llm_kb.subjects.names import is_readable, is_unread_document
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import find_near_each, is_listed, select
from llm_kb.subjects.topics import REFERENCE_PREFIX, Catalog, Config, Layout, Subject, is_binary

OUTLINE_BYTES = BYTES_A_CHARACTER * (OPENING + LONGEST_OUTLINE)
"""Least room, in characters, for which an outline is made."""

MOST_SEARCHED = 50_000_000
"""Maximum number of bytes of a topic that are searched for labels of cross references."""

LONGEST_LABEL = 100

_LABEL = re.compile(rb"^\.\. _`?(\w.{1,99}?)`?:[ \t]*\r?$", re.MULTILINE)
"""A label in reStructuredText on its own line."""
_WORD = re.compile(r"[^\W_]+")


def load(opened: OpenTopic, patterns: Sequence[str], config: Config, *, wrap: bool = False) -> str:
    """Return the text of subjects, and notes on those missing, left out or learned before.

    `wrap` puts even a single one between tags. Raises NoMatchError if nothing is found.
    """
    has_names = opened.topic.layout is Layout.SKILLS
    has_names |= opened.topic.id.startswith(REFERENCE_PREFIX)
    bundle = NamedFiles(opened) if has_names else None
    if bundle:
        patterns = bundle.complete(patterns)
    selection = select(opened.catalog, patterns)
    if labelled := _find_labels(opened.catalog, selection.missing):
        patterns = [labelled.get(pattern, pattern) for pattern in patterns]
        selection = select(opened.catalog, patterns)
    near = find_near_each(selection.missing, opened.catalog)
    missing: list[NoMatchError] = [
        NoMatchError(opened.topic.id, pattern, names)
        for pattern, names in zip(selection.missing, near, strict=True)
    ]
    preloaded = opened.preloaded
    answer = Answer(wrap=wrap or not selection.is_single, max_chars=config.max_result_chars)
    already: list[str] = []
    unknown: list[tuple[Subject, AnchorError]] = []
    for subject in selection.subjects:
        if subject.identity in preloaded:
            already += name_asked(subject, selection)
            continue
        limit = answer.read_limit
        has_room = limit is None or limit >= OUTLINE_BYTES
        pieces, errors = read_asked(
            opened.catalog,
            subject,
            selection.asked_of(subject),
            topic=opened.topic.id,
            limit=limit,
            outline_over=config.outline_over if has_room else 0,
        )
        for piece in pieces:
            answer.add(bundle.append_to(piece, subject) if bundle else piece)
        unknown += [(subject, error) for error in errors]
    missing += find_missing_parts(opened.topic.id, selection, unknown)
    if answer.is_empty and not already:
        raise missing[0] if len(missing) == 1 else NoMatchesError(missing)
    return answer.render(already=already, missing=missing)


def _find_labels(catalog: Catalog, names: Sequence[str]) -> dict[str, str]:
    """Return the addresses of the parts that labels of reStructuredText name, keyed by name.

    All labels are searched for in one pass over the topic.
    """
    likely = [name for name in names if len(name) <= LONGEST_LABEL and parse_pattern(name).literal]
    wanted = {_fold_label(name): name for name in likely}
    wanted.pop("", None)
    found: dict[str, str] = {}
    room = MOST_SEARCHED
    for subject in catalog.list().listed if wanted else ():
        if not subject.path.lower().endswith((".rst", ".rest", ".txt")):
            continue
        try:
            data = catalog.read(subject, room).data
        except UnreadableError:
            continue
        for match in _LABEL.finditer(data):
            name = wanted.get(_fold_label(match[1].decode(errors="replace")))
            if name:
                found.setdefault(name, f"{subject.name}#{name.removeprefix('#')}")
        room -= len(data)
        if room <= 0 or len(found) == len(wanted):
            break
    return found


def _fold_label(label: str) -> str:
    """Return the words of a label, for comparison."""
    return " ".join(_WORD.findall(label)).lower()


def load_groups(groups: Sequence[tuple[OpenTopic, Sequence[str]]], config: Config) -> str:
    """Return subjects of several topics, within the limit of one answer."""
    most = config.max_result_chars
    parts: list[str] = []
    missing: list[NoMatchError] = []
    left_out: list[str] = []
    for opened, patterns in groups:
        if most and sum(map(len, parts)) >= most:
            left_out += [f"{opened.topic.id}/{pattern}" for pattern in patterns]
            continue
        try:
            text = load(opened, patterns, config, wrap=True)
        except NoMatchError as error:
            missing.append(error)
        else:
            parts.append(f"# Topic: {one_line(opened.topic.label)}\n\n{text}")
    if not parts:
        raise NoMatchesError(missing)
    return join_groups(parts, missing, left_out, most)


class NoMatchesError(NoMatchError):
    """Several patterns that match nothing."""

    def __init__(self, missing: Sequence[NoMatchError]) -> None:
        super().__init__(missing[0].topic, missing[0].pattern, missing[0].near)
        self.missing = tuple(missing)
        self.args = ("; ".join(str(error) for error in missing),)


# Listings and the menu

MOST_OUTLINED = 4_000_000
"""Maximum number of bytes that one listing reads to count the parts of large subjects."""


def ask_to_list(opened: OpenTopic, patterns: Sequence[str]) -> bool:
    """Tell whether patterns should be listed, because each is a glob that ends in `#`."""
    globs = [pattern[:-1] for pattern in patterns if pattern.endswith("#") and len(pattern) > 1]
    if len(globs) < len(patterns) or any(parse_pattern(each).literal for each in globs):
        return False
    # A slug may end in a `#` itself.
    return len(select(opened.catalog, patterns).missing) == len(set(patterns))


def list_subjects(opened: OpenTopic, config: Config, patterns: Sequence[str] = ()) -> str:
    """Return a listing of the subjects left to learn: all, or those that patterns match.

    Raises NoMatchError.
    """
    subjects = opened.catalog.list().subjects
    if patterns:
        selection = select(opened.catalog, [pattern[:-1] for pattern in patterns])
        if selection.missing:
            raise NoMatchError(opened.topic.id, selection.missing[0])
        subjects = selection.subjects
    listed = list(filter(is_listed, subjects))
    left = [s for s in listed if s.identity not in opened.preloaded and is_readable(s.path)]
    entries = (
        describe_each(opened, left, config.outline_over)
        if len(left) <= MOST_LISTED
        else [MenuSubject(name=subject.name) for subject in left]
    )
    # A search names what it leaves out; only for a short list are all sizes asked for here too.
    is_short = len(listed) <= MOST_LISTED
    unread = listed if is_short else [s for s in listed if is_unread_document(s.path)]
    unsearched = find_unsearched(opened.topic.root, unread)
    return render_listing(opened.topic, entries, opened.preloaded_names, list(map(str, unsearched)))


def describe_each(
    opened: OpenTopic, subjects: Sequence[Subject], outline_over: int
) -> list[MenuSubject]:
    """Return subjects for a listing: large ones with sizes, skills with descriptions."""
    is_skills = opened.topic.layout is Layout.SKILLS
    room = MOST_OUTLINED
    entries = []
    for subject in subjects:
        size = find_size(opened.topic.root / subject.path)
        note = _describe_large(opened.catalog, subject, size, room, outline_over) if size else ""
        room -= size if note else 0
        summary = describe_skill(opened.catalog, subject) if is_skills else ""
        entries.append(MenuSubject(name=subject.name, summary=summary, size=note))
    return entries


def _describe_large(
    catalog: Catalog, subject: Subject, size: int, room: int, outline_over: int
) -> str:
    """Return the size of a subject over the limit, with the number of its parts.

    Only such subjects are read, and only while there is `room` left for reading.
    """
    if not 0 < outline_over < size:
        return ""
    if size > room:
        return describe_size(size, 0)
    try:
        content = read_as_markdown(subject, catalog.read(subject, MOST_READ))
    except UnreadableError:
        return ""
    text = decode_exactly(content.data)
    if is_binary(content.data) or len(text) <= outline_over:
        return ""
    return describe_size(content.size, len(find_outline(subject.path, text).sections))


def make_menu(left: Sequence[OpenTopic], config: Config) -> Menu:
    """Return the menu of the topics with anything left to learn, within its budget."""
    opened = {each.topic.id: each for each in left}

    def describe(entry: MenuTopic) -> MenuTopic:
        topic = opened[entry.topic.id]
        subjects = describe_each(topic, topic.left, config.outline_over)
        if topic.topic.layout is Layout.SKILLS:
            return entry._replace(subjects=subjects)
        summaries = summarize_each(topic, topic.left)
        summed_up = [s._replace(summary=t) for s, t in zip(subjects, summaries, strict=True)]
        return entry._replace(subjects=summed_up)

    topics = [
        MenuTopic(
            each.topic,
            [MenuSubject(s.name) for s in each.left] if config.menu == "subjects" else (),
        )
        for each in left
    ]
    has_hidden = any(len(each.listing.listed) < len(each.listing.subjects) for each in left)
    return fit_menu(topics, config.menu_budget, describe, has_hidden=has_hidden)
