"""Answers calls of `learn` with the text of subjects."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llm_kb.errors import NoMatchError, UnreadableError
from llm_kb.knowledge_base.reading import NamedFiles, find_missing_parts, read_asked
from llm_kb.knowledge_base.topics import OpenTopic, name_asked
from llm_kb.rendering.learn_text import BYTES_A_CHARACTER, Answer, join_groups
from llm_kb.rendering.parts import LONGEST_OUTLINE, OPENING, AnchorError
from llm_kb.rendering.plain_text import one_line
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import find_near_each, select
from llm_kb.subjects.topics import REFERENCE_PREFIX, Catalog, Config, Layout, Subject

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
