"""How well pages become Markdown: ours beside three others, on a directory of HTML pages.

    python bench/pages.py DIRECTORY [PAGES]

All convert the same pages, a sample spread evenly over the directory. What a page
says is taken from BeautifulSoup's tree of its `main` or `article`, which neither
converter made: `pre` blocks found verbatim, headings found as headings, and recall
and precision of the words. markdownify and html2text are handed that element; ours and
trafilatura find it themselves. Needs `pip install --group bench`.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import html2text
import trafilatura
from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from llm_kb.texts.html.to_markdown import html_to_markdown

WORD = re.compile(r"\w+")


def find_main(html: str) -> Tag:
    """Return the element both are measured by."""
    soup = BeautifulSoup(html, "html.parser")
    for line_break in soup("br"):
        line_break.replace_with("\n")
    for block in soup(["p", "li", "div", "td", "th", "dt", "dd", "summary", "button", "section"]):
        if not block.find_parent("pre"):
            block.append("\n")  # else its last word is one with the first of the next
    for useless in soup(["script", "style", "nav", "noscript", "template", "head", "footer"]):
        useless.decompose()
    return soup.find("main") or soup.find(role="main") or soup.find("article") or soup


def with_markdownify(html: str) -> str:
    return str(MarkdownConverter(heading_style="ATX").convert_soup(find_main(html)))


def with_html2text(html: str) -> str:
    converter = html2text.HTML2Text(bodywidth=0)
    return converter.handle(str(find_main(html)))


def with_trafilatura(html: str) -> str:
    options = {"include_formatting": True, "include_links": True, "include_tables": True}
    return trafilatura.extract(html, output_format="markdown", **options) or ""


def with_ours(html: str) -> str:
    return html_to_markdown(html, "https://example.org/")


def measure(convert: Callable[[str], str], pages: list[str]) -> list[float]:
    """Return per cent of blocks and headings kept, recall, precision, and ms a page."""
    kept: list[list[float]] = [[], [], [], []]
    times = []
    for html in pages:
        started = time.perf_counter()
        text = convert(html)
        times.append(time.perf_counter() - started)
        main = find_main(html)
        blocks = [pre.get_text().strip("\n") for pre in main("pre")]
        # A heading's words, in order, in a line that begins with #.
        lines = {" ".join(WORD.findall(x)) for x in text.split("\n") if x.startswith("#")}
        heads = [" ".join(WORD.findall(h.get_text())) for h in main(re.compile(r"^h[1-6]$"))]
        said = Counter(WORD.findall(main.get_text()))
        found = Counter(WORD.findall(re.sub(r"\]\([^)\s]*\)", "]", text)))
        both = (said & found).total()
        kept[0] += [flatten(block) in flatten(text) for block in blocks if block.strip()]
        kept[1] += [any(head in line for line in lines) for head in heads if head]
        kept[2] += [both / said.total()] if said else []
        kept[3] += [both / found.total()] if found else []
    return [100 * statistics.fmean(part) for part in kept] + [1000 * statistics.median(times)]


def flatten(text: str) -> str:
    """Return lines without what quotes, lists and indented code put before them."""
    return "\n".join(line.lstrip("> ").rstrip() for line in text.split("\n"))


def main() -> None:
    directory = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    paths = sorted(p for p in directory.rglob("*.html") if 4_000 < p.stat().st_size < 300_000)
    pages = [p.read_text("utf-8", "replace") for p in paths[:: max(1, len(paths) // count)][:count]]
    print(f"{len(pages)} pages of {directory}")
    print("converter     pre  headings  recall  precision  ms/page")
    for name, convert in CONVERTERS.items():
        pre, heads, recall, precision, ms = measure(convert, pages)
        print(f"{name:11} {pre:5.1f} {heads:9.1f} {recall:7.1f} {precision:10.1f} {ms:8.1f}")


CONVERTERS = {
    "ours": with_ours,
    "markdownify": with_markdownify,
    "html2text": with_html2text,
    "trafilatura": with_trafilatura,
}

if __name__ == "__main__":
    main()
