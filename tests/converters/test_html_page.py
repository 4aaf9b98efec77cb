"""A page's title, links, address and main part."""

from __future__ import annotations

from llm_kb.converters.html_page import canonical_link, page_links, page_title, parse_html

URL = "https://e.org/docs/page.html"


def test_what_a_page_says_of_itself() -> None:
    root = parse_html(
        "<head><title> A\n b </title><link rel='x canonical' href=p.html>"
        "</head><a href=a.html#x>1</a><a href=a.html>2</a><a href=mailto:x@y>3</a><a>4</a>"
    )
    assert page_title(root) == "A b"
    assert page_links(root, URL) == ["https://e.org/docs/a.html"]
    assert canonical_link(root, URL) == "https://e.org/docs/p.html"
    assert canonical_link(parse_html("<p>"), URL) is None
