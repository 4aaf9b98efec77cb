"""Makes the tools to register: `learn`, `search_knowledge`, `References`, `emit_knowledge`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from llm_kb.errors import KbError
from llm_kb.host.request import OUR_TOOLS, Request, current_request

if TYPE_CHECKING:
    import llm

    from llm_kb.api import KnowledgeBase

_NO_MORE = "note: no further call is answered"

LONGEST_QUESTION = 1000
"""The most characters of a prompt that are searched for."""

LONGEST_REPORT = 200
"""The most characters of a line that reports a call."""


def make_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield the tools to register.

    The host gathers tools on every prompt that names one. Tools that the request does not
    use have only names, for the host's error that lists the tools.
    """
    request = current_request()
    if request is None:
        yield from _all_tools()
        return
    if "learn" in request.tools and request.kb is not None:
        yield _shown(request.kb, _learn(request, request.kb))
    if "search_knowledge" in request.tools and request.kb is not None:
        yield _shown(request.kb, _search_knowledge(request.kb))
    if "References" in request.tools:
        yield _references()
        # A continued conversation asks for the tools of the toolbox one by one.
        yield from _references()().tools()
    if "emit_knowledge" in request.tools:
        yield from _emit_knowledge()
    if not request.is_muted:
        from llm import Tool  # noqa: PLC0415 - the host is whole only when tools are gathered

        yield from (Tool(name=name) for name in sorted(OUR_TOOLS - request.tools))


def _all_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield every tool that is useful here, for `llm tools` and the Python API."""
    from llm_kb.api import KnowledgeBase  # noqa: PLC0415 - a request has opened it already

    try:
        kb = KnowledgeBase.discover()
        if kb.has_left():
            yield kb.learn_tool()
            if kb.offers_search():
                yield _search_knowledge(kb)
    except KbError:
        pass  # a broken configuration must not break commands that do not use it
    yield _references()
    yield from _emit_knowledge()


def _shown(kb: KnowledgeBase, tool: llm.Tool) -> llm.Tool:
    """Return the tool; with `show_reads` it reports each call."""
    from llm_kb.rendering.tokens import estimate_tokens  # noqa: PLC0415 - as above

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


def _learn(request: Request, kb: KnowledgeBase) -> llm.Tool:
    """Return the `learn` tool, which adds passages to a listing in the last round."""
    from llm_kb.knowledge_base.tool_text import LEARN, read_arguments  # noqa: PLC0415 - as above

    tool = kb.learn_tool()
    answer = tool.implementation
    if not request.rounds or answer is None:
        return tool

    @wraps(answer)
    def learn(**arguments: Any) -> Any:
        text = answer(**arguments)
        given = read_arguments(LEARN, arguments)
        if request.rounds.is_last() and not given.get("subjects"):
            return f"{text}\n\n{_find_best(kb, request.question, given['topic'])}"
        return text

    return replace(tool, implementation=learn)


def _find_best(kb: KnowledgeBase, question: str, topic: str) -> str:
    """Return the passages of a topic that fit the question best, for the last round."""
    from llm_kb.rendering.passages import render_passages  # noqa: PLC0415 - as above

    with suppress(KbError):
        found = kb.find_passages(question[:LONGEST_QUESTION], [topic], whole=True)
        if found.passages:
            return f"({_NO_MORE}; this fits the question best)\n\n{render_passages(found)}"
    return f"({_NO_MORE}; answer with what you have)"


def _describe_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in a few words: `learn project/review`."""
    topic, subjects = arguments.get("topic") or "", arguments.get("subjects") or ""
    if name != "learn":
        return f"{name} {arguments.get('question', '')!r}" + (f" in {topic}" if topic else "")
    patterns = subjects if isinstance(subjects, list) else [subjects]
    return f"learn {', '.join(f'{topic}/{pattern}' if pattern else topic for pattern in patterns)}"


def _report(text: str) -> None:
    from llm_kb.rendering.plain_text import shorten, visible_line  # noqa: PLC0415 - as above

    click.echo(f"llm-kb: {shorten(visible_line(text), LONGEST_REPORT)}", err=True)


def _search_knowledge(kb: KnowledgeBase) -> llm.Tool:
    from llm_kb.host.terminal import draw_progress  # noqa: PLC0415 - as above

    return kb.search_tool(draw_progress("Indexing"))


def _references() -> type[llm.Toolbox]:
    from llm_kb.host.reference_tools import References  # noqa: PLC0415 - few requests use it

    return References


def _emit_knowledge() -> Iterator[llm.Tool]:
    from llm_kb.host.capture_tools import make_emit_knowledge  # noqa: PLC0415 - as above

    tool = make_emit_knowledge()
    if tool is not None:
        yield tool
