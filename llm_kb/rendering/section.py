"""Renders the `<knowledge>` element of a prompt: pre-loaded subjects and the menu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from llm_kb.rendering.menu import FittedMenu, MenuTopic, plain_menu, render_menu
from llm_kb.rendering.plain_text import attribute, defuse
from llm_kb.rendering.presentation import Presented, wrap_subject
from llm_kb.subjects.topics import Topic

PRELOADED = "The following knowledge has been pre-loaded into your system prompt:\n\n"

TOO_LONG = "Pre-loaded, but too long for here; `learn` these first: "

NAMES_ROOM = 300
"""Maximum number of characters of the note on subjects that did not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedTopic:
    """A topic with its subjects in the section, in their order."""

    topic: Topic
    subjects: tuple[Presented, ...]


def render_section(
    preloaded: Sequence[PreloadedTopic],
    menu: FittedMenu | Sequence[MenuTopic] = (),
    *,
    search: bool = False,
) -> str | None:
    """Return the element without a final line feed; None if it would be empty.

    `search` says whether the menu names the search. A menu that was not fitted is
    rendered whole. A pre-loaded topic without subjects is left out.
    """
    if not isinstance(menu, FittedMenu):
        menu = plain_menu(menu)
    preloaded = [topic for topic in preloaded if topic.subjects]
    if not preloaded and not menu.topics:
        return None
    texts = [_render_preloaded(preloaded)] if preloaded else []
    texts += [render_menu(menu, search=search)] if menu.topics else []
    return "<knowledge>\n" + "\n\n".join(texts) + "\n</knowledge>"


def render_instructions(
    preloaded: Sequence[PreloadedTopic], menu: FittedMenu, room: int, search_tool: str
) -> str | None:
    """Return the element for clients that may show only its first `room` characters.

    The menu, which names the tool of the search, comes first, then the subjects that fit
    whole; the others are named.
    """
    topics = render_menu(menu, search=True, search_tool=search_tool) if menu.topics else ""
    if not any(topic.subjects for topic in preloaded):
        return f"<knowledge>\n{topics}\n</knowledge>" if topics else None
    parts = ["<knowledge>\n", *([topics, "\n\n"] if topics else [])]
    end = "</knowledge>"
    room -= sum(map(len, parts)) + len(PRELOADED) + len(end)
    wanted = sum(len(_render_topic(topic)) + 2 for topic in preloaded)
    free = room if wanted <= room else room - NAMES_ROOM
    kept: list[PreloadedTopic] = []
    left: list[str] = []
    for topic in preloaded:
        fitting: tuple[Presented, ...] = ()
        for subject in topic.subjects:
            larger = replace(topic, subjects=(*fitting, subject))
            if len(subject.text) < free and len(_render_topic(larger)) + 2 <= free:
                fitting = larger.subjects
            else:
                left.append(f"{topic.topic.id}/{subject.name}")
        if fitting:
            kept.append(replace(topic, subjects=fitting))
            free -= len(_render_topic(kept[-1])) + 2
    if kept:
        parts.append(f"{_render_preloaded(kept)}\n\n")
    if left:
        parts.append(f"{TOO_LONG}{_name(left)}\n")
    return "".join((*parts, end))


def _name(addresses: Sequence[str]) -> str:
    """Return as many names as fit into a note, at least one, and the number of the others."""
    room = NAMES_ROOM - len(TOO_LONG) - len(" and 1,000 more\n")
    lengths = accumulate(len(defuse(name)) + 2 for name in addresses)
    shown = max(1, sum(length <= room for length in lengths))
    more = len(addresses) - shown
    named = ", ".join(map(defuse, addresses[:shown]))
    return f"{named} and {more:,} more" if more else named


def _render_preloaded(preloaded: Sequence[PreloadedTopic]) -> str:
    return PRELOADED + "\n\n".join(map(_render_topic, preloaded))


def _render_topic(preloaded: PreloadedTopic) -> str:
    """Return one pre-loaded topic, from its opening to its closing tag."""
    topic = preloaded.topic
    description = (topic.description or "").strip()
    texts = [f"\n{defuse(description)}\n"] if description else []
    texts += [f"\n{wrap_subject(subject)}\n" for subject in preloaded.subjects]
    return f'<topic "{attribute(topic.label)}">\n{"".join(texts)}</topic>'
