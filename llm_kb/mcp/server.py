"""The server of an MCP client: JSON-RPC over standard input and output, one message a line.

Each request is answered on its own and in order. The configuration is read again every time: a
client that stays connected sees the current files. Calls run in the main thread, where a signal
can end them whatever they do: at their deadline, or when the client cancels them. Another thread
reads the client's messages meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from queue import Queue
from typing import Any, BinaryIO, TypeAlias, TypeVar

from llm_kb import __version__
from llm_kb.errors import KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.mcp import tools

Message: TypeAlias = "dict[str, Any]"
Discover: TypeAlias = "Callable[[], KnowledgeBase]"
"""Returns the knowledge base in effect, as it is now on disk."""

T = TypeVar("T")

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that are served, oldest first."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603

LARGEST = 4_000_000
"""Maximum number of bytes of a message: an annotation may be long."""

MOST_WAITING = 32
"""Maximum number of requests read ahead."""


class ProtocolError(Exception):
    """A message that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        self.error = {"code": code, "message": message}
        super().__init__(message)


def parse_message(data: bytes) -> Message:
    """Return a request, which has an `id`, or a notification. Raises ProtocolError.

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
    if not isinstance(message.get("method"), str) or type(message.get("id", 0)) not in {str, int}:
        raise ProtocolError(
            INVALID_REQUEST, "a message needs a method, and a string or number as id"
        )
    return message


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


def answer(discover: Discover, request: Message, report: tools.Report) -> Message:
    """Return the result of a request over the knowledge base in effect. Raises ProtocolError.

    `report` is called whenever a tool makes progress.
    """
    method, params = request["method"], _read(request, "params", dict)
    if method == "initialize":
        return _greet(discover, params)
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": _list_tools(discover)}
    if method == "tools/call":
        return _call_tool(discover, params, report)
    raise ProtocolError(METHOD_NOT_FOUND, "the method is not served")


def _greet(discover: Discover, params: Mapping[str, Any]) -> Message:
    """Greet a client; a configuration that cannot be read is reported to its model."""
    asked = _read(params, "protocolVersion", str)
    try:
        instructions = tools.write_instructions(tools.fit_clients(discover()))
    except (KbError, OSError) as error:
        instructions = _describe_broken(error)
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "llm-kb", "version": __version__},
        **({"instructions": instructions} if instructions else {}),
    }


def _list_tools(discover: Discover) -> list[Message]:
    try:
        return tools.render_tools(tools.fit_clients(discover()))
    except (KbError, OSError) as error:
        return tools.render_broken(_describe_broken(error))


def _call_tool(discover: Discover, params: Mapping[str, Any], report: tools.Report) -> Message:
    """Answer a call; the text of an error is a result, too, so that the model can react."""
    name, arguments = _read(params, "name", str), _read(params, "arguments", dict)
    try:
        kb = tools.fit_clients(discover())
        return make_result(tools.answer_call(kb, name, arguments, report))
    except (KbError, OSError) as error:
        return make_result(str(error), is_error=True)


def _describe_broken(error: KbError | OSError) -> str:
    return f"The knowledge base cannot be read. Tell the user the reason: {error}"


def make_result(text: str, *, is_error: bool = False) -> Message:
    """Return the result of a call."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


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
    """Raised within a call at its deadline, or when it is cancelled."""


class _Conversation:
    """The requests of one client, each with a deadline."""

    def __init__(self, discover: Discover, source: int, sink: int) -> None:
        self._discover, self._source, self._sink = discover, source, sink
        self._inbox: Queue[Message | None] = Queue(MOST_WAITING)
        self._waiting: set[str | int] = set()
        """The ids of requests that are not answered, and not cancelled."""
        self._running: str | int | None = None
        self._deadline = 0.0
        self._main = threading.get_ident()

    def hold(self) -> None:
        """Answer requests until the client closes its end. Call this in the main thread."""
        signal.signal(signal.SIGALRM, self._end_call)
        threading.Thread(target=self._read, daemon=True).start()
        while (message := self._inbox.get()) is not None:
            with suppress(_CallEnded):  # a second signal, while the first one ends the call
                if "method" in message:
                    self._answer(message)
                else:
                    self._send(message)

    def _read(self) -> None:
        """Read messages; runs in a thread of its own."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # the main thread's
        with os.fdopen(self._source, "rb") as stream:
            for line in _iter_lines(stream):
                try:
                    message = parse_message(line)
                except ProtocolError as error:
                    self._inbox.put({"id": None, "error": error.error})
                    continue
                if "id" in message:
                    self._waiting.add(message["id"])
                    self._inbox.put(message)
                elif message["method"] == "notifications/cancelled":
                    self._cancel(message.get("params"))
        self._inbox.put(None)

    def _cancel(self, params: object) -> None:
        id_ = params.get("requestId") if isinstance(params, dict) else None
        if type(id_) in {str, int}:
            self._waiting.discard(id_)
            signal.pthread_kill(self._main, signal.SIGALRM)

    def _end_call(self, *_: object) -> None:
        """End the call that runs if it is cancelled or past its deadline, however late this is."""
        is_over = self._running not in self._waiting or time.monotonic() >= self._deadline
        if self._running is not None and is_over:
            raise _CallEnded

    def _answer(self, request: Message) -> None:
        id_, seconds = request["id"], tools.find_deadline(request.get("params"))

        def wind(*_: object) -> None:
            """Set the deadline; after it, the call is interrupted every second until it ends."""
            self._deadline = time.monotonic() + seconds
            signal.setitimer(signal.ITIMER_REAL, seconds, 1)

        text = f"ended after {seconds} seconds without progress; ask for less at once"
        reply = {"result": make_result(text, is_error=True)}
        wind()
        try:
            self._running = id_
            if id_ in self._waiting:
                reply = _reply(self._discover, request, wind)
        except _CallEnded:
            pass
        finally:
            self._running = None
            signal.setitimer(signal.ITIMER_REAL, 0)
        if id_ in self._waiting:
            self._waiting.discard(id_)
            self._send({"id": id_, **reply})

    def _send(self, message: Message) -> None:
        rest = memoryview(render_message(message))
        while rest:
            rest = rest[os.write(self._sink, rest) :]


def _reply(discover: Discover, request: Message, report: tools.Report) -> Message:
    """Return the result of a request, or its error."""
    try:
        return {"result": answer(discover, request, report)}
    except ProtocolError as error:
        return {"error": error.error}
    except Exception as error:  # noqa: BLE001 - a defect must not end the conversation
        traceback.print_exc()
        return {"error": ProtocolError(INTERNAL_ERROR, f"internal error: {error!r}").error}


def _iter_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a client; one that is too long is cut just beyond the bound."""
    while line := stream.readline(LARGEST + 1):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(65_536)
