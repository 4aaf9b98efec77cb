"""The transport over standard input and output: one message a line, answered in order.

Calls run in the main thread, where a signal can end them whatever they do: at their deadline,
or when the client cancels them. Another thread reads the client's messages meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from queue import Queue
from typing import Any, BinaryIO

from llm_kb.mcp.messages import (
    INTERNAL_ERROR,
    LARGEST,
    Message,
    ProtocolError,
    is_request,
    parse_message,
    render_error,
    render_message,
)
from llm_kb.mcp.server import Server
from llm_kb.mcp.tools import find_deadline, make_result
from llm_kb.rendering.plain_text import shorten

MOST_WAITING = 32
"""Maximum number of requests read ahead."""

REPORT_EVERY = 0.1
"""Least number of seconds between two messages of progress."""


def run(server: Server) -> None:
    """Serve one client on standard input and output until it disconnects, or until Ctrl-C."""
    # Nothing is lost when the process ends at once: a ref moves completely or not at all.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # What else prints or reads must not disturb the messages.
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2 if sys.stderr else nothing, 1)
    with suppress(BrokenPipeError):  # the client is gone
        Conversation(server, source, sink).hold()


LONGEST_LABEL = 200
"""Maximum length of a label; so short a message is written completely or not at all."""


class _CallEnded(BaseException):
    """Raised within a call at its deadline, or when it is cancelled."""


class Conversation:
    """The requests of one client, each with a deadline."""

    def __init__(self, server: Server, source: int, sink: int) -> None:
        self._server = server
        self._source, self._sink = source, sink
        self._inbox: Queue[Callable[[], None] | None] = Queue(MOST_WAITING)
        self._waiting: set[str | int] = set()
        """The ids of requests that are not answered, and not cancelled."""
        self._running: str | int | None = None
        self._main = threading.get_ident()

    def hold(self) -> None:
        """Answer requests until the client closes its end. Call this in the main thread."""
        signal.signal(signal.SIGALRM, self._end_call)
        threading.Thread(target=self._read, daemon=True).start()
        while (task := self._inbox.get()) is not None:
            with suppress(_CallEnded):  # one that came too late to end a call
                task()

    def _read(self) -> None:
        """Read messages; runs in a thread of its own."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # the main thread's
        with os.fdopen(self._source, "rb") as stream:
            for line in _iter_lines(stream):
                try:
                    message = parse_message(line)
                except ProtocolError as error:
                    self._inbox.put(partial(self._send, render_error(error)))
                    continue
                if is_request(message):
                    self._waiting.add(message["id"])
                    self._inbox.put(partial(self._answer, message))
                elif message.get("method") == "notifications/cancelled":
                    self._cancel(message.get("params"))
        self._inbox.put(None)

    def _cancel(self, params: object) -> None:
        id_ = params.get("requestId") if isinstance(params, dict) else None
        if type(id_) in {str, int} and id_ in self._waiting:
            self._waiting.discard(id_)
            if id_ == self._running:
                signal.pthread_kill(self._main, signal.SIGALRM)

    def _end_call(self, *_: object) -> None:
        if self._running is not None:
            raise _CallEnded

    def _answer(self, request: Message) -> None:
        id_, seconds = request["id"], find_deadline(request)
        report = _Reporter(request, seconds, self._send)
        reply: Message = {"id": id_}
        try:
            self._running = id_
            if id_ in self._waiting:
                report.wind()
                reply["result"] = self._server.answer(request, report)
            self._running = None
        except _CallEnded:
            self._running = None
            text = f"ended after {seconds} seconds without progress; ask for less at once"
            reply["result"] = make_result(text, is_error=True)
        except ProtocolError as error:
            reply["error"] = error.error
        except Exception as error:  # noqa: BLE001 - a defect must not end the conversation
            traceback.print_exc()
            reply["error"] = ProtocolError(INTERNAL_ERROR, f"internal error: {error!r}").error
        finally:
            self._running = None
            signal.setitimer(signal.ITIMER_REAL, 0)
        if id_ in self._waiting:
            self._waiting.discard(id_)
            self._send(render_message(reply))

    def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._sink, rest) :]


class _Reporter:
    """Sends the progress of a call, and moves its deadline with each step."""

    def __init__(
        self, request: Mapping[str, Any], seconds: int, send: Callable[[bytes], None]
    ) -> None:
        params = request.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        self._token = meta.get("progressToken") if isinstance(meta, dict) else None
        self._seconds, self._send = seconds, send
        self._label = ""
        self._base = self._reached = 0
        self._sent_at = 0.0

    def wind(self) -> None:
        """Set the deadline; after it, the call is interrupted every second until it ends."""
        signal.setitimer(signal.ITIMER_REAL, self._seconds, 1)

    def __call__(self, step: object, done: int, total: int) -> None:
        """Report progress. Each step is a part of the work; what the client sees only grows."""
        self.wind()
        label, now = shorten(str(step), LONGEST_LABEL), time.monotonic()
        if label != self._label:
            self._label, self._base = label, self._reached
        if self._base + done <= self._reached:
            return
        self._reached = self._base + done
        if type(self._token) in {str, int} and now - self._sent_at > REPORT_EVERY:
            self._sent_at = now
            params = {
                "progressToken": self._token,
                "progress": self._reached,
                "total": self._base + total,
                "message": label,
            }
            self._send(render_message({"method": "notifications/progress", "params": params}))


def _iter_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a client; one that is too long is cut just beyond the bound."""
    while line := stream.readline(LARGEST + 1):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(65_536)
