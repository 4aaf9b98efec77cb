"""The server of an MCP client: JSON-RPC over standard input and output, one message a line.

Each request is answered on its own and in order. The configuration is read again every time: a
client that stays connected sees the current files. There is one thread: a call that takes long
reports its progress between two files, and what the client has sent is read then, a cancellation
too.

A request that carries the version of the protocol is answered as that version has it, without a
handshake; all others as the versions before.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeGuard, TypeVar

from llm_kb import __version__
from llm_kb.errors import KbError
from llm_kb.host.mcp import tools
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.tool_text import LEARN
from llm_kb.rendering.presentation import Picture
from llm_kb.texts.safe import defuse

Message: TypeAlias = "dict[str, Any]"
Discover: TypeAlias = "Callable[[], KnowledgeBase]"
"""Returns the knowledge base in effect, as it is now on disk."""

T = TypeVar("T")

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that begin with `initialize`, oldest first."""

STATELESS = ("2026-07-28",)
"""The versions of the protocol that each request carries, oldest first."""

META = "io.modelcontextprotocol/"
"""The prefix of the protocol's own keys in `_meta`."""

SERVER = {"name": "llm-kb", "version": __version__}

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR, UNSUPPORTED_VERSION = -32602, -32603, -32022

LARGEST = 4_000_000
"""Maximum number of bytes of a message: an annotation may be long."""

MOST_AHEAD = 8_000_000
"""Maximum number of bytes of requests read ahead; parsed they take up to thirty times as many."""

CHUNK = 65_536

PROGRESS_SECONDS = 5
"""Seconds between two notifications of progress: some clients give up after 60 without one."""


class ProtocolError(Exception):
    """A message that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}
        super().__init__(message)


def parse_line(line: bytes) -> list[Message]:
    """Return the messages of a line: one, or those of a batch, as 2025-03-26 has it.

    A message is a request, which has an `id`, a notification or a response. Half a surrogate
    pair, which no answer could quote, is replaced. Raises ProtocolError.
    """
    if len(line) > LARGEST:
        raise ProtocolError(INVALID_REQUEST, f"a message has at most {LARGEST:,} bytes")
    try:
        value = json.loads(_encode(json.loads(line.decode("utf-8-sig", "replace"))))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, "the message is not valid JSON") from error
    messages = value if isinstance(value, list) and value else [value]
    for message in messages:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise ProtocolError(INVALID_REQUEST, "the message is not a JSON-RPC 2.0 object")
        is_named = isinstance(message.get("method"), str) and _is_id(message.get("id", 0))
        if not (is_named or is_response(message)):
            problem = "a message needs a method, and a string or number as id"
            raise ProtocolError(INVALID_REQUEST, problem)
    return messages


def _is_id(value: object) -> TypeGuard[str | int]:
    """Tell whether a value names a request, or the progress of one."""
    return type(value) in {str, int}


def is_response(message: Message) -> bool:
    """Tell whether a message answers a request; there are none of ours, so it is not needed."""
    return "method" not in message and ("result" in message or "error" in message)


def render_message(message: Message) -> bytes:
    """Return a message as one line."""
    return _encode({"jsonrpc": "2.0", **message}) + b"\n"


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _read(params: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a parameter of this type, empty if there is none. Raises ProtocolError.

    Some clients write an empty object as an empty list.
    """
    value = params.get(name)
    value = kind() if value in (None, []) else value
    if not isinstance(value, kind):
        raise ProtocolError(INVALID_PARAMS, f"{name} has the wrong type")
    return value


class Server:
    """Answers the requests of one client over the knowledge base in effect."""

    def __init__(self, discover: Discover) -> None:
        self._discover = discover
        self._limits = tools.Limits()
        """What the client takes that has greeted this server; others say it in each request."""

    def answer(self, request: Message, report: tools.Report) -> Message:
        """Return the result of a request. Raises ProtocolError.

        `report` is called whenever a tool makes progress.
        """
        params = _read(request, "params", dict)
        method = request["method"]
        client = _read_envelope(method, params)
        if (method == "server/discover" and client is None) or (method == "ping" and client):
            raise ProtocolError(METHOD_NOT_FOUND, "not a method of this version of the protocol")
        if client is None:
            return self._answer(method, params, self._limits, report)
        limits = tools.find_limits(client.get(f"{META}clientInfo"))
        result = self._answer(method, params, limits, report)
        meta = {f"{META}serverInfo": SERVER}
        return {"resultType": "complete", "_meta": meta, **result}

    def _answer(
        self, method: str, params: Message, limits: tools.Limits, report: tools.Report
    ) -> Message:
        if method == "initialize":
            return self._greet(params)
        if method == "server/discover":
            versions = {"supportedVersions": list(STATELESS)}
            return {**versions, **self._describe(limits), **CHANGES_ANY_TIME}
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": self._list_tools(limits), **CHANGES_ANY_TIME}
        if method == "tools/call":
            return self._call_tool(params, limits, report)
        raise ProtocolError(METHOD_NOT_FOUND, "the method is not served")

    def _greet(self, params: Message) -> Message:
        """Greet a client of a version that begins so, and keep what it takes."""
        asked = _read(params, "protocolVersion", str)
        self._limits = tools.find_limits(params.get("clientInfo"))
        version = {"protocolVersion": asked if asked in VERSIONS else VERSIONS[-1]}
        return {**version, "serverInfo": SERVER, **self._describe(self._limits)}

    def _describe(self, limits: tools.Limits) -> Message:
        """Return what is served; a configuration that cannot be read is reported to the model."""
        try:
            instructions = tools.write_instructions(self._open(limits), limits)
        except (KbError, OSError) as error:
            instructions = _describe_broken(error)
        shown = {"instructions": instructions} if instructions else {}
        return {"capabilities": {"tools": {}}, **shown}

    def _list_tools(self, limits: tools.Limits) -> list[Message]:
        try:
            return tools.render_tools(self._open(limits))
        except (KbError, OSError) as error:
            return [tools.render_tool(LEARN, _describe_broken(error))]

    def _call_tool(
        self, params: Mapping[str, Any], limits: tools.Limits, report: tools.Report
    ) -> Message:
        """Answer a call; the text of an error is a result, too, so that the model can react."""
        name, arguments = _read(params, "name", str), _read_arguments(params)
        try:
            kb = self._open(limits)
            text, pictures = tools.answer_call(kb, name, arguments, report)
            return make_result(text, pictures)
        except (KbError, OSError) as error:
            return make_result(limits.cut(defuse(str(error))), is_error=True)

    def _open(self, limits: tools.Limits) -> KnowledgeBase:
        return tools.fit_client(self._discover(), limits)


CHANGES_ANY_TIME = {"ttlMs": 0, "cacheScope": "private"}
"""How long a client may keep an answer: topics change whenever their files do."""


def _read_envelope(method: str, params: Mapping[str, Any]) -> Message | None:
    """Return what a request that carries its version says; None for one of other versions.

    Raises ProtocolError for a version that is not served.
    """
    meta = params.get("_meta")
    version = meta.get(f"{META}protocolVersion") if isinstance(meta, dict) else None
    if version is None or not isinstance(meta, dict) or method == "initialize":
        return None
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, "the version of the protocol is not a string")
    if version not in STATELESS:
        data = {"supported": list(STATELESS), "requested": version[:100]}
        raise ProtocolError(UNSUPPORTED_VERSION, "unsupported version of the protocol", data)
    if not isinstance(meta.get(f"{META}clientCapabilities"), dict):
        raise ProtocolError(INVALID_PARAMS, f"_meta has no {META}clientCapabilities")
    return meta


def _read_arguments(params: Mapping[str, Any]) -> Message:
    """Return the arguments of a call, which some clients write as JSON in a string."""
    given = params.get("arguments")
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            params = {"arguments": json.loads(given)}
    return _read(params, "arguments", dict)


def _describe_broken(error: KbError | OSError) -> str:
    return f"The knowledge base cannot be read. Tell the user the reason: {defuse(str(error))}"


def make_result(text: str, pictures: Sequence[Picture] = (), *, is_error: bool = False) -> Message:
    """Return the result of a call."""
    images = [
        {"type": "image", "data": b64encode(each.data).decode(), "mimeType": each.media_type}
        for each in pictures
    ]
    return {"content": [{"type": "text", "text": text}, *images], "isError": is_error}


def run(discover: Discover) -> None:
    """Serve one client on standard input and output until it disconnects, or until Ctrl-C."""
    # Nothing is lost when the process ends at once: a ref moves completely or not at all.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What else prints or reads must not disturb the messages.
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2 if sys.stderr else nothing, 1)
    with suppress(BrokenPipeError):  # the client is gone
        _Conversation(Server(discover), source, sink).hold()


class _Cancelled(BaseException):
    """Raised within a call whose answer the client does not want any more."""


class _Conversation:
    """The requests of one client."""

    def __init__(self, server: Server, source: int, sink: int) -> None:
        self._server, self._source, self._sink = server, source, sink
        self._begun = bytearray()
        """The line whose end has not come."""
        self._is_over = False
        """Whether the client has closed its end."""
        self._waiting: deque[tuple[Message, int]] = deque()
        """The requests to answer, each with its number of bytes."""
        self._ahead = 0
        self._running: str | int | None = None
        """The id of the request that is answered; None once the client has cancelled it."""

    def hold(self) -> None:
        """Answer requests until the client closes its end, and what it asked before."""
        while self._waiting or not self._is_over:
            self._read(wait=not self._waiting)
            if self._waiting:
                request, size = self._waiting.popleft()
                self._ahead -= size
                self._running = request["id"]
                with suppress(_Cancelled):
                    self._answer(request)

    def _read(self, *, wait: bool) -> None:
        """Take what the client has sent. Of a line that is too long the beginning is kept."""
        timeout = None if wait else 0
        while self._ahead < MOST_AHEAD and not self._is_over:
            if not select.select([self._source], [], [], timeout)[0]:
                return
            data = os.read(self._source, CHUNK)
            self._is_over, timeout = not data, 0
            first, *others = data.split(b"\n") if data else (b"", b"")  # its end is that of a line
            self._begun += first[: LARGEST + 1 - len(self._begun)]
            for piece in others:
                self._take(bytes(self._begun))
                self._begun = bytearray(piece)

    def _take(self, line: bytes) -> None:
        """Let the requests of a line wait, and obey notifications; responses are of no use."""
        try:
            for message in parse_line(line) if line.strip() else ():
                if "id" in message and not is_response(message):
                    self._waiting.append((message, len(line)))
                    self._ahead += len(line)
                elif message.get("method") == "notifications/cancelled":
                    self._cancel(_read(message, "params", dict).get("requestId"))
        except ProtocolError as error:
            self._send({"id": None, "error": error.error})

    def _cancel(self, id_: object) -> None:
        if _is_id(id_):
            self._running = None if self._running == id_ else self._running
            self._waiting = deque(each for each in self._waiting if each[0]["id"] != id_)
            self._ahead = sum(size for _, size in self._waiting)

    def _answer(self, request: Message) -> None:
        """Send the answer of a request, and its progress before. Raises _Cancelled."""
        id_, token, started, told = request["id"], _find_token(request), time.monotonic(), 0.0

        def report(*_: object) -> None:
            nonlocal told
            self._listen()
            seconds = round(time.monotonic() - started, 1)
            if token is not None and seconds >= told + PROGRESS_SECONDS:
                told = seconds
                params = {"progressToken": token, "progress": seconds}
                self._send({"method": "notifications/progress", "params": params})

        reply = _reply(self._server, request, report)
        self._listen()
        self._send({"id": id_, **reply})

    def _listen(self) -> None:
        """Take what the client has sent. Raises _Cancelled if that ends what is answered."""
        self._read(wait=False)
        if self._running is None:
            raise _Cancelled

    def _send(self, message: Message) -> None:
        rest = memoryview(render_message(message))
        while rest:
            rest = rest[os.write(self._sink, rest) :]


def _find_token(request: Message) -> str | int | None:
    """Return the name of a request's progress; None if the client does not want to hear of it."""
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if _is_id(token) else None


def _reply(server: Server, request: Message, report: tools.Report) -> Message:
    """Return the result of a request, or its error."""
    try:
        return {"result": server.answer(request, report)}
    except ProtocolError as error:
        return {"error": error.error}
    except Exception as error:  # noqa: BLE001 - a defect must not end the conversation
        traceback.print_exc()
        return {"error": ProtocolError(INTERNAL_ERROR, f"internal error: {error!r}").error}
