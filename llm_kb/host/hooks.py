"""Answers the hooks of the plugin: its tools, its fragments and its templates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import llm

from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError, UnknownTopicError
from llm_kb.host.capture_tools import make_emit_knowledge
from llm_kb.host.request import PREFIX, SEARCH, SECTION, Request, current_request
from llm_kb.host.terminal import draw_progress, say
from llm_kb.rendering.passages import explain_nothing, render_passages
from llm_kb.rendering.plain_text import shorten, visible_line
from llm_kb.rendering.tokens import describe_large
from llm_kb.subjects.patterns import split_knowledge

LONGEST_SHOWN = 100
"""Number of characters of a long question that an error repeats."""


def make_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield the tools to register: those of the request, or outside of one all that are useful."""
    request = current_request() or _find_useful()
    if "learn" in request.tools and request.kb is not None:
        yield request.kb.learn_tool()
    if "search_knowledge" in request.tools and request.kb is not None:
        yield request.kb.search_tool(draw_progress("Indexing"))
    if "References" in request.tools:
        yield _references()
        if current_request() is not None:
            # A continued conversation asks for the tools of the toolbox one by one.
            yield from _references()().tools()
    if "emit_knowledge" in request.tools:
        yield from filter(None, [make_emit_knowledge()])


def _find_useful() -> Request:
    """Return a request for every tool that is useful here, for `llm tools` and the Python API."""
    tools, kb = {"References", "emit_knowledge"}, None
    with suppress(KbError):  # a broken configuration must not break commands that do not use it
        kb = KnowledgeBase.discover()
        tools |= {"learn"} if kb.has_left() else set()
        tools |= {"search_knowledge"} if kb.offers_search() else set()
    return Request(kb, tools)


def _references() -> type[llm.Toolbox]:
    from llm_kb.host.reference_tools import References  # noqa: PLC0415 - few requests use it

    return References


def load_fragments(reference: str) -> list[llm.Fragment]:
    """Return one fragment for each subject, with the source `kb:topic/slug`."""
    request = current_request()
    if request is not None and request.is_muted:
        return []
    if reference.startswith("@"):
        # A `kb:@TOPIC` is part of the section of the request.
        texts = request.texts.get(f"{PREFIX}{reference}", ()) if request else ()
        return [llm.Fragment(text, source) for text, source in texts]
    kb = _open(request)
    topic, pattern = split_knowledge(reference)
    found = kb.require(topic, pattern)
    opened = kb.find_topic(topic)
    topic = opened.topic.id
    subjects = kb.present(opened, found)
    if large := describe_large([(opened.topic, subjects)]):
        say(large)
    return [
        llm.Fragment(presented.text, f"{PREFIX}{topic}/{presented.name}") for presented in subjects
    ]


def load_passages(reference: str) -> llm.Fragment:
    """Return the passages of `TOPIC:QUESTION`, or `QUESTION` for all topics, as a fragment."""
    request = current_request()
    if request is not None and request.is_muted:
        return llm.Fragment("", f"{SEARCH}{reference}")
    if request is not None and reference.startswith("@") and reference[1:].isdecimal():
        reference = request.searches[int(reference[1:])]
    kb = _open(request)
    topics, question = _split_search(kb, reference)
    # A model without tools cannot load the rest of a passage.
    found = kb.find_passages(question, topics, whole=True)
    if not found.passages:
        asked = shorten(visible_line(reference), LONGEST_SHOWN)
        raise ValueError(f"{SEARCH}{asked}: {explain_nothing(found)}")
    return llm.Fragment(render_passages(found), f"{SEARCH}{reference}")


def _split_search(kb: KnowledgeBase, reference: str) -> tuple[list[str], str]:
    """Return the topics, one or none for all, and the question.

    A colon may also be part of the question, as in a pasted error message.
    """
    topic, colon, question = reference.partition(":")
    if not colon or not topic:
        return [], question or topic
    try:
        return [kb.find_topic(topic).topic.id], question
    except UnknownTopicError:
        return [], reference


def load_template(reference: str) -> llm.Template:
    """Return a template with `learn` and the section of one topic."""
    request = current_request()
    if request is not None and reference.startswith("@"):
        template: llm.Template = request.templates[int(reference[1:])]
        return template
    topic = KnowledgeBase.discover().find_topic(reference).topic
    return llm.Template(
        name=f"{PREFIX}{reference}",
        tools=["learn"],
        system_fragments=[f"{SECTION}{topic.id}"],
    )


def _open(request: Request | None) -> KnowledgeBase:
    """Return the knowledge base of a request with all topics, or that of this directory."""
    if request is not None and request.kb is not None:
        return request.kb.unrestricted()
    return KnowledgeBase.discover()
