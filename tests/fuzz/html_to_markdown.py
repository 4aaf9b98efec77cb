"""HTML to Markdown: any bytes are a page, and its Markdown is of bounded size."""

from __future__ import annotations

from llm_kb.texts.html.page import page_links
from llm_kb.texts.html.to_markdown import html_to_markdown
from llm_kb.texts.html.tree import MAX_DEPTH, PageTooComplexError, parse_html

URL = "https://e.org/docs/page.html"


def fuzz(data: bytes) -> None:
    """Convert the bytes as a page, and read its links."""
    html = data.decode("utf-8", "replace")
    try:
        text = html_to_markdown(html, URL)
    except PageTooComplexError:
        return
    assert len(text) <= 12 * len(html) + 200_000
    root = parse_html(html)
    assert len(root.text()) <= len(html)
    for link in page_links(root, URL):
        assert link.startswith(("http://", "https://"))
    level, depth = [root], 0
    while level:
        level = [child for e in level for child in e.children if not isinstance(child, str)]
        depth += 1
    assert depth <= MAX_DEPTH + 1
