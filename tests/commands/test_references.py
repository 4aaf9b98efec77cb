"""`llm kb references` through the real `llm`."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from llm_kb.references.calls import current_library
from llm_kb.references.sources.rules import page_name
from tests.conftest import RunLlm
from tests.preloaded import Process
from tests.references.remotes import Remote
from tests.references.sites import Site, serve_site


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site on loopback."""
    with serve_site() as site:
        yield site


@pytest.fixture
def remote(tmp_path: Path, user_dir: Path) -> Remote:
    """A repository, and a user who may fetch it."""
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text(
        '[kb.references]\nallow_hosts = ["127.0.0.1"]\nallow_protocols = ["file"]\n'
    )
    remote = Remote(tmp_path / "remotes" / "frob")
    remote.write({"README.md": "# Frob\n\nFrobnicates.\n", "docs/a.md": "# Hooks\n\non_mount\n"})
    return remote


def create(run_llm: RunLlm, remote: Remote, *options: str, title: str = "Frob") -> str:
    result = run_llm(
        ["kb", "references", "create", "--title", title, "--git", remote.url, "-y", *options]
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_create_fetches_from_every_kind_of_source(
    run_llm: RunLlm, remote: Remote, site: Site, tmp_path: Path
) -> None:
    page = site.put("/page", "<p>page</p>")
    start = site.put("/docs/", "<p>crawl</p>")
    out = create(
        run_llm,
        remote,
        *("--ref", "main", "--path", "docs/", "--web", page, "--crawl", start, "--depth", "0"),
        *("--max-pages", "3", "--body", "About.", "--tag", "a"),
        *("--tag", "b", "--max-age-days", "7", "--json"),
    )
    assert json.loads(out) == {"topic_id": "topic-frob", "file_count": 3, "chunk_count": 3}
    shown = json.loads(run_llm(["kb", "references", "show", "topic-frob", "--json"]).stdout)
    assert shown["files"] == sorted(
        [
            page_name(page),
            page_name(site.url).removesuffix(".md") + "/docs/index.md",
            "docs/a.md",
        ]
    )
    assert shown["sources"] == [
        {
            "type": "git",
            "url": remote.url,
            "ref": "main",
            "commit": remote.commit,
            "paths": ["docs/"],
        },
        {"type": "web", "url": page},
        {"type": "crawl", "url": start, "depth": 0, "max_pages": 3},
    ]
    assert (shown["tags"], shown["max_age_days"]) == (["a", "b"], 7)


def set_status(topic: str, status: str) -> None:
    """Edit a `topic.md`, as its owner may."""
    path = current_library().directory(topic) / "topic.md"
    path.write_text(re.sub(r"(?m)^status = .*$", f'status = "{status}"', path.read_text()))


def test_list_show_and_search_tell_of_it(run_llm: RunLlm, remote: Remote) -> None:
    create(run_llm, remote, "--body", "Frobnicates widgets.")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert run_llm(["kb", "references"]).stdout == (
        f"topic-frob  Frob       2 pages  fetched {today}  active\n"
    )
    assert [
        t["topic_id"] for t in json.loads(run_llm(["kb", "references", "list", "--json"]).stdout)
    ] == ["topic-frob"]
    assert "Frobnicates widgets." in run_llm(["kb", "references", "show", "topic-frob"]).stdout
    found = run_llm(["kb", "search", "on_mount", "-t", "frob", "-n", "1"])
    assert found.stdout.startswith("topic-frob/docs/a#hooks")
    verified = run_llm(["kb", "references", "show", "--verify"]).stdout
    assert verified == "topic-frob: unchanged since it was fetched\n"
    set_status("topic-frob", "obsolete")
    assert run_llm(["kb", "references"]).stdout == ""
    listed = run_llm(["kb", "references", "list", "--include-obsolete"]).stdout
    assert listed.endswith("  obsolete\n")


def test_verify_names_what_differs_and_fails(
    run_llm: RunLlm, remote: Remote, user_dir: Path
) -> None:
    create(run_llm, remote)
    root = user_dir / "kb" / "references" / "topic-frob"
    (root / "README.md").write_text("mine")
    (root / "docs" / "a.md").unlink()
    (root / "new.md").write_text("new")
    result = run_llm(["kb", "references", "show", "--verify", "topic-frob"])
    assert (result.exit_code, result.stdout) == (
        1,
        "topic-frob: differs\n  modified: README.md\n  missing: docs/a.md\n  unknown: new.md\n",
    )
    as_json = json.loads(run_llm(["kb", "references", "show", "--verify", "--json"]).stdout)
    assert as_json == {
        "topic-frob": {
            "modified": ["README.md"],
            "missing": ["docs/a.md"],
            "unknown": ["new.md"],
            "unreadable": [],
            "problems": [],
        }
    }


def test_refresh_tells_what_changed(run_llm: RunLlm, remote: Remote, user_dir: Path) -> None:
    create(run_llm, remote)
    assert (
        run_llm(["kb", "references", "refresh", "topic-frob"]).stdout == "topic-frob: unchanged\n"
    )
    remote.write({"new.md": "new"})
    idle = run_llm(["kb", "references", "refresh", "--stale"])
    assert (idle.stdout, idle.stderr) == ("", "Nothing to refresh: no topic is stale.\n")
    assert run_llm(["kb", "references", "refresh"]).stdout == (
        "topic-frob: 1 added, 0 modified, 0 removed\n"
    )
    path = user_dir / "kb" / "references" / "topic-frob" / "topic.md"
    path.write_text(path.read_text().replace('fetched_at = "20', 'fetched_at = "19'))
    (answer,) = json.loads(run_llm(["kb", "references", "refresh", "--stale", "--json"]).stdout)
    assert (answer["topic_id"], answer["changed"], answer["file_count"]) == ("topic-frob", False, 3)


@pytest.mark.parametrize("max_age", ["30", "0"])
def test_a_topic_marked_stale_by_hand_is_so_everywhere_until_it_is_refreshed(
    run_llm: RunLlm, remote: Remote, max_age: str
) -> None:
    create(run_llm, remote, "--max-age-days", max_age)
    set_status("topic-frob", "stale")

    (entry,) = json.loads(run_llm(["kb", "references", "list", "--json"]).stdout)
    assert (entry["status"], entry["is_stale"]) == ("stale", True)
    since = entry["fetched_at"]
    (found, *_) = json.loads(run_llm(["kb", "search", "-t", "frob", "hooks", "--json"]).stdout)
    assert found["origin"].endswith(f", STALE since {since}")
    learned = run_llm(["kb", "show", "--as-model", "topic-frob/docs/a"]).stdout
    assert f", STALE since {since}\n" in learned

    refresh = ["kb", "references", "refresh", "--stale"]
    assert run_llm(refresh).stdout == "topic-frob: unchanged\n"
    (entry,) = json.loads(run_llm(["kb", "references", "list", "--json"]).stdout)
    assert (entry["status"], entry["is_stale"]) == ("active", False)

    set_status("topic-frob", "stale")
    remote.write({"new.md": "new"})
    assert run_llm(refresh).stdout == "topic-frob: 1 added, 0 modified, 0 removed\n"
    assert run_llm(refresh).stdout == ""


def test_an_obsolete_topic_is_neither_searched_nor_offered(run_llm: RunLlm, remote: Remote) -> None:
    create(run_llm, remote)
    create(run_llm, remote, title="Old")
    set_status("topic-old", "obsolete")
    menu = run_llm(["kb", "prompt"]).stdout
    assert ("topic-frob" in menu, "topic-old" in menu) == (True, False)
    assert "topic-old" not in run_llm(["kb", "list"]).stdout
    everything = run_llm(["kb", "list", "--all"]).stdout
    assert re.search(r"^topic-old +Old .*  not in the menu$", everything, re.MULTILINE)
    named = run_llm(["kb", "search", "-t", "topic-old", "frobnicates"])
    assert (named.exit_code, named.stdout) == (1, "")
    assert "'topic-old' is marked obsolete and is not searched" in named.stderr
    assert "topic-old" not in run_llm(["kb", "search", "frobnicates"]).output
    assert ", OBSOLETE" in run_llm(["kb", "show", "--as-model", "topic-old/**"]).stdout


def test_refresh_counts_the_files_it_restores(
    run_llm: RunLlm, remote: Remote, user_dir: Path
) -> None:
    create(run_llm, remote)
    (user_dir / "kb" / "references" / "topic-frob" / "README.md").write_text("edited here")
    refresh = ["kb", "references", "refresh", "topic-frob"]
    assert run_llm(refresh).stdout == "topic-frob: 0 added, 1 modified, 0 removed\n"
    assert run_llm(refresh).stdout == "topic-frob: unchanged\n"


def test_refresh_says_when_there_is_nothing_to_do(run_llm: RunLlm, remote: Remote) -> None:
    idle = run_llm(["kb", "references", "refresh"])
    assert (idle.exit_code, idle.stdout, idle.stderr) == (0, "", "No topics to refresh.\n")
    create(run_llm, remote)
    idle = run_llm(["kb", "references", "refresh", "topic-frob", "--stale", "--json"])
    assert (idle.stdout, idle.stderr) == ("[]\n", "Nothing to refresh: no topic is stale.\n")


def test_refresh_goes_on_after_a_failure_and_says_so(
    run_llm: RunLlm, remote: Remote, tmp_path: Path
) -> None:
    other = Remote(tmp_path / "remotes" / "other")
    other.write({"a.md": "a"})
    create(run_llm, other, title="Another")
    create(run_llm, remote)
    other.directory.rename(tmp_path / "gone")
    result = run_llm(["kb", "references", "refresh"])
    assert (result.exit_code, result.stdout) == (1, "topic-frob: unchanged\n")
    assert "Error: topic-another: nothing could be fetched for 'Another'" in result.stderr


@pytest.mark.parametrize("chosen", [[], ["topic-another", "topic-broken", "topic-frob"]])
def test_refresh_goes_on_after_a_topic_that_cannot_be_read(
    run_llm: RunLlm, remote: Remote, user_dir: Path, chosen: list[str]
) -> None:
    create(run_llm, remote, title="Another")
    create(run_llm, remote)
    broken = user_dir / "kb" / "references" / "topic-broken" / "topic.md"
    broken.parent.mkdir()
    broken.write_text("no front matter")
    result = run_llm(["kb", "references", "refresh", *chosen])
    assert (result.exit_code, result.stdout) == (
        1,
        "topic-another: unchanged\ntopic-frob: unchanged\n",
    )
    assert result.stderr.startswith(f"Error: topic-broken: {broken}: it has no front matter")


def test_refresh_of_an_unknown_topic_is_an_error(run_llm: RunLlm, remote: Remote) -> None:
    create(run_llm, remote)
    result = run_llm(["kb", "references", "refresh", "topic-x"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: topic-x: unknown reference topic 'topic-x'; available: topic-frob\n"
    )


def test_a_refresh_that_grows_needs_a_word_or_an_option(run_llm: RunLlm, remote: Remote) -> None:
    create(run_llm, remote)
    remote.write({"huge.txt": "x" * 2_000_000})
    refused = run_llm(["kb", "references", "refresh", "topic-frob"])
    assert refused.exit_code == 1
    assert refused.stderr == (
        "Error: topic-frob: it grew from 39 B to ~2.0 MB; to fetch it all the same: "
        "llm kb references refresh topic-frob -y\n"
    )
    refreshed = run_llm(["kb", "references", "refresh", "topic-frob", "-y"])
    assert refreshed.stdout == "topic-frob: 1 added, 0 modified, 0 removed\n"


def test_create_without_a_terminal_contacts_nobody(run_llm: RunLlm, site: Site) -> None:
    page = site.put("/page", "<p>page</p>")
    result = run_llm(["kb", "references", "create", "--title", "Frob", "--web", page])
    assert (result.exit_code, result.stderr, site.requests) == (
        1,
        "Error: there is no terminal to ask on; -y fetches without asking\n",
        [],
    )


@pytest.mark.parametrize("form", ["./{}", "{}", "~/{}"])
def test_a_clone_of_ones_own_is_fetched_by_its_path_and_followed(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    place = tmp_path / "my clones" / "frob"
    clone = Remote(place, {"a.md": "# Hooks\n\non_mount\n"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    named = form.format("my clones/frob" if form[0] in ".~" else place)
    made = run_llm(["kb", "references", "create", "--git", named, "-y"])
    assert (made.exit_code, made.stdout) == (0, "topic-frob: 1 page\n")
    assert made.stderr.endswith('\nNext: llm kb search -t topic-frob "…"\n')
    assert f"  from {place.as_uri()}\n" in made.stderr
    clone.write({"b.md": "b"})
    refreshed = run_llm(["kb", "references", "refresh"])
    assert refreshed.stdout == "topic-frob: 1 added, 0 modified, 0 removed\n"


def test_a_clone_that_only_a_topic_file_names_is_not_read(
    run_llm: RunLlm, remote: Remote, user_dir: Path, tmp_path: Path
) -> None:
    (user_dir / "kb.toml").unlink()
    create(run_llm, remote)
    other = Remote(tmp_path / "secret", {"a.md": "secret"})
    path = user_dir / "kb" / "references" / "topic-frob" / "topic.md"
    path.write_text(path.read_text().replace(remote.url, other.url))
    refused = run_llm(["kb", "references", "refresh", "-y"])
    assert (refused.exit_code, "must be a URL of http" in refused.stderr) == (1, True)


def test_a_directory_is_read_in_place(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    refused = run_llm(["kb", "references", "create", "--git", "./notes", "-y"])
    assert refused.stderr.endswith(
        "Error: './notes' is not a git repository; models read a directory in place:\n"
        "llm kb add NAME ./notes\n"
    )


def test_a_title_that_is_taken_is_an_error_that_names_its_topic(
    run_llm: RunLlm, remote: Remote
) -> None:
    create(run_llm, remote)
    again = run_llm(["kb", "references", "create", "--title", "Frob", "--git", remote.url, "-y"])
    assert (again.exit_code, again.stdout) == (1, "")
    assert "there is a reference topic 'topic-frob' already" in again.stderr
    assert "llm kb references refresh topic-frob" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["create", "--title", "T"], 2, "at least one of"),
        (["create", "--title", "T", "--web", "http://e.org/", "--path", "x"], 2, "belong to one"),
        (["create", "--title", "T", "--web", "http://e.org/", "--depth", "1"], 2, "--crawl"),
        (["create", "--crawl", "http://e.org/", "--max-pages", "0"], 2, "1<=x<=500"),
        (["create", "--title", " ", "--web", "http://e.org/"], 1, "title"),
        (["create", "--web", "http://e.org/", "--body", "-"], 2, "reads no standard input"),
        (["create", "--title", "T", "--web", "ftp://e.org/"], 1, "must be http"),
        (["refresh", "topic-x"], 1, "unknown reference topic 'topic-x'; available: none"),
        (["show", "../../x"], 1, "unknown reference topic"),
        (["create", "--title", "T", "--max-age-days", "36501"], 2, "is not in the range"),
        (["delete", "topic-x", "-y"], 1, "unknown reference topic"),
        (["show"], 2, "Missing argument 'TOPIC'"),
        (["create", "--web", "ftp://e.org/", "--title", "T", "-y"], 1, "Error: url 'ftp://e.org/'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_say_what_to_do(
    run_llm: RunLlm, remote: Remote, arguments: list[str], code: int, message: str
) -> None:
    result = run_llm(["kb", "references", *arguments])
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr


def find_menu(run_llm: RunLlm) -> list[str]:
    """Return the ids of the topics in the menu here."""
    prompt = run_llm(["kb", "prompt"]).stdout
    return re.findall(r"^- ([\w.-]+)", prompt, re.MULTILINE)


def test_what_was_fetched_here_is_here(
    run_llm: RunLlm, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the project's directories and its other work trees, and no file of it changes."""
    project = Remote(tmp_path / "project", {"llm-kb.toml": "[kb]\n", "docs/a.md": "# A\n"})
    tree = tmp_path / "tree"
    subprocess.run(["git", "-C", project.directory, "worktree", "add", "-q", tree], check=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "llm-kb.toml").write_text("[kb]\n")
    monkeypatch.chdir(project.directory / "docs")
    create(run_llm, remote)
    for place in (project.directory, project.directory / "docs", tree):
        monkeypatch.chdir(place)
        assert find_menu(run_llm) == ["topic-frob"]
        assert run_llm(["kb", "search", "hooks"]).stdout.startswith("topic-frob/docs/a#hooks")
    status = subprocess.run(
        ["git", "-C", project.directory, "status", "--short"], check=True, capture_output=True
    )
    assert status.stdout == b""
    monkeypatch.chdir(elsewhere)
    assert find_menu(run_llm) == []
    assert run_llm(["kb", "search", "hooks"]).exit_code == 1
    assert run_llm(["kb", "search", "-t", "frob", "hooks"]).exit_code == 0
    monkeypatch.chdir(tree)
    run_llm(["kb", "references", "delete", "topic-frob", "-y"])
    assert find_menu(run_llm) == []


def test_what_was_fetched_comes_first_where_the_project_has_no_good_match(
    run_llm: RunLlm, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (project / "llm-kb.toml").write_text('[kb.topic.own]\nsubjects = "docs"\n')
    (project / "docs" / "tools.md").write_text("# ripgrep\n\nWe like ripgrep.\n")
    monkeypatch.chdir(project)
    remote.write({"docs/b.md": "# Rip\n\nUse `--replace` to substitute text found in files.\n"})
    create(run_llm, remote)
    question = ["kb", "search", "how do I replace text in files using ripgrep", "--json"]
    found = json.loads(run_llm(question).stdout)
    assert [each["topic"] for each in found] == ["topic-frob", "own"]


def test_delete_asks_and_needs_a_terminal_for_that(run_llm: RunLlm, remote: Remote) -> None:
    create(run_llm, remote)
    refused = run_llm(["kb", "references", "delete", "topic-frob"])
    assert (refused.exit_code, "Pass -y" in refused.stderr) == (1, True)
    assert run_llm(["kb", "references", "delete", "topic-frob", "-y"]).stderr == (
        "Deleted topic-frob\n"
    )


def test_a_broken_topic_is_told_of_and_stops_no_other(
    run_llm: RunLlm, remote: Remote, user_dir: Path
) -> None:
    create(run_llm, remote)
    broken = user_dir / "kb" / "references" / "topic-broken"
    broken.mkdir()
    (broken / "topic.md").write_text("no front matter")
    listed = run_llm(["kb", "references", "list"])
    assert listed.stdout.startswith("topic-frob  Frob ")
    assert f"Left out: {broken / 'topic.md'}: it has no front matter" in listed.stderr
    assert "topic-frob" in run_llm(["kb", "list"]).stdout


def test_show_tells_of_a_topic_in_words(run_llm: RunLlm, remote: Remote, user_dir: Path) -> None:
    create(run_llm, remote, "--path", "docs/", "--path", "README.md", "--tag", "ä", "--tag", "b")
    shown = run_llm(["kb", "references", "show", "topic-frob"]).stdout
    now = json.loads(run_llm(["kb", "references", "list", "--json"]).stdout)[0]["fetched_at"]
    assert shown == (
        "topic_id: topic-frob\n"
        "title: Frob\n"
        "status: active\n"
        f"fetched_at: {now}\n"
        "max_age_days: 30\n"
        "source_count: 1\n"
        "file_count: 2\n"
        "tags: ä, b\n"
        f"created_at: {now}\n"
        f"path: {user_dir / 'kb' / 'references' / 'topic-frob'}\n"
        f"source: type=git, url={remote.url}, commit={remote.commit}, paths=docs/, README.md\n"
        "\n# Frob\n"
    )


def test_interrupting_leaves_nothing_behind(
    remote: Remote, site: Site, user_dir: Path, tmp_path: Path
) -> None:
    """Ctrl-C while a page is being fetched: the plan was made, the body never ends."""

    def stall(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", "10")
        handler.end_headers()
        if handler.command == "GET":
            time.sleep(30)

    url = site.answer("/slow", stall)
    process = Process(["kb", "references", "create", "--title", "Slow", "--web", url, "-y"])
    deadline = time.monotonic() + 20
    while "GET /slow" not in site.requests and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(2)
    _, said = process.communicate(timeout=20)
    assert (process.returncode, "Aborted!" in said, "Traceback" in said) == (1, True, False)
    root = user_dir / "kb" / "references"
    assert [p.name for p in root.rglob("*") if p.is_file()] == []


def test_topics_are_completed(
    run_llm: RunLlm, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(run_llm, remote)
    monkeypatch.setenv("COMP_WORDS", "llm kb references show topic-")
    monkeypatch.setenv("COMP_CWORD", "4")
    monkeypatch.setenv("_LLM_COMPLETE", "bash_complete")
    assert Process([]).communicate() == ("plain,topic-frob\n", "")


def test_the_documentation_of_an_installed_package(
    run_llm: RunLlm, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.git("tag", "v1.0")
    site = tmp_path / ".venv/lib/python3.12/site-packages/frob-1.0.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text(f"Version: 1.0\nProject-URL: Source, {remote.url}\n")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("frob", "frob==1.0", "frob@1.0"):
        created = run_llm(["kb", "references", "create", "--pypi", name, "-y"])
        assert created.stdout.startswith("topic-frob: "), created.stderr
        assert "    pypi frob 1.0: tag v1.0 (no tag names the package)\n" in created.stderr
        run_llm(["kb", "references", "delete", "topic-frob", "-y"])
    for arguments in (["--pypi", "a", "--npm", "b"], ["--pypi", "a", "--git", remote.url]):
        refused = run_llm(["kb", "references", "create", *arguments])
        assert (refused.exit_code, "Missing option '--title'" in refused.stderr) == (2, True)


def test_a_topic_is_named_after_its_one_source(run_llm: RunLlm, remote: Remote) -> None:
    source = ["--git", f"{remote.url}/"]
    created = run_llm(["kb", "references", "create", *source, "-y"])
    assert created.exit_code == 0, created.stderr
    (topic,) = json.loads(run_llm(["kb", "references", "list", "--json"]).stdout)
    assert (topic["topic_id"], topic["title"]) == ("topic-frob", "frob")
    again = run_llm(["kb", "references", "create", *source, "-y"])
    assert (again.exit_code, "topic-frob" in again.stderr) == (1, True)


@pytest.mark.parametrize("name", ["topic-frob-manual", "Frob Manual", "frob-docs", "frob"])
def test_every_command_understands_the_same_names(
    run_llm: RunLlm, remote: Remote, name: str
) -> None:
    create(run_llm, remote, title="Frob manual")
    create(run_llm, remote, title="Another")
    for arguments in (
        ["references", "show", name],
        ["search", "-t", name, "hooks"],
        ["list", name],
        ["show", "--as-model", name],
        ["prompt", "-k", f"{name}/README"],
    ):
        result = run_llm(["kb", *arguments])
        assert (result.exit_code, bool(result.stdout)) == (0, True), (arguments, result.output)


def test_words_for_two_topics_name_both(run_llm: RunLlm, remote: Remote) -> None:
    for title in ("Frob manual", "Frob tutorial"):
        create(run_llm, remote, title=title)
    for arguments in (["search", "-t", "frob", "hooks"], ["references", "show", "frob"]):
        result = run_llm(["kb", *arguments])
        assert result.exit_code == 1
        assert "topic-frob-manual" in result.stderr
        assert "topic-frob-tutorial" in result.stderr
