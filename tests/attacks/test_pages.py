"""Pages of hostile servers: none crashes or hangs the conversion, or inflates its result."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path

import pytest

from llm_kb.references.errors import FetchError
from llm_kb.references.sources.crawl import find_pages
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.site import parse_robots
from llm_kb.references.sources.web import request
from llm_kb.texts.html.page import MAX_LINK, absolute_link
from llm_kb.texts.html.to_markdown import html_to_markdown, tree_to_markdown
from llm_kb.texts.html.tree import Element, PageTooComplexError
from tests.conftest import RunLlm
from tests.cost import at_most
from tests.growth import measure_time
from tests.references.conftest import site  # noqa: F401 - a fixture
from tests.references.sites import Answer, Site

URL = "http://h.example/p"
TRUSTING = Policy(allow_hosts=("127.0.0.1",), timeout=20)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        pytest.param(f"<p>a&#{'9' * 5000};b", "a\ufffdb\n", id="a decimal reference"),
        pytest.param(f"<p>a&#x{'f' * 5000};b", "a\ufffdb\n", id="a hexadecimal one"),
        pytest.param(f"<p>&#{'0' * 5000}65;", "\ufffd\n", id="zeros before a letter"),
        pytest.param(f"<img alt='&#{'9' * 5000};'>", "[\ufffd]\n", id="in an attribute"),
    ],
)
def test_long_character_references_are_replaced(html: str, text: str) -> None:
    assert html_to_markdown(html, URL) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<table><tr>" + "<td>" * 9_000 + "<tr><td>" * 9_000, id="wide table"),
        pytest.param(
            f"<base href='http://h/{'a' * 1900}/'>" + "<a href=x>x</a>" * 9_000, id="base"
        ),
        pytest.param(f"<base href='http://h/{'a' * 10**6}/'>" + "<a href=x>x</a>" * 900, id="long"),
        pytest.param("<blockquote>" * 117 + "<pre>" + "x\n" * 50_000, id="quotes"),
        pytest.param("<ol><li>" * 58 + "<pre>" + "x\n" * 50_000, id="lists"),
        pytest.param("<dl><dt>t<dd>" * 39 + "<pre>" + "x\n" * 50_000, id="definitions"),
        pytest.param("<div class=admonition>" * 99 + "<pre>" + "x\n" * 50_000, id="notes"),
        pytest.param("<div>" * 119 + "</x>" * 50_000, id="ends of nothing"),
        pytest.param("<b><table>" + "<div>" * 117 + "</b>" * 50_000, id="ends behind a table"),
        pytest.param("<div>" * 118 + "<td>" * 50_000, id="cells of no table"),
        pytest.param("<" * 1_000_000, id="less-than"),
        pytest.param("<main>" * 119 + "x " * 100_000, id="mains"),
        pytest.param("<article>x" * 119 + "<article>y</article>" * 9_000, id="articles"),
        pytest.param("<div role=tablist><a role=tab>x" * 50 + "<p>y" * 9_000, id="tabs"),
        pytest.param("<div role=tablist><b role=tab>x</b></div>" * 9_000, id="lists of tabs"),
        pytest.param("<input type=radio id=r><label for=r>x</label>" * 9_000, id="labels"),
        pytest.param("<tr><td rowspan=99999 colspan=99999>x" * 5_000, id="spans of no table"),
        pytest.param("<table>" + "<tr><td rowspan=9999 colspan=9999>x" * 5_000, id="spans"),
        pytest.param("<table>" + "<tr><td rowspan=9999>" * 9 + "<tr>" * 90_000, id="empty rows"),
        pytest.param("<table><tr>" + f"<td rowspan=999>{'x' * 199}" * 99 + "<tr>" * 999, id="tall"),
        pytest.param("<td><button>x</button>" * 119 + "<button>y</button>" * 9_000, id="controls"),
        pytest.param("<form>" * 119 + "<p hidden>x" * 20_000, id="forms"),
        pytest.param("<pre><code>" * 50 + "<div>x</div>" * 9_000, id="code in code"),
        pytest.param("<pre>" + "<div class=ln>1<div>" * 119 + "1\n" * 50_000, id="numbers"),
        pytest.param("<math><msup>" * 59 + "<mi>x</mi>" * 9_000, id="powers"),
        pytest.param("y " * 100_000 + "<b hidden>" + "<math>" * 90 + "x" * 100_000, id="hidden"),
        pytest.param("<sup>x" * 99 + "x<sup>y</sup>" * 9_000, id="powers of text"),
        pytest.param("<a name=x>y" * 20_000 + "<h2>z", id="open elements"),
    ],
)
def test_no_page_takes_time_or_memory_out_of_proportion(html: str) -> None:
    """Either it is refused, or it becomes at most a few times its size; both at once."""
    with at_most(5):
        try:
            size = len(html_to_markdown(html, URL))
        except PageTooComplexError:
            size = 0
    assert size <= 6 * len(html) + 200_000


@pytest.mark.parametrize("around", ["<ul><li>", "<span>", "<h1>", "<b>", "<table><tr><td>"])
@pytest.mark.parametrize(
    "inside", ["<b>", pytest.param("<td>", marks=pytest.mark.slow), "<a href=x>y</a>"]
)
def test_nesting_does_not_multiply_the_time_of_a_page(around: str, inside: str) -> None:
    """What is below an element is not looked through again for each element around it."""
    wide = inside * (30_000 // len(inside))
    deep = around * (120 // around.count("<") - 1)
    times = [measure_time(partial(html_to_markdown, url=URL), html) for html in (wide, deep + wide)]
    assert times[1] < 3 * times[0] + 0.1


@pytest.mark.parametrize("name", ["_lineno", "_codelinenumber", "-ln", "_line", "-tab", "header"])
def test_a_long_class_takes_time_in_its_length(name: str) -> None:
    with at_most(0.2):
        html_to_markdown(f'<main><td class="{name * 4_000}!">1</td>', URL)


@pytest.mark.parametrize(
    ("address", "href"),
    [
        pytest.param("http://h/", "../" * (MAX_LINK // 2), id="a long link to a near page"),
        pytest.param(f"http://h/{'a' * MAX_LINK}/", "x", id="a short link below a long address"),
        pytest.param("http://h/", "x" * MAX_LINK, id="both"),
    ],
)
def test_long_links_are_passed_over(address: str, href: str) -> None:
    assert absolute_link(address, href) == ""


def test_deep_lists_and_quotes_keep_their_words() -> None:
    for tag in ("blockquote", "ul><li", "dl><dt>t</dt><dd"):
        text = html_to_markdown(f"<{tag}>" * 39 + "<p>words</p>", URL)
        assert text.rstrip().endswith("words")
        assert max(len(line) for line in text.splitlines()) < 100


@pytest.mark.slow
def test_a_hostile_page_does_not_end_a_crawl(site: Site) -> None:  # noqa: F811
    start = site.put("/d/", "<a href=bomb>b</a> <a href=good>g</a>")
    site.put("/d/bomb", "<table><tr>" + "<td>" * 9_000 + "<tr><td>" * 9_000)
    site.put("/d/good", "<p>g")
    found = find_pages(CrawlSource(url=start), TRUSTING)
    assert list(found.pages)[-1] == f"{site.url}/d/good"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(gzip.compress(b"one, ") + gzip.compress(b"two"), id="two members"),
        pytest.param(gzip.compress(b"") * 50_000 + gzip.compress(b"one, two"), id="very many"),
        pytest.param(gzip.compress(b"one, two") + b"\0\0\0", id="padding"),
    ],
)
def test_compressed_bodies_are_read_whole(site: Site, body: bytes) -> None:  # noqa: F811
    url = site.answer("/x", Answer(body, headers={"Content-Encoding": "gzip"}))
    assert request(url, TRUSTING).body == b"one, two"


def test_large_compressed_bodies_are_whole(site: Site) -> None:  # noqa: F811
    body = bytes(range(256)) * 4000
    url = site.answer("/x", Answer(gzip.compress(body), headers={"Content-Encoding": "gzip"}))
    assert request(url, TRUSTING).body == body


def test_rules_are_matched_in_linear_time() -> None:
    """A regular expression made of this pattern would run for ever."""
    robots = parse_robots("User-agent: *\nDisallow: /" + "*a" * 1000 + "$")
    with at_most(1):
        assert robots.can_fetch("http://h/" + "a" * 1900 + "b", "llm-kb")


def test_a_robots_txt_of_very_many_patterns_allows_nothing(site: Site) -> None:  # noqa: F811
    rules = "User-agent: *\n" + "Disallow: /**a\n" * 3_000
    site.answer("/robots.txt", Answer(rules.encode(), kind="text/plain"))
    with pytest.raises(FetchError, match="over 5,000 wildcards"):
        find_pages(CrawlSource(url=site.put("/d/", "<p>d")), TRUSTING)


@pytest.mark.parametrize("error", [ValueError, RecursionError, MemoryError, OverflowError])
def test_a_page_that_crashes_a_parser_stops_no_other_topic(
    site: Site,  # noqa: F811 - the fixture
    run_llm: RunLlm,
    user_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    def convert(root: Element, url: str, size: int) -> str:
        if "crash" in root.text():
            raise error
        return tree_to_markdown(root, url, size)

    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_hosts = ["127.0.0.1"]\n')
    monkeypatch.setattr("llm_kb.texts.html.to_markdown.tree_to_markdown", convert)
    for name in ("evil", "good"):
        site.put(f"/{name}", f"<p>The first {name}.</p>")
        created = run_llm(
            ["kb", "references", "create", "--title", name, "--web", f"{site.url}/{name}", "-y"]
        )
        assert created.exit_code == 0, created.stderr
    site.put("/evil", "<p>crash</p>")
    site.put("/good", "<p>The second good.</p>")
    refreshed = run_llm(["kb", "references", "refresh", "-y"])
    assert f"cannot be processed ({error.__name__}: " in refreshed.stderr
    assert (refreshed.exit_code, "Traceback" in refreshed.stderr) == (1, False)
    assert "second good" in run_llm(["kb", "show", "--as-model", "topic-good/**"]).stdout
    assert "first evil" in run_llm(["kb", "show", "--as-model", "topic-evil/**"]).stdout
