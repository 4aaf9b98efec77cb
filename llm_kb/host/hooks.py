"""Answers the hooks of the plugin: its tools, its fragments and its templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any

import click
import llm

from llm_kb.api import KnowledgeBase
from llm_kb.config.fragments import split_knowledge
from llm_kb.errors import KbError, UnknownTopicError
from llm_kb.host.capture_tools import make_emit_knowledge
from llm_kb.host.request import MEMORY, PREFIX, SEARCH, SECTION, Request, current_request
from llm_kb.host.terminal import draw_progress, say
from llm_kb.rendering.passages import explain_nothing, render_passages
from llm_kb.rendering.plain_text import shorten, visible_line
from llm_kb.rendering.section import PreloadedTopic
from llm_kb.rendering.tokens import describe_large, estimate_tokens
from llm_kb.subjects.selection import Selection, join_selections, subtract

LONGEST_REPORT = 200
"""The most characters of a line that reports a call."""

LONGEST_SHOWN = 100
"""Number of characters of a long question that an error repeats."""

_MISTYPED_TOPIC = re.compile(r"(?=[\d-]*[^\W\d])[\w-]+:[^\s:/\\]")
"""A text that begins like `topic:question`, rather than like a message: `error: disk full`, an
address, a path or a time."""


def make_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield the tools to register: those of the request, or outside of one all that are useful."""
    request = current_request()
    if request is None:
        yield from _all_tools()
        return
    if "learn" in request.tools and request.kb is not None:
        yield _shown(request.kb, request.kb.learn_tool())
    if "search_knowledge" in request.tools and request.kb is not None:
        yield _shown(request.kb, request.kb.search_tool(draw_progress("Indexing")))
    if "References" in request.tools:
        yield _references()
        # A continued conversation asks for the tools of the toolbox one by one.
        yield from _references()().tools()
    if "emit_knowledge" in request.tools:
        yield from filter(None, [make_emit_knowledge()])


def _all_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield every tool that is useful here, for `llm tools` and the Python API."""
    with suppress(KbError):  # a broken configuration must not break commands that do not use it
        kb = KnowledgeBase.discover()
        if kb.has_left():
            yield kb.learn_tool()
            if kb.offers_search():
                yield kb.search_tool(draw_progress("Indexing"))
    yield _references()
    yield from filter(None, [make_emit_knowledge()])


def _shown(kb: KnowledgeBase, tool: llm.Tool) -> llm.Tool:
    """Return the tool; with `show_reads` it reports each call."""
    answer = tool.implementation
    if not kb.config.show_reads or answer is None:
        return tool

    @wraps(answer)
    def answer_and_report(**arguments: Any) -> Any:
        try:
            text = answer(**arguments)
        except KbError as error:
            _report(f"{_describe_call(tool.name, arguments)}: {error}")
            raise
        _report(f"{_describe_call(tool.name, arguments)} (~{estimate_tokens(text):,} tokens)")
        return text

    return replace(tool, implementation=answer_and_report)


def _describe_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in a few words: `learn project/review`."""
    topic, subjects = arguments.get("topic") or "", arguments.get("subjects") or ""
    if name != "learn":
        return f"{name} {arguments.get('question', '')!r}" + (f" in {topic}" if topic else "")
    patterns = subjects if isinstance(subjects, list) else [subjects]
    return f"learn {', '.join(f'{topic}/{pattern}' if pattern else topic for pattern in patterns)}"


def _report(text: str) -> None:
    click.echo(f"llm-kb: {shorten(visible_line(text), LONGEST_REPORT)}", err=True)


def _references() -> type[llm.Toolbox]:
    from llm_kb.host.reference_tools import References  # noqa: PLC0415 - few requests use it

    return References


def load_fragments(reference: str) -> list[llm.Fragment]:
    """Return one fragment for each subject, with the source `kb:topic/slug`.

    A subject that several fragments of a request name is included once.
    """
    request = current_request()
    if request is not None and request.is_muted:
        return []
    if reference.startswith("@"):
        return _load_section(reference)
    kb = _open(request)
    topic, pattern = split_knowledge(reference)
    found = kb.require(topic, pattern)
    opened = kb.find_topic(topic)
    topic = opened.topic.id
    if request is not None:
        before = request.given.get(topic, Selection())
        request.given[topic] = join_selections([before, found])
        found = subtract(found, before)
    subjects = kb.present(opened, found)
    if large := describe_large([PreloadedTopic(topic=opened.topic, subjects=subjects)]):
        say(large)
    return [
        llm.Fragment(presented.text, f"{PREFIX}{topic}/{presented.name}") for presented in subjects
    ]


def load_passages(reference: str) -> llm.Fragment:
    """Return the passages of `TOPIC:QUESTION`, or `QUESTION` for all topics, as a fragment."""
    request = current_request()
    if request is not None and request.is_muted:
        return llm.Fragment("", f"{SEARCH}{reference}")
    if request is not None:
        reference = request.searches.get(reference, reference)
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
    except UnknownTopicError as error:
        if _MISTYPED_TOPIC.match(reference):
            raise ValueError(f"{error}; {SEARCH}:QUESTION searches all topics") from error
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


def _load_section(reference: str) -> list[llm.Fragment]:
    """Return the section of the request or, outside a request, that of the reference."""
    request = current_request()
    fragment, spec = f"{PREFIX}{reference}", reference.removeprefix("@")
    if request is not None and fragment in {SECTION, MEMORY}:
        return [llm.Fragment(text, source) for text, source in request.take_texts(fragment)]
    if request is not None and spec in request.specs:
        return []  # already in the section of the request
    kb = KnowledgeBase.discover(
        knowledge=[spec] if "/" in spec else [],
        only=[spec] if spec and "/" not in spec else [],
    )
    section = kb.section(learn="/" not in spec)
    return [llm.Fragment(section, fragment)] if section else []
