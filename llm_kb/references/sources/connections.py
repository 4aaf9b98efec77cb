"""Connections of httpcore2 that go to checked addresses and end at a deadline.

httpcore2 is the lower layer of httpx2. It speaks HTTP and TLS; which address a connection goes to,
how long it may take and how much may arrive is decided here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpcore2

from llm_kb.references.errors import FetchError
from llm_kb.references.sources import rules
from llm_kb.references.sources.rules import Policy
from llm_kb.texts.html.addresses import escape_url

Answer: TypeAlias = httpcore2.Response
"""The status and headers of an answer, and its body as a stream."""

HTTP_ERRORS = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException)
"""What a request may raise, besides FetchError."""

MAX_HEAD = 300_000
"""The most bytes of all heads of an answer: others, of `103 Early Hints`, may come before it."""


@dataclass(slots=True, kw_only=True)
class _Stream(httpcore2.NetworkStream):
    """A connection of which each step has the time that is left; the library's timeouts restart."""

    stream: httpcore2.NetworkStream
    deadline: float
    room: float = MAX_HEAD
    """The bytes that may still be read; without a limit for a body, which is limited as it is."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self.stream.read(max_bytes, _time_left(self.deadline))
        self.room -= len(data)
        if self.room < 0:
            raise httpcore2.RemoteProtocolError("its head has no end")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, _time_left(self.deadline))

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = _time_left(self.deadline)
        return replace(self, stream=self.stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self.stream.get_extra_info(info)


@dataclass(slots=True, kw_only=True)
class _Backend(httpcore2.NetworkBackend):
    """Connects to the checked addresses of a URL's host, and to nothing else."""

    url: str
    policy: Policy
    deadline: float
    connector: httpcore2.NetworkBackend = field(default_factory=httpcore2.SyncBackend)
    connected: list[str] = field(default_factory=list)
    """The addresses of its connections."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        *others, last = rules.resolve_host(self.url, host, port, self.policy)
        for address in others:
            try:
                return self._connect(address, port)
            except (httpcore2.NetworkError, httpcore2.TimeoutException):
                continue
        return self._connect(last, port)

    def _connect(self, address: str, port: int) -> httpcore2.NetworkStream:
        stream = self.connector.connect_tcp(address, port, _time_left(self.deadline))
        self.connected.append(address)
        return _Stream(stream=stream, deadline=self.deadline)


def _time_left(deadline: float) -> float:
    """Return the seconds until a deadline; raise ReadTimeout without any."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout
    return left


@contextmanager
def open_answer(
    url: str, policy: Policy, headers: Sequence[tuple[str, str]], deadline: float
) -> Iterator[Answer]:
    """Send a GET request, and give its answer, whose body is still to be read.

    Redirects are not followed, and no proxy is used. Raises FetchError, and HTTP_ERRORS.
    """
    if not is_proven():
        reason = "httpcore2 does not connect as llm-kb asks it to; install another version of it"
        raise FetchError(url, reason)
    with _open(_Backend(url=url, policy=policy, deadline=deadline), headers) as answer:
        yield answer


@contextmanager
def _open(backend: _Backend, headers: Sequence[tuple[str, str]]) -> Iterator[Answer]:
    split = urlsplit(backend.url)
    path, query = escape_url(split.path or "/"), escape_url(split.query)
    host, port = split.hostname or "", split.port
    place = rules.host_and_port(backend.url)
    url = httpcore2.URL(
        scheme=split.scheme, host=host, port=port, target=f"{path}?{query}" if query else path
    )
    sent = [("Host", f"[{place}]" if place == host and ":" in host else place), *headers]
    with (
        httpcore2.ConnectionPool(network_backend=backend) as pool,
        pool.stream("GET", url, headers=sent) as answer,
    ):
        answer.extensions["network_stream"].room = math.inf
        yield answer


@cache
def is_proven() -> bool:
    """Tell whether the library connects through a backend of ours: the checks depend on that."""
    spoken = httpcore2.MockBackend([b"HTTP/1.1 204 No Content\r\n\r\n"])
    backend = _Backend(
        url="https://proof.invalid/",
        policy=Policy(allow_hosts=("proof.invalid",), resolver=lambda *_: ["192.0.2.1"]),
        deadline=time.monotonic() + 60,
        connector=spoken,
    )
    try:
        with _open(backend, []) as answer:
            return (answer.status, backend.connected) == (204, ["192.0.2.1"])
    except Exception:  # noqa: BLE001 - an unknown version may fail in any way
        return False
