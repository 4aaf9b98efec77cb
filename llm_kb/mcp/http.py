"""The MCP server over streamable HTTP, and the guard that decides which requests it answers.

Each request is answered on its own; there are no sessions. This process only reads and checks
requests, and workers answer them. Pages in a browser on this machine are refused by the headers
`Host` and `Origin`; clients on other machines need a token.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import platform
import secrets
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from llm_kb.errors import KbError
from llm_kb.mcp.messages import (
    LARGEST,
    UNSUPPORTED_VERSION,
    ProtocolError,
    is_request,
    parse_message,
    render_error,
)
from llm_kb.mcp.server import VERSIONS, Served
from llm_kb.mcp.workers import BusyError, Workers

PATH = "/mcp"

SHORTEST_TOKEN = 16
MOST_CONNECTIONS = 800
MOST_OF_A_PEER = 500
"""Maximum number of connections, and of those from one address (which may be a proxy's)."""

READ_SECONDS, IDLE_SECONDS, WRITE_SECONDS = 15, 120, 30
"""Seconds for a whole request, between two requests of a connection, and for an answer."""

LINGER_SECONDS = 2
"""Seconds for which a connection is kept after its last answer."""

STOP_SECONDS = 0.5
"""Seconds that running requests get when the server ends."""

MOST_HEADERS = 32_000
"""Maximum number of bytes of the headers of a request."""

Headers = Mapping[str, str]


class Address(NamedTuple):
    """The address at which a server listens."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return _is_loopback(self.host)

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{PATH}"


def parse_address(text: str) -> Address:
    """Return the address that `HOST:PORT` names. Raises KbError."""
    with suppress(ValueError):
        parts = urlsplit(f"//{text}")
        if parts.hostname and parts.port is not None and parts.netloc == text and "@" not in text:
            return Address(parts.hostname, parts.port)
    raise KbError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8765 or [::1]:8765")


def find_token(given: str | None, *, is_required: bool) -> str | None:
    """Return the token that clients need: the one given, else a new one if it is required.

    Raises KbError if the given one is too short.
    """
    if given is not None:
        if len(given) < SHORTEST_TOKEN:
            raise KbError(
                f"the token has {len(given)} characters, at least {SHORTEST_TOKEN} are needed;"
                " without one, the server makes one"
            )
        return given
    return secrets.token_urlsafe(32) if is_required else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Decides by its headers whether a request is answered."""

    address: Address
    token: str | None = field(default=None, repr=False)
    names: Collection[str] = ()
    """Further host names of the server."""

    def refuse(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Return the status and the reason for refusing a request; None to answer it."""
        if not self._is_ours(headers.get("host", "")):
            return 421, "unknown Host; see --allow-host"
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(_authority(origin)):
            return 403, "unknown Origin; see --allow-host"
        if self.token is None:
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Headers are Latin-1, so bytes are compared.
        is_right = hmac.compare_digest(given.strip().encode(), self.token.encode())
        return None if scheme.lower() == "bearer" and is_right else (401, "a token is needed")

    def _is_ours(self, authority: str) -> bool:
        """Tell whether an authority is this server's, and so cannot be that of another page."""
        try:
            host = (urlsplit(f"//{authority}").hostname or "").lower()
        except ValueError:
            return False
        if self.address.is_loopback:
            return host in self.names or _is_loopback(host)
        # The owner of a name can make it resolve to this machine, but not an address.
        known = {self.address.host, platform.node().lower(), "localhost", *self.names}
        return bool(host) and (host in known or _is_address(host))


class Answer(NamedTuple):
    """A response: its status, body and further headers."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def is_refusal(self) -> bool:
        """Whether the connection is closed, since not all of the request was read."""
        return self.status >= 400


_TOO_LONG = Answer(413, f"a message has at most {LARGEST:,} bytes".encode())


class _RefusedError(Exception):
    """A request that is refused before it was read completely."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.status)


class Front:
    """Reads the requests of all connections, and passes those that are allowed to the workers."""

    def __init__(self, guard: Guard, workers: Workers) -> None:
        self._guard, self._workers = guard, workers
        self._peers: Counter[str] = Counter()
        """The number of connections of each address."""
        self._reading: dict[_Connection, str] = {}
        """The connections without a complete request, longest first, and their addresses."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends, or one of its deadlines passes."""
        peer = str((writer.get_extra_info("peername") or [""])[0])
        connection = _Connection(reader, writer)
        self._peers[peer] += 1
        try:
            if self._make_room(peer):
                # Cancelled when the server ends, which asyncio would report as an error.
                with suppress(asyncio.TimeoutError, asyncio.CancelledError, OSError, EOFError):
                    await self._serve(connection, peer)
        finally:
            self._reading.pop(connection, None)
            self._peers -= Counter([peer])
            writer.close()

    def _make_room(self, peer: str) -> bool:
        """Close the connection that has waited longest if there are too many.

        It is one of this address, or of the one that has most of them, so connections that
        send nothing do not keep out one that does. Return whether there is room.
        """
        if self._peers.total() > MOST_CONNECTIONS:
            ((peer, _),) = self._peers.most_common(1)
        elif self._peers[peer] <= MOST_OF_A_PEER:
            return True
        for connection, other in self._reading.items():
            if other == peer:
                del self._reading[connection]
                connection.abort()
                return True
        return False

    async def _serve(self, connection: _Connection, peer: str) -> None:
        seconds = READ_SECONDS
        while True:
            self._reading[connection] = peer
            try:
                await connection.wait(seconds)
                reading = connection.read(self._check)
                headers, body = await asyncio.wait_for(reading, READ_SECONDS)
                self._reading.pop(connection, None)
                answer = await self._answer(headers, body)
            except _RefusedError as refused:
                answer = refused.answer
            except h11.RemoteProtocolError as error:
                answer = Answer(error.error_status_hint)
            if not await asyncio.wait_for(connection.write(answer), WRITE_SECONDS):
                await asyncio.wait_for(connection.linger(), LINGER_SECONDS)
                return
            seconds = IDLE_SECONDS

    def _check(self, request: h11.Request, headers: Headers) -> None:
        """Raise _RefusedError unless the head of a request is in order."""
        refused = self._guard.refuse(headers)
        if refused:
            status, reason = refused
            challenge = (("WWW-Authenticate", "Bearer"),) if status == 401 else ()
            raise _RefusedError(Answer(status, reason.encode(), challenge))
        if request.target.split(b"?")[0] != PATH.encode():
            raise _RefusedError(Answer(404, f"the server is at {PATH}".encode()))
        if request.method != b"POST":
            raise _RefusedError(Answer(405, b"only POST is served", (("Allow", "POST"),)))
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise _RefusedError(Answer(415, b"the body must be application/json"))
        if int(headers.get("content-length", 0)) > LARGEST:
            raise _RefusedError(_TOO_LONG)

    async def _answer(self, headers: Headers, body: bytes) -> Answer:
        """Return the answer to a complete request."""
        json = (("Content-Type", "application/json"),)
        id_ = None
        try:
            message = parse_message(body)
            id_ = message["id"] if is_request(message) else None
            _require_version(headers)
            if id_ is None:
                return Answer(202)
            return Answer(200, await self._workers.ask(message), json)
        except ProtocolError as error:
            return Answer(400, render_error(error, id_), json)
        except BusyError:
            return Answer(503, b"all workers are busy; try again", (("Retry-After", "10"),))


def _require_version(headers: Headers) -> None:
    version = headers.get("mcp-protocol-version", VERSIONS[-1])
    if version not in VERSIONS:
        data = {"supported": list(VERSIONS), "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, "unsupported protocol version", **data)


class _Connection:
    """One connection: requests and answers, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADERS)

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def wait(self, seconds: float) -> None:
        """Wait for the start of a request. Raises EOFError when the peer has closed."""
        if not self._http.trailing_data[0]:
            await self._receive(seconds)

    async def _receive(self, seconds: float | None = None) -> None:
        data = await asyncio.wait_for(self._reader.read(65_536), seconds)
        if not data:
            raise EOFError
        self._http.receive_data(data)

    async def read(self, check: Callable[[h11.Request, Headers], None]) -> tuple[Headers, bytes]:
        """Return the headers and the body of a request, whose head is checked first.

        Raises RemoteProtocolError, EOFError, and what `check` raises.
        """
        headers: Headers = {}
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    self._send(h11.InformationalResponse(status_code=100, headers=[]))
                await self._receive()
            elif isinstance(event, h11.Request):
                headers = _join_headers(event.headers)
                check(event, headers)
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > LARGEST:
                    raise _RefusedError(_TOO_LONG)
            elif isinstance(event, h11.EndOfMessage):
                return headers, bytes(body)
            else:
                raise EOFError

    async def write(self, answer: Answer) -> bool:
        """Send an answer; return whether the connection goes on."""
        headers = [*answer.headers, ("Content-Length", str(len(answer.body)))]
        if answer.is_refusal:
            headers.append(("Connection", "close"))
        self._send(h11.Response(status_code=answer.status, headers=headers))
        self._send(h11.Data(data=answer.body))
        self._send(h11.EndOfMessage())
        await self._writer.drain()
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def linger(self) -> None:
        """Read what the peer still sends: closing at once could lose the answer."""
        self._writer.write_eof()
        while await self._reader.read(65_536):
            pass

    def _send(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")


def serve(served: Served, guard: Guard, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM, and report the URL. Raises KbError."""
    asyncio.run(_serve(guard, Workers(served), say))


async def _serve(guard: Guard, workers: Workers, say: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    host, port = guard.address
    try:
        server = await asyncio.start_server(Front(guard, workers).handle, host, port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error.strerror
        raise KbError(
            f"cannot serve at {guard.address.url}: {reason};"
            " choose another HOST:PORT of this machine"
        ) from error
    say(Address(*server.sockets[0].getsockname()[:2]).url)
    await stopped.wait()
    server.close()
    await workers.close(STOP_SECONDS)


def _authority(origin: str) -> str:
    """Return the host and port of an origin; empty if it is not that of a web page."""
    scheme, _, authority = origin.partition("://")
    is_page = scheme in {"http", "https"} and not {*authority} & {*"@\\, "}
    return authority if is_page else ""


def _join_headers(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the fields by name; the values of a repeated one are joined, so that all count."""
    joined: dict[str, str] = {}
    for name, value in ((n.decode("latin-1"), v.decode("latin-1")) for n, v in fields):
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)
