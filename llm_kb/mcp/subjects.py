"""Subjects as resources, `kb://topic/slug`, and skills as prompts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar
from urllib.parse import quote, unquote

from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError, NoMatchError
from llm_kb.files.documents import find_size
from llm_kb.knowledge_base.reading import NamedFiles, describe_skill, summarize_each
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.mcp.limits import answer_within
from llm_kb.mcp.messages import Message, Params
from llm_kb.rendering.plain_text import one_line, shorten
from llm_kb.rendering.presentation import PLAIN, truncate
from llm_kb.subjects.names import find_extension
from llm_kb.subjects.selection import Selection, find_near
from llm_kb.subjects.topics import Layout, Subject

T = TypeVar("T")

SCHEME = "kb://"
TEMPLATE = "kb://{topic}/{+slug}"

PAGE = 100
"""The most resources or prompts of one answer; the start of each resource is read."""

MOST_OFFERED = 1_000
"""The most subjects listed in all; others are read by address, or found by a search."""

LONGEST_DESCRIPTION = 1_000


def take_page(items: Sequence[T], params: Params) -> tuple[Sequence[T], dict[str, str]]:
    """Return the items of one answer, and the cursor of the next one if any. Raises KbError."""
    cursor = params.cursor or "0"
    if not (cursor.isdecimal() and cursor.isascii() and len(cursor) < 10):
        raise KbError(f"unknown cursor {shorten(cursor, 40)!r}; leave it out to begin again")
    end = int(cursor) + PAGE
    return items[int(cursor) : end], {"nextCursor": str(end)} if end < len(items) else {}


def list_resources(kb: KnowledgeBase, params: Params) -> Message:
    """Return one page of the listed subjects of the topics in the menu. Raises KbError."""
    page, following = take_page(_find_subjects(kb), params)
    resources = []
    for _, group in groupby(page, key=lambda pair: pair[0].topic.id):
        pairs = list(group)
        opened, subjects = pairs[0][0], [subject for _, subject in pairs]
        summaries = summarize_each(opened, subjects)
        for subject, summary in zip(subjects, summaries, strict=True):
            size = find_size(opened.topic.root / subject.path)
            resources.append(
                {
                    "uri": _make_uri(opened, subject),
                    "name": f"{opened.topic.id}/{subject.name}",
                    "mimeType": _find_type(subject.path),
                    **_description(summary),
                    **({"size": size} if size else {}),
                }
            )
    return {"resources": resources, **following}


def read_resource(kb: KnowledgeBase, params: Params) -> Message:
    """Return a subject, which may be hidden, as `-k` would send it. Raises KbError."""
    uri = params.text("uri")
    topic, slash, slug = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not slash or not slug:
        raise KbError(f"{shorten(uri, 200)!r} is not the address of a subject, kb://topic/slug")
    opened, name = kb.find_topic(unquote(topic)), unquote(slug)
    found = opened.catalog.list(name).subjects
    if not found:
        raise NoMatchError(opened.topic.id, name, find_near(name, opened.catalog))

    text = answer_within(kb, lambda: _present(kb, opened, found))
    return {"contents": [{"uri": uri, "mimeType": _find_type(found[0].path), "text": text}]}


def list_templates() -> Message:
    """Return the template of the addresses of subjects."""
    template = {
        "name": "subject",
        "uriTemplate": TEMPLATE,
        "description": "A subject of a topic, as listed by `learn`",
    }
    return {"resourceTemplates": [template]}


def list_prompts(kb: KnowledgeBase, params: Params) -> Message:
    """Return one page of the skills, each with its whole description. Raises KbError."""
    page, following = take_page(list(_find_skills(kb).items()), params)
    argument = {"name": "task", "description": "What to do with the skill"}
    prompts = [
        {
            "name": name,
            **_description(describe_skill(opened.catalog, subject)),
            "arguments": [argument],
        }
        for name, (opened, subject) in page
    ]
    return {"prompts": prompts, **following}


def get_prompt(kb: KnowledgeBase, params: Params) -> Message:
    """Return a skill, and the task for it, as a message of the person. Raises KbError."""
    name, skills = params.text("name"), _find_skills(kb)
    if name not in skills:
        known = ", ".join(list(skills)[:20])
        raise KbError(f"unknown prompt {shorten(name, 200)!r}; skills: {known}")
    opened, subject = skills[name]
    text = answer_within(kb, lambda: _present(kb, opened, [subject]))
    if task := params.table("arguments").get("task"):
        text += f"\n\n{task}"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def _description(text: str) -> dict[str, str]:
    shown = shorten(one_line(text), LONGEST_DESCRIPTION)
    return {"description": shown} if shown else {}


def _present(kb: KnowledgeBase, opened: OpenTopic, found: Sequence[Subject]) -> str:
    """Return the text of subjects, cut at `max_result_chars`, with the file names of a skill."""
    files, most = NamedFiles(opened), kb.config.max_result_chars // len(found)
    pieces = kb.present(opened, Selection(subjects=tuple(found)))
    return "\n".join(
        (truncate(piece, most) if most else piece).text
        for piece in map(files.append_to, pieces, found)
    )


def _find_subjects(kb: KnowledgeBase) -> list[tuple[OpenTopic, Subject]]:
    """Return the listed subjects in the order of the menu, at most MOST_OFFERED."""
    offered: list[tuple[OpenTopic, Subject]] = []
    for opened in kb.active:
        if opened.topic.in_menu:
            room = MOST_OFFERED - len(offered)
            listed = sorted(opened.catalog.list().listed, key=lambda subject: subject.name)
            offered += [(opened, subject) for subject in listed[:room]]
    return offered


def _find_skills(kb: KnowledgeBase) -> dict[str, tuple[OpenTopic, Subject]]:
    """Return the skills by name, with the topic before a name that several share."""
    found: dict[str, tuple[OpenTopic, Subject]] = {}
    for opened, subject in _find_subjects(kb):
        if opened.topic.layout is Layout.SKILLS:
            topic, name = opened.topic.id, subject.name
            found.setdefault(name if name not in found else f"{topic}/{name}", (opened, subject))
    return found


def _find_type(path: str) -> str:
    """Return a subject's type: plain text, or Markdown, in which other text is a code block."""
    return "text/plain" if find_extension(path) in PLAIN else "text/markdown"


def _make_uri(opened: OpenTopic, subject: Subject) -> str:
    return f"{SCHEME}{quote(opened.topic.id, safe='')}/{quote(subject.name)}"
