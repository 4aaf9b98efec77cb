"""A fake model that speaks the protocols of the providers, and records what it is sent.

It answers within the process, in the place of the network, so that plugins with a fixed address
can be asked too: each request that httpx would send is read, and answered from the script.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple, TypeAlias

Calls: TypeAlias = "Sequence[tuple[str, Mapping[str, Any]]]"
Turn: TypeAlias = "str | Calls"
"""An answer of the model: a text, or calls of tools."""

_IDS = count(1)


class Seen(NamedTuple):
    """One request, in the same words for every protocol."""

    system: str
    prompt: str
    """The last text of the user."""
    outputs: tuple[str, ...]
    """The outputs of tools since that text."""
    tools: Mapping[str, Mapping[str, Any]]
    """The declarations of the tools by name, as they were sent."""
    path: str

    @property
    def text(self) -> str:
        """Everything that the model reads."""
        return "\n".join((self.system, self.prompt, *self.outputs))


class FakeModel:
    """Answers each request with the next turn of its script, `ok` without one."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.script: list[Turn] = []

    def reset(self, *script: Turn) -> None:
        """Forget all requests, and set the script."""
        self.seen, self.script = [], list(script)

    def intercept(self) -> None:
        """Answer all requests of httpx in this process, under either of its names."""
        for name in ("httpx", "httpx2"):
            try:
                library = import_module(name)
            except ImportError:
                continue
            _intercept(library, self.answer)

    def answer(self, path: str, body: bytes) -> tuple[int, str, bytes]:
        """Return status, content type and content of the answer to a request."""
        for suffix, (read, write) in PROTOCOLS.items():
            if suffix in path:
                sent = json.loads(body)
                self.seen.append(read(sent, path))
                turn = self.script.pop(0) if self.script else "ok"
                return 200, *write(turn, bool(sent.get("stream")) or "stream" in path)
        for suffix, listing in LISTINGS.items():
            if path.endswith(suffix):
                return 200, "application/json", json.dumps(listing).encode()
        return 404, "application/json", b'{"error": {"message": "no such address"}}'


def _intercept(library: Any, answer: Callable[[str, bytes], tuple[int, str, bytes]]) -> None:
    def respond(request: Any, body: bytes) -> Any:
        status, kind, content = answer(request.url.path, body)
        headers = {"content-type": kind}
        return library.Response(status, headers=headers, content=content, request=request)

    def handle(_self: object, request: Any) -> Any:
        return respond(request, request.read())

    async def handle_async(_self: object, request: Any) -> Any:
        return respond(request, await request.aread())

    library.HTTPTransport.handle_request = handle
    library.AsyncHTTPTransport.handle_async_request = handle_async


def _text(content: Any) -> str:
    """Return the text of a message, which may be a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))


def _see(
    path: str,
    system: Iterable[str],
    turns: Iterable[tuple[str, str]],
    tools: Iterable[Mapping[str, Any]],
) -> Seen:
    """Return a request; `turns` are (`user` or `tool`, text)."""
    prompt, outputs = "", list[str]()
    for role, text in turns:
        if role == "tool":
            outputs.append(text)
        elif role == "user":
            prompt, outputs = text, []
    declared = {tool["name"]: tool for tool in tools}
    return Seen("\n".join(filter(None, system)), prompt, tuple(outputs), declared, path)


def _lines(events: Iterable[Any], *, named: bool = False) -> tuple[str, bytes]:
    """Return events as a stream of server-sent events."""
    text = "".join(
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    )
    return "text/event-stream", text.encode()


def _json(value: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


# Chat completions, for OpenAI and those who copy it

_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def read_chat(body: Mapping[str, Any], path: str) -> Seen:
    """Read a request of chat completions."""
    messages = [(message["role"], _text(message.get("content"))) for message in body["messages"]]
    system = [text for role, text in messages if role in {"system", "developer"}]
    return _see(path, system, messages, [tool["function"] for tool in body.get("tools") or ()])


def write_chat(turn: Turn, stream: bool) -> tuple[str, bytes]:
    """Write an answer of chat completions."""
    calls = [
        {
            "index": index,
            "id": f"call{next(_IDS):05}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (name, arguments) in enumerate(() if isinstance(turn, str) else turn)
    ]
    message = {"role": "assistant", "content": turn if isinstance(turn, str) else ""}
    reason = "tool_calls" if calls else "stop"
    head = {"id": "chat", "created": 1, "model": "fake"}
    if not stream:
        whole = message | ({"tool_calls": calls} if calls else {})
        choice = {"index": 0, "message": whole, "finish_reason": reason}
        return _json({**head, "object": "chat.completion", "choices": [choice], "usage": _USAGE})
    deltas = [message, *({"tool_calls": [call]} for call in calls)]
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": reason})
    events = [{**head, "object": "chat.completion.chunk", "choices": [each]} for each in chunks]
    events[-1]["usage"] = _USAGE
    kind, data = _lines(events)
    return kind, data + b"data: [DONE]\n\n"


# Responses, for OpenAI

_RESPONSE: dict[str, Any] = {
    "id": "resp",
    "object": "response",
    "created_at": 1,
    "model": "fake",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    },
}


def read_responses(body: Mapping[str, Any], path: str) -> Seen:
    """Read a request of responses."""
    system = [body.get("instructions") or ""]
    turns = []
    for item in body["input"] if isinstance(body["input"], list) else ():
        if item.get("type") == "function_call_output":
            turns.append(("tool", _text(item["output"])))
        elif item.get("role") in {"system", "developer"}:
            system.append(_text(item["content"]))
        elif item.get("role") == "user":
            turns.append(("user", _text(item["content"])))
    return _see(path, system, turns, body.get("tools") or ())


def write_responses(turn: Turn, stream: bool) -> tuple[str, bytes]:
    """Write an answer of responses."""
    if isinstance(turn, str):
        content = [{"type": "output_text", "text": turn, "annotations": []}]
        message = {"type": "message", "role": "assistant", "content": content}
        items: list[dict[str, Any]] = [{"id": "msg", "status": "completed", **message}]
    else:
        items = [
            {
                "id": f"fc_{next(_IDS)}",
                "type": "function_call",
                "status": "completed",
                "call_id": f"call_{next(_IDS)}",
                "name": name,
                "arguments": json.dumps(arguments),
            }
            for name, arguments in turn
        ]
    whole = {**_RESPONSE, "output": items}
    if not stream:
        return _json(whole)
    events: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "item": item, **place})
        if isinstance(turn, str):
            delta = {"delta": turn, "content_index": 0, "logprobs": []}
            events.append({"type": "response.output_text.delta", **delta, **place})
        events.append({"type": "response.output_item.done", "item": item, **place})
    events.append({"type": "response.completed", "response": whole})
    return _lines([{**event, "sequence_number": n} for n, event in enumerate(events)], named=True)


# Messages, for Anthropic


def read_messages(body: Mapping[str, Any], path: str) -> Seen:
    """Read a request of messages."""
    turns = []
    for message in body["messages"]:
        parts = message["content"]
        parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
        results = [part for part in parts if part["type"] == "tool_result"]
        turns += [("tool", _text(part.get("content"))) for part in results]
        if message["role"] == "user" and not results:
            turns.append(("user", _text(parts)))
    return _see(path, [_text(body.get("system"))], turns, body.get("tools") or ())


def write_messages(turn: Turn, stream: bool) -> tuple[str, bytes]:
    """Write an answer of messages."""
    if isinstance(turn, str):
        blocks: list[dict[str, Any]] = [{"type": "text", "text": turn}]
    else:
        blocks = [
            {"type": "tool_use", "id": f"toolu_{next(_IDS)}", "name": name, "input": dict(given)}
            for name, given in turn
        ]
    reason = "end_turn" if isinstance(turn, str) else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {"id": "msg", "type": "message", "role": "assistant"}
    message |= {
        "model": "fake",
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }
    if not stream:
        return _json(message)
    start = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        if isinstance(turn, str):
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": turn}
        else:
            given = json.dumps(block["input"])
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": given}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}})
    events.append({"type": "message_stop"})
    return _lines(events, named=True)


# Contents, for Gemini


def read_gemini(body: Mapping[str, Any], path: str) -> Seen:
    """Read a request of generateContent."""
    turns = []
    for content in body["contents"]:
        # The API takes either spelling.
        answers = [
            part[name]
            for part in content["parts"]
            for name in ("functionResponse", "function_response")
            if name in part
        ]
        turns += [("tool", _read_output(answer["response"])) for answer in answers]
        if content.get("role") == "user" and not answers:
            turns.append(("user", _text(content["parts"])))
    system = _text(body.get("systemInstruction", {}).get("parts"))
    groups = (tool.get("functionDeclarations", ()) for tool in body.get("tools") or ())
    return _see(path, [system], turns, [each for group in groups for each in group])


def _read_output(response: Any) -> str:
    """Return the output of a tool, which the plugin puts into an object."""
    values = list(response.values()) if isinstance(response, dict) else [response]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(response)


def write_gemini(turn: Turn, stream: bool) -> tuple[str, bytes]:
    """Write an answer of generateContent."""
    parts: list[dict[str, Any]] = (
        [{"text": turn}]
        if isinstance(turn, str)
        else [{"functionCall": {"name": name, "args": dict(given)}} for name, given in turn]
    )
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"}
    return _json([answer] if stream else answer)


# Chats, for Ollama


def read_ollama(body: Mapping[str, Any], path: str) -> Seen:
    """Read a request of Ollama's chat."""
    messages = [(message["role"], _text(message.get("content"))) for message in body["messages"]]
    system = [text for role, text in messages if role == "system"]
    return _see(path, system, messages, [tool["function"] for tool in body.get("tools") or ()])


def write_ollama(turn: Turn, stream: bool) -> tuple[str, bytes]:
    """Write an answer of Ollama's chat."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": turn if isinstance(turn, str) else "",
    }
    if not isinstance(turn, str):
        message["tool_calls"] = [
            {"function": {"name": name, "arguments": dict(given)}} for name, given in turn
        ]
    head = {"model": "fake", "created_at": "2026-01-01T00:00:00Z"}
    counts = {"done": True, "done_reason": "stop", "prompt_eval_count": 1, "eval_count": 1}
    if not stream:
        return _json({**head, "message": message, **counts})
    end = {**head, "message": {"role": "assistant", "content": ""}, **counts}
    lines = [{**head, "message": message, "done": False}, end]
    return "application/x-ndjson", "".join(f"{json.dumps(line)}\n" for line in lines).encode()


PROTOCOLS: Mapping[str, tuple[Callable[..., Seen], Callable[..., tuple[str, bytes]]]] = {
    "/chat/completions": (read_chat, write_chat),
    "/responses": (read_responses, write_responses),
    "/messages": (read_messages, write_messages),
    "enerateContent": (read_gemini, write_gemini),
    "/api/chat": (read_ollama, write_ollama),
}
"""The reader and writer of each protocol, by a part of its address."""

_DETAILS = {"format": "gguf", "family": "llama", "families": ["llama"], "parameter_size": "3B"}
_OLLAMA = {"model": "fake:latest", "name": "fake:latest", "digest": "0" * 64, "size": 1}
_LISTED = {
    "id": "fake",
    "name": "Fake",
    "object": "model",
    "created": 1,
    "owned_by": "us",
    "active": True,
    "context_length": 100_000,
    "supported_parameters": ["tools", "structured_outputs"],
    "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
    "pricing": {"prompt": "0", "completion": "0"},
    "capabilities": {"completion_chat": True, "function_calling": True},
}
LISTINGS: Mapping[str, object] = {
    "/api/tags": {
        "models": [{**_OLLAMA, "modified_at": "2026-01-01T00:00:00Z", "details": _DETAILS}]
    },
    "/api/show": {
        "capabilities": ["completion", "tools"],
        "details": _DETAILS,
        "model_info": {"general.architecture": "llama"},
    },
    "/models": {"object": "list", "data": [_LISTED]},
}
"""The lists of models that plugins ask for, by the end of the address."""
