"""Creating, changing and deleting topics, from real sources."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm_kb.errors import KbError
from llm_kb.references.errors import (
    ApprovalNeededError,
    DeniedError,
    NothingFetchedError,
    TooLargeError,
    TopicFileError,
    UnknownPlanError,
    UnknownReferenceError,
)
from llm_kb.references.fetch.create import carry_out, create_topic, propose_topic
from llm_kb.references.library import Library
from llm_kb.references.plan import PendingPlans, Plan, describe_plan, summarize_plan
from llm_kb.references.sources.records import CrawlSource, GitSource, WebSource
from llm_kb.references.topic.topic_directory import hash_fetched, read_provenance
from tests.references.remotes import Remote
from tests.references.requests import (
    PAGE,
    differences,
    files_of,
    keep_waiting,
    never,
    plan_topic,
    request,
    store_plan,
    yes,
)
from tests.references.sites import Answer, Site


def test_a_repository_is_fetched_whole_and_its_commit_recorded(
    library: Library, remote: Remote
) -> None:
    created = create_topic(library, request(GitSource(url=remote.url, ref="main")), yes)

    assert created == {"topic_id": "topic-frob", "file_count": 3, "chunk_count": 3}
    assert files_of(library) == {
        "README.md": "# Frob\n\nFrobnicates widgets.\n",
        "docs/guide.md": "# Guide\n\n## Lifecycle hooks\n\nCall `on_mount` first.\n",
        "src/frob.py": "def frobnicate(widget):\n    return widget\n",
    }
    topic = library.read("topic-frob")
    assert topic.sources == (GitSource(url=remote.url, ref="main", commit=remote.commit),)
    assert topic.files == ("README.md", "docs/guide.md", "src/frob.py")
    record = read_provenance(library.directory("topic-frob")).files["README.md"]
    assert (record.url, record.revision, record.commit) == (remote.url, "main", remote.commit)
    assert record.fetched_at == "2025-06-15T10:00:00Z"
    assert library.verify("topic-frob") == differences()


@pytest.mark.parametrize(
    ("paths", "files"),
    [
        pytest.param(("docs/",), ["docs/guide.md"], id="directory"),
        pytest.param(("docs",), ["docs/guide.md"], id="directory without slash"),
        pytest.param(("README.md", "src/"), ["README.md", "src/frob.py"], id="file and directory"),
        pytest.param(("README",), None, id="no prefix of a name"),
    ],
)
def test_paths_choose_what_is_planned_and_fetched(
    library: Library, remote: Remote, paths: tuple[str, ...], files: list[str] | None
) -> None:
    wanted = request(GitSource(url=remote.url, paths=paths))
    if files is None:
        with pytest.raises(NothingFetchedError, match="no file matches the path 'README'"):
            create_topic(library, wanted, never)
        return
    plan = plan_topic(library, wanted)
    create_topic(library, wanted, yes)
    assert list(files_of(library)) == files
    assert plan.files == len(files)
    assert plan.size == sum(len(text) for text in files_of(library).values())


def test_a_page_becomes_markdown_under_a_name_made_of_its_url(library: Library, site: Site) -> None:
    url = site.put("/learn/0.6/", PAGE)
    create_topic(library, request(WebSource(url=url)), yes)
    name = f"127-0-0-1-{site.url.rpartition(':')[2]}-learn-0-6.md"
    assert files_of(library) == {name: "# Hooks\n\nCall them **first**.\n"}


def test_several_repositories_get_a_folder_each_and_pages_none(
    library: Library, remote: Remote, site: Site, tmp_path: Path
) -> None:
    other = Remote(tmp_path / "elsewhere" / "frob")
    other.write({"README.md": "other"})
    sources = (
        GitSource(url=remote.url, paths=("README.md",)),
        GitSource(url=other.url),
        WebSource(url=site.put("/a", PAGE)),
    )
    create_topic(library, request(*sources), yes)
    assert [name.partition("127")[0] for name in files_of(library)] == [
        "",
        "frob/README.md",
        "frob-2/README.md",
    ]


@pytest.mark.parametrize("name", ["topic.md", ".provenance.json", "TOPIC.MD"])
def test_files_that_would_replace_ours_get_a_folder(
    library: Library, tmp_path: Path, name: str
) -> None:
    remote = Remote(tmp_path / "hostile")
    remote.write({name: "+++\nid = 'x'\n+++\n", "a.md": "a"})
    create_topic(library, request(GitSource(url=remote.url)), yes)
    assert library.read("topic-frob").title == "Frob"
    assert set(hash_fetched(library.directory("topic-frob"))) == {
        f"hostile/{name}",
        "hostile/a.md",
    }


def test_a_crawl_stays_on_the_host_below_the_page_and_keeps_to_robots(
    library: Library, site: Site
) -> None:
    site.put("/robots.txt", "User-agent: *\nDisallow: /docs/secret")
    start = site.put(
        "/docs/",
        "<p>start <a href='a.html'>a</a> <a href='secret.html'>s</a> <a href='/other'>o</a>"
        "<a href='https://example.com/docs/x'>e</a> <a href='logo.png'>l</a></p>",
    )
    site.put("/docs/a.html", "<p>a <a href='b.html#part'>b</a></p>")
    site.put("/docs/b.html", "<p>b <a href='c.html'>c</a></p>")
    site.put("/docs/c.html", "<p>too deep</p>")
    site.put("/docs/secret.html", "<p>secret</p>")
    created = create_topic(library, request(CrawlSource(url=start, depth=2)), yes)
    assert created["file_count"] == 3
    folder = f"127-0-0-1-{site.url.rpartition(':')[2]}"
    assert list(files_of(library)) == [f"{folder}/docs/{x}.md" for x in ("a", "b", "index")]
    asked = {line.split()[1] for line in site.requests}
    assert not asked & {"/docs/secret.html", "/other", "/docs/c.html", "/docs/logo.png"}


def test_a_crawl_takes_the_pages_that_llms_txt_lists(library: Library, site: Site) -> None:
    start = site.put("/docs/", "<p>start</p>")
    site.put("/docs/llms.txt", "# Docs\n\n- [One](one.md): first\n- [Far](https://e.org/x.md)\n")
    site.answer("/docs/one.md", Answer(b"# One\n\nas *Markdown*", kind="text/markdown"))
    plan = plan_topic(library, request(CrawlSource(url=start, depth=0)))
    assert (plan.files, plan.sources[0].notes) == (2, ("pages as listed in llms.txt",))


def test_a_crawl_asks_for_each_page_once(library: Library, site: Site) -> None:
    """What was read for the plan is what is fetched."""
    start = site.put("/d/", "<p>start <a href=a>a</a> <a href=b>b</a>")
    for name in "ab":
        site.put(f"/d/{name}", f"<p>page {name}")
    create_topic(library, request(CrawlSource(url=start)), yes)
    pages = [line for line in site.requests if line.startswith("GET /d/") and "." not in line]
    assert sorted(pages) == ["GET /d/", "GET /d/a", "GET /d/b"]
    assert sorted(files_of(library).values()) == [
        "page a\n",
        "page b\n",
        "start [a](a.md) [b](b.md)\n",
    ]


def test_a_crawl_stops_at_max_pages_and_says_so(library: Library, site: Site) -> None:
    start = site.put("/d/", "".join(f"<a href='{n}.html'>{n}</a>" for n in range(9)))
    for n in range(9):
        site.put(f"/d/{n}.html", f"<p>{n}</p>")
    plan = plan_topic(library, request(CrawlSource(url=start, max_pages=4)))
    assert (plan.files, plan.sources[0].notes) == (
        4,
        ("stopped at 4 pages; max_pages allows more", "passed over: 6 links (6 not read)"),
    )


# What goes wrong


def test_one_failing_source_is_a_warning(library: Library, remote: Remote, site: Site) -> None:
    missing = WebSource(url=f"{site.url}/missing")
    created = create_topic(library, request(GitSource(url=remote.url), missing), yes)
    assert created["file_count"] == 3
    assert created["warnings"] == [f"cannot fetch {site.url}/missing: the server answered 404"]


def test_all_sources_failing_is_an_error_and_nobody_is_asked(library: Library, site: Site) -> None:
    sources = (WebSource(url=f"{site.url}/a"), WebSource(url=f"{site.url}/b"))
    with pytest.raises(NothingFetchedError) as caught:
        create_topic(library, request(*sources), never)
    assert caught.value.reasons == tuple(
        f"{source.url}: the server answered 404" for source in sources
    )
    assert library.ids() == []


def test_an_empty_repository_is_an_error(library: Library, tmp_path: Path) -> None:
    remote = Remote(tmp_path / "empty")
    remote.write({})
    with pytest.raises(NothingFetchedError, match="it has no file to fetch"):
        create_topic(library, request(GitSource(url=remote.url)), never)


def test_denial_fetches_nothing_and_suggests_paths(library: Library, remote: Remote) -> None:
    with pytest.raises(DeniedError, match="`paths` filter"):
        create_topic(library, request(GitSource(url=remote.url)), lambda plan: False)
    assert library.ids() == []
    assert list((library.root / ".staging").iterdir()) == []


def test_a_topic_is_created_once(library: Library, remote: Remote) -> None:
    wanted = request(GitSource(url=remote.url))
    first = create_topic(library, wanted, yes)
    with pytest.raises(KbError, match="llm kb references refresh topic-frob"):
        create_topic(library, wanted, never)
    assert propose_topic(library, wanted, never) == first
    with pytest.raises(KbError, match="topic-frob"):
        propose_topic(library, replace(wanted, body="Another."), never)


def test_a_title_that_comes_to_the_id_of_another_is_told_which(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url), title="C++"), yes)
    with pytest.raises(KbError, match=re.escape("'topic-frob' already ('C++'): search")):
        create_topic(library, request(GitSource(url=remote.url), title="C#"), never)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        pytest.param({"max_files": 2}, "3 files, over max_files", id="files"),
        pytest.param({"max_bytes": 100}, "over max_bytes", id="bytes"),
    ],
)
def test_limits_hold_before_anybody_is_asked(
    library: Library, remote: Remote, limits: dict[str, Any], message: str
) -> None:
    limited = replace(library, settings=replace(library.settings, **limits))
    with pytest.raises((TooLargeError, NothingFetchedError), match=message):
        create_topic(limited, request(GitSource(url=remote.url)), never)


# Plans and approval


def test_a_plan_has_exact_figures_and_keeps_nothing(library: Library, remote: Remote) -> None:
    plan = plan_topic(library, request(GitSource(url=remote.url)))
    assert (plan.files, plan.size) == (3, 123)
    assert summarize_plan(plan) == f"{remote.url} (3 files, 123 B)"
    assert {path.name for path in library.root.rglob("*")} == {".locks", ".staging"}


def test_a_pending_plan_is_carried_out_once(library: Library, remote: Remote) -> None:
    plan = store_plan(library, request(GitSource(url=remote.url)))
    carry_out(library, plan.id, yes)
    assert list(files_of(library)) == ["README.md", "docs/guide.md", "src/frob.py"]
    assert library.verify("topic-frob") == differences()
    with pytest.raises(UnknownPlanError, match="it was used or dropped"):
        carry_out(library, plan.id, yes)


@pytest.mark.parametrize("later", [False, True], ids=["same plan", "later commit"])
def test_a_topic_once_made_leaves_no_plan_that_could_bring_it_back(
    library: Library, remote: Remote, later: bool
) -> None:
    wanted = request(GitSource(url=remote.url))
    plan = store_plan(library, replace(wanted, created_by={"ghost": "a model"}))
    other = store_plan(library, replace(wanted, id="topic-other", title="Other"))
    if later:
        remote.write({"later.md": "later"})
    create_topic(library, wanted, yes)
    library.delete("topic-frob")
    with pytest.raises(UnknownPlanError, match="it was used or dropped"):
        carry_out(library, plan.id, yes)
    assert list(PendingPlans(library).read_all()[0]) == [other]


def test_a_denied_request_leaves_its_plan(library: Library, remote: Remote) -> None:
    wanted = request(GitSource(url=remote.url))
    plan = store_plan(library, wanted)
    remote.write({"README.md": "# Changed\n"})
    with pytest.raises(DeniedError):
        create_topic(library, wanted, lambda plan: False)
    assert list(PendingPlans(library).read_all()[0]) == [plan]


def test_a_model_that_repeats_its_call_gets_the_plan_that_waits(
    library: Library, site: Site
) -> None:
    wanted = request(WebSource(url=site.put("/a", PAGE)))
    plan = store_plan(library, wanted)
    with pytest.raises(ApprovalNeededError, match=plan.id):
        propose_topic(library, wanted, keep_waiting(library))
    assert site.requests == []
    PendingPlans(library).approve(plan.id)
    assert propose_topic(library, wanted, never)["file_count"] == 1
    assert propose_topic(library, wanted, never)["file_count"] == 1


def test_a_waiting_plan_that_is_denied_is_deleted(library: Library, site: Site) -> None:
    wanted = request(WebSource(url=site.put("/a", PAGE)))
    store_plan(library, wanted)
    with pytest.raises(DeniedError):
        propose_topic(library, wanted, lambda plan: False)
    assert PendingPlans(library).read_all() == ([], [])
    assert list((library.root / ".pending").iterdir()) == []


def test_a_plan_is_used_up_although_the_index_was_interrupted(
    library: Library, remote: Remote
) -> None:
    plan = store_plan(library, request(GitSource(url=remote.url)))

    def interrupt(step: str, done: int, total: int) -> None:
        if step == "Indexing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(library, plan.id, yes, interrupt)
    assert (library.ids(), PendingPlans(library).read_all()[0]) == (["topic-frob"], [])


def test_a_plan_whose_execution_failed_still_waits(library: Library, remote: Remote) -> None:
    plan = store_plan(library, request(GitSource(url=remote.url)))
    library.directory("topic-frob").mkdir()
    with pytest.raises(TopicFileError):
        carry_out(library, plan.id, yes)
    library.directory("topic-frob").rmdir()
    assert list(PendingPlans(library).read_all()[0]) == [plan]
    assert carry_out(library, plan.id, yes)["file_count"] == 3


def test_a_plan_changed_on_disk_is_refused(library: Library, remote: Remote) -> None:
    plan = store_plan(library, request(GitSource(url=remote.url, paths=("docs/",))))
    path = library.root / ".pending" / f"{plan.id}.json"
    path.write_text(path.read_text().replace('"docs/"', '"src/"'))
    with pytest.raises(UnknownPlanError, match="changed since it was planned"):
        carry_out(library, plan.id, yes)


def test_an_approval_is_used_once(library: Library, remote: Remote) -> None:
    wanted = request(GitSource(url=remote.url))
    plan = store_plan(library, wanted)
    PendingPlans(library).approve(plan.id)
    assert propose_topic(library, wanted, never)["file_count"] == 3
    library.delete("topic-frob")
    with pytest.raises(AssertionError, match="nobody should be asked"):
        propose_topic(library, wanted, never)


def test_pages_are_kept_as_they_were_shown(library: Library, site: Site) -> None:
    """Whatever their server does after the plan: they change, grow, move or are gone."""
    names = ["change", "grow", "move", "go"]
    start = site.put("/d/", "<p>d " + "".join(f"<a href={name}>x</a>" for name in names))
    for name in names:
        site.put(f"/d/{name}", f"<p>{name}, as shown</p>")
    asked: list[str] = []

    def approve(plan: Plan) -> bool:
        asked.append(describe_plan(plan))
        site.put("/d/change", "<p>evil</p>")
        site.put("/d/grow", "<p>" + "evil " * 50_000)
        site.redirect("/d/move", site.url.replace("127.0.0.1", "localhost") + "/evil")
        site.answer("/d/go", Answer(status=404))
        site.requests.clear()
        return True

    create_topic(library, request(CrawlSource(url=start)), approve)
    assert (len(asked), site.requests) == (1, [])
    texts = files_of(library).values()
    assert sum("as shown" in text for text in texts) == 4


# Change and deletion


def test_update_changes_what_is_said_and_nothing_else(library: Library, remote: Remote) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    before = library.read("topic-frob")
    after = library.update("topic-frob", {"status": "obsolete", "tags": ("y",)}, "New words.")
    assert after == replace(before, status=after.status, tags=("y",), body="# Frob\n\nNew words.\n")
    assert after.status.value == "obsolete"


def test_delete_removes_files_and_index(library: Library, remote: Remote) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    library.delete("topic-frob")
    assert library.ids() == []
    assert [p.name for p in library.root.rglob("*") if p.is_file()] == []
    with pytest.raises(UnknownReferenceError, match="available: none"):
        library.delete("topic-frob")


@pytest.mark.parametrize("topic_id", ["../x", "a/b", "..", ".index", "", "a\0b", "/etc"])
def test_an_id_that_leads_outside_names_nothing(library: Library, topic_id: str) -> None:
    for act in (library.delete, library.verify, library.read):
        with pytest.raises(UnknownReferenceError):
            act(topic_id)
