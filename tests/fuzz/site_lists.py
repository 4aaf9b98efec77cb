"""The lists of a site's pages: any bytes name pages below the directory of the first."""

from __future__ import annotations

from unittest.mock import patch
from urllib.parse import urlsplit

from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.site import Site
from llm_kb.references.sources.web import Page

START = "https://e.org/docs/"


def fuzz(data: bytes) -> None:
    """Answer with the bytes for every list, as they are and as an entry."""
    text = data.decode("utf-8", "replace")
    lists = {
        "robots.txt": "",
        "llms.txt": f"# List\n[a]({text})\n{text}",
        "sitemap.xml": f"<loc>{text}</loc>\n<loc>{START}{text}</loc>\n{text}",
    }

    def answer(url: str, *_: object, **__: object) -> Page:
        return Page(url=url, text=lists.get(url.rpartition("/")[2], text), hosts=("e.org",))

    with patch("llm_kb.references.sources.web.fetch_text", answer):
        site = Site(START, CrawlSource(url=START), Policy())
        for page in (*site.read_list(), *site.read_sitemap()):
            assert page.startswith(START)
            assert ".." not in urlsplit(page).path.split("/")
