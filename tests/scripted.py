"""A model that records its prompts and answers from a script."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import llm
from llm.parts import StreamEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model: text in chunks, then the tools it calls."""

    text: Iterable[str] = ("ok",)
    calls: tuple[llm.ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one request carried, in the words of `llm.Prompt`."""

    prompt: str
    system: str
    messages: tuple[tuple[str, str], ...]
    """`(role, text)` of every message of `prompt.messages`; tool results as their output."""
    tools: tuple[llm.Tool, ...]
    tool_results: tuple[llm.ToolResult, ...]
    streamed: bool
    attachments: tuple[llm.Attachment, ...] = ()
    """What came with the prompt."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that were offered, in order."""
        return tuple(tool.name for tool in self.tools)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs of the tool calls that were answered by this request."""
        return tuple(result.output for result in self.tool_results)


class Script:
    """The turns still to be given and the requests received, shared by all models."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.requests: list[Request] = []
        self.attachment_types: set[str] = set()

    def say(self, *text: str) -> Script:
        """Answer the next request with text, one chunk an argument."""
        self.turns.append(Turn(text=text))
        return self

    def call(self, name: str, **arguments: object) -> Script:
        """Answer the next request with one tool call and no text."""
        return self.call_all(llm.ToolCall(name=name, arguments=arguments))

    def call_all(self, *calls: llm.ToolCall) -> Script:
        """Answer the next request with several tool calls and no text."""
        self.turns.append(Turn(text=(), calls=calls))
        return self

    @property
    def last(self) -> Request:
        """The latest request."""
        return self.requests[-1]

    def take(self, prompt: llm.Prompt, response: Any, *, stream: bool) -> Iterable[str]:
        """Record a request and play the next turn; without one, answer `ok`."""
        self.requests.append(record(prompt, stream=stream))
        turn = self.turns.pop(0) if self.turns else Turn()
        for call in turn.calls:
            response.add_tool_call(call)
        return turn.text


def record(prompt: llm.Prompt, *, stream: bool) -> Request:
    """Return what a prompt carries as plain values."""
    return Request(
        prompt=prompt.prompt,
        system=prompt.system,
        messages=tuple((message.role, _text_of(message)) for message in prompt.messages),
        tools=tuple(tool for tool in prompt.tools if isinstance(tool, llm.Tool)),
        tool_results=tuple(prompt.tool_results),
        streamed=stream,
        attachments=tuple(prompt.attachments),
    )


def _text_of(message: Any) -> str:
    return "\n".join(
        getattr(part, "text", None) or getattr(part, "output", None) or "" for part in message.parts
    )


class ScriptedModel(llm.Model):
    """`scripted`, or `scripted-no-tools` which supports none."""

    can_stream = True

    def __init__(self, script: Script, model_id: str, *, supports_tools: bool) -> None:
        self.script = script
        self.model_id = model_id
        self.supports_tools = supports_tools
        self.attachment_types = script.attachment_types

    def execute(
        self,
        prompt: llm.Prompt,
        stream: bool,
        response: llm.Response,
        conversation: llm.Conversation | None = None,
    ) -> Iterator[str]:
        """Yield the chunks of the next turn."""
        yield from self.script.take(prompt, response, stream=stream)


class AsyncScriptedModel(llm.AsyncModel):
    """The same script for `llm prompt --async` and the async API."""

    can_stream = True

    def __init__(self, script: Script, model_id: str, *, supports_tools: bool) -> None:
        self.script = script
        self.model_id = model_id
        self.supports_tools = supports_tools
        self.attachment_types = script.attachment_types

    async def execute(
        self,
        prompt: llm.Prompt,
        stream: bool,
        response: llm.AsyncResponse,
        conversation: llm.AsyncConversation | None = None,
    ) -> AsyncGenerator[str | StreamEvent, None]:
        """Yield the chunks of the next turn."""
        for chunk in self.script.take(prompt, response, stream=stream):
            yield chunk


class ScriptedModels:
    """A plugin of `llm` that registers the models over one script."""

    def __init__(self, script: Script) -> None:
        self.script = script

    @llm.hookimpl
    def register_models(self, register: Callable[..., None]) -> None:
        """Register `scripted` and `scripted-no-tools`, each with its async twin."""
        for model_id, supports_tools in (("scripted", True), ("scripted-no-tools", False)):
            register(
                ScriptedModel(self.script, model_id, supports_tools=supports_tools),
                AsyncScriptedModel(self.script, model_id, supports_tools=supports_tools),
            )
