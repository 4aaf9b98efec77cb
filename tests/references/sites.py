"""A real web server on loopback with answers written by tests."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Handler = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Answer:
    """What the server says at one path; `None` headers are left out."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "text/html; charset=utf-8"


class Site:
    """Answers by path; requests are recorded as `METHOD path`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, Answer | Handler] = {}
        self.requests: list[str] = []
        self.received: list[Mapping[str, str]] = []

    def put(self, path: str, html: str, **headers: str) -> str:
        """Serve a page; return its URL."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = Answer(body=html.encode(), headers=named)
        return self.url + path

    def redirect(self, path: str, target: str, status: int = 302) -> str:
        """Serve a redirect; return its URL."""
        self.answers[path] = Answer(status=status, headers={"Location": target})
        return self.url + path

    def answer(self, path: str, answer: Answer | Handler) -> str:
        """Serve anything; return its URL."""
        self.answers[path] = answer
        return self.url + path


@contextmanager
def serve_site(tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Run a site until the block ends; with `tls` it speaks that."""

    class RequestHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.requests.append(f"{self.command} {self.path}")
            site.received.append({name.lower(): value for name, value in self.headers.items()})
            answer = site.answers.get(self.path, Answer(status=404))
            if callable(answer):
                answer(self)
            else:
                self.send(answer)

        do_HEAD = do_GET

        def send(self, answer: Answer) -> None:
            etag = f'"{sha256(answer.body).hexdigest()[:8]}"'
            fresh = self.headers.get("If-None-Match") == etag and answer.status == 200
            self.send_response(304 if fresh else answer.status)
            headers = {
                "Content-Type": answer.kind,
                "Content-Length": str(len(answer.body)),
                "ETag": etag,
                **answer.headers,
            }
            for name, value in headers.items():
                if not (fresh and name.startswith("Content")):
                    self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD" and not fresh:
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on the console."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that hang up are what some tests are about."""

    server = Server(("127.0.0.1", 0), RequestHandler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    site = Site(f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
