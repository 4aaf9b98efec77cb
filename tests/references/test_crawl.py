"""The pages that a crawl finds on hostile or partly broken sites."""

from __future__ import annotations

import gzip
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from llm_kb.references.errors import FetchError, NoPageError, NothingFetchedError
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.crawl import find_pages
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.site import CrawlLimits
from llm_kb.references.sources.web import find_page
from tests.references.requests import files_of, never, request, yes
from tests.references.sites import Answer, Site, serve_site

TRUSTING = Policy(allow_hosts=("127.0.0.1",), timeout=5)


def find(site: Site, start: str, max_pages: int = 50) -> tuple[list[str], tuple[str, ...]]:
    """Return the paths that a crawl finds, and its notes."""
    crawl = find_pages(CrawlSource(url=start, max_pages=max_pages), TRUSTING)
    return [url.removeprefix(site.url) for url in crawl.pages], crawl.notes


def test_the_type_decides_about_unknown_endings(site: Site) -> None:
    pages = ("os.path", "Node.js", "java.lang.String", "v1.2-notes", "guide.jsp")
    others = ("a.css", "b.css", "x.zip", "y.png", "os.data")
    start = site.put("/d/", "".join(f"<a href={name}>x</a>" for name in (*pages, *others)))
    for name in pages:
        site.put(f"/d/{name}", f"<p>{name}")
    for name in others:
        site.answer(f"/d/{name}", Answer(name.encode(), kind="text/css"))
    found, (note,) = find(site, start)
    assert found == ["/d/", *(f"/d/{name}" for name in pages)]
    assert note == ("passed over: 5 links (3 to no page, 2 to files that are not pages)")
    assert "GET /d/x.zip" not in site.requests


def test_what_was_seen_is_kept_or_counted(site: Site) -> None:
    start = serve(site, "a", "b", "2.x/a", "2.x/b", "1.x/a", "1.x/b", "fr/a", "fr/b", "dead.zip")
    more = ("b", "nowhere", "http://elsewhere.example/", "?action=edit", "copy", "secret", "empty")
    site.put("/d/a", "<p>a" + "".join(f"<a href={link}>x</a>" for link in more))
    site.put("/d/copy", "<p>same")
    site.put("/d/b", "<p>same")
    site.put("/d/empty", "<p>")
    site.answer("/robots.txt", Answer(b"User-agent: *\nDisallow: /d/secret", kind="text/plain"))
    crawl = find_pages(CrawlSource(url=start), TRUSTING)
    counted = crawl.site.passed + crawl.outcomes
    assert counted.total() == crawl.site.seen
    assert crawl.outcomes["kept"] == len(crawl.pages)
    assert {"editions", "refused", "to copies", "empty", "to no page"} <= set(counted)


DOCS = ["/docs/getting-started/", "/docs/api/", "/docs/guide/"]


@pytest.mark.parametrize(
    ("asked", "found", "is_below"),
    [
        ("/docs/", "/docs/getting-started/", True),
        ("/docs", "/docs/getting-started/", True),
        ("/docs/index.html", "/docs/getting-started/", True),
        ("/docs/?a=/b", "/docs/getting-started/", True),
        ("/", "/docs/getting-started/", True),
        ("/start/", "/docs/getting-started/", False),
        ("/start", "/docs/getting-started/", False),
    ],
)
@pytest.mark.parametrize("way", ["redirect", "meta"])
def test_a_start_that_leads_deeper_does_not_narrow_the_crawl(
    site: Site, asked: str, found: str, is_below: bool, way: str
) -> None:
    site.put(found, "<p>start " + "".join(f"<a href={path}>x</a>" for path in DOCS))
    for path in DOCS[1:]:
        site.put(path, f"<p>{path}")
    if way == "redirect":
        start = site.redirect(asked, found)
    else:
        start = site.put(asked, f'<meta http-equiv="refresh" content="0; url={found}">')
    pages, notes = find(site, start)
    assert pages == (DOCS if is_below else DOCS[:1])
    assert (f"reads the pages below {site.url}{DOCS[0]}" in notes) is not is_below


BUSY = {"Retry-After": "1"}


@pytest.mark.parametrize(
    ("status", "headers", "times", "kept"),
    [
        pytest.param(503, BUSY, 1, 5, id="once for each page"),
        pytest.param(429, BUSY, 1, 5, id="too many, once"),
        pytest.param(429, BUSY, 9, 1, id="for ever"),
        pytest.param(429, {"Retry-After": "3600"}, 1, 1, id="too long a wait"),
        pytest.param(429, {"Retry-After": "-1"}, 1, 1, id="no number"),
        pytest.param(429, {}, 1, 1, id="without a time"),
    ],
)
def test_a_server_that_asks_to_wait_is_asked_once_more_then_left_alone(  # noqa: PLR0917
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    headers: dict[str, str],
    times: int,
    kept: int,
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    waits = headers == BUSY
    start = serve(site, *"abcd")
    asked: Counter[str] = Counter()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked[handler.path] += 1
        is_busy = asked[handler.path] <= times
        body = b"" if is_busy else f"<p>{handler.path}".encode()
        handler.send_response(status if is_busy else 200)
        length = {"Content-Length": str(len(body)), "Content-Type": "text/html"}
        for name, value in {**length, **(headers if is_busy else {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    for name in "abcd":
        site.answer(f"/d/{name}", answer)
    pages, notes = find(site, start)
    assert len(pages) == kept
    is_left = "stopped after 1 page: the site asks for fewer requests" in notes
    assert (is_left, asked.total()) == ((True, 6 if waits else 3) if kept == 1 else (False, 8))
    assert set(filter(None, waited)) == ({1} if waits else set())


@pytest.mark.parametrize(
    ("list_", "found"),
    [
        pytest.param("[A](a.md) [B](b.md)", ["/d/", "/d/x", "/d/y"], id="dead links"),
        pytest.param("[A](x) [B](b.md)", ["/d/", "/d/x"], id="a half of it"),
        pytest.param(
            "[A](y) [B](one/llms.txt) [C](/d/llms.txt) [D](http://e.invalid/llms.txt)",
            ["/d/", "/d/y", "/d/one/p"],
            id="a list of lists",
        ),
    ],
)
def test_a_list_that_leads_nowhere_does_not_end_a_crawl(
    site: Site, list_: str, found: list[str]
) -> None:
    start = serve(site, "x", "y")
    site.put("/d/llms.txt", f"# Pages\n{list_}")
    site.put("/d/one/llms.txt", "# One\n[P](p) [Two](two/llms.txt)")
    site.put("/d/one/p", "<p>p")
    assert find(site, start)[0] == found


def test_a_page_under_several_addresses_is_one(site: Site) -> None:
    """Also if a token in it changes; what says where a reader came from is no address."""
    names = ("guide", "guide.html", "guide/index.html", "guide?ref=nav", "guide?version=latest")
    start = serve(site, *names, "other?utm_source=x", "other?a=1&utm_medium=y", "other?a=1")
    for number, name in enumerate(names):
        site.put(f"/d/{name}", f"<main><p>guide</p></main><i hidden>{number}</i>")
    assert find(site, start)[0] == [
        "/d/",
        "/d/guide",
        "/d/other?utm_source=x",
        "/d/other?a=1&utm_medium=y",
    ]


DRAWN = "<html><head><title>App</title></head><body>{}<script src=a.js></script></body></html>"


@pytest.mark.parametrize(
    ("body", "is_text"),
    [
        ('<div id="root"></div>', False),
        ("<div id=app><h1>App</h1>Loading ...</div>", False),
        ("<redoc></redoc>", False),
        ("<p>Text.</p>", True),
    ],
)
def test_a_page_that_a_script_draws_has_no_text(site: Site, body: str, is_text: bool) -> None:
    page = find_page(site.put("/a", DRAWN.format(body)), TRUSTING)
    assert bool(page.text) is is_text


@pytest.mark.parametrize(
    ("headers", "body", "text"),
    [
        ({"Content-Type": ""}, "<!DOCTYPE html><p>a</p>", "a\n"),
        ({"Content-Type": ""}, "plain <p>", "plain <p>"),
        ({"Content-Encoding": "utf-8"}, "<p>a</p>", "a\n"),
        ({"Content-Type": "application/vnd.oai.openapi;version=3.1"}, "openapi: 3", "openapi: 3"),
    ],
)
def test_what_servers_say_of_a_page_by_mistake(
    site: Site, headers: dict[str, str], body: str, text: str
) -> None:
    url = site.answer("/a", Answer(body.encode(), headers=headers))
    assert find_page(url, TRUSTING).text == text


LIST = """# Pages
[One](one.md), [Two](two.md "titled"), [Three](three_(x).md), [Four](<four.md>)
See <{url}/d/five.md>, and {url}/d/six.md. [Seven][7] [Eight](eight\\_x.md)

[7]: seven.md "Title"
"""


def test_every_form_of_a_link_in_a_list_is_read(site: Site) -> None:
    names = ["one", "two", "three_(x)", "four", "five", "six", "eight_x", "seven"]
    start = site.put("/d/", "<p>start")
    site.put("/d/llms.txt", LIST.format(url=site.url))
    for name in names:
        site.answer(f"/d/{name}.md", Answer(name.encode(), kind="application/octet-stream"))
    assert find(site, start)[0] == ["/d/", *(f"/d/{name}.md" for name in names)]


def test_an_index_of_sitemaps_is_followed(site: Site) -> None:
    start = site.put("/d/", "<p>start")
    maps = ("/s0.xml", "/s1.xml.gz", "http://elsewhere.example/s.xml")
    places = "".join(f"<sitemap><loc><![CDATA[ {each} ]]></loc></sitemap>" for each in maps)
    site.put("/sitemap.xml", f"<sitemapindex xmlns='x'>{places}</sitemapindex>")
    site.put("/s0.xml", f"<urlset><url><loc><![CDATA[{site.url}/d/a]]></loc></url></urlset>")
    packed = gzip.compress(f"<urlset><url><loc>{site.url}/d/b</loc></url></urlset>".encode())
    site.answer("/s1.xml.gz", Answer(packed, kind="application/gzip"))
    for name in "ab":
        site.put(f"/d/{name}", f"<p>{name}")
    assert find(site, start) == (["/d/", "/d/a", "/d/b"], ())


def test_links_that_are_none_are_passed_over(site: Site) -> None:
    start = site.put(
        "/d/", "<a href='http://[bad'>b</a> <a href='http://x:99999/'>p</a> <a href=a>a</a>"
    )
    site.put("/d/a", "<p>a</p>")
    assert find(site, start) == (["/d/", "/d/a"], ())


def test_links_of_a_list_that_are_none_are_passed_over(site: Site) -> None:
    start = site.put("/d/", "<p>start</p>")
    site.put("/d/llms.txt", "# D\n\n- [b](http://[bad)\n- [p](http://x:99999/)\n- [a](a.md)\n")
    site.answer("/d/a.md", Answer(b"a", kind="text/markdown"))
    assert find(site, start) == (["/d/", "/d/a.md"], ("pages as listed in llms.txt",))


def test_a_robots_txt_without_sense_stops_nothing(site: Site) -> None:
    site.put(
        "/robots.txt", "User-agent: *\nCrawl-delay: \N{SUPERSCRIPT TWO}\nDisallow: http://[x\n"
    )
    assert find(site, site.put("/d/", "<p>start</p>")) == (["/d/"], ())


def test_pages_that_fail_are_and_dead_links_are_counted(site: Site) -> None:
    start = site.put("/d/", "<a href=a>a</a> <a href=b>b</a> <a href=c>c</a> <a href=dead>d</a>")
    site.put("/d/a", "<p>a</p>")
    for name in "bc":
        site.answer(f"/d/{name}", Answer(status=503))
    reason = "the server answered 503"
    note = f"left out: 2 page(s) that cannot be fetched, such as {site.url}/d/b: {reason}"
    dead = "passed over: 1 link (1 to no page)"
    assert find(site, start) == (["/d/", "/d/a"], (note, dead))


def test_pages_that_fail_count_towards_max_pages(site: Site) -> None:
    """Each may cost the whole timeout."""
    start = site.put("/d/", "".join(f"<a href={n}>{n}</a>" for n in range(9)))
    for n in range(9):
        site.answer(f"/d/{n}", Answer(status=503))
    assert find(site, start, max_pages=3)[0] == ["/d/"]
    assert [line for line in site.requests if "/d/2" in line] == []


def test_a_page_that_two_links_lead_to_is_one(site: Site) -> None:
    start = site.put("/d/", "<a href=a>a</a> <a href=b>b</a>")
    site.put("/d/a", "<p>a</p>")
    site.redirect("/d/b", "/d/a")
    copies = ("passed over: 1 link (1 to copies)",)
    assert find(site, start) == (["/d/", "/d/a"], copies)


def test_exactly_as_many_pages_as_wanted_are_not_cut(site: Site) -> None:
    start = site.put("/d/", "<a href=a>a</a>")
    site.put("/d/a", "<p>a</p>")
    assert find(site, start, max_pages=2) == (["/d/", "/d/a"], ())


@pytest.mark.parametrize("hops", [5, 6])
def test_a_robots_txt_is_found_after_five_redirects(site: Site, hops: int) -> None:
    site.put("/0", "User-agent: *\nDisallow: /d/a")
    for hop in range(1, hops):
        site.redirect(f"/{hop}", f"{site.url}/{hop - 1}")
    site.redirect("/robots.txt", f"{site.url}/{hops - 1}")
    site.put("/d/a", "<p>a</p>")
    start = site.put("/d/", "<a href=a>a</a>")
    if hops == 5:
        assert find(site, start)[0] == ["/d/"]
    else:
        with pytest.raises(FetchError, match="more than 5 redirects"):
            find(site, start)


@pytest.mark.parametrize("status", [204, 206, 300, 302, 304, 429, 500])
def test_a_robots_txt_that_cannot_be_read_forbids_everything(site: Site, status: int) -> None:
    site.answer("/robots.txt", Answer(b"User-agent: *\nAllow: /\n", status=status))
    with pytest.raises(FetchError, match=f"robots.txt: the server answered {status}"):
        find(site, site.put("/d/", "<p>d</p>"))


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_without_a_robots_txt_nothing_is_forbidden(site: Site, status: int) -> None:
    site.answer("/robots.txt", Answer(b"User-agent: *\nDisallow: /\n", status=status))
    assert find(site, site.put("/d/", "<p>d</p>")) == (["/d/"], ())


def test_a_large_robots_txt_counts_up_to_its_limit(site: Site) -> None:
    site.put("/robots.txt", "User-agent: *\nDisallow: /d/a\n" + "# x\n" * 150_000)
    site.put("/d/a", "<p>a</p>")
    start = site.put("/d/", "<a href=a>a</a>")
    assert find(site, start)[0] == ["/d/"]


def test_a_list_of_pages_on_another_host_counts_as_missing(site: Site) -> None:
    """As in a refresh, which would not request it."""
    with serve_site() as other:
        for name in ("llms.txt", "sitemap.xml"):
            site.redirect(f"/{name}", f"{other.url}/{name}")
        site.put("/d/a", "<p>a</p>")
        assert find(site, site.put("/d/", "<a href=a>a</a>")) == (["/d/", "/d/a"], ())
        assert other.requests == []


def test_a_robots_txt_that_fails_is_named(library: Library, site: Site) -> None:
    start = site.put("/d/", "<p>d</p>")
    site.answer("/robots.txt", Answer(status=500))
    with pytest.raises(NothingFetchedError) as caught:
        create_topic(library, request(CrawlSource(url=start)), never)
    robots = f"{site.url}/robots.txt"
    assert caught.value.reasons == (f"{start}: {robots}: the server answered 500",)


def test_a_first_page_that_only_weighs_something_is_an_error(site: Site) -> None:
    def only_head(handler: Any) -> None:
        is_head = handler.command == "HEAD"
        handler.send(Answer(b"x" if is_head else b"", status=200 if is_head else 503))

    with pytest.raises(FetchError, match="the server answered 503"):
        find(site, site.answer("/d/", only_head))


def test_what_a_generator_makes_besides_the_pages_is_left_out(site: Site) -> None:
    """Sphinx: the sources and the indices; mdBook: all pages as one."""
    links = ("index.html", "a.html", "_sources/a.rst.txt", "genindex.html", "genindex-A.html")
    others = (
        *("index-all.html", "class-use/A.html", "lib.rs.html", "search.html", "py-modindex.html"),
        *("_modules/a.html", "print.html", "llms-full.txt", "printing.html"),
    )
    html = "".join(f"<a href={link}>{link}</a>" for link in links + others)
    start = site.put("/d/", html)
    for link in (*links, *others):
        site.put(f"/d/{link}", html if link == "index.html" else f"<p>{link}")
    assert find(site, start) == (
        ["/d/", "/d/a.html", "/d/printing.html"],
        ("passed over: 11 links (11 to generated lists and other views)",),
    )


def test_a_page_that_repeats_another_is_left_out(site: Site) -> None:
    start = site.put("/d/", "<a href=a>a</a> <a href=b>b</a>")
    site.put("/d/a", "<p>same")
    site.put("/d/b", "<p>same")
    copies = ("passed over: 1 link (1 to copies)",)
    assert find(site, start) == (["/d/", "/d/a"], copies)


@pytest.mark.parametrize("place", ["sitemap.xml", "more.xml"])
def test_pages_of_the_sitemap_are_found(site: Site, place: str) -> None:
    start = site.put("/d/", "<a href=a>a</a>")
    for name in "abc":
        site.put(f"/d/{name}", f"<p>{name}")
    site.answer("/robots.txt", Answer(f"Sitemap: {site.url}/{place}".encode(), kind="text/plain"))
    here = "".join(f"<url><loc> {site.url}/d/{name} </loc></url>" for name in "abc")
    site.put(f"/{place}", f"<urlset>{here}<url><loc>http://e.org/d/x</loc></url></urlset>")
    assert find(site, start) == (["/d/", "/d/a", "/d/b", "/d/c"], ())


def serve(site: Site, *pages: str) -> str:
    """Serve a front page below `/d/` that leads to all pages; return its URL."""
    start = site.put("/d/", "".join(f"<a href='{page}'>{page}</a>" for page in pages))
    for page in pages:
        site.put(f"/d/{page}", f"<p>{page}")
    return start


def test_patterns_choose_the_pages_that_are_read(site: Site) -> None:
    start = serve(site, "guide/a.html", "guide/b/", "guide/changes.html", "blog/a.html")
    source = CrawlSource(url=start, include=("guide/**",), exclude=("**/changes.html",))
    pages = find_pages(source, TRUSTING).pages
    paths = [url.removeprefix(site.url) for url in pages]
    assert paths == ["/d/", "/d/guide/a.html", "/d/guide/b/"]
    assert [line for line in site.requests if "blog" in line or "changes" in line] == []


def test_other_versions_and_languages_are_taken_on_request(site: Site) -> None:
    start = serve(site, "a", "b", "2.x/a", "2.x/b", "1.x/a", "fr/a", "fr/b", "cs/lexer")
    paths, notes = find(site, start)
    assert paths == ["/d/", "/d/a", "/d/b", "/d/cs/lexer"]
    assert notes == (
        "left out: other versions and languages (fr, 1.x, 2.x); include (--include '1.x/**')"
        " takes one",
    )
    assert [line for line in site.requests if "x/" in line or "fr/" in line] == []
    source = CrawlSource(url=start, include=("1.x/**",))
    found = find_pages(source, TRUSTING)
    assert [url.removeprefix(site.url) for url in found.pages] == ["/d/", "/d/1.x/a"]
    assert found.notes == ("passed over: 7 links (7 left out by the patterns)",)


def test_pages_without_text_are_not_planned(site: Site) -> None:
    start = serve(site, "a", "b")
    site.put("/d/b", "<script>draw()</script>")
    assert find(site, start) == (["/d/", "/d/a"], ("left out: 1 page without text",))


def test_known_pages_are_requested_conditionally_where_their_links_are_not_needed(
    site: Site,
) -> None:
    start = site.put("/d/", "<a href=a>a</a>")
    for name, link in {"a": "b", "b": "c"}.items():
        site.put(f"/d/{name}", f"<p>{name} <a href={link}>x</a>")
    source = CrawlSource(url=start, depth=2)
    known = {url: {"etag": page.etag} for url, page in find_pages(source, TRUSTING).pages.items()}
    found = find_pages(source, TRUSTING, known)
    assert {url.removeprefix(f"{site.url}/d/"): page.text for url, page in found.pages.items()} == {
        "": "[a](" + site.url + "/d/a)\n",
        "a": f"a [x]({site.url}/d/b)\n",
        "b": None,
    }


def test_the_pages_read_are_counted(site: Site) -> None:
    counts: list[tuple[int, int]] = []
    start = serve(site, "a", "b", "c")
    source = CrawlSource(url=start, max_pages=3)
    find_pages(source, TRUSTING, progress=lambda *count: counts.append(count))
    assert counts == [(1, 3), (2, 3)]


def test_a_page_that_sends_its_readers_on_is_a_redirect(site: Site) -> None:
    start = serve(site, "a", "b", "late", "away")
    refresh = "<meta http-equiv=Refresh content=\"{}; URL='{}'\"><p>moved {}"
    site.put("/d/a", refresh.format(0, "b#part", 1))
    site.put("/d/late", refresh.format(30, "b", 2))
    site.put("/d/away", refresh.format(0, "http://other.example/", 3))
    assert find(site, start)[0] == ["/d/", "/d/b", "/d/late"]
    site.put("/d/b", refresh.format(0, "a", 4))
    with pytest.raises(FetchError, match="more than 5 redirects"):
        find_page(f"{site.url}/d/a", TRUSTING)


def test_pages_are_found_by_the_contents_in_a_frame(site: Site) -> None:
    """As those of mdBook for readers without scripts."""
    start = site.put("/d/", "<p>start<noscript><iframe src=toc.html></iframe></noscript>")
    site.put("/d/toc.html", "<a href=a.html>a</a> <a href=/d/>start</a>")
    site.put("/d/a.html", "<p>a")
    assert find(site, start) == (["/d/", "/d/toc.html", "/d/a.html"], ())


@pytest.mark.slow
def make_guide(text: str = "Run the walrus.") -> bytes:
    """Return a PDF; skip the test without the add-on of documents."""
    office = pytest.importorskip("tests.documents.office")
    guide: bytes = office.make_pdf([text])
    return guide


def test_documents_that_pages_lead_to_are_converted(library: Library, site: Site) -> None:
    guide = make_guide()
    start = site.put(
        "/d/", "<p>Start <a href=guide.pdf>g</a> <a href=get?7>b</a> <a href=x.docx>x</a>"
    )
    site.answer("/d/guide.pdf", Answer(guide, kind="application/octet-stream"))
    site.answer("/d/get?7", Answer(make_guide("Another."), kind="application/pdf"))
    site.answer("/d/x.docx", Answer(b"junk", kind="application/octet-stream"))
    created = create_topic(library, request(CrawlSource(url=start)), yes)
    files = {path.partition("/")[2]: text for path, text in files_of(library).items()}
    assert list(files) == ["d/get-7.md", "d/guide-pdf.md", "d/index.md"]
    assert files["d/guide-pdf.md"] == "## Page 1\n\nRun the walrus.\n"
    assert "[g](guide-pdf.md)" in files["d/index.md"]
    assert "warnings" not in created
    assert refresh_topic(library, "topic-frob", never)["changed"] is False


def test_documents_that_cannot_be_read_are_named(site: Site, without_documents: None) -> None:
    guide = make_guide()
    start = serve(site, "a", "b.pdf", "c.docx")
    install = "to read them: llm install 'llm-kb[documents]'"
    note = f"left out: 2 documents (DOCX, PDF); {install}, such as {site.url}/d/b.pdf"
    assert find(site, start) == (["/d/", "/d/a"], (note,))
    url = site.answer("/d/b.pdf", Answer(guide, kind="application/pdf"))
    with pytest.raises(NoPageError) as caught:
        find_page(url, TRUSTING)
    assert caught.value.reason == (
        "it is a document (PDF); to read it: llm install 'llm-kb[documents]'"
    )


def test_a_crawl_ends_before_its_pages_are_too_long_to_keep(site: Site) -> None:
    start = serve(site, "a", "b")
    for name in ("a", "b"):
        site.put(f"/d/{name}", f"<p>{name} " + "words " * 100)
    found = find_pages(CrawlSource(url=start), TRUSTING, limits=CrawlLimits(characters=1000))
    assert len(found.pages) == 2
    assert "stopped after 2 pages: more text than a crawl may hold" in found.notes
