"""A refresh of sources that were edited, have moved, or fail in part."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from llm_kb.errors import KbError
from llm_kb.references.errors import NothingFetchedError, TopicFileError
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.plan import Plan
from llm_kb.references.sources.records import CrawlSource, GitSource, WebSource
from llm_kb.references.sources.rules import page_name
from llm_kb.references.topic.topic_directory import (
    read_provenance,
)
from tests.references.conftest import Clock
from tests.references.remotes import Remote
from tests.references.requests import PAGE, differences, files_of, never, refreshed_to, request, yes
from tests.references.sites import Answer, Site, serve_site

OTHER = PAGE.replace("Hooks", "Other")
MARKDOWN = "# Hooks\n\nCall them **first**.\n"


def edit(library: Library, old: str, new: str) -> None:
    """Edit the topic's `topic.md`, as its owner may."""
    path = library.directory("topic-frob") / "topic.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refresh(library: Library) -> tuple[bool, int, int, int, tuple[str, ...]]:
    """Refresh the topic; return what the command prints of it."""
    found = refresh_topic(library, "topic-frob", never)
    counts = (found["added"], found["modified"], found["removed"])
    return found["changed"], *counts, tuple(found["warnings"])


class Operator:
    """Approves of every plan, or of none, and keeps the reasons."""

    def __init__(self, approves: bool = True) -> None:
        self.approves = approves
        self.plans: list[Plan] = []
        self.reasons: list[str] = []

    def __call__(self, plan: Plan) -> bool:
        self.plans.append(plan)
        return self.approves

    def confirm(self, reason: str) -> bool:
        """Answer a refresh."""
        self.reasons.append(reason)
        return self.approves


def host_of(site: Site) -> str:
    """Return the host and port of a site."""
    return site.url.removeprefix("http://")


# `topic.md` says what is wanted


def test_a_page_whose_address_was_edited_is_fetched_from_the_new_one(
    library: Library, site: Site
) -> None:
    first, second = site.put("/a", PAGE), site.put("/b", OTHER)
    create_topic(library, request(WebSource(url=first)), yes)
    site.requests.clear()
    edit(library, first, second)
    assert refresh(library) == (True, 1, 0, 1, ())
    assert files_of(library) == {page_name(second): "# Other\n\nCall them **first**.\n"}
    assert set(site.requests) == {"GET /b"}
    assert library.verify("topic-frob") == differences()
    assert refresh(library) == (False, 0, 0, 0, ())


def test_paths_that_were_edited_are_followed_at_the_same_commit(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url, paths=("docs/", "README.md"))), yes)
    edit(library, '"docs/", "README.md"', '"src/", "README.md"')
    assert refresh(library) == (True, 1, 0, 1, ())
    assert list(files_of(library)) == ["README.md", "src/frob.py"]
    assert refresh(library) == (False, 0, 0, 0, ())


def test_paths_are_followed_once_a_source_that_failed_answers_again(
    library: Library, remote: Remote, site: Site
) -> None:
    url = site.put("/a", PAGE)
    create_topic(
        library, request(GitSource(url=remote.url, paths=("README.md",)), WebSource(url=url)), yes
    )
    edit(library, '"README.md"]\n\n[[', '"README.md", "src/"]\n\n[[')
    away = remote.directory.rename(remote.directory.with_name("away"))
    site.put("/a", OTHER)
    assert refresh(library)[:4] == (True, 0, 1, 0)
    away.rename(remote.directory)
    assert refresh(library) == (True, 1, 0, 0, ())
    assert sorted(files_of(library)) == [page_name(url), "README.md", "src/frob.py"]


def test_a_source_that_was_taken_out_leaves_no_file_and_is_not_asked(
    library: Library, site: Site
) -> None:
    first, second = site.put("/a", PAGE), site.put("/b", OTHER)
    create_topic(library, request(WebSource(url=first), WebSource(url=second)), yes)
    edit(library, f'[[sources]]\ntype = "web"\nurl = "{first}"\n\n', "")
    site.requests.clear()
    assert refresh(library) == (True, 0, 0, 1, ())
    assert list(files_of(library)) == [page_name(second)]
    assert site.requests == ["GET /b"]
    record = read_provenance(library.directory("topic-frob")).files[page_name(second)]
    assert record.source == 0


def test_sources_in_another_order_are_the_same_and_renumbered(
    library: Library, site: Site, remote: Remote
) -> None:
    page = WebSource(url=site.put("/a", PAGE))
    create_topic(library, request(GitSource(url=remote.url, ref="main"), page), yes)
    before = files_of(library)
    swap_sources(library)
    assert refresh(library) == (False, 0, 0, 0, ())
    assert files_of(library) == before
    recorded = read_provenance(library.directory("topic-frob"))
    assert {path: record.source for path, record in recorded.files.items()} == {
        "README.md": 1,
        "docs/guide.md": 1,
        "src/frob.py": 1,
        page_name(page.url): 0,
    }
    assert [source.type for source in recorded.sources] == ["web", "git"]


def test_a_topic_that_names_no_sources_any_more_says_so(library: Library, site: Site) -> None:
    url = site.put("/a", PAGE)
    create_topic(library, request(WebSource(url=url)), yes)
    edit(library, f'[[sources]]\ntype = "web"\nurl = "{url}"\n', "")
    with pytest.raises(NothingFetchedError, match=r"\n  - its topic\.md names no sources$"):
        refresh_topic(library, "topic-frob", never)
    assert files_of(library) == {page_name(url): MARKDOWN}


def test_an_address_that_moves_on_is_followed(library: Library, site: Site) -> None:
    site.put("/v1", PAGE)
    site.put("/v2", OTHER)
    latest = site.redirect("/latest", "/v1")
    create_topic(library, request(WebSource(url=latest)), yes)
    site.requests.clear()
    assert refresh(library) == (False, 0, 0, 0, ())
    assert site.requests == ["GET /latest", "GET /v1"]
    site.redirect("/latest", "/v2")
    assert refresh(library) == (True, 1, 0, 1, ())
    assert list(files_of(library)) == [page_name(f"{site.url}/v2")]


def test_an_address_that_moves_to_a_page_with_the_same_etag_has_changed(
    library: Library, site: Site
) -> None:
    """A server may make its tags of a size, or a version of its own."""
    site.put("/v1", PAGE, ETag='"1"')
    latest = site.redirect("/latest", "/v1")
    create_topic(library, request(WebSource(url=latest)), yes)

    def same_tag(handler: Any) -> None:
        fresh = handler.headers.get("If-None-Match") == '"1"'
        answer = Answer(status=304) if fresh else Answer(OTHER.encode(), headers={"ETag": '"1"'})
        handler.send(answer)

    site.answer("/v2", same_tag)
    site.redirect("/latest", "/v2")
    assert refresh(library)[:4] == (True, 1, 0, 1)
    assert files_of(library) == {page_name(f"{site.url}/v2"): "# Other\n\nCall them **first**.\n"}


def test_an_address_that_now_leads_to_another_host_fails_until_it_is_named(
    library: Library, site: Site
) -> None:
    url = site.put("/a", PAGE)
    allowed = replace(library.settings, allow_hosts=("127.0.0.1", "localhost"))
    trusting = replace(library, settings=allowed)
    create_topic(trusting, request(WebSource(url=url)), yes)
    elsewhere = site.url.replace("127.0.0.1", "localhost") + "/b"
    host = elsewhere.removeprefix("http://").removesuffix("/b")
    site.put("/b", OTHER)
    site.redirect("/a", elsewhere)
    what = f"{elsewhere}: {host} was not approved; if you trust it, name this address"
    with pytest.raises(NothingFetchedError, match=what):
        refresh_topic(trusting, "topic-frob", never)
    assert list(files_of(library)) == [page_name(url)]
    edit(library, url, elsewhere)
    operator = Operator(False)
    with pytest.raises(KbError, match="you said no"):
        refresh_topic(trusting, "topic-frob", operator.confirm)
    assert list(files_of(library)) == [page_name(url)]
    operator = Operator()
    assert refresh_topic(trusting, "topic-frob", operator.confirm)["added"] == 1
    assert list(files_of(library)) == [page_name(elsewhere)]
    assert operator.reasons == [f"it now leads to {host}"]


def test_a_crawl_that_now_leads_to_another_host_keeps_its_files(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    with serve_site() as other:
        other.put("/new/", "<p>evil</p>")
        site.redirect("/guide/", f"{other.url}/new/")
        with pytest.raises(NothingFetchedError, match=f"{host_of(other)} was not approved"):
            refresh_topic(library, "topic-frob", never)
        assert other.requests == []
    assert files_of(library) == guide
    assert library.approved_hosts("topic-frob") == {host_of(site)}


def test_lists_on_a_host_that_was_not_approved_are_not_requested(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    with serve_site() as other:
        for name in ("llms.txt", "sitemap.xml"):
            site.redirect(f"/{name}", f"{other.url}/{name}")
        assert refresh(library) == (False, 0, 0, 0, ())
        assert other.requests == []
    assert files_of(library) == guide


def test_a_robots_txt_on_a_host_that_was_not_approved_fails_the_crawl(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    with serve_site() as other:
        other.put("/robots.txt", "User-agent: *\nDisallow: /x")
        site.redirect("/robots.txt", f"{other.url}/robots.txt")
        what = f"robots.txt: {host_of(other)} was not approved"
        with pytest.raises(NothingFetchedError, match=what):
            refresh_topic(library, "topic-frob", never)
        assert other.requests == []
    assert files_of(library) == guide


def test_a_host_that_a_plan_showed_is_not_asked_about_again(library: Library, site: Site) -> None:
    """Neither that of robots.txt nor those that redirects only lead through."""
    operator = Operator()
    with serve_site() as first, serve_site() as other:
        other.put("/robots.txt", "User-agent: *\nDisallow: /guide/p3")
        first.redirect("/robots.txt", f"{other.url}/robots.txt")
        site.redirect("/robots.txt", f"{first.url}/robots.txt")
        page = site.redirect("/a", f"{first.url}/a")
        first.put("/a", f'<meta http-equiv=refresh content="0; url={site.url}/b">')
        site.put("/b", OTHER)
        create_topic(library, request(serve_guide(site), WebSource(url=page)), operator)
        assert operator.plans[0].hosts == (host_of(site), host_of(first), host_of(other))
        crawled, read = operator.plans[0].sources
        assert crawled.notes[0] == f"its robots.txt is on {host_of(other)}"
        assert read.hosts == (host_of(site), host_of(first))
        assert refresh(library) == (False, 0, 0, 0, ())
        site.put("/guide/p2", PAGE)
        assert refresh(library) == (True, 0, 1, 0, ())
    assert library.approved_hosts("topic-frob") == set(operator.plans[0].hosts)


def test_a_host_stays_approved_when_its_source_fails(library: Library, site: Site) -> None:
    with serve_site() as other:
        other.put("/robots.txt", "User-agent: *\nDisallow: /guide/p3")
        site.redirect("/robots.txt", f"{other.url}/robots.txt")
        page = site.put("/a", OTHER)
        create_topic(library, request(serve_guide(site), WebSource(url=page)), yes)
        first = site.answer("/guide/", Answer(status=503))
        site.put("/a", PAGE)
        failure = f"cannot fetch {first}: the server answered 503"
        assert refresh(library) == (True, 0, 1, 0, (failure,))
        serve_guide(site)
        assert refresh(library) == (False, 0, 0, 0, ())


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Remote, Remote]:
    """Two repositories of one name, each with a README and a file that only it has."""
    remotes = Remote(tmp_path / "0" / "docs"), Remote(tmp_path / "1" / "docs")
    for number, remote in enumerate(remotes):
        remote.write({"README.md": f"# {number}\n", f"only{number}.md": "x\n"})
    return remotes


def swap_sources(library: Library) -> None:
    text = library.read_text("topic-frob")
    head, first, rest = text.split("[[sources]]\n")
    second, body = rest.split("+++")
    swapped = f"{head}[[sources]]\n{second}\n[[sources]]\n{first}+++{body}"
    (library.directory("topic-frob") / "topic.md").write_text(swapped)


@pytest.mark.parametrize("down", [0, 1])
def test_sources_that_change_places_while_one_is_down_keep_their_folders(
    library: Library, twins: tuple[Remote, Remote], down: int
) -> None:
    create_topic(library, request(*(GitSource(url=remote.url) for remote in twins)), yes)
    before = files_of(library)
    assert sorted(before) == [
        *("docs-2/README.md", "docs-2/only1.md", "docs/README.md", "docs/only0.md")
    ]
    swap_sources(library)
    away = twins[down].directory.rename(twins[down].directory.with_name("away"))
    twins[1 - down].write({"README.md": "# new\n"})
    found = refresh(library)
    changed = before | {("docs/README.md" if down else "docs-2/README.md"): "# new\n"}
    assert (found[:4], len(found[4])) == ((True, 0, 1, 0), 1)
    assert files_of(library) == changed
    away.rename(twins[down].directory)
    assert refresh(library) == (False, 0, 0, 0, ())
    assert files_of(library) == changed
    assert library.verify("topic-frob") == differences()


def test_a_repository_that_was_added_takes_no_folder_of_one_that_is_down(
    library: Library, remote: Remote, twins: tuple[Remote, Remote]
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    before = files_of(library)
    assert "docs/guide.md" in before
    twins[0].write({"guide.md": "# Another\n"})
    added = f'[[sources]]\ntype = "git"\nurl = "{twins[0].url}"\n\n[[sources]]'
    edit(library, "[[sources]]", added)
    remote.directory.rename(remote.directory.with_name("away"))
    library.approve_hosts("topic-frob", [twins[0].url])
    assert refresh(library)[:4] == (True, 3, 0, 0)
    files = files_of(library)
    assert before.items() < files.items()
    assert files["docs-2/guide.md"] == "# Another\n"


# Sources that fail in part


def serve_guide(site: Site) -> CrawlSource:
    """Serve six pages: the first leads to p1 to p4, and p1 to p5."""
    links = "".join(f"<a href='p{n}'>{n}</a>" for n in range(1, 5))
    start = site.put("/guide/", f"<p>start {links}</p>")
    site.put("/guide/p1", "<p>one <a href='p5'>5</a></p>")
    for n in range(2, 6):
        site.put(f"/guide/p{n}", f"<p>page {n}</p>")
    return CrawlSource(url=start)


@pytest.fixture
def guide(library: Library, site: Site) -> dict[str, str]:
    """The files of a topic made of a crawl of six pages."""
    create_topic(library, request(serve_guide(site)), yes)
    files = files_of(library)
    assert len(files) == 6
    return files


@pytest.mark.parametrize("status", [429, 503])
def test_a_site_that_asks_for_fewer_requests_is_left_alone_and_its_files_stay(
    library: Library, site: Site, guide: dict[str, str], status: int
) -> None:
    for n in (2, 3, 4):
        site.answer(f"/guide/p{n}", Answer(status=status))
    site.put("/guide/p5", "<p>page 5, changed</p>")
    *_, stopped = refresh(library)[-1]
    assert stopped == (
        f"{site.url}/guide/: stopped after 2 pages: the site asks for fewer requests;"
        " files of others are kept"
    )
    assert files_of(library) == guide


@pytest.mark.parametrize("status", [403, 500])
def test_pages_that_fail_keep_their_files(
    library: Library, site: Site, clock: Clock, guide: dict[str, str], status: int
) -> None:
    for n in (2, 3, 4):
        site.answer(f"/guide/p{n}", Answer(status=status))
    fetched_at = library.read("topic-frob").fetched_at
    clock.now += timedelta(days=1)
    warnings = tuple(
        f"cannot fetch {site.url}/guide/p{n}: the server answered {status}; "
        "its file is kept as it was"
        for n in (2, 3, 4)
    )
    assert refresh(library) == (False, 0, 0, 0, warnings)
    assert files_of(library) == guide
    assert library.read("topic-frob").fetched_at == fetched_at

    site.put("/guide/p5", "<p>page 5, changed</p>")
    assert refresh(library) == (True, 0, 1, 0, warnings)
    changed = {k: v.replace("page 5", "page 5, changed") for k, v in guide.items()}
    assert files_of(library) == changed
    assert library.read("topic-frob").fetched_at == fetched_at
    assert library.verify("topic-frob") == differences()


def test_a_page_that_leads_to_another_host_keeps_its_file_and_asks_nothing_there(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    site.put("/login", "<p>log in</p>")
    for n in (1, 5):  # p5 is of the last level
        site.redirect(f"/guide/p{n}", f"{elsewhere}/login")
    site.requests.clear()
    found = refresh(library)
    assert (found[:4], len(found[4])) == ((False, 0, 0, 0), 1)
    assert files_of(library) == guide
    assert not any("/login" in asked for asked in site.requests)


def test_max_pages_holds_while_a_page_fails(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    edit(library, "max_pages = 50", "max_pages = 3")
    site.answer("/guide/p1", Answer(status=503))
    refresh(library)
    assert len(files_of(library)) == 3


def test_pages_behind_one_that_fails_are_kept(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    site.answer("/guide/p1", Answer(status=503))
    assert refresh(library)[:4] == (False, 0, 0, 0)
    assert files_of(library) == guide


@pytest.mark.parametrize("status", [404, 410])
def test_pages_that_are_gone_or_no_longer_linked_are_removed(
    library: Library, site: Site, guide: dict[str, str], status: int
) -> None:
    site.answer("/guide/p4", Answer(status=status))
    site.put("/guide/p1", "<p>one</p>")
    # The page that led to one that is gone has its address again.
    assert refresh(library) == (True, 0, 2, 2, ())
    # Also while another page fails.
    site.answer("/guide/p2", Answer(status=503))
    site.answer("/guide/p3", Answer(status=status))
    found = refresh(library)
    assert found[:4] == (True, 0, 1, 1)
    assert len(files_of(library)) == 3


def test_a_first_page_that_fails_keeps_everything_and_says_why(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    page = site.answers["/guide/"]

    def only_head(handler: Any) -> None:
        is_head = handler.command == "HEAD"
        handler.send(page if is_head else Answer(status=503))

    site.answer("/guide/", only_head)
    with pytest.raises(NothingFetchedError) as caught:
        refresh_topic(library, "topic-frob", never)
    assert caught.value.reasons == (f"{site.url}/guide/: the server answered 503",)
    assert files_of(library) == guide


def test_a_page_that_never_had_text_makes_no_refresh_a_change(
    library: Library, site: Site, clock: Clock
) -> None:
    source = serve_guide(site)
    site.put("/guide/p2", "<script>draw()</script>")
    create_topic(library, request(source), yes)
    clock.now += timedelta(days=1)
    assert refresh(library) == (False, 0, 0, 0, ())
    assert library.read("topic-frob").fetched_at == clock.now


def test_a_page_that_lost_its_text_keeps_its_file(
    library: Library, site: Site, guide: dict[str, str]
) -> None:
    site.put("/guide/p2", "<script>draw()</script>")
    changed, *_, warnings = refresh(library)
    assert not changed
    assert len(warnings) == 1
    assert files_of(library) == guide


def test_a_list_of_pages_that_fails_drops_none_of_them(library: Library, site: Site) -> None:
    start = site.put("/docs/", "<p>start</p>")
    site.put("/docs/llms.txt", "# Docs\n\n- [One](one.md)\n- [Two](two.md)\n")
    for name in ("one", "two"):
        site.answer(f"/docs/{name}.md", Answer(name.encode(), kind="text/markdown"))
    create_topic(library, request(CrawlSource(url=start)), yes)
    assert len(files_of(library)) == 3
    site.answer("/docs/llms.txt", Answer(status=503))
    assert refresh(library) == (False, 0, 0, 0, ())
    assert len(files_of(library)) == 3


def test_a_repository_that_is_empty_now_keeps_its_files(
    library: Library, remote: Remote, site: Site
) -> None:
    url = site.put("/a", PAGE)
    create_topic(library, request(GitSource(url=remote.url), WebSource(url=url)), yes)
    before = files_of(library)
    remote.git("rm", "--quiet", "-r", ".")
    remote.git("commit", "--quiet", "-m", "empty")
    problem = f"cannot fetch {remote.url}: it has no file to fetch"
    assert refresh(library) == (False, 0, 0, 0, (problem,))
    site.put("/a", OTHER)
    assert refresh(library) == (True, 0, 1, 0, (problem,))
    assert files_of(library).keys() == before.keys()


def test_a_file_that_became_something_else_is_fetched_again(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    before = files_of(library)
    path = library.directory("topic-frob") / "README.md"
    path.unlink()
    os.mkfifo(path)
    assert refresh_topic(library, "topic-frob", never) == refreshed_to(modified=1, file_count=3)
    assert files_of(library) == before


def test_sources_edited_while_they_are_fetched_leave_the_topic_as_it_was(
    library: Library, remote: Remote, site: Site
) -> None:
    url = site.put("/a", PAGE)
    create_topic(library, request(GitSource(url=remote.url), WebSource(url=url)), yes)
    before = files_of(library)

    def edit_meanwhile(handler: Any) -> None:
        edit(library, f'[[sources]]\ntype = "web"\nurl = "{url}"\n', "")
        handler.send(Answer(OTHER.encode()))

    site.answer("/a", edit_meanwhile)
    with pytest.raises(TopicFileError, match="its sources were edited while they were fetched"):
        refresh_topic(library, "topic-frob", never)
    assert files_of(library) == before
