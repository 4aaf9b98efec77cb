"""Links of hostile pages: each is a valid address or ignored."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.texts.html.addresses import join_url


@pytest.mark.parametrize(
    ("link", "joined"),
    [
        ("b", "http://e.org/a/b"),
        ("/b?c#d", "http://e.org/b?c#d"),
        ("//f.org", "http://f.org"),
        ("b c", "http://e.org/a/b%20c"),
        ("\u202eb\u2028%20", "http://e.org/a/%E2%80%AEb%E2%80%A8%20"),
        ("é", "http://e.org/a/é"),
        ("\ud800 ", None),
        ("mailto:x", "mailto:x"),
        ("http://[bad", None),
        ("http://e.org:99999/", None),
        ("http://e.org:x/", None),
    ],
)
def test_a_link_is_joined_or_nothing(link: str, joined: str | None) -> None:
    assert join_url("http://e.org/a/", link) == joined


@given(st.text())
def test_no_link_raises(link: str) -> None:
    joined = join_url("http://e.org/a/", link)
    assert joined is None or urlsplit(joined).port in {None, *range(65536)}
