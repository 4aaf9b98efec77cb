"""An answer of a package index: any bytes name a package, or are refused."""

from __future__ import annotations

from unittest.mock import patch

from llm_kb.references.errors import FetchError, SourceError
from llm_kb.references.sources.packages import ask_index
from llm_kb.references.sources.records import PACKAGE_PAGES, PackageSource
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.web import Response

STARTS = (b"", b'{"info": ', b'{"info": {"version": "1", "project_urls": ', b'{"repository": ',
          b'{"crate": {"repository": ')  # fmt: skip


def fuzz(data: bytes) -> None:
    """Answer with the bytes behind the start of each kind of answer."""
    start = STARTS[len(data) % len(STARTS)]
    body = start + data + b"}" * start.count(b"{")
    answer = Response(url="https://index.example/", status=200, headers={}, body=body)
    with patch("llm_kb.references.sources.packages.request", lambda *_, **__: answer):
        for ecosystem in PACKAGE_PAGES:
            source = PackageSource(ecosystem=ecosystem, name="a")
            try:
                package = ask_index(source, None, Policy())
            except (FetchError, SourceError):
                continue
            assert isinstance(package.version, str)
            assert package.repository is None or "://" in package.repository
