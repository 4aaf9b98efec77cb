"""A page's title, links and main part."""

from __future__ import annotations

from llm_kb.texts.html.page import page_links, page_title
from llm_kb.texts.html.tree import parse_html
from tests.texts.html.pages import URL


def test_the_title_and_links_of_a_page() -> None:
    root = parse_html(
        "<head><title> A\n b </title>"
        "</head><a href=a.html#x>1</a><a href=a.html>2</a><a href=mailto:x@y>3</a><a>4</a>"
    )
    assert page_title(root) == "A b"
    assert page_links(root, URL) == ["https://e.org/docs/a.html"]
