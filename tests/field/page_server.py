"""A page on loopback and an empty repository, for the checks that need them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def serve(page: bytes) -> Iterator[str]:
    """Answer every request with one page; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

        def do_GET(self) -> None:
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def make_repository(directory: Path) -> None:
    """Make a repository with one commit."""
    identity = ("-c", "user.name=F", "-c", "user.email=f@example.org")
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", *command], cwd=directory, check=True)
    for key, value in (("user.name", "F"), ("user.email", "f@example.org")):
        subprocess.run(["git", "config", key, value], cwd=directory, check=True)
