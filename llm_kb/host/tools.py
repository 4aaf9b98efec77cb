"""Makes the tools to register: `learn`, `search_knowledge`, `References`, `emit_knowledge`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any

import click
import llm

from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError
from llm_kb.host.capture_tools import make_emit_knowledge
from llm_kb.host.request import current_request
from llm_kb.host.terminal import draw_progress
from llm_kb.rendering.plain_text import shorten, visible_line
from llm_kb.rendering.tokens import estimate_tokens

LONGEST_REPORT = 200
"""The most characters of a line that reports a call."""


def make_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield the tools to register: those of the request, or outside of one all that are useful."""
    request = current_request()
    if request is None:
        yield from _all_tools()
        return
    if "learn" in request.tools and request.kb is not None:
        yield _shown(request.kb, request.kb.learn_tool())
    if "search_knowledge" in request.tools and request.kb is not None:
        yield _shown(request.kb, _search_knowledge(request.kb))
    if "References" in request.tools:
        yield _references()
        # A continued conversation asks for the tools of the toolbox one by one.
        yield from _references()().tools()
    if "emit_knowledge" in request.tools:
        yield from _emit_knowledge()


def _all_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield every tool that is useful here, for `llm tools` and the Python API."""
    with suppress(KbError):  # a broken configuration must not break commands that do not use it
        kb = KnowledgeBase.discover()
        if kb.has_left():
            yield kb.learn_tool()
            if kb.offers_search():
                yield _search_knowledge(kb)
    yield _references()
    yield from _emit_knowledge()


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


def _search_knowledge(kb: KnowledgeBase) -> llm.Tool:
    return kb.search_tool(draw_progress("Indexing"))


def _references() -> type[llm.Toolbox]:
    from llm_kb.host.reference_tools import References  # noqa: PLC0415 - few requests use it

    return References


def _emit_knowledge() -> Iterator[llm.Tool]:
    tool = make_emit_knowledge()
    if tool is not None:
        yield tool
