"""Renders the `<knowledge>` element of a prompt: pre-loaded subjects and the menu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from llm_kb.rendering.menu import Menu, render_menu
from llm_kb.rendering.plain_text import estimate_tokens, join_fitting, shorten
from llm_kb.rendering.presentation import Presented, wrap_subject
from llm_kb.subjects.topics import TopicConfig
from llm_kb.texts.safe import attribute, defuse, one_line

PRELOADED = "The following knowledge has been pre-loaded into your system prompt:\n\n"

TOO_LONG = "Pre-loaded, but too long for here; `learn` these first: "

SEARCH_THIS = "Search this knowledge before you answer or change something: "

LONGEST_ABOUT = (120, 90, 60, 40, 0)
"""Numbers of characters to which introductions are shortened, until all fit."""

NAMES_ROOM = 300
"""Room for the note on subjects that did not fit."""

Preloaded: TypeAlias = Sequence[tuple[TopicConfig, Sequence[Presented]]]
"""Topics with their subjects in the section, in their order."""


def render_section(
    preloaded: Preloaded, menu: Menu | None = None, *, search: bool = False
) -> str | None:
    """Return the element without a final line feed; None if it would be empty.

    `search` says whether the menu names the search. A pre-loaded topic without subjects is
    left out.
    """
    texts = [_render_preloaded(preloaded)] if any(subjects for _, subjects in preloaded) else []
    texts += [render_menu(menu, search=search)] if menu and menu.lines else []
    return "<knowledge>\n" + "\n\n".join(texts) + "\n</knowledge>" if texts else None


def render_instructions(preloaded: Preloaded, menu: Menu, room: int) -> str | None:
    """Return the element for clients that may show only its first `room` characters.

    The menu, which names the tool of the search, comes first. If the pre-loaded subjects do not
    fit, they are named.
    """
    texts = [render_menu(menu, search=True)] if menu.lines else []
    names = [f"{topic.id}/{subject.name}" for topic, subjects in preloaded for subject in subjects]
    if names:
        whole = _render_preloaded(preloaded)
        fits = len(whole) + sum(map(len, texts)) + len("<knowledge>\n\n\n\n</knowledge>") <= room
        named = join_fitting(list(map(defuse, names)), NAMES_ROOM - len(TOO_LONG))
        texts.append(whole if fits else f"{TOO_LONG}{named}")
    return "<knowledge>\n" + "\n\n".join(texts) + "\n</knowledge>" if texts else None


def describe_topics(topics: Sequence[TopicConfig], room: int) -> str:
    """Return a sentence on what topics are about, on one line of at most `room` characters.

    A client that loads tools later shows a model nothing else of ours.
    """
    names = [one_line(topic.label) for topic in topics]
    about = [one_line(topic.introduction or "").rstrip(". ") for topic in topics]
    room -= len(SEARCH_THIS) + len(".")

    def join(longest: int) -> str:
        texts = [shorten(text, longest) if longest else "" for text in about]
        pairs = zip(names, texts, strict=True)
        return "; ".join(f"{name} ({text})" if text else name for name, text in pairs)

    longest = next((most for most in (room, *LONGEST_ABOUT) if len(join(most)) <= room), None)
    if longest is None:
        shown = shorten(join_fitting([shorten(name, room // 2) for name in names], room), room)
    else:
        shown = join(longest)
    return f"{SEARCH_THIS}{defuse(shown)}."


def _render_preloaded(preloaded: Preloaded) -> str:
    texts = [_render_topic(topic, subjects) for topic, subjects in preloaded if subjects]
    return PRELOADED + "\n\n".join(texts)


def _render_topic(topic: TopicConfig, subjects: Sequence[Presented]) -> str:
    """Return one pre-loaded topic, from its opening to its closing tag."""
    description = (topic.description or "").strip()
    texts = [f"\n{defuse(description)}\n"] if description else []
    texts += [f"\n{wrap_subject(subject)}\n" for subject in subjects]
    return f'<topic "{attribute(topic.label)}">\n{"".join(texts)}</topic>'


MUCH = 20_000
"""Tokens of sent subjects above which a line tells the user their cost."""


def describe_large(preloaded: Preloaded) -> str | None:
    """Return a note on the cost of large subjects, and how to send less."""
    tokens = {
        f"{topic.id}/{subject.name}": estimate_tokens(subject.text)
        for topic, subjects in preloaded
        for subject in subjects
    }
    total = sum(tokens.values())
    if total <= MUCH:
        return None
    name = max(tokens, key=lambda name: tokens[name])
    return (
        f"~{total:,} tokens of knowledge are sent, ~{tokens[name]:,} of them from {name};"
        f" {name.partition('#')[0]}#ANCHOR sends a part of it"
    )
