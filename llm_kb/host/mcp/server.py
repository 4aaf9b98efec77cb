"""The server of an MCP client: JSON-RPC over standard input and output, one message a line.

Each request is answered on its own and in order. The configuration is read again every time: a
client that stays connected sees the current files. Calls run in the main thread, where a signal
can end them whatever they do: at their deadline, when the client cancels them, or a moment after
it has closed its end. Another thread reads the client's messages meanwhile.

A request that carries the version of the protocol is answered as that version has it, without a
handshake; all others as the versions before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeAlias, TypeVar

from llm_kb import __version__
from llm_kb.errors import KbError
from llm_kb.host.mcp import tools
from llm_kb.knowledge_base.api import KnowledgeBase
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

MOST_WAITING = 32_000_000
"""Maximum number of bytes of the requests read ahead, each counted with `OVERHEAD`."""

OVERHEAD = 1_000
"""Bytes that a request takes in memory besides its text."""

LAST_SECONDS = 5
"""Seconds in which requests are still answered after the client has closed its end."""


class ProtocolError(Exception):
    """A message that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}
        super().__init__(message)


def parse_message(data: bytes) -> Message:
    """Return a request, which has an `id`, a notification or a response. Raises ProtocolError.

    Half a surrogate pair, which no answer could quote, is replaced.
    """
    if len(data) > LARGEST:
        raise ProtocolError(INVALID_REQUEST, f"a message has at most {LARGEST:,} bytes")
    try:
        message = json.loads(_encode(json.loads(data.decode("utf-8", "replace"))))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, "the message is not valid JSON") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, "the message is not a JSON-RPC 2.0 object")
    if is_response(message):
        return message
    if not isinstance(message.get("method"), str) or type(message.get("id", 0)) not in {str, int}:
        raise ProtocolError(
            INVALID_REQUEST, "a message needs a method, and a string or number as id"
        )
    return message


def is_response(message: Message) -> bool:
    """Tell whether a message answers a request; there are none of ours, so it is not needed."""
    return "method" not in message and ("result" in message or "error" in message)


def render_message(message: Message) -> bytes:
    """Return a message as one line."""
    return _encode({"jsonrpc": "2.0", **message}) + b"\n"


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _read(params: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a parameter of this type, empty if there is none. Raises ProtocolError."""
    value = kind() if params.get(name) is None else params[name]
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
            return tools.render_broken(_describe_broken(error))

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
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # What else prints or reads must not disturb the messages.
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2 if sys.stderr else nothing, 1)
    with suppress(BrokenPipeError):  # the client is gone
        _Conversation(discover, source, sink).hold()


class _CallEnded(BaseException):
    """Raised within a call at its deadline, or when nobody waits for its answer."""


class _Waiting:
    """A line that is not answered yet. Several may have the same id."""

    def __init__(self, line: bytes, id_: str | int | None) -> None:
        self.line = line
        """As it was sent: what is read of it may take thirty times as much."""
        self.cost = len(line) + OVERHEAD
        """The bytes that it takes."""
        self.id = id_
        """None for a line that is no message; its answer says why."""
        self.is_wanted = True
        """Whether the client still waits for the answer."""


class _Conversation:
    """The requests of one client, each with a deadline."""

    def __init__(self, discover: Discover, source: int, sink: int) -> None:
        self._server, self._source, self._sink = Server(discover), source, sink
        self._inbox: SimpleQueue[_Waiting | None] = SimpleQueue()
        """What to answer; None ends the conversation."""
        self._waiting: list[_Waiting] = []
        self._room = MOST_WAITING
        self._has_room = threading.Condition()
        self._running: _Waiting | None = None
        self._deadline = 0.0
        self._main = threading.get_ident()
        self._is_over = threading.Event()

    def hold(self) -> None:
        """Answer requests until the client closes its end. Call this in the main thread."""
        signal.signal(signal.SIGALRM, self._end_call)
        threading.Thread(target=self._read, daemon=True).start()
        while (item := self._inbox.get()) is not None:
            with suppress(_CallEnded):  # a second signal, while the first one ends the call
                self._answer(item)
            self._running = None
            self._forget(item)
        self._is_over.set()

    def _read(self) -> None:
        """Read messages; runs in a thread of its own."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # the main thread's
        with os.fdopen(self._source, "rb") as stream:
            for line in _iter_lines(stream):
                self._take(line)
        self._inbox.put(None)
        self._end()

    def _take(self, line: bytes) -> None:
        """Let what has an answer wait, or obey a notification; a response is of no use."""
        try:
            message = parse_message(line)
        except ProtocolError:
            message = {"id": None}
        if is_response(message):
            return
        if "id" in message:
            waiting = _Waiting(line, message["id"])
            with self._has_room:
                self._has_room.wait_for(lambda: self._room > 0)
                self._room -= waiting.cost
                self._waiting.append(waiting)
            self._inbox.put(waiting)
        elif message["method"] == "notifications/cancelled":
            params = message.get("params")
            self._cancel(params.get("requestId") if isinstance(params, dict) else None)

    def _forget(self, waiting: _Waiting) -> None:
        """Make room for other requests."""
        with self._has_room:
            self._waiting.remove(waiting)
            self._room += waiting.cost
            self._has_room.notify()

    def _cancel(self, id_: object) -> None:
        if type(id_) not in {str, int}:
            return
        with self._has_room:
            for waiting in self._waiting:
                waiting.is_wanted = waiting.is_wanted and waiting.id != id_
        signal.pthread_kill(self._main, signal.SIGALRM)

    def _end(self) -> None:
        """End the work, since the client reads no answer of a call that takes long from now on."""
        for seconds in (LAST_SECONDS, *[1] * LAST_SECONDS):
            if self._is_over.wait(seconds):
                return
            with self._has_room:
                for waiting in self._waiting:
                    waiting.is_wanted = False
            signal.pthread_kill(self._main, signal.SIGALRM)
        os._exit(1)

    def _end_call(self, *_: object) -> None:
        """End the call that runs if nobody waits for it or it is late, however late this is."""
        running = self._running
        if running and (not running.is_wanted or time.monotonic() >= self._deadline):
            raise _CallEnded

    def _answer(self, waiting: _Waiting) -> None:
        try:
            request = parse_message(waiting.line)
        except ProtocolError as error:
            self._send({"id": None, "error": error.error})
            return
        seconds = tools.find_deadline(request.get("params"))

        def wind(*_: object) -> None:
            """Set the deadline. Every second, also before it, other threads get their turn."""
            self._deadline = time.monotonic() + seconds
            signal.setitimer(signal.ITIMER_REAL, 1, 1)

        text = f"ended after {seconds} seconds without progress; ask for less at once"
        reply = {"result": make_result(text, is_error=True)}
        wind()
        try:
            self._running = waiting
            if waiting.is_wanted:
                reply = _reply(self._server, request, wind)
        except _CallEnded:
            pass
        finally:
            self._running = None
            signal.setitimer(signal.ITIMER_REAL, 0)
        if waiting.is_wanted:
            self._send({"id": waiting.id, **reply})

    def _send(self, message: Message) -> None:
        rest = memoryview(render_message(message))
        while rest:
            rest = rest[os.write(self._sink, rest) :]


def _reply(server: Server, request: Message, report: tools.Report) -> Message:
    """Return the result of a request, or its error."""
    try:
        return {"result": server.answer(request, report)}
    except ProtocolError as error:
        return {"error": error.error}
    except Exception as error:  # noqa: BLE001 - a defect must not end the conversation
        traceback.print_exc()
        return {"error": ProtocolError(INTERNAL_ERROR, f"internal error: {error!r}").error}


def _iter_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a client but for empty ones; a too long one is cut beyond the bound."""
    while line := stream.readline(LARGEST + 1):
        if line.strip():
            yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(65_536)
