"""The answer of a server: any bytes give a body within the limit, or are refused."""

from __future__ import annotations

import io
from typing import IO
from unittest.mock import patch

from llm_kb.references.errors import FetchError
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.web import request

URL = "https://e.org/"
MOST = 2_000
STARTS = (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n",
          b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
          b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
          b"HTTP/1.1 302 Found\r\nLocation: ")  # fmt: skip


class Answer:
    """A socket from which only the answer can be read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> IO[bytes]:
        return io.BytesIO(self._data)

    def sendall(self, _data: bytes) -> None: ...

    def shutdown(self, _how: int) -> None: ...

    def close(self) -> None: ...


def fuzz(data: bytes) -> None:
    """Answer every request with the bytes behind the start of each kind of answer."""
    answer = STARTS[len(data) % len(STARTS)] + data
    policy = Policy(max_bytes=MOST, resolver=lambda host, port: ["1.1.1.1"])
    web = "llm_kb.references.sources.web"
    # A redirect may lead to https: no TLS is spoken either.
    with (
        patch(f"{web}._open", lambda *_: Answer(answer)),
        patch(f"{web}.ssl.create_default_context") as context,
    ):
        context.return_value.wrap_socket = lambda connected, **_: connected
        try:
            found = request(URL, policy)
        except FetchError:
            return
    assert len(found.body) <= MOST
