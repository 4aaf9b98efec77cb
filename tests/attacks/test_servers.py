"""Hostile servers: what they send costs little, and leads nowhere that was not asked about."""

from __future__ import annotations

import base64
import time
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

import pytest

from llm_kb.references.errors import FetchError, NothingFetchedError, SourceError
from llm_kb.references.fetch.create import approved_hosts, create_topic, open_remotes
from llm_kb.references.library import Library
from llm_kb.references.sources.crawl import find_pages
from llm_kb.references.sources.git import find_commit, select_files
from llm_kb.references.sources.records import CrawlSource, GitSource, WebSource
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.site import MAX_RULES, CrawlLimits, parse_robots
from llm_kb.references.sources.web import request as get
from llm_kb.texts.html.page import MAX_LINKS, page_links
from llm_kb.texts.html.to_markdown import html_to_markdown
from llm_kb.texts.html.tree import PageTooComplexError, parse_html
from tests.cost import at_most, cases, peak_of
from tests.references.requests import files_of, plan_topic, request, yes
from tests.references.sites import Answer, Handler, Site

TRUSTING = Policy(allow_hosts=("127.0.0.1",), timeout=10)


def raw(head: str, body: bytes = b"") -> Handler:
    """Answer with these bytes."""

    def handle(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)

    return handle


def folded(text: str) -> str:
    """Return a header over lines of the greatest length."""
    return "\r\n ".join(text[at : at + 60_000] for at in range(0, len(text), 60_000))


HEADS = {
    "one value": ('Content-Type: text/html; a="{}', ";"),
    "many values": ("Content-Type: text/html{}", ";"),
    "a codec": ("Content-Type: a/b; charset*=punycode''{}", "a"),
    "an address": ("Location: /{}", "a"),
    "an encoding": ("Content-Encoding: {}", "x "),
    "a tag": ("ETag: {}", "x"),
}


@pytest.mark.parametrize(
    ("length", "message"),
    [(30_000, "has over 1,000 characters"), (300_000, "Receive buffer too long")],
)
@pytest.mark.parametrize("head", cases(HEADS))
def test_a_long_header_is_refused_in_time(
    site: Site, head: tuple[str, str], length: int, message: str
) -> None:
    """One took hours: the deadline ends the connection, and the parser ran after that."""
    line = head[0].format(head[1] * (length // len(head[1])))
    url = site.answer("/", raw(folded(line)))
    with at_most(1), pytest.raises(FetchError, match=message):
        get(url, TRUSTING)


@pytest.mark.parametrize(
    ("head", "flood", "message"),
    [
        ("", "HTTP/1.1 100 Continue\r\n\r\n", "its head has no end"),
        ("Transfer-Encoding: chunked\r\n\r\n", "1;x=y\r\na\r\n", "in too many pieces"),
    ],
)
def test_a_server_does_not_send_without_end(
    site: Site, head: str, flood: str, message: str
) -> None:
    """Each piece comes in time, and is small."""

    def pour(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(f"HTTP/1.1 200 OK\r\n{head}".encode() if head else b"")
        with suppress(OSError):
            for _ in range(200):
                handler.wfile.write(flood.encode() * 1_000)

    with at_most(3), pytest.raises(FetchError, match=message):
        get(site.answer("/", pour), replace(TRUSTING, timeout=60))


@pytest.mark.parametrize("status", [100, 102, 103])
def test_an_answer_may_come_after_others(site: Site, status: int) -> None:
    head = f"HTTP/1.1 {status} Wait\r\nLink: </x>; rel=preload\r\n\r\n"

    def handle(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(2 * head.encode())
        handler.send_response(200)
        handler.send_header("Content-Length", "5")
        handler.end_headers()
        handler.wfile.write(b"hello")

    assert get(site.answer("/", handle), TRUSTING).body == b"hello"


@pytest.mark.parametrize(
    "head",
    ["101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade", "999999 No", "20 OK", "x"],
)
def test_an_answer_of_another_kind_is_an_error(site: Site, head: str) -> None:
    def handle(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(f"HTTP/1.1 {head}\r\n\r\nhello".encode())

    with pytest.raises(FetchError):
        get(site.answer("/", handle), TRUSTING)


@pytest.mark.parametrize("size", ["-1", "+5", "0x5", "1_0", "", "5 5", "fffffffff"])
def test_a_chunk_without_a_size_is_refused(site: Site, size: str) -> None:
    """Of size -1 one was read to its end, however far that was."""
    body = f"{size}\r\n".encode() + b"x" * 30_000_000
    url = site.answer("/", raw("Transfer-Encoding: chunked", body))

    def read() -> None:
        with pytest.raises(FetchError):
            get(url, TRUSTING)

    assert peak_of(read) < 45_000_000  # of which the server holds 30


def test_chunks_are_read_up_to_the_limit(site: Site) -> None:
    url = site.answer(
        "/", raw("Transfer-Encoding: chunked", b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    )
    assert get(url, TRUSTING).body == b"abcde"
    url = site.answer("/", raw("Transfer-Encoding: chunked", b"1\r\na\r\n" * 5_000))
    with pytest.raises(FetchError, match="over the limit of 4,000"):
        get(url, TRUSTING, most=4_000)


@pytest.mark.parametrize(
    "html",
    [
        pytest.param(
            f"<a role=tab id=t>{'x' * 20_000}</a>"
            + "<div role=tabpanel aria-labelledby=t>y" * 3_000,
            id="a label of tabs",
        ),
        pytest.param(
            f"<div class=language-{'x' * 20_000}>" + "<pre>y</pre>" * 3_000, id="a language"
        ),
        pytest.param(f"<base href=//h/{'x' * 1_800}/>" + "<a href=x>y</a>" * 3_000, id="a base"),
        pytest.param(f"<p {' '.join(f'a{n}' for n in range(100_000))}>y", id="attributes"),
    ],
)
def test_nothing_of_a_page_is_repeated_beyond_its_size(html: str) -> None:
    def convert() -> None:
        with suppress(PageTooComplexError):
            assert len(html_to_markdown(html, "http://h/")) < 5 * len(html) + 200_000

    assert peak_of(convert) < 40 * len(html) + 5_000_000


def test_links_of_a_page_are_bounded() -> None:
    """Without text they are not in the page's Markdown, but a crawl followed all of them."""
    root = parse_html("".join(f"<a href={n}></a>" for n in range(3 * MAX_LINKS)))
    assert len(page_links(root, "http://h/")) == MAX_LINKS


def test_links_of_a_page_that_are_not_followed_are_said(site: Site) -> None:
    start = site.put("/d/", "<p>d" + "".join(f"<a href=/x{n}></a>" for n in range(MAX_LINKS + 1)))
    found = find_pages(CrawlSource(url=start), TRUSTING)
    assert f"passed over: links after the first 5,000 of 1 page, such as {start}" in found.notes


@pytest.mark.slow
def test_links_of_all_pages_of_a_crawl_are_bounded(site: Site) -> None:
    limits = CrawlLimits(links=1_000)
    links = "".join(f"<a href='%s{n}-{'x' * 1_000}'></a>" for n in range(900))
    start = site.put("/d/", "".join(f"<a href=q{n}>" for n in range(6)) + links.replace("%s", "p"))
    for page in range(6):
        site.put(f"/d/q{page}", f"<p>{page}" + links.replace("%s", f"q{page}-"))
    source = CrawlSource(url=start, depth=3, max_pages=20)
    assert peak_of(lambda: find_pages(source, TRUSTING, limits=limits)) < 9_000_000


def test_the_sitemaps_that_sitemaps_name_do_not_multiply(site: Site) -> None:
    """Each that an index names was looked for among all that the others had named."""
    start = site.put("/d/", "<p>d")
    for number, each in enumerate(["sitemap.xml", "more.xml"]):
        places = "".join(f"<loc>/{number}{n}</loc>" for n in range(5_000))
        text = f"<sitemapindex><loc>/more.xml</loc>{places}"
        site.answer(f"/{each}", Answer(text.encode(), kind="application/xml"))
    with at_most(0.5):
        found = find_pages(CrawlSource(url=start), TRUSTING, limits=CrawlLimits(sitemaps=2))
    assert "passed over: 10001 sitemaps: too many" in found.notes


@pytest.mark.parametrize("odd", ["http://[x/", "http://e.org:99999999/", "//\u2100/"])
def test_an_address_that_is_not_one_ends_no_crawl(site: Site, odd: str) -> None:
    start = site.put("/d/", "<p>d")
    site.put("/d/y", "<p>y")
    robots = f"Sitemap: {odd}\nSitemap: {site.url}/sitemap.xml\n"
    site.answer("/robots.txt", Answer(robots.encode(), kind="text/plain"))
    locations = f"<urlset><loc>{odd}</loc><loc>{site.url}/d/y</loc>"
    site.answer("/sitemap.xml", Answer(locations.encode(), kind="application/xml"))
    pages = find_pages(CrawlSource(url=start), TRUSTING).pages
    assert list(pages) == [start, f"{site.url}/d/y"]


def test_dots_lead_no_crawl_out_of_its_directory(site: Site) -> None:
    """A sitemap's addresses are taken as they are, and no browser has joined them."""
    start = site.put("/d/", "<p>d <a href=%2e%2e/x>x</a>")
    ways = ("/d/../x", "/d/%2e%2e/x", "/d/a/%2E./../x", "/d/y")
    locations = "".join(f"<loc>{site.url}{way}</loc>" for way in ways)
    site.answer("/sitemap.xml", Answer(f"<urlset>{locations}".encode(), kind="application/xml"))
    for way in ways:
        site.put(way, f"<p>{way}")
    find_pages(CrawlSource(url=start), TRUSTING)
    assert [each for each in site.requests if each.endswith(("/x", "/y"))] == ["GET /d/y"]


def test_no_address_in_a_page_makes_a_topic_that_cannot_be_read(
    library: Library, site: Site
) -> None:
    """One such address was enough for the record of all files to be refused."""
    names = ("a b", "\u202ec", "d\u2028e", "é")
    links = "".join(f"<a href='{name}'>x</a>" for name in names)
    start = site.put("/d/", f"<p>d{links}<p>")
    for name in names:
        site.put(f"/d/{quote(name)}", f"<p>{quote(name)}")
    hidden = ("\u200b", "\u200b" * 1_900)
    long = "".join(f"<loc>{site.url}/d/{name}</loc>" for name in hidden)
    site.put(f"/d/{quote(hidden[1])}", "<p>long")
    site.answer("/sitemap.xml", Answer(f"<urlset>{long}".encode(), kind="application/xml"))
    created = create_topic(library, request(CrawlSource(url=start)), yes)
    assert created["file_count"] == 5
    assert library.verify("topic-frob")["problems"] == []


def test_a_page_leads_to_no_address_with_a_password(library: Library, site: Site) -> None:
    target = site.put("/b", "<p>secret").replace("//", "//user:word@")
    url = site.put("/a", f"<meta http-equiv=refresh content='0; url={target}'>")
    with pytest.raises(NothingFetchedError, match="contains a user name or password"):
        create_topic(library, request(WebSource(url=url)), yes)


@pytest.mark.parametrize("kind", ["dead", "copies", "redirects"])
def test_the_requests_of_a_crawl_are_bounded(site: Site, kind: str) -> None:
    start = site.put("/d/", "<p>start" + "".join(f"<a href=p{n}>x</a>" for n in range(400)))
    for number in range(400):
        if kind == "copies":
            site.put(f"/d/p{number}", "<p>the same")
        elif kind == "redirects":
            site.redirect(f"/d/p{number}", f"/d/p{number + 1}")
    found = find_pages(CrawlSource(url=start, max_pages=5), TRUSTING)
    assert len(site.requests) <= 3 * 5 + 100 + 1
    if kind != "redirects":  # these fail, which counts as well
        assert "it took too many requests" in str(found.notes)


@pytest.mark.parametrize("way", ["redirect", "meta"])
def test_a_redirect_leads_only_where_a_link_could(library: Library, site: Site, way: str) -> None:
    site.answer("/robots.txt", Answer(b"User-agent: *\nDisallow: /d/private/\n", kind="text/plain"))
    targets = {"a": "/d/private/x", "b": "/outside/x", "c": "/d/old/x", "e": "/d/good"}
    links = "".join(f"<a href={name}>x</a>" for name in targets)
    start = site.put("/d/", f"<p>start {links}")
    for name, target in targets.items():
        site.put(target, f"<p>page {target}")
        if way == "redirect":
            site.redirect(f"/d/{name}", target)
        else:
            site.put(f"/d/{name}", f"<meta http-equiv=refresh content='0; url={target}'>")
    source = CrawlSource(url=start, exclude=("old/**",))
    create_topic(library, request(source), yes)
    assert {text.split()[-1] for text in files_of(library).values() if "page" in text} == {
        "/d/good"
    }
    # Not asked for either: the server would have answered.
    assert {"GET /d/private/x", "GET /outside/x", "GET /d/old/x"}.isdisjoint(site.requests)


def test_a_bad_header_of_an_optional_list_does_not_end_a_crawl(site: Site) -> None:
    start = site.put("/d/", "<p>start")
    head = f"Content-Type: text/plain; charset*{'9' * 5_000}*=x"
    site.answer("/llms.txt", raw(head, b"# x"))
    site.answer("/sitemap.xml", raw("Content-Encoding: gzip", b"\x1f\x8bjunk"))
    assert len(find_pages(CrawlSource(url=start), TRUSTING).pages) == 1


def test_a_robots_txt_of_many_rules_is_refused() -> None:
    rules = "".join(f"Disallow: /{n}\n" for n in range(MAX_RULES))
    with pytest.raises(ValueError, match="over 5,000 rules"):
        parse_robots(f"User-agent: *\n{rules}")
    assert parse_robots(f"User-agent: foo\n{rules}").can_fetch("http://h/1", "llm-kb")


@pytest.mark.parametrize("agent", ["User-agent: {}\n", "User-agent: *\nUser-agent: {}\n"])
def test_agents_and_rules_of_a_robots_txt_do_not_multiply(agent: str) -> None:
    """A parser adds each rule of a group to each of its agents."""

    def spend(many: int) -> None:
        agents = "".join(agent.format(f"a{n}") for n in range(many))
        parse_robots(agents + "".join(f"Allow: /{n}\n" for n in range(many)))

    with at_most(0.5):
        spend(2_000)
    assert peak_of(lambda: spend(2_000)) < 2.5 * peak_of(lambda: spend(1_000))


@pytest.mark.slow
def test_patterns_and_links_do_not_multiply(site: Site) -> None:
    """A list of pages as long as it may be, with as many patterns as a source may have."""
    deep = "/".join(["a"] * 450)
    links = "".join(f"- [x]({deep}/{n}/{deep})\n" for n in range(270))
    start = site.put("/d/", "<p>start")
    site.answer("/d/llms.txt", Answer(f"# Pages\n{links}".encode(), kind="text/plain"))
    source = CrawlSource(url=start, include=tuple(f"**/b{n % 10}" for n in range(800)))
    policy = replace(TRUSTING, until=time.monotonic() + 1_000)
    with at_most(60):
        found = find_pages(source, policy)
    assert "stopped after 1 page: it has too many links for its patterns" in found.notes
    assert not found.is_whole


def test_a_crawl_has_no_more_patterns_than_a_person_reads() -> None:
    with pytest.raises(SourceError, match="have 6,000 characters, over 4,000"):
        CrawlSource(url="https://e.org/", include=("a" * 3_000,), exclude=("b" * 3_000,))


def test_paths_and_files_of_a_repository_do_not_multiply() -> None:
    files = [("100644", "0", f"d/{n}.md") for n in range(20_000)]
    paths = tuple(f"{n}" for n in range(1_000, 1_800))
    with at_most(1):
        chosen, notes = select_files(GitSource(url="https://e.org/r", paths=paths), files)
    assert (chosen, len(notes)) == ({}, 800)


def test_editions_and_files_of_a_repository_do_not_multiply() -> None:
    names = [f"{n}/{name}/a.md" for n in range(5_000) for name in ("en", "de")]
    files = [("100644", "0", name) for name in names]
    with at_most(2):
        chosen, _ = select_files(GitSource(url="https://e.org/r"), files)
    assert len(chosen) == 5_000


def test_git_follows_no_redirect_and_says_so(library: Library, site: Site) -> None:
    service = "/r/info/refs?service=git-upload-pack"
    site.redirect(service, f"{site.url}/s/info/refs?service=git-upload-pack", 301)
    with pytest.raises(NothingFetchedError, match="The repository has moved"):
        plan_topic(library, request(GitSource(url=f"{site.url}/r")))
    assert site.requests == [f"GET {service}"]


def test_git_sends_no_password_of_netrc(library: Library, site: Site, home: Path) -> None:
    """Its `default` entry is for any host, also one that a model names."""
    netrc = home / ".netrc"
    netrc.write_text("default login me password hunter2\n")
    netrc.chmod(0o600)

    def refuse(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(401)
        handler.send_header("WWW-Authenticate", 'Basic realm="x"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    path = "/r/info/refs?service=git-upload-pack"
    site.answer(path, refuse)
    with pytest.raises(NothingFetchedError):
        plan_topic(library, request(GitSource(url=f"{site.url}/r")))
    assert site.requests == [f"GET {path}"]
    assert all("authorization" not in received for received in site.received)


HELPER = "!f() {{ echo username=me; echo password=hunter2; }}; f"
SECRETS = {
    "a helper": f'[credential]\n\thelper = "{HELPER}"\n',
    "a helper of the host": f'[credential "{{url}}"]\n\thelper = "{HELPER}"\n',
    "a header": '[http]\n\textraHeader = "Authorization: Bearer hunter2"\n',
    "a header of the host": '[http "{url}"]\n\textraHeader = "Authorization: Bearer hunter2"\n',
    "a cookie": "[http]\n\tcookieFile = {home}/cookies\n",
    "a program": "[core]\n\taskPass = {home}/ask\n",
    "a rewritten address": '[url "{login}"]\n\tinsteadOf = {url}\n',
}


@pytest.mark.parametrize("variables", [False, True], ids=["file", "environment"])
@pytest.mark.parametrize("name", SECRETS)
def test_git_sends_no_secret_to_a_host_that_a_model_names(  # noqa: PLR0917 - fixtures
    name: str,
    variables: bool,
    library: Library,
    site: Site,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the user's configuration holds; a person has to have approved the host."""
    login = site.url.replace("://", "://me:hunter2@")
    text = SECRETS[name].format(url=site.url, login=login, home=home)
    (home / "cookies").write_text("127.0.0.1\tFALSE\t/\tFALSE\t9999999999\tsession\thunter2\n")
    (home / "ask").write_text("#!/bin/sh\necho hunter2\n")
    (home / "ask").chmod(0o755)
    monkeypatch.setenv("GIT_ASKPASS", str(home / "ask"))
    monkeypatch.setenv("SSH_ASKPASS", str(home / "ask"))
    place = home / ("of-variables" if variables else ".gitconfig")
    place.write_text(text)
    if variables:
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "include.path")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(place))

    def refuse(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(401)
        handler.send_header("WWW-Authenticate", 'Basic realm="x"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    path = "/r/info/refs?service=git-upload-pack"
    site.answer(path, refuse)
    message = "which git does only for a host that you appr"
    with open_remotes(library) as remotes, pytest.raises(FetchError, match=message):
        find_commit(GitSource(url=f"{site.url}/r"), remotes.policy)
    assert site.requests == [f"GET {path}"]
    assert {"authorization", "cookie"}.isdisjoint(*site.received)


def test_git_logs_in_to_a_host_that_was_approved(library: Library, site: Site, home: Path) -> None:
    create_topic(library, request(WebSource(url=site.put("/a", "<p>a")), title="A"), yes)
    (home / ".gitconfig").write_text('[http]\n\textraHeader = "Authorization: Bearer x"\n')
    trusted = approved_hosts(library)
    with open_remotes(library, trusted=trusted) as remotes, pytest.raises(FetchError):
        find_commit(GitSource(url=f"{site.url}/r"), remotes.policy)
    assert site.received[-1]["authorization"] == "Bearer x"


def test_git_still_asks_the_users_own_helper(library: Library, site: Site, home: Path) -> None:
    (home / ".git-credentials").write_text(site.url.replace("://", "://me:secret@") + "\n")
    (home / ".gitconfig").write_text("[credential]\n\thelper = store\n")

    def refuse(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(403 if "Authorization" in handler.headers else 401)
        handler.send_header("WWW-Authenticate", 'Basic realm="x"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.answer("/r/info/refs?service=git-upload-pack", refuse)
    with pytest.raises(NothingFetchedError):
        plan_topic(library, request(GitSource(url=f"{site.url}/r")))
    sent = [each["authorization"] for each in site.received if "authorization" in each]
    assert sent == [f"Basic {base64.b64encode(b'me:secret').decode()}"]
