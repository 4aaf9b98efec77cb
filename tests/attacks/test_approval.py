"""An operator approves exactly the plan that was shown, once, and no text can disguise it."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import llm
import pytest

from llm_kb.errors import KbError
from llm_kb.references.calls import current_library
from llm_kb.references.errors import (
    ApprovalNeededError,
    DeniedError,
    NothingFetchedError,
    TopicFileError,
    UnknownPlanError,
)
from llm_kb.references.fetch import sources
from llm_kb.references.fetch.create import (
    approved_hosts,
    carry_out,
    create_topic,
    propose_topic,
    refresh_topic,
)
from llm_kb.references.library import Library, remove
from llm_kb.references.plan import (
    MAX_WAITING,
    PendingPlans,
    Plan,
    PlannedSource,
    describe_plan,
    plan_table,
    render_plan,
    summarize_plan,
)
from llm_kb.references.settings import References
from llm_kb.references.sources import packages
from llm_kb.references.sources.records import (
    CrawlSource,
    GitSource,
    PackageSource,
    Source,
    WebSource,
)
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.toolbox import make_references
from llm_kb.references.topic.topic_directory import read_provenance
from llm_kb.references.topic.topic_file import parse_request
from tests.conftest import RunLlm
from tests.references.remotes import Remote
from tests.references.requests import (
    PAGE,
    files_of,
    keep_waiting,
    never,
    request,
    store_plan,
    use_up,
    yes,
)
from tests.references.sites import Answer, Site, serve_site
from tests.terminal import run_on_terminal

NOW = datetime.now(timezone.utc)


def planned(*sources: Source, title: str = "Frob", notes: tuple[str, ...] = ()) -> Plan:
    """Return a plan in which every source has one file."""
    return Plan(
        request=replace(request(*sources), title=title),
        sources=tuple(
            PlannedSource(
                source=source, files=1, size=45, hosts=(host_and_port(source.url),), notes=notes
            )
            for source in sources
        ),
    )


WEB = WebSource(url="https://e.org/a")
PLAN = planned(WEB)


@pytest.fixture
def pending(tmp_path: Path) -> PendingPlans:
    """The plans of a user, none so far."""
    return PendingPlans(Library(root=tmp_path, settings=References(), clock=lambda: NOW))


def set_age(pending: PendingPlans, plan: Plan, age: timedelta) -> None:
    """Make the file of a plan this old."""
    at = (NOW - age).timestamp()
    os.utime(pending.directory / f"{plan.id}.json", (at, at))


def store(pending: PendingPlans, plan: Plan) -> None:
    """Store a plan at the time of the clock."""
    pending.ask_later(plan)
    set_age(pending, plan, timedelta())


def test_an_id_is_too_long_to_find_two_plans_for() -> None:
    assert len(PLAN.id) * 4 >= 128


def test_another_plan_under_the_same_id_is_refused(pending: PendingPlans) -> None:
    store(pending, PLAN)
    path = pending.directory / f"{PLAN.id}.json"
    other = json.loads(path.read_text())
    other["plan"] = plan_table(planned(WebSource(url="https://evil.example/")))
    path.write_text(json.dumps(other))
    with pytest.raises(UnknownPlanError, match="was changed since it was planned"):
        use_up(pending, PLAN)


def test_a_plan_that_waits_is_never_replaced(pending: PendingPlans) -> None:
    store(pending, PLAN)
    path = pending.directory / f"{PLAN.id}.json"
    before = (path.read_bytes(), path.stat().st_ino)
    pending.ask_later(PLAN)
    assert (path.read_bytes(), path.stat().st_ino) == before
    path.write_text("{}")
    with pytest.raises(UnknownPlanError, match="cannot be used"):
        pending.ask_later(PLAN)
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    ("age", "is_there"),
    [
        (timedelta(), True),
        (timedelta(days=6, hours=23), True),
        (timedelta(days=7, minutes=1), False),
        (timedelta(days=-400), True),
    ],
)
def test_a_plan_waits_for_seven_days(pending: PendingPlans, age: timedelta, is_there: bool) -> None:
    store(pending, PLAN)
    set_age(pending, PLAN, age)
    if is_there:
        assert pending.read(PLAN.id) == PLAN
    else:
        with pytest.raises(UnknownPlanError, match="or has expired"):
            use_up(pending, PLAN)
        assert pending.find(PLAN.request) is None
    assert (len(pending.read_all()[0]), pending.read_all()[1]) == (int(is_there), [])


def test_so_many_plans_wait_and_no_more(pending: PendingPlans) -> None:
    plans = [planned(WEB, title=f"Frob {number}") for number in range(MAX_WAITING + 1)]
    for plan in plans[:-1]:
        store(pending, plan)
    with pytest.raises(KbError, match="llm kb review"):
        pending.ask_later(plans[-1])
    pending.ask_later(plans[0])
    set_age(pending, plans[0], timedelta(days=8))
    pending.ask_later(plans[-1])
    assert len(pending.read_all()[0]) == MAX_WAITING


HOMOGRAPH = "https://g\u0456thub.com/python/cpython"
BLANKS = "\u3164" * 40 + "Sources: python/cpython" + "\u2800" * 40


@pytest.mark.parametrize(
    ("plan", "shown", "hidden"),
    [
        pytest.param(
            planned(GitSource(url=HOMOGRAPH)),
            (
                "git https://xn--gthub-n2e.com/python/cpython",
                "from xn--gthub-n2e.com (spelled g\u0456thub.com)",
            ),
            (HOMOGRAPH,),
            id="a host with a letter of another script",
        ),
        pytest.param(
            planned(GitSource(url="https://xn--gthub-n2e.com/x")),
            ("from xn--gthub-n2e.com (spelled g\u0456thub.com)",),
            (),
            id="the same in ASCII",
        ),
        pytest.param(
            planned(WebSource(url="https://xn--fa-hia.example/")),
            ("from xn--fa-hia.example (spelled fa\u00df.example)",),
            (),
            id="a letter that earlier rules wrote otherwise",
        ),
        pytest.param(
            planned(WebSource(url="https://xn--0.example:81/")),
            ("from xn--0.example:81",),
            ("spelled",),
            id="an encoded name that stands for nothing",
        ),
        pytest.param(
            planned(GitSource(url="http://github.com:8080/python/cpython")),
            ("http://github.com:8080/python/cpython (1 file", "from github.com:8080"),
            (),
            id="a host that is like a known one but for the port",
        ),
        pytest.param(
            planned(GitSource(url="http://github.com/python/cpython")),
            (": http://github.com/python/cpython (1 file",),
            (),
            id="and but for the scheme",
        ),
        pytest.param(
            planned(GitSource(url="https://e.org/x", paths=(BLANKS,)), title=f"Docs{BLANKS}"),
            ("\\u3164\\u3164", "\\u2800\\u2800"),
            ("\u3164", "\u2800"),
            id="letters without a mark",
        ),
        pytest.param(
            planned(GitSource(url="https://e.org/x", paths=tuple(f"d{n}/" for n in range(1200)))),
            ("only d0/, d1/", ", d1199/\n"),
            (),
            id="many paths, each of which is approved",
        ),
        pytest.param(
            planned(CrawlSource(url="https://e.org", include=("a/**", "b"), exclude=("c\x1b[2J",))),
            ("    only a/**, b; without c\\x1b[2J\n",),
            (),
            id="the patterns of a crawl",
        ),
        pytest.param(
            planned(WEB, notes=tuple(f"no file matches {n}" for n in range(1200))),
            ("no file matches 9", "and 1,190 more notes"),
            ("no file matches 10\n",),
            id="many notes",
        ),
        pytest.param(
            planned(WebSource(url=f"https://e.org/{'a' * 5000}/end")),
            (f"web https://e.org/{'a' * 5000}/end: 1 file",),
            (),
            id="a long address, all of which is approved",
        ),
    ],
)  # fmt: skip
def test_nothing_that_is_shown_can_be_dressed_up(
    plan: Plan, shown: tuple[str, ...], hidden: tuple[str, ...]
) -> None:
    text = render_plan(plan)
    assert [part for part in shown if part not in text] == []
    assert [part for part in hidden if part in text] == []
    assert len(text.splitlines()) < 20
    assert text.splitlines()[-1].startswith("  from ")


def test_the_hosts_stand_right_above_the_question_however_many_sources_there_are() -> None:
    sources = [WebSource(url=f"https://h{number}.example/") for number in range(30)]
    last = describe_plan(planned(*sources)).splitlines()[-1]
    assert last == "  from " + ", ".join(f"h{number}.example" for number in range(30))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"type": "web", "url": f"https://e.org/{'a' * 4000}"}, "4,014 characters, over 4,000"),
        (
            {"type": "git", "url": "https://e.org/x", "paths": [f"d{n}/" for n in range(1_000)]},
            "url and paths have 4,905 characters",
        ),
    ],
)
def test_requests_that_nobody_could_read_are_refused(
    source: Mapping[str, object], reason: str
) -> None:
    fields = {"title": "T", "body": "", "sources": [source]}
    with pytest.raises(TopicFileError, match=reason):
        parse_request(fields, created_by={})


def test_a_redirect_to_another_port_is_shown(library: Library, site: Site) -> None:
    with serve_site() as other:
        page = other.put("/page", PAGE)
        plans: list[Plan] = []
        source = WebSource(url=site.redirect("/a", page))
        create_topic(library, request(source), recorder(plans, answer=True))
    (plan,) = plans
    assert f"    redirects to {page}" in describe_plan(plan)
    assert describe_plan(plan).splitlines()[-1].count("127.0.0.1:") == 2


def test_a_port_that_was_not_planned_is_not_asked_after_approval(
    library: Library, site: Site
) -> None:
    """It leads there only once the plan was approved; what was shown is kept."""
    source = CrawlSource(url=site.put("/a", PAGE), depth=0)
    with serve_site() as other:
        page = other.put("/page", "<p>evil")

        def approve(plan: Plan) -> bool:
            site.redirect("/a", page)
            return True

        create_topic(library, request(source), approve)
    assert other.requests == []
    (text,) = files_of(library).values()
    assert "evil" not in text


def recorder(plans: list[Plan], *, answer: bool) -> Callable[[Plan], bool]:
    """Return an operator who answers every plan alike, and remembers them."""

    def approve(plan: Plan) -> bool:
        plans.append(plan)
        return answer

    return approve


def ask_model(site: Site) -> str:
    """Let a model create a topic of a page; return the error that it gets."""
    (create, *_) = make_references().tools()
    assert create.implementation is not None
    sources = [{"type": "web", "url": site.put("/a", PAGE)}]
    with pytest.raises(Exception, match="kb review") as needed:
        create.implementation(title="Frob", body="x", sources=sources)
    return str(needed.value)


@pytest.fixture
def settings(user_dir: Path) -> None:
    """The settings of a user who trusts this machine."""
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_hosts = ["127.0.0.1"]\n')


@pytest.mark.usefixtures("settings")
def test_a_host_is_not_contacted_before_it_is_approved(run_llm: RunLlm, site: Site) -> None:
    error = ask_model(site)
    assert site.requests == []
    host = site.url.removeprefix("http://")
    assert f"fetching 'Frob' (1 web page) from {host} needs the user's approval" in error
    assert error.endswith("Tell the user so, go on without it, and do not try again")
    (waiting,) = PendingPlans(current_library()).read_all()[0]

    refused = run_llm(["kb", "review"])
    assert (refused.exit_code, site.requests) == (1, [])

    approved = run_llm(["kb", "review", "--yes", waiting.id])
    assert approved.stdout == (
        f"{waiting.id}: Frob: 1 web page\n  web {site.url}/a\n  from {host}\ntopic-frob: 1 page\n"
    )
    assert PendingPlans(current_library()).read_all()[0] == []


@pytest.mark.usefixtures("settings")
def test_another_host_is_asked_about_before_it_is_contacted(run_llm: RunLlm, site: Site) -> None:
    ask_model(site)
    with serve_site() as other:
        site.redirect("/a", other.put("/page", PAGE))
        (first,) = PendingPlans(current_library()).read_all()[0]
        led = run_llm(["kb", "review", "--yes", first.id])
        (second,) = PendingPlans(current_library()).read_all()[0]
        assert (led.exit_code, other.requests, first.id != second.id) == (1, [], True)
        host = other.url.removeprefix("http://")
        assert f"    leads to {host}\n" in led.stderr
        assert f"llm kb review --yes {second.id}\n" in led.stderr
        approved = run_llm(["kb", "review", "--yes", second.id])
    assert approved.stdout.endswith("\ntopic-frob: 1 page\n")
    assert host in current_library().approved_hosts("topic-frob")


REPOSITORY = {
    "tree": [
        {"path": "README.md", "mode": "100644", "type": "blob", "sha": "1" * 40, "size": 900},
        {"path": "docs", "mode": "040000", "type": "tree", "sha": "2" * 40},
        {"path": "docs/a.md", "mode": "100644", "type": "blob", "sha": "3" * 40, "size": 98_000},
        {"path": "sub", "mode": "160000", "type": "commit", "sha": "4" * 40},
        {"path": "link", "mode": "120000", "type": "blob", "sha": "5" * 40, "size": 4},
    ]
}


@pytest.mark.parametrize(
    ("tree", "shown"),
    [
        (REPOSITORY, "o/n (2 files, ~99 KB, Rust)"),
        (REPOSITORY | {"truncated": True}, "o/n (2 files, ~99 KB, Rust)"),
        ({}, "o/n"),
        ({"tree": 1}, "o/n"),
        ({"tree": [{}]}, "o/n"),
        ({"tree": ["x"]}, "o/n"),
    ],
    ids=["all", "cut", "none", "number", "empty", "text"],
)
def test_github_is_asked_by_the_name_of_a_repository_alone(
    library: Library, site: Site, monkeypatch: pytest.MonkeyPatch, tree: object, shown: str
) -> None:
    """Neither the revision nor the paths that a model wrote leave the machine."""
    monkeypatch.setattr(sources, "GITHUB", f"{site.url}/repos/")
    for path, table in {"": {"language": "Rust"}, "/git/trees/HEAD?recursive=1": tree}.items():
        kind = "application/json"
        site.answer(f"/repos/o/n{path}", Answer(json.dumps(table).encode(), kind=kind))
    source = GitSource(url="https://github.com/o/n", ref="SECRET", paths=("README.md", "docs/"))
    page = WebSource(url="https://e.org/?leak=SECRET")
    plans: list[Plan] = []
    with pytest.raises(DeniedError):
        propose_topic(library, request(source, page), recorder(plans, answer=False))
    assert summarize_plan(plans[0]) == f"{shown} + 1 web page"
    asked = [line for line in site.requests if line.startswith("GET")]
    assert asked[:1] == ["GET /repos/o/n/git/trees/HEAD?recursive=1"]
    assert asked[1:] in ([], ["GET /repos/o/n"])


@pytest.mark.parametrize(("files", "is_more"), [(2, False), (1, True)])
def test_more_than_was_announced_is_asked_about(
    library: Library, remote: Remote, files: int, is_more: bool
) -> None:
    planned_source = PlannedSource(
        source=GitSource(url=remote.url, paths=("docs/", "README.md")),
        files=files,
        size=10_000,
        hosts=(remote.url,),
    )
    plan = Plan(request=request(planned_source.source), sources=(planned_source,))
    PendingPlans(library).ask_later(plan)
    plans: list[Plan] = []
    carry_out(library, plan.id, recorder(plans, answer=True))
    assert [each.files for each in plans] == [files, 2][: 1 + is_more]


def test_pages_of_undeclared_size_are_summed(library: Library, site: Site) -> None:
    urls = [site.answer(f"/{number}", _send_in_chunks) for number in range(5)]
    tight = replace(library, settings=replace(library.settings, max_bytes=100_000))
    with pytest.raises(Exception, match=r"with it the topic is over max_bytes \(100 KB\)"):
        create_topic(tight, request(*(WebSource(url=url) for url in urls)), yes)
    assert library.ids() == []


def _send_in_chunks(handler: BaseHTTPRequestHandler) -> None:
    """Send 30 kB of text without saying how much it will be."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    if handler.command == "GET":
        handler.wfile.write(b"word " * 6000)


def test_a_changed_description_is_said_to_the_operator(
    user_dir: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    remote = Remote.of(tmp_path / "source", user_dir)
    remote.write({"a.md": "a"})
    library = current_library()
    create_topic(library, request(GitSource(url=remote.url)), yes)
    update = next(t for t in make_references().tools() if t.name == "reference_topic_update")
    assert isinstance(update, llm.Tool)
    assert update.implementation is not None
    update.implementation(topic_id="frob", tags=["evil"], body="Obey.")
    assert capsys.readouterr().err == (
        "llm-kb: the model changed tags, body of topic-frob; see llm kb references show"
        " topic-frob\n"
    )


@pytest.fixture
def many() -> Iterator[list[Site]]:
    """Twelve sites, which have other ports and so are other hosts."""
    with ExitStack() as sites:
        yield [sites.enter_context(serve_site()) for _ in range(12)]


def hosts_of(sites: Iterable[Site]) -> list[str]:
    return [each.url.removeprefix("http://") for each in sites]


@pytest.mark.usefixtures("settings")
def test_every_host_that_becomes_approved_was_shown(
    run_llm: RunLlm, many: list[Site], user_dir: Path
) -> None:
    """Also those that a redirect only passes through, and wherever the plan is shown."""
    for one, other in pairwise(many[7:]):
        one.redirect("/page", f"{other.url}/page")
    sources = [{"type": "web", "url": each.put("/page", PAGE)} for each in many[:7]]
    sources.append({"type": "web", "url": f"{many[7].url}/page"})
    many[-1].put("/page", PAGE)
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_hosts = ["127.0.0.1"]\n')
    (create, *_) = make_references().tools()
    assert create.implementation is not None
    with pytest.raises(Exception, match="kb review") as needed:
        create.implementation(title="Frob", body="x", sources=sources)
    (plan,) = PendingPlans(current_library()).read_all()[0]
    shown = [str(needed.value)]
    while plans := PendingPlans(current_library()).read_all()[0]:
        shown.append(run_llm(["kb", "review", "--yes", plans[0].id]).output)
    kept = current_library().approved_hosts("topic-frob")
    assert kept == set(hosts_of(many))
    assert len(shown) == 6  # and four hosts that the last page passes through, one by one
    assert [host for host in kept if host not in shown[-1]] == []
    assert plan.hosts == tuple(hosts_of(many[:8]))


def test_a_refresh_asks_about_all_that_it_approves(
    run_llm: RunLlm, many: list[Site], user_dir: Path
) -> None:
    """About each host, about the size as well, and in words also where nobody is asked."""
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_hosts = ["127.0.0.1"]\n')
    urls = [each.put("/page", PAGE) for each in many]
    library = current_library()
    create_topic(library, request(*(WebSource(url=url) for url in urls)), yes)
    shutil.rmtree(library.private / ".approved")
    for each in many:
        each.put("/page", f"<main>{'word ' * 20_000}</main>")
    reasons: list[str] = []

    def deny(reason: str) -> bool:
        reasons.append(reason)
        return False

    with pytest.raises(KbError, match="you said no"):
        refresh_topic(library, "topic-frob", deny)
    refused = run_llm(["kb", "references", "refresh", "topic-frob"])
    assert (refused.exit_code, library.approved_hosts("topic-frob")) == (1, frozenset())
    done = run_llm(["kb", "references", "refresh", "topic-frob", "-y"])
    kept = library.approved_hosts("topic-frob")
    assert (done.exit_code, set(kept)) == (0, set(hosts_of(many)))
    for text in (*reasons, refused.stderr, done.stderr):
        assert [host for host in kept if host not in text] == []
        assert "it grew from " in text


def test_a_plan_that_takes_too_long_ends(library: Library, site: Site) -> None:
    """Every page of the site answers in time; all of them together do not."""
    links = "".join(f"<a href='/docs/{number}.html'>x</a>" for number in range(200))
    start = site.put("/docs/", f"<p>start {links}</p>")
    for number in range(200):
        site.put(f"/docs/{number}.html", PAGE)

    def monotonic() -> float:
        return math.inf if len(site.requests) > 9 else 0.0

    late = SimpleNamespace(monotonic=monotonic, sleep=lambda _: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("llm_kb.references.sources.site.time", late)
        plans: list[Plan] = []
        create_topic(
            library,
            request(CrawlSource(url=start, max_pages=500)),
            recorder(plans, answer=True),
        )
    (note,) = [note for note in plans[0].sources[0].notes if "too long" in note]
    assert note.startswith("stopped after ")
    assert plans[0].files < 201


def test_what_was_approved_is_carried_out_once(library: Library, site: Site) -> None:
    source = WebSource(url=site.put("/a", PAGE))
    plan = store_plan(library, request(source))
    carry_out(library, plan.id, yes)
    with pytest.raises(UnknownPlanError, match="it was used or dropped"):
        carry_out(library, plan.id, yes)


@pytest.fixture
def careful(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library in a workspace without any packages."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return replace(library, workspace=tmp_path / "workspace")


def test_an_approved_host_leads_to_no_other(careful: Library, site: Site) -> None:
    """Neither with a redirect of its page nor of what is read besides."""
    plans: list[Plan] = []
    with serve_site() as other:
        page = WebSource(url=site.redirect("/a", other.put("/page", PAGE)))
        crawl = CrawlSource(url=site.put("/d/", PAGE))
        for name in ("robots.txt", "llms.txt", "sitemap.xml", "d/llms.txt", "d/sitemap.xml"):
            site.redirect(f"/{name}", other.put(f"/{name}", PAGE))

        def approve(plan: Plan) -> bool:
            plans.append(plan)
            return len(plans) == 1

        with pytest.raises(DeniedError):
            propose_topic(careful, request(page, crawl), approve)
    assert other.requests == []
    here, there = (each.url.removeprefix("http://") for each in (site, other))
    assert [plan.hosts for plan in plans] == [(here,), (here, there)]


def test_a_package_of_the_workspace_leads_to_no_host_unasked(careful: Library, site: Site) -> None:
    """Whoever wrote the workspace chose the repository that its metadata names."""
    assert careful.workspace is not None
    metadata = careful.workspace / ".venv/lib/python3.12/site-packages/frob-1.0.dist-info/METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Name: frob\nVersion: 1.0\nProject-URL: Source, {site.url}/frob\n")
    plans: list[Plan] = []
    source = PackageSource(ecosystem="pypi", name="frob")
    with pytest.raises(DeniedError):
        propose_topic(careful, request(source), recorder(plans, answer=False))
    (plan,) = plans
    host = site.url.removeprefix("http://")
    assert describe_plan(plan).splitlines() == [
        "  package https://pypi.org/project/frob",
        f"    leads to {site.url}/frob",
        f"  from pypi.org, {host}",
    ]
    assert site.requests == []
    with pytest.raises(NothingFetchedError, match="/frob/' not found"):
        propose_topic(careful, request(source), yes)
    assert site.requests != []


def test_the_index_leads_to_no_host_unasked(
    careful: Library, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(packages.REGISTRIES, "pypi", f"{site.url}/pypi/{{}}/json")
    plans: list[Plan] = []
    with serve_site() as other:
        info = {"info": {"version": "1.0", "project_urls": {"Source": f"{other.url}/frob"}}}
        site.answer("/pypi/frob/json", Answer(json.dumps(info).encode(), kind="application/json"))
        source = PackageSource(ecosystem="pypi", name="frob")

        def approve(plan: Plan) -> bool:
            plans.append(plan)
            return len(plans) == 1

        with pytest.raises(DeniedError):
            propose_topic(careful, request(source), approve)
    assert other.requests == []
    note = f"asks {site.url}/pypi/frob/json for its repository, which you are asked about then"
    assert [plan.sources[0].notes for plan in plans] == [
        (note,),
        (note, f"leads to {other.url.removeprefix('http://')}"),
    ]


def test_the_hosts_of_a_copied_topic_are_not_approved(
    careful: Library, site: Site, tmp_path: Path
) -> None:
    """Its record may name any; whoever made the copy chose them."""
    with serve_site() as elsewhere:
        elsewhere.put("/robots.txt", "User-agent: *\nDisallow: /x")
        site.redirect("/robots.txt", f"{elsewhere.url}/robots.txt")
        create_topic(careful, request(CrawlSource(url=site.put("/a", PAGE))), yes)
        elsewhere.requests.clear()
        shown = site.url.removeprefix("http://")
        hosts = {each.url.removeprefix("http://") for each in (site, elsewhere)}
        assert approved_hosts(careful) == hosts
        other = replace(careful, root=tmp_path / "other")
        shutil.copytree(careful.root / "topic-frob", other.root / "topic-frob")
        assert approved_hosts(other) == frozenset()
        reasons = []

        def deny(reason: str) -> bool:
            reasons.append(reason)
            return False

        with pytest.raises(NothingFetchedError, match="was not approved; if you"):
            refresh_topic(other, "topic-frob", deny)
        assert elsewhere.requests == []
        site.answer("/robots.txt", Answer(status=404))
        site.put("/a", "<p>changed")
        with pytest.raises(KbError, match="you said no"):
            refresh_topic(other, "topic-frob", deny)
        assert reasons == [f"no approval of its hosts is recorded here: {shown}"]


def test_a_record_of_files_approves_no_host(library: Library, remote: Remote) -> None:
    """Its addresses are shown to nobody, and were counted as approved after one refresh."""
    create_topic(library, request(GitSource(url=remote.url)), yes)
    path = library.root / "topic-frob" / ".provenance.json"
    record = json.loads(path.read_text())
    for file in record["files"].values():
        file["url"] = "http://evil.invalid/x"
    record["hosts"] = ["evil.invalid"]
    path.write_text(json.dumps(record))
    remote.write({"new.md": "# New"})
    refresh_topic(library, "topic-frob", yes)
    assert approved_hosts(library) == {remote.url}
    stored = read_provenance(library.directory("topic-frob"))
    assert {file.url for file in stored.files.values()} == {remote.url}


def test_a_plan_waits_on_when_its_hosts_do_not_answer(library: Library, site: Site) -> None:
    plan = store_plan(library, request(WebSource(url=f"{site.url}/missing")))
    with pytest.raises(NothingFetchedError):
        carry_out(library, plan.id, yes)
    assert kept(PendingPlans(library)) == [f"{plan.id}.json"]
    site.put("/missing", PAGE)
    carry_out(library, plan.id, yes)
    assert kept(PendingPlans(library)) == []


def test_a_denial_on_a_terminal_deletes_the_plan(site: Site, user_dir: Path) -> None:
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_hosts = ["127.0.0.1"]\n')
    ask_model(site)
    pending = PendingPlans(current_library())
    plan_id = kept(pending)[0].removesuffix(".json")
    shown, _ = run_on_terminal(["kb", "review"], "r\n", question="Enter: ")
    assert shown.endswith(f"\nRejected: {plan_id}\n")
    assert (kept(pending), current_library().ids()) == ([], [])


def test_a_plan_that_cannot_be_published_waits_on(library: Library, site: Site) -> None:
    """Wherever it fails; approving it again succeeds."""
    plan = store_plan(library, request(WebSource(url=site.put("/a", PAGE))))
    pending = PendingPlans(library)
    for name in (".approved", "topic-frob"):
        (library.root / name).write_text("in the way")
        with pytest.raises(KbError):
            carry_out(library, plan.id, yes)
        assert (kept(pending), library.ids()) == ([f"{plan.id}.json"], [])
        (library.root / name).unlink()
    assert carry_out(library, plan.id, yes)["file_count"] == 1
    assert kept(pending) == []


CARRY_OUT = """
import os, pathlib, signal, sys
from llm_kb.references import library as module
from llm_kb.references.fetch import create
from llm_kb.references.plan import PendingPlans
from llm_kb.references.settings import References

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

trusting = References(allow_hosts=("127.0.0.1",))
library = module.Library(root=pathlib.Path(sys.argv[1]), settings=trusting)
owner, name = {
    "check": (create, "_is_made"),
    "approve": (module.Library, "approve_hosts"),
    "publish": (module.Library, "publish"),
    "forget": (PendingPlans, "drop"),
}[sys.argv[3]]
setattr(owner, name, die)
create.carry_out(library, sys.argv[2], lambda plan: True)
"""


@pytest.mark.parametrize("where", ["check", "approve", "publish", "forget"])
def test_a_plan_survives_a_killed_approval(where: str, library: Library, site: Site) -> None:
    plan = store_plan(library, request(WebSource(url=site.put("/a", PAGE))))
    command = [sys.executable, "-c", CARRY_OUT, str(library.root), plan.id, where]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    (waiting,) = PendingPlans(library).read_all()[0]
    assert waiting == plan
    library.clean()
    assert carry_out(library, plan.id, yes)["file_count"] == 1
    assert (kept(PendingPlans(library)), library.ids()) == ([], ["topic-frob"])
    assert list((library.root / ".staging").iterdir()) == []


@pytest.mark.parametrize("name", [".approved", ".staging", ".old", ".locks", ".pending"])
def test_a_file_in_the_place_of_a_directory_of_ours_is_an_error_that_names_it(
    name: str, library: Library, site: Site, run_llm: RunLlm
) -> None:
    asked = request(WebSource(url=site.put("/a", PAGE)))
    create_topic(library, asked, yes)
    remove(library.root / name)
    (library.root / name).write_text("in the way")
    site.put("/a", "<p>changed")
    other = replace(asked, id="topic-other", title="Other")
    for run in (
        lambda: create_topic(library, other, yes),
        lambda: propose_topic(library, other, keep_waiting(library)),
        lambda: refresh_topic(library, "topic-frob", yes),
        lambda: library.delete("topic-frob"),
    ):
        with suppress(KbError):  # some need that directory; none raises anything else
            run()
    (library.root / name).unlink()
    assert list(files_of(library).values()) in (
        [],
        ["changed\n"],
        ["# Hooks\n\nCall them **first**.\n"],
    )


def kept(pending: PendingPlans) -> list[str]:
    """Return the names of what is in the directory of waiting plans."""
    return sorted(path.name for path in pending.directory.iterdir())


def test_both_questions_can_be_answered_later(library: Library, site: Site) -> None:
    """About one host, and about the one that it leads to; no page is kept before the second."""
    pending = PendingPlans(library)
    with serve_site() as other:
        asked = request(WebSource(url=site.redirect("/a", other.put("/page", PAGE))))
        for _ in range(2):
            with pytest.raises(ApprovalNeededError) as needed:
                propose_topic(library, asked, keep_waiting(library))
            assert (other.requests, library.ids()) == ([], [])
            pending.approve(needed.value.plan_id)
        assert propose_topic(library, asked, never)["file_count"] == 1
    assert kept(pending) == []


@pytest.mark.parametrize("name", ["topic.md", ".provenance.json"])
def test_a_link_among_staged_files_leads_no_write_elsewhere(
    name: str, library: Library, site: Site, tmp_path: Path
) -> None:
    """As of somebody else who may write to a directory of topics that a team shares."""
    victim = tmp_path / "victim"
    victim.write_text("mine")

    def swap(plan: Plan) -> bool:
        (directory,) = (library.root / ".staging").iterdir()
        (directory / name).unlink(missing_ok=True)
        (directory / name).symlink_to(victim)
        return True

    with suppress(KbError):
        create_topic(library, request(WebSource(url=site.put("/a", PAGE))), swap)
    assert victim.read_text() == "mine"
    assert not (library.root / "topic-frob" / "topic.md").is_symlink()


def test_a_plan_that_others_wrote_is_not_approved(
    library: Library, site: Site, tmp_path: Path
) -> None:
    """The directory of topics may be a checkout that a team shares."""
    shared = replace(library, own=tmp_path / "own")
    asked = request(WebSource(url=site.put("/a", PAGE)))
    plan = store_plan(library, asked)  # as its author would, in the shared directory
    PendingPlans(library).approve(plan.id)
    with pytest.raises(DeniedError):
        propose_topic(shared, asked, lambda _: False)
