"""The MCP server over streamable HTTP, and the guard that decides which requests it answers.

Pages in a browser on this machine are refused by the headers `Host` and `Origin`; clients on
other machines need a token.
"""

from __future__ import annotations

import hmac
import platform
import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from llm_kb.errors import KbError
from llm_kb.mcp.server import KnowledgeServer

PATH = "/mcp"

SHORTEST_TOKEN = 16
MOST_SESSIONS = 500
MOST_CONNECTIONS = 1_000
LARGEST_REQUEST = 4_000_000
"""The most bytes of a request: an annotation may be long."""


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


def make_app(server: KnowledgeServer, guard: Guard) -> ASGIApp:
    """Return the application: the server behind the guard."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=LARGEST_REQUEST,
        max_sessions=MOST_SESSIONS,
        # The guard is stricter.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        refused = guard.refuse(Headers(scope=scope)) if scope["type"] == "http" else None
        if refused is None:
            await app(scope, receive, send)
            return
        status, reason = refused
        challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        await PlainTextResponse(reason, status, challenge)(scope, receive, send)

    return guarded


class _Process(uvicorn.Server):
    """The process that serves, and reports its URL once it listens."""

    def __init__(self, config: uvicorn.Config, say: Callable[[str], None]) -> None:
        super().__init__(config)
        self._say = say

    async def startup(self, sockets: Any = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit as ended:
            # asyncio's text repeats the address: error while …: [errno 98] address already in use
            reason = str(getattr(ended.__context__, "strerror", ended)).rpartition(": ")[2]
            reason = reason.rpartition("] ")[2]
            url = Address(self.config.host, self.config.port).url
            raise KbError(
                f"cannot serve at {url}: {reason}; choose another HOST:PORT of this machine"
            ) from ended
        for listening in self.servers[:1]:
            host, port = listening.sockets[0].getsockname()[:2]
            self._say(Address(host, port).url)


def serve(server: KnowledgeServer, guard: Guard, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM, and report the URL; running calls get two seconds."""
    config = uvicorn.Config(
        make_app(server, guard),
        host=guard.address.host,
        port=guard.address.port,
        log_level="critical",  # errors are reported by this command or by a call
        access_log=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    with suppress(KeyboardInterrupt):  # uvicorn raises it again at the end
        _Process(config, say).run()


def _authority(origin: str) -> str:
    """Return the host and port of an origin; empty if it is not that of a web page."""
    scheme, _, authority = origin.partition("://")
    return authority if scheme in {"http", "https"} else ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)
