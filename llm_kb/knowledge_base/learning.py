"""Answers calls of `learn`, with the text of subjects or a listing, and makes the menu."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from llm_kb.config.settings import Config
from llm_kb.errors import NoMatchError, NoPartError, UnreadableError
from llm_kb.files.layouts import SKILL_FILE, find_bundled, list_bundled
from llm_kb.knowledge_base.kinds import OpenTopic
from llm_kb.rendering import learn_text
from llm_kb.rendering.parts import LONGEST_OUTLINE, NO_LIMIT, OPENING, WHOLE, Limit, present_asked
from llm_kb.rendering.plain_text import count, estimate_tokens
from llm_kb.rendering.presentation import Picture, Presented, present_notice, present_unreadable
from llm_kb.rendering.section import LONGEST_DESCRIPTION, Menu, MenuSubject, MenuTopic, fit_menu
from llm_kb.rendering.summaries import find_label, summarize
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import NEAR_PATTERNS, Layout, Selection, Subject, find_near, select
from llm_kb.texts.decoding import MOST_BYTES, START, is_binary
from llm_kb.texts.formats import find_media_type, is_readable

OUTLINE_BYTES = learn_text.BYTES_A_CHARACTER * (OPENING + LONGEST_OUTLINE)
"""Least room, in bytes, for which an outline is made."""

LEAST_SHARE = 2_000
"""Least number of bytes for the subjects of a topic, if one call asks for those of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRules:
    """Which pictures an answer may have."""

    takes: Callable[[str], bool] = lambda _: False
    """Tells whether the model, or the client, takes a media type."""
    most: int = 4
    most_bytes: int = 3_000_000
    verb: str = "attached"
    """What becomes of a picture, for its note."""
    attached: int = 0
    """The number of pictures that the answer has already."""

    def after(self, pictures: Collection[object]) -> PictureRules:
        """Return the rules once these pictures were attached."""
        return replace(self, attached=self.attached + len(pictures))


NO_PICTURES = PictureRules()
"""For text alone."""


class Loaded(NamedTuple):
    """An answer of `learn`: its text, and the pictures that go with it."""

    text: str
    pictures: Sequence[Picture] = ()


def find_limit(config: Config) -> Limit:
    """Return the configured limit of one answer."""
    return Limit(most=config.max_result_chars, in_bytes=config.counts_bytes)


def load(  # noqa: PLR0913 - the last are options
    opened: OpenTopic,
    patterns: Sequence[str],
    config: Config,
    limit: Limit | None = None,
    *,
    wrap: bool = False,
    pictures: PictureRules = NO_PICTURES,
) -> Loaded:
    """Return subjects, and notes on those missing, left out or learned before.

    The limit is the configured one if none is given. `wrap` puts even a single one between tags.
    Raises NoMatchError if nothing is found.
    """
    limit = limit or find_limit(config)
    outline_over = config.outline_over
    if limit.in_bytes and limit.most:
        outline_over = min(outline_over, limit.texts)
    selection = select(opened.topic, complete(opened, patterns))
    topic, named = opened.config.id, selection.missing[:NEAR_PATTERNS]
    missing = [NoMatchError(topic, each, find_near(each, opened.topic)) for each in named]
    missing += [NoMatchError(topic, each) for each in selection.missing[NEAR_PATTERNS:]]
    is_skills, preloaded = opened.config.layout is Layout.SKILLS, opened.preloaded
    files = opened.topic.list().subjects if is_skills else ()
    wrap = wrap or len(patterns) > 1 or not selection.is_single
    answer = learn_text.Answer(wrap=wrap, limit=limit, topic=topic)
    already: list[str] = []
    for subject in selection.subjects:
        if subject.identity in preloaded:
            already += selection.names_of(subject)
            continue
        most = answer.read_limit
        if limit.in_bytes and answer.is_empty:
            most = MOST_BYTES  # if it is cut, the lines that are left are named
        has_room = most is None or most >= OUTLINE_BYTES
        over = outline_over if has_room else 0
        pieces, errors = read_asked(
            opened,
            selection,
            subject,
            most=most,
            outline_over=over,
            limit=limit,
            pictures=pictures.after(answer.pictures),
        )
        for piece in pieces:
            answer.add(append_files(piece, subject, files, limit))
        missing += errors
    if answer.is_empty and not already:
        raise join_errors(missing)
    return Loaded(answer.render(already=already, missing=missing), answer.pictures)


def load_groups(
    groups: Sequence[tuple[OpenTopic, Sequence[str]]],
    config: Config,
    pictures: PictureRules = NO_PICTURES,
) -> Loaded:
    """Return subjects of several topics, each within its share of the limit of one answer.

    Of topics whose shares would be too small the patterns are named.
    """
    limit = find_limit(config)
    most = max(1, limit.most // LEAST_SHARE) if limit.in_bytes and limit.most else len(groups)
    groups, later = groups[:most], groups[most:]
    headings = [f"{learn_text.render_heading(each.config, limit)}\n\n" for each, _ in groups]
    more = [f"{opened.config.id}/{each}" for opened, patterns in later for each in patterns]
    used = sum(map(limit.measure, headings)) + (limit.notices if later else 0)
    share = limit.share(len(groups), used)
    parts: list[str] = []
    attached: list[Picture] = []
    missing: list[NoMatchError] = []
    for heading, (opened, patterns) in zip(headings, groups, strict=True):
        try:
            rules = pictures.after(attached)
            text, found = load(opened, patterns, config, share, wrap=True, pictures=rules)
        except NoMatchError as error:
            missing.append(error)
        else:
            parts.append(f"{heading}{text}")
            attached += found
    if not parts and not more:
        raise join_errors(missing)
    if missing:
        parts.append(learn_text.render_missing(missing, limit, share.most))
    if more:
        parts.append(learn_text.render_more(more, limit))
    return Loaded("\n\n".join(parts), attached)


def join_errors(errors: Sequence[NoMatchError]) -> NoMatchError:
    """Return one error with the messages of all."""
    first, message = errors[0], "; ".join(map(str, errors))
    return NoMatchError(first.topic, first.pattern, message=message)


# Reading: whole subjects, their parts, and the files that belong to them


def read_asked(  # noqa: PLR0913 - the last are options
    opened: OpenTopic,
    selection: Selection,
    subject: Subject,
    *,
    most: int | None = None,
    outline_over: int = 0,
    limit: Limit = NO_LIMIT,
    pictures: PictureRules = NO_PICTURES,
) -> tuple[list[Presented], list[NoPartError]]:
    """Read a subject and return the requested pieces, and an error for each unknown anchor.

    `most` is the number of bytes of a whole subject that can be shown; None for all.
    """
    asked = selection.asked_of(subject)
    is_whole = WHOLE in asked or (asked == (None,) and not outline_over)
    try:
        content = opened.topic.read(subject, most if is_whole else MOST_BYTES)
    except UnreadableError as error:
        return [present_unreadable(subject, error)], []
    start = content.data[:START]
    is_binary_or_cut = is_binary(start) or len(start) < min(START, content.size)
    if asked == (None,) and subject.identity in selection.exact and is_binary_or_cut:
        picture = present_picture(opened, subject, pictures)
        if picture:
            return [picture], []
    topic = opened.config.id
    return present_asked(
        subject, content, asked, topic=topic, outline_over=outline_over, limit=limit
    )


def present_picture(opened: OpenTopic, subject: Subject, rules: PictureRules) -> Presented | None:
    """Return a picture with its note: attached, or skipped and why; None for anything else."""
    try:
        start = opened.topic.read(subject, START)
        if not is_binary(start.data) or not find_media_type(start.data):
            return None
        content = opened.topic.read(subject, rules.most_bytes)
    except UnreadableError:
        return None
    media_type = find_media_type(content.data)
    size = count(content.size, "byte")
    if not media_type:
        return None
    if content.size > len(content.data):
        reason = f"pictures of over {rules.most_bytes:,} bytes are not attached"
    elif not rules.takes(media_type):
        reason = f"{media_type} is not taken here"
    elif rules.attached >= rules.most:
        reason = f"{rules.most} pictures are attached already; load it with another call"
    else:
        picture = Picture(media_type, content.data)
        noted = present_notice(subject, f"{media_type}, {size}, {rules.verb}")
        return noted._replace(picture=picture)
    return present_notice(subject, f"binary file, {size}, skipped: {reason}")


def complete(opened: OpenTopic, patterns: Sequence[str]) -> Sequence[str]:
    """Return patterns, of which names of files as skills and linked pages write them are paths."""
    topic = opened.topic
    if opened.config.layout is not Layout.SKILLS and not opened.config.kind.has_links:
        return patterns
    found = {each: topic.list(each.partition("#")[0]).subjects for each in patterns}
    named = [each for each in patterns if not found[each] and "*" not in each]
    skills = [subject for subjects in found.values() for subject in subjects]
    subjects = topic.list().subjects if named else ()
    completed = {}
    for pattern in named:
        name, sign, anchor = pattern.partition("#")
        file = find_bundled(subjects, re.sub(r"^(?:\.{1,2}/)+", "", name), skills)
        completed[pattern] = f"{file.path}{sign}{anchor}" if file else pattern
    return [completed.get(pattern, pattern) for pattern in patterns]


def append_files(
    piece: Presented, subject: Subject, files: Sequence[Subject], limit: Limit
) -> Presented:
    """Return a SKILL.md with a list of its files, and any other piece as it is."""
    if not files or not subject.path.endswith(SKILL_FILE):
        return piece
    bundled = learn_text.render_files([each.name for each in list_bundled(files, subject)], limit)
    return append_below(piece, subject, bundled)


def append_below(piece: Presented, subject: Subject, text: str) -> Presented:
    """Return a whole subject with a text below it, and any other piece as it is."""
    if not text or piece.name != subject.name:
        return piece
    return piece._replace(below="\n\n".join(filter(None, (piece.below, text))))


# Listings and the menu


def ask_to_list(patterns: Sequence[str]) -> bool:
    """Tell whether patterns should be listed, because each is a glob that ends in `#`."""
    globs = [pattern[:-1] for pattern in patterns if pattern.endswith("#") and len(pattern) > 1]
    return len(globs) == len(patterns) and not any(parse_pattern(each).literal for each in globs)


def list_subjects(opened: OpenTopic, config: Config, patterns: Sequence[str] = ()) -> str:
    """Return a listing of the subjects left to learn: all, or those that patterns match.

    Raises NoMatchError.
    """
    subjects = opened.topic.list().subjects
    if patterns:
        selection = select(opened.topic, [pattern[:-1] for pattern in patterns])
        if selection.missing:
            raise NoMatchError(opened.config.id, selection.missing[0])
        subjects = selection.subjects
    preloaded = opened.preloaded
    listed = [s for s in subjects if not s.hidden and is_readable(s.path)]
    left = [subject for subject in listed if subject.identity not in preloaded]
    entries = [MenuSubject(subject.name) for subject in left]
    if len(left) <= learn_text.MOST_LISTED:
        # A skill has its whole description, by which models choose it.
        is_skills = opened.config.layout is Layout.SKILLS
        entries = describe_each(opened, left, config, describe_skill if is_skills else find_label)
    learned = [] if opened.is_repeated else opened.learned.names
    return learn_text.render_listing(opened.config, entries, learned, find_limit(config))


def describe_each(
    opened: OpenTopic,
    subjects: Sequence[Subject],
    config: Config,
    describe: Callable[[bytes, str, str], str],
) -> list[MenuSubject]:
    """Return subjects for a list, each with a text, and large ones with their tokens."""
    entries = []
    for subject in subjects:
        size = opened.find_size(subject) or 0
        is_large = 0 < config.outline_over < size
        note = f"(~{estimate_tokens(size):,} tokens)" if is_large else ""
        summary = describe(_read_start(opened, subject), subject.path, subject.slug)
        entries.append(MenuSubject(subject.name, summary, note))
    return entries


describe_skill = partial(summarize, limit=LONGEST_DESCRIPTION)
"""The whole description of a skill, by which models choose it."""


def _read_start(opened: OpenTopic, subject: Subject) -> bytes:
    try:
        return opened.topic.read(subject, START).data
    except UnreadableError:
        return b""  # the menu still names it; loading it gives the reason


def make_menu(left: Sequence[OpenTopic], config: Config, shell: str = "") -> Menu:
    """Return the menu of the topics with anything left to learn, within its budget.

    `shell` is our command, for models that run commands in place of calling tools.
    """
    opened = {each.config.id: each for each in left}

    def describe(entry: MenuTopic) -> MenuTopic:
        topic = opened[entry.topic.id]
        is_skills = topic.config.layout is Layout.SKILLS
        whole = describe_skill if is_skills else summarize
        return entry._replace(subjects=describe_each(topic, topic.left, config, whole))

    lists = config.menu == "subjects"
    topics = [
        MenuTopic(each.config, [MenuSubject(s.name) for s in each.left] if lists else ())
        for each in left
    ]
    has_hidden = any(len(each.listing.listed) < len(each.listing.subjects) for each in left)
    return fit_menu(topics, config.menu_budget, describe, has_hidden=has_hidden, shell=shell)
