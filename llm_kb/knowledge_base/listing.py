"""Lists the subjects of topics: for `learn`, and for the menu with summaries."""

from __future__ import annotations

from collections.abc import Sequence

from llm_kb.errors import NoMatchError, UnreadableError
from llm_kb.files.documents import find_size, find_unsearched
from llm_kb.knowledge_base.reading import MOST_READ, describe_skill, summarize_each
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.rendering.learn_text import MOST_LISTED, render_listing
from llm_kb.rendering.menu import FittedMenu, MenuSubject, MenuTopic, find_readable, fit_menu
from llm_kb.rendering.parts import decode_exactly, describe_size
from llm_kb.rendering.presentation import read_as_markdown
from llm_kb.search.chunking.outline import find_outline
from llm_kb.subjects.names import is_readable, is_unread_document
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import is_listed, select
from llm_kb.subjects.topics import Catalog, Config, Layout, Subject, is_binary

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


def describe_topic(opened: OpenTopic, subjects: Sequence[Subject], outline_over: int) -> MenuTopic:
    """Return a topic for the menu, with its subjects' sizes and summaries."""
    is_skills = opened.topic.layout is Layout.SKILLS
    summed_up = tuple(
        entry._replace(summary=entry.summary or summary)
        for entry, summary in zip(
            describe_each(opened, subjects, outline_over),
            [""] * len(subjects) if is_skills else summarize_each(opened, subjects),
            strict=True,
        )
    )
    return MenuTopic(topic=opened.topic, subjects=summed_up)


def make_menu(left: Sequence[OpenTopic], config: Config) -> FittedMenu:
    """Return the menu of the topics with anything left to learn, within its budget."""
    budget = config.menu_budget
    has_hidden = any(len(each.listing.listed) < len(each.listing.subjects) for each in left)
    if config.menu != "subjects":
        topics = [MenuTopic(topic=opened.topic) for opened in left]
        return fit_menu(topics, budget, has_hidden=has_hidden)
    bare = [
        MenuTopic(topic=opened.topic, subjects=tuple(MenuSubject(s.name) for s in opened.left))
        for opened in left
    ]
    readable = find_readable(bare, budget, has_hidden=has_hidden)
    full = [
        describe_topic(opened, opened.left, config.outline_over)
        if opened.topic.id in readable
        else entry
        for opened, entry in zip(left, bare, strict=True)
    ]
    return fit_menu(full, budget, has_hidden=has_hidden)
