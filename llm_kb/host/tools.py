"""`learn`, `search_knowledge`, `References` and `emit_knowledge` as the tools of this moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from llm_kb.errors import KbError
from llm_kb.host.request import OUR_TOOLS, current_request

if TYPE_CHECKING:
    import llm

    from llm_kb.api import KnowledgeBase


def make_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield the tools to register.

    The host gathers tools on every prompt that names one. In a request that uses none of
    ours they are names alone, for the error that lists which tools there are.
    """
    request = current_request()
    if request is None:
        yield from _all_tools()
        return
    if "learn" in request.tools and request.kb is not None:
        yield request.kb.learn_tool()
    if "search_knowledge" in request.tools and request.kb is not None:
        yield _search_knowledge(request.kb)
    if "References" in request.tools:
        yield _references()
        # A continued conversation asks for the tools of the toolbox one by one.
        yield from _references()().tools()
    if "emit_knowledge" in request.tools:
        yield from _emit_knowledge()
    if not request.is_muted:
        yield from _names(OUR_TOOLS - request.tools)


def _names(names: Iterable[str]) -> Iterator[llm.Tool]:
    from llm import Tool  # noqa: PLC0415 - the host is whole only when tools are gathered

    for name in sorted(names):
        yield Tool(name=name)


def _all_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield what `llm tools` and the Python API see: every tool of use here."""
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


def _search_knowledge(kb: KnowledgeBase) -> llm.Tool:
    from llm_kb.host.search_tool import make_search_tool  # noqa: PLC0415 - as above

    return make_search_tool(kb)


def _references() -> type[llm.Toolbox]:
    from llm_kb.host.reference_tools import References  # noqa: PLC0415 - for those who ask for it

    return References


def _emit_knowledge() -> Iterator[llm.Tool]:
    from llm_kb.host.capture_tools import make_emit_knowledge  # noqa: PLC0415 - as above

    tool = make_emit_knowledge()
    if tool is not None:
        yield tool
