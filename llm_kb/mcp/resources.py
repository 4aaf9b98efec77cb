"""Subjects as resources, `kb://topic/slug`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any
from urllib.parse import quote, unquote

from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError, NoMatchError
from llm_kb.knowledge_base.learning import append_files, list_files, summarize_each
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.mcp.tools import answer_within
from llm_kb.rendering.plain_text import one_line, shorten
from llm_kb.rendering.presentation import PLAIN, truncate
from llm_kb.subjects.names import find_extension
from llm_kb.subjects.selection import Selection, find_near
from llm_kb.subjects.topics import Subject

SCHEME = "kb://"

TEMPLATE = {
    "name": "subject",
    "uriTemplate": "kb://{topic}/{+slug}",
    "description": "A subject of a topic, as listed by `learn`",
}

MOST_OFFERED = 500
"""The most subjects listed, whose starts are read; others are read by address, or found by a
search."""

LONGEST_DESCRIPTION = 1_000


def list_resources(kb: KnowledgeBase) -> list[dict[str, Any]]:
    """Return the listed subjects of the topics in the menu, at most MOST_OFFERED."""
    listed: list[dict[str, Any]] = []
    for opened in kb.active:
        if opened.topic.in_menu:
            subjects = sorted(opened.catalog.list().listed, key=lambda subject: subject.name)
            subjects = subjects[: MOST_OFFERED - len(listed)]
            summaries = summarize_each(opened, subjects)
            listed += map(_describe, [opened.topic.id] * len(subjects), subjects, summaries)
    return listed


def _describe(topic: str, subject: Subject, summary: str) -> dict[str, Any]:
    return {
        "uri": f"{SCHEME}{quote(topic, safe='')}/{quote(subject.name)}",
        "name": f"{topic}/{subject.name}",
        "mimeType": _find_type(subject.path),
        **({"description": shorten(one_line(summary), LONGEST_DESCRIPTION)} if summary else {}),
    }


def read_resource(kb: KnowledgeBase, uri: str) -> dict[str, Any]:
    """Return a subject, which may be hidden, as `-k` would send it. Raises KbError."""
    topic, slash, slug = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not slash or not slug:
        raise KbError(f"{shorten(uri, 200)!r} is not the address of a subject, kb://topic/slug")
    opened, name = kb.find_topic(unquote(topic)), unquote(slug)
    found = opened.catalog.list(name).subjects
    if not found:
        raise NoMatchError(opened.topic.id, name, find_near(name, opened.catalog))
    text = answer_within(kb, lambda: _present(kb, opened, found))
    return {"uri": uri, "mimeType": _find_type(found[0].path), "text": text}


def _present(kb: KnowledgeBase, opened: OpenTopic, found: Sequence[Subject]) -> str:
    """Return the text of subjects, cut at `max_result_chars`, with the file names of a skill."""
    files, most = list_files(opened), kb.config.max_result_chars // len(found)
    pieces = kb.present(opened, Selection(subjects=tuple(found)))
    return "\n".join(
        (truncate(piece, most) if most else piece).text
        for piece in map(append_files, pieces, found, repeat(files))
    )


def _find_type(path: str) -> str:
    """Return a subject's type: plain text, or Markdown, in which other text is a code block."""
    return "text/plain" if find_extension(path) in PLAIN else "text/markdown"
