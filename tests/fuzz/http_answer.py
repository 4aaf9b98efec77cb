"""The answer of a server: any bytes give a body within the limit, or are refused."""

from __future__ import annotations

from unittest.mock import patch

import httpcore2

from llm_kb.references.errors import FetchError
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.web import request

URL = "https://e.org/"
MOST = 2_000
STARTS = (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n",
          b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
          b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
          b"HTTP/1.1 302 Found\r\nLocation: ")  # fmt: skip


def fuzz(data: bytes) -> None:
    """Answer every request with the bytes behind the start of each kind of answer."""
    answer = STARTS[len(data) % len(STARTS)] + data
    policy = Policy(max_bytes=MOST, resolver=lambda host, port: ["1.1.1.1"])

    def connect(*_: object, **_options: object) -> httpcore2.NetworkStream:
        return httpcore2.MockStream([answer])  # which speaks no TLS either, after a redirect

    with patch.object(httpcore2.SyncBackend, "connect_tcp", connect):
        try:
            found = request(URL, policy)
        except FetchError:
            return
    assert len(found.body) <= MOST
