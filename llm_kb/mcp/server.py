"""Answers the requests of MCP clients with the knowledge base of a directory.

Each request is answered on its own, whatever came before, so any process can answer it. The
configuration is read again every time: a client that stays connected sees the current files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_kb import __version__
from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError
from llm_kb.mcp import subjects, tools
from llm_kb.mcp.limits import describe_error, fit_clients, write_instructions
from llm_kb.mcp.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Message,
    Params,
    ProtocolError,
)

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that are served, oldest first."""

CAPABILITIES: Mapping[str, Any] = {
    "tools": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "prompts": {"listChanged": False},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The knowledge base that is served, and whether with the tools that write."""

    directory: str | None = None
    fragments: Sequence[str] = ()
    """Values of `--kb-cfg`."""
    knowledge: Sequence[str] = ()
    """Values of `-k`."""
    can_write: bool = True

    def open(self) -> KnowledgeBase:
        """Return the knowledge base as it is now. Raises KbError."""
        return fit_clients(
            KnowledgeBase.discover(
                self.directory, fragments=self.fragments, knowledge=self.knowledge
            )
        )


class Server:
    """The methods of the protocol."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._methods: Mapping[str, Callable[[Params], Message]] = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": self._list_tools,
            "resources/list": self._on_kb(subjects.list_resources),
            "resources/templates/list": lambda _: subjects.list_templates(),
            "resources/read": self._on_kb(subjects.read_resource),
            "prompts/list": self._on_kb(subjects.list_prompts),
            "prompts/get": self._on_kb(subjects.get_prompt),
        }

    def answer(self, request: Message, report: tools.Report) -> Message:
        """Return the result of a request. Raises ProtocolError.

        `report` is called with the progress of a tool: a label, the work done, and the total.
        """
        params = Params(request.get("params"))
        if request["method"] == "tools/call":
            return self._call_tool(params, report)
        method = self._methods.get(request["method"])
        if method is None:
            raise ProtocolError(METHOD_NOT_FOUND, "the method is not served")
        try:
            return method(params)
        except (KbError, OSError) as error:
            raise ProtocolError(INVALID_PARAMS, describe_error(error)) from error

    def _on_kb(
        self, function: Callable[[KnowledgeBase, Params], Message]
    ) -> Callable[[Params], Message]:
        return lambda params: function(self._served.open(), params)

    def _initialize(self, params: Params) -> Message:
        """Greet a client; a configuration that cannot be read is reported to its model."""
        asked = params.text("protocolVersion")
        try:
            instructions = write_instructions(self._served.open())
        except (KbError, OSError) as error:
            instructions = _describe_broken(error)
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "llm-kb", "version": __version__},
            **({"instructions": instructions} if instructions else {}),
        }

    def _list_tools(self, _: Params) -> Message:
        try:
            kb = self._served.open()
            served = tools.find_tools(kb, can_write=self._served.can_write)
            return {"tools": [tool.render(tool.describe(kb)) for tool in served]}
        except (KbError, OSError) as error:
            always = [tools.TOOLS["learn"], tools.TOOLS["search"]]
            return {"tools": [tool.render(_describe_broken(error)) for tool in always]}

    def _call_tool(self, params: Params, report: tools.Report) -> Message:
        """Answer a call; the text of an error is a result, too, so that the model can react."""
        name, arguments = params.text("name"), params.table("arguments")
        try:
            kb = self._served.open()
            text = tools.answer_call(kb, name, arguments, report, can_write=self._served.can_write)
        except (KbError, OSError) as error:
            return tools.make_result(describe_error(error), is_error=True)
        return tools.make_result(text)


def _describe_broken(error: KbError | OSError) -> str:
    return f"The knowledge base cannot be read. Tell the user the reason: {describe_error(error)}"
