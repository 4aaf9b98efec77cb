"""Pages of hostile servers: encodings and redirects."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from llm_kb.files.conversion import Conversions
from llm_kb.references.errors import FetchError, NoPageError
from llm_kb.references.fetch.create import open_remotes
from llm_kb.references.library import Library
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.web import Page, find_page
from tests.cost import at_most
from tests.references.sites import Answer, Site

TRUSTING = Policy(allow_hosts=("127.0.0.1",), timeout=5)


def fetch(url: str) -> Page:
    return find_page(url, TRUSTING)


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("latin-1", b"caf\xe9", "caf\xe9"),
        ("iso-8859-1", b"\x93fine\x94", "\u201cfine\u201d"),
        ("us-ascii", b"\x93fine\x94", "\u201cfine\u201d"),
        ("shift_jis", b"\x93\xfa\x96\x7b", "\u65e5\u672c"),
        ("utf-16le", b"\x00\xd8b\x00", "\ufffdb"),
        ("utf-7", b"a +2AA- b", "a +2AA- b"),
        ("unicode_escape", b"a \\ud800 b", "a \\ud800 b"),
        ("iso-2022-kr", b"plain", "plain"),
        ("idna", b"plain", "plain"),
        ("punycode", b"plain-\xff", "plain-\ufffd"),
        ("undefined", b"plain", "plain"),
        ("zlib", b"plain", "plain"),
        ("nonsense", b"plain", "plain"),
        ("caf\xe9", b"plain", "plain"),
    ],
)
def test_any_charset_gives_a_text_that_can_be_kept(
    site: Site, charset: str, body: bytes, text: str
) -> None:
    kind = f"text/plain; charset={charset}"
    page = fetch(site.answer("/x", Answer(body, kind=kind)))
    assert page.text == text


def test_no_declared_charset_takes_quadratic_time(site: Site) -> None:
    """Python's decoder of `punycode` takes three seconds for this, forty for four times as much."""
    body = b"x" * 50_000 + b"-" + b"a" * 50_000
    url = site.answer("/x", Answer(body, kind="text/plain; charset=punycode"))
    with at_most(1):
        assert fetch(url).text == body.decode()


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_not_there_is_told_from_one_that_fails(site: Site, status: int) -> None:
    with pytest.raises(NoPageError, match=f"the server answered {status}"):
        find_page(site.answer("/x", Answer(status=status)), TRUSTING)


def test_what_is_no_text_is_no_page(site: Site) -> None:
    with pytest.raises(NoPageError, match="it is not text but image/png"):
        fetch(site.answer("/x", Answer(b"x", kind="image/png")))


def test_an_unchanged_page_is_one_at_the_same_address(site: Site) -> None:
    url = site.put("/v1", "<p>one</p>", ETag='"1"')
    tag = {"url": url, "etag": fetch(url).etag}
    site.answers["/v1"] = Answer(status=304)
    assert find_page(url, TRUSTING, known=tag).text is None
    assert find_page(url, TRUSTING, known={"etag": '"1"'}).text is None


def test_an_unchanged_page_at_another_address_is_fetched(site: Site) -> None:
    old = {"url": f"{site.url}/v1", "etag": '"1"'}

    def answer(handler: Any) -> None:
        fresh = handler.headers.get("If-None-Match") == '"1"'
        handler.send(Answer(status=304) if fresh else Answer(b"<p>two</p>"))

    url = site.redirect("/latest", "/v2")
    site.answer("/v2", answer)
    page = find_page(url, TRUSTING, known=old)
    assert (page.url, page.text) == (f"{site.url}/v2", "two\n")


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/html", b"<p>caf\xe9", "caf\u00e9"),
        ("text/html", b"<p>\x93q\x94", "\u201cq\u201d"),
        ("text/html", "<p>caf\u00e9".encode(), "caf\u00e9"),
        ("text/html", "<meta charset=utf-16><p>caf\u00e9".encode(), "caf\u00e9"),
        (
            "application/xhtml+xml",
            b'<?xml version="1.0" encoding="iso-8859-1"?><p>caf\xe9</p>',
            "caf\u00e9",
        ),
    ],
)
def test_a_page_is_decoded_as_browsers_do(site: Site, kind: str, body: bytes, text: str) -> None:
    url = site.answer("/x", Answer(body, kind=kind))
    assert find_page(url, TRUSTING).text == f"{text}\n"


def test_the_documents_of_a_plan_share_its_time(
    library: Library, site: Site, tmp_path: Path
) -> None:
    """By a converter that takes a tenth of a second."""
    pytest.importorskip("llm_kb.documents")
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nsleep 0.1\necho words\n")
    program.chmod(0o755)
    quick = partial(Conversions, None, program=str(program))
    urls = [site.answer(f"/{n}.pdf", Answer(b"%PDF", kind="application/pdf")) for n in range(3)]
    with open_remotes(library) as remotes:
        policy = replace(remotes.policy, conversions=quick())
        assert find_page(urls[0], policy).text == "words\n"
        policy = replace(policy, conversions=quick(most_seconds=0.05))
        assert find_page(urls[0], policy).text == "words\n"
        for url in urls[1:]:
            with pytest.raises(FetchError, match="others took too long"):
                find_page(url, policy)
        late = replace(policy, conversions=quick(until=time.monotonic()))
        with pytest.raises(FetchError, match="others took too long"):
            find_page(urls[0], late)
