"""An OpenAI-compatible server on loopback that records requests and answers from a script.

It speaks chat completions and responses, streamed and whole, with parallel tool calls:
what the models that come with `llm` send over the wire is what is tested here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Calls = Sequence[tuple[str, Mapping[str, object]]]

MODELS = """\
- model_id: wire
  model_name: wire
  api_base: {url}
  supports_tools: true
- model_id: wire-responses
  model_name: wire-responses
  api_base: {url}
  supports_tools: true
  responses: true
- model_id: wire-no-tools
  model_name: wire-no-tools
  api_base: {url}
"""
"""The models of `extra-openai-models.yaml` that ask this server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """An answer as it goes over the wire, such as an error or a page of a proxy."""

    body: str
    status: int = 200
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Sent:
    """One request as it arrived."""

    def __init__(self, body: dict[str, Any], size: int) -> None:
        self.body = body
        self.size = size
        """Its bytes."""

    @property
    def system(self) -> str:
        """The system prompt, wherever the protocol carries it; empty without one."""
        if "input" in self.body:
            return str(self.body.get("instructions") or "")
        return "\n".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The messages, the system prompt excepted."""
        messages = self.body.get("input", self.body.get("messages"))
        assert isinstance(messages, list)
        return [message for message in messages if message.get("role") != "system"]

    @property
    def prompt(self) -> str:
        """The text of the last message of the user."""
        last = [turn for turn in self.turns if turn.get("role") == "user"][-1]["content"]
        return last if isinstance(last, str) else "".join(part["text"] for part in last)

    @property
    def everything(self) -> str:
        """All text of all messages, the system prompt included."""
        return self.system + json.dumps(self.turns, ensure_ascii=False).replace("\\n", "\n")

    @property
    def tools(self) -> list[str]:
        """The names of the tools that are offered."""
        return [(tool.get("function") or tool)["name"] for tool in self.body.get("tools", ())]

    @property
    def outputs(self) -> list[str]:
        """The outputs of tools, oldest first."""
        return [
            str(turn.get("content") or turn.get("output"))
            for turn in self.turns
            if turn.get("role") == "tool" or turn.get("type") == "function_call_output"
        ]


class OpenAIServer(ThreadingHTTPServer):
    """Answers each request with the next turn of the script, `ok` when there is none."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sent: list[Sent] = []
        self.script: list[str | Calls] = []

    @property
    def url(self) -> str:
        """The base of the API."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def last(self) -> Sent:
        """The latest request."""
        return self.sent[-1]

    def answer(self, sent: Sent) -> str | Calls | Raw:
        """Return the answer to a request: the next turn of the script, `ok` without one."""
        return self.script.pop(0) if self.script else "ok"

    def call(self, *calls: tuple[str, Mapping[str, object]]) -> None:
        """Answer the next request with calls of tools."""
        self.script.append(calls)


@contextmanager
def serve_openai(user_dir: Path, made: OpenAIServer | None = None) -> Iterator[OpenAIServer]:
    """Run the server, with its models written to the user directory of `llm`."""
    with made or OpenAIServer() as server:
        models = MODELS.format(url=server.url)
        (user_dir / "extra-openai-models.yaml").write_text(models, encoding="utf-8")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
    assert server.script == []


class _Handler(BaseHTTPRequestHandler):
    server: OpenAIServer

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        sent = Sent(json.loads(data), len(data))
        self.server.sent.append(sent)
        turn = self.server.answer(sent)
        if isinstance(turn, Raw):
            self._send(turn)
            return
        body = sent.body
        text, calls = (turn, ()) if isinstance(turn, str) else ("", turn)
        is_chat = self.path.endswith("/chat/completions")
        if body.get("stream"):
            events = [*(_chat_chunks(text, calls) if is_chat else _response_events(text, calls))]
            if body.get("stream_options", {}).get("include_usage"):
                usage = {"prompt_tokens": sent.size // 4, "completion_tokens": 1}
                events.append({**events[-1], "choices": [], "usage": {**usage, "total_tokens": 1}})
            lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
            self._send(Raw(body=f"{lines}data: [DONE]\n\n", kind="text/event-stream"))
        else:
            answer = _chat(text, calls) if is_chat else _response(text, calls)
            self._send(Raw(body=json.dumps(answer)))

    def _send(self, raw: Raw) -> None:
        data = raw.body.encode()
        self.send_response(raw.status)
        self.send_header("Content-Type", raw.kind)
        for name, value in raw.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with suppress(ConnectionError):  # a client that was interrupted waits no longer
            self.wfile.write(data)


def _tool_calls(calls: Calls) -> list[dict[str, Any]]:
    return [
        {
            "index": number,
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(calls)
    ]


def _chat(text: str, calls: Calls) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "tool_calls": _tool_calls(calls) or None}
    reason = "tool_calls" if calls else "stop"
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 1,
        "model": "wire",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _chat_chunks(text: str, calls: Calls) -> Iterator[dict[str, Any]]:
    """Yield chunks: the arguments of a call arrive in two pieces."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {
            "id": "chat_1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "wire",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }

    yield chunk({"role": "assistant", "content": text})
    for call in _tool_calls(calls):
        arguments = call["function"]["arguments"]
        first = {**call, "function": {**call["function"], "arguments": arguments[:3]}}
        yield chunk({"tool_calls": [first]})
        rest = {"index": call["index"], "function": {"arguments": arguments[3:]}}
        yield chunk({"tool_calls": [rest]})
    yield chunk({}, "tool_calls" if calls else "stop")


def _output(text: str, calls: Calls) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = [
        {
            "id": f"item_{number}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{number}",
            "name": name,
            "arguments": json.dumps(arguments),
        }
        for number, (name, arguments) in enumerate(calls)
    ]
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output.append(
            {
                "id": "message_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    return output


def _response(text: str, calls: Calls) -> dict[str, Any]:
    return {
        "id": "response_1",
        "object": "response",
        "created_at": 1,
        "model": "wire-responses",
        "status": "completed",
        "output": _output(text, calls),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _response_events(text: str, calls: Calls) -> Iterator[dict[str, Any]]:
    for index, item in enumerate(_output(text, calls)):
        place = {"output_index": index, "item_id": item["id"], "sequence_number": index}
        yield {"type": "response.output_item.added", "item": item, **place}
        if item["type"] == "message":
            yield {
                "type": "response.output_text.delta",
                "delta": text,
                "content_index": 0,
                "logprobs": [],
                **place,
            }
        yield {"type": "response.output_item.done", "item": item, **place}
    yield {
        "type": "response.completed",
        "response": _response(text, calls),
        "sequence_number": 99,
    }
