"""Hostile repositories and servers: they start no programs and stay within the limits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path

import pytest

from llm_kb.capture.notes import KNOWLEDGE_REF
from llm_kb.capture.sync import fetch_notes
from llm_kb.errors import KbError
from llm_kb.files.git import GitError, find_program, git_environment, run_git
from llm_kb.files.git_ignored import GitIgnored
from llm_kb.references.errors import FetchError, TooLargeError
from llm_kb.references.fetch.create import create_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.git import Remotes, find_commit
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import Policy
from llm_kb.upkeep.first_topics import propose_topics
from tests.conftest import RunLlm
from tests.cost import peak_of
from tests.preloaded import Process
from tests.references.conftest import LOCAL as SETTINGS
from tests.references.remotes import Remote
from tests.references.requests import files_of, request, yes
from tests.references.sites import Answer, serve_site
from tests.repositories import Repo, make_repo

ADD = ["kb", "knowledge", "add"]
SYNC = ["kb", "knowledge", "sync"]
LIVE = '{"commit": "HEAD", "summary": "s", "effort": null}'
COMMANDS: dict[str, tuple[Sequence[str], str | None]] = {
    "list": (["kb", "knowledge", "list"], None),
    "add": ([*ADD, "x"], None),
    "remove": (["kb", "knowledge", "remove", "conv-1"], None),
    "annotate": (["kb", "knowledge", "annotate"], LIVE),
    "capture": (["kb", "knowledge", "capture", "--dry-run", "HEAD", "-m", "echo"], None),
    "export": (["kb", "knowledge", "export"], None),
    "sync": ([*SYNC, "origin"], None),
    "review": (["kb", "review"], None),
    "learn": (["-T", "learn", "-m", "echo", "hi"], None),
    "emit": (["-T", "emit_knowledge", "-m", "echo", "hi"], None),
    "tools": (["tools"], None),
    "kb list": (["kb", "list"], None),
    "kb check": (["kb", "check"], None),
    "kb prompt": (["kb", "prompt"], None),
    "kb search": (["kb", "search", "x"], None),
}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A program that leaves a file behind when anything starts it."""
    program = tmp_path / "marker"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    program.chmod(0o755)
    return program


def is_sprung(marker: Path) -> bool:
    return (marker.parent / "sprung").exists()


def use_fsmonitor(repo: Repo, marker: Path) -> None:
    repo.git("config", "core.fsmonitor", str(marker))


def use_hooks(repo: Repo, marker: Path) -> None:
    for name in ("reference-transaction", "pre-push", "post-index-change", "pre-auto-gc"):
        hook = repo.path / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        shutil.copy(marker, hook)


def use_hooks_path(repo: Repo, marker: Path) -> None:
    hooks = repo.path.parent / "hooks"
    hooks.mkdir()
    shutil.copy(marker, hooks / "reference-transaction")
    repo.git("config", "core.hooksPath", str(hooks))


def use_lazy_fetch(repo: Repo, marker: Path) -> None:
    """Let the notes lack an object that only a program could bring."""
    for key, value in {
        "extensions.partialClone": "evil",
        "remote.evil.url": f"ext::{marker}",
        "remote.evil.promisor": "true",
        "protocol.ext.allow": "always",
        "core.repositoryFormatVersion": "1",
    }.items():
        repo.git("config", key, value)
    notes = repo.git("rev-parse", "refs/notes/chronicle-knowledge^{tree}")
    (repo.path / ".git" / "objects" / notes[:2] / notes[2:]).unlink()


@pytest.fixture
def repo(tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with an entry and a remote, as the current directory."""
    repo = make_repo(tmp_path / "repo")
    run_git("init", "--quiet", "--bare", str(tmp_path / "origin"))
    repo.git("remote", "add", "origin", str(tmp_path / "origin"))
    monkeypatch.chdir(repo.path)
    assert run_llm([*ADD, "first"]).exit_code == 0
    return repo


@pytest.mark.parametrize("trap", [use_fsmonitor, use_hooks, use_hooks_path, use_lazy_fetch])
def test_nothing_a_repository_configures_is_started(
    trap: Callable[[Repo, Path], None], marker: Path, repo: Repo, run_llm: RunLlm
) -> None:
    (repo.path / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    trap(repo, marker)
    started = []
    for name, (args, stdin) in COMMANDS.items():
        run_llm(args, stdin)
        if is_sprung(marker):
            started.append(name)
            (marker.parent / "sprung").unlink()
    assert started == []


@pytest.mark.parametrize("trap", [use_fsmonitor, use_hooks, use_hooks_path, use_lazy_fetch])
def test_the_traps_work(trap: Callable[[Repo, Path], None], marker: Path, repo: Repo) -> None:
    """Plain git starts the program, so what the test above sees is our doing."""
    trap(repo, marker)
    for args in (
        ["status"],
        ["update-ref", "refs/x", "HEAD"],
        ["ls-tree", "refs/notes/chronicle-knowledge"],
    ):
        subprocess.run(["git", *args], cwd=repo.path, capture_output=True, check=False)
    assert is_sprung(marker)


def name_programs(repo: Repo, marker: Path) -> None:
    repo.git("config", "remote.origin.uploadpack", str(marker))
    repo.git("config", "remote.origin.receivepack", str(marker))


def use_ssh_command(repo: Repo, marker: Path) -> None:
    repo.git("config", "remote.origin.url", "ssh://git@localhost:1/x")
    repo.git("config", "core.sshCommand", str(marker))


def use_proxy(repo: Repo, marker: Path) -> None:
    repo.git("config", "remote.origin.url", "git://localhost:1/x")
    repo.git("config", "core.gitProxy", str(marker))


def use_helper(repo: Repo, marker: Path) -> None:
    repo.git("config", "remote.origin.url", f"ext::{marker}")
    repo.git("config", "protocol.ext.allow", "always")


@pytest.mark.parametrize(
    ("trap", "exit_code"),
    [(name_programs, 0), (use_ssh_command, 1), (use_proxy, 1), (use_helper, 1)],
)
def test_a_remote_is_reached_by_the_users_own_programs(
    trap: Callable[[Repo, Path], None],
    exit_code: int,
    marker: Path,
    repo: Repo,
    run_llm: RunLlm,
) -> None:
    trap(repo, marker)
    result = run_llm([*SYNC, "origin"])
    assert (result.exit_code, is_sprung(marker)) == (exit_code, False)


def lend_objects(git_dir: Path, marker: Path) -> None:
    """Let a repository take objects from another one, whose refs a program is to list."""
    run_git("init", "--quiet", "--bare", str(git_dir.parent / "lender.git"))
    alternates = git_dir / "objects" / "info" / "alternates"
    alternates.write_text(f"{git_dir.parent / 'lender.git' / 'objects'}\n")
    with (git_dir / "config").open("a") as config:
        config.write(f"[core]\n\talternateRefsCommand = {marker}\n")


def hook_remote(repo: Repo, marker: Path) -> None:
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        shutil.copy(marker, repo.path / "inner.git" / "hooks" / name)


def lend_to_remote(repo: Repo, marker: Path) -> None:
    lend_objects(repo.path / "inner.git", marker)


def lend_to_us(repo: Repo, marker: Path) -> None:
    lend_objects(repo.path / ".git", marker)


@pytest.mark.parametrize("url", ["./inner.git", "file://{}/inner.git", "{}/inner.git"])
@pytest.mark.parametrize("trap", [hook_remote, lend_to_remote, lend_to_us])
def test_a_remote_on_this_disk_starts_nothing(
    trap: Callable[[Repo, Path], None], url: str, marker: Path, repo: Repo, run_llm: RunLlm
) -> None:
    """An unpacked archive can bring such a remote, and a `.git` that names it."""
    run_git("init", "--quiet", "--bare", str(repo.path / "inner.git"))
    url = url.format(repo.path)
    repo.git("config", "remote.origin.url", url)
    trap(repo, marker)
    for remote in ("origin", url):
        result = run_llm([*SYNC, remote])
        pushed = "Pushed 1 entry to {}, without running hooks of a repository on this disk.\n"
        assert result.stdout.endswith(pushed.format(remote))
        assert not is_sprung(marker)
        run_git("--git-dir=inner.git", "update-ref", "-d", KNOWLEDGE_REF, cwd=repo.path)


@pytest.mark.parametrize("trap", [hook_remote, lend_to_remote])
def test_the_traps_of_a_remote_work(
    trap: Callable[[Repo, Path], None], marker: Path, repo: Repo
) -> None:
    run_git("init", "--quiet", "--bare", str(repo.path / "inner.git"))
    trap(repo, marker)
    subprocess.run(
        ["git", "push", "-q", "./inner.git", "HEAD:refs/heads/x"], cwd=repo.path, check=False
    )
    assert is_sprung(marker)


def has_entries(repository: Path) -> bool:
    return bool(run_git(f"--git-dir={repository}", "for-each-ref", KNOWLEDGE_REF))


@pytest.mark.parametrize("whose", ["--global", "--local"])
@pytest.mark.parametrize("rewrite", ["insteadOf", "pushInsteadOf"])
def test_a_url_that_leads_to_this_disk_starts_nothing(
    rewrite: str, whose: str, marker: Path, repo: Repo, run_llm: RunLlm
) -> None:
    """Rules of the user's are followed, those of a repository are not."""
    inner, url = repo.path / "inner.git", "http://127.0.0.1:1/origin"
    run_git("init", "--quiet", "--bare", str(inner))
    hook_remote(repo, marker)
    repo.git("config", "--global", f"url.{repo.path.parent}/.insteadOf", "http://127.0.0.1:1/")
    repo.git("config", whose, f"url.{inner}.{rewrite}", url)
    result = run_llm([*SYNC, url])
    assert (result.exit_code, is_sprung(marker)) == (0, False)
    pushed = [place for place in (inner, repo.path.parent / "origin") if has_entries(place)]
    assert [place.name for place in pushed] == ["inner.git" if whose == "--global" else "origin"]


def test_a_remote_on_this_disk_and_elsewhere_is_not_pushed_to(
    marker: Path, repo: Repo, run_llm: RunLlm
) -> None:
    run_git("init", "--quiet", "--bare", str(repo.path / "inner.git"))
    hook_remote(repo, marker)
    for url in ("./inner.git", "http://127.0.0.1:1/x"):
        repo.git("config", "--add", "remote.origin.pushurl", url)
    result = run_llm(SYNC)
    assert (result.exit_code, is_sprung(marker)) == (1, False)
    assert "addresses on this disk and elsewhere" in result.stderr
    assert not has_entries(repo.path / "inner.git")


@pytest.mark.parametrize(
    "command",
    [f"knowledge {each}" for each in ("list", "export", "list --json", "capture --dry-run")]
    + ["review"],
)
def test_a_note_without_measure_is_not_read(
    command: str, repo: Repo, run_llm: RunLlm, tmp_path: Path
) -> None:
    rule = {"id": "conv-1", "scope": "*", "rule": "x" * 50_000_000, "stability": "permanent"}
    store = {"schema": "chronicle/knowledge-v1", "conventions": [rule]}
    repo.write_note(json.dumps(store))
    result = run_llm(["kb", *command.split()])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "at most 4,000,000 are read" in result.stderr
    assert len(result.stderr) < 1000


def test_lessons_without_measure_are_passed_over(repo: Repo, run_llm: RunLlm) -> None:
    """Not one that is too long, and not more than so many bytes of all."""
    wisdom = [{"category": "gotcha", "content": "x" * 150_000}]
    text = json.dumps({"wisdom": wisdom})
    blob = repo.git("hash-object", "-w", "--stdin", stdin=text)
    long = repo.git("hash-object", "-w", "--stdin", stdin=text.replace("x", "xxxx"))
    ids = [f"{n:012x}".ljust(40, "0") for n in range(400)]
    tree = "".join(f"100644 blob {blob}\t{id_}\n" for id_ in ids[1:])
    tree = repo.git("mktree", stdin=f"100644 blob {long}\t{ids[0]}\n{tree}")
    repo.git("update-ref", "refs/notes/chronicle", repo.git("commit-tree", tree, "-m", "x"))
    shown = run_llm(["kb", "show", "--as-model", "repo-knowledge/wisdom#*"]).stdout
    assert shown.count("\n- gotcha: ") == 19
    assert f"(from {ids[0][:12]})" not in shown


SYMBOLIC = ("refs/notes/chronicle-knowledge", "refs/notes/chronicle", "refs/llm-kb/knowledge")


@pytest.mark.parametrize("ref", SYMBOLIC)
def test_a_symbolic_ref_leads_no_write_elsewhere(
    ref: str, repo: Repo, tmp_path: Path, run_llm: RunLlm
) -> None:
    repo.git("push", "-q", "origin", KNOWLEDGE_REF)
    repo.git("branch", "victim")
    repo.git("symbolic-ref", ref, "refs/heads/victim")
    live = '{"commit": "HEAD", "summary": "why it was done so"}'
    commands: tuple[tuple[Sequence[str], str | None], ...] = (
        ([*ADD, "second"], None),
        (["kb", "knowledge", "annotate"], live),
        (SYNC, None),
    )
    for args, stdin in commands:
        run_llm(args, stdin)
    assert repo.git("rev-parse", "victim") == repo.head


def test_the_refspecs_of_a_remote_lead_no_pull_elsewhere(repo: Repo, run_llm: RunLlm) -> None:
    """With the usual one for notes, it replaced the entries that were not pushed."""
    assert run_llm(SYNC).exit_code == 0
    assert run_llm([*ADD, "second"]).exit_code == 0
    for spec in ("+refs/notes/*:refs/notes/*", "+refs/notes/*:refs/heads/*"):
        repo.git("config", "--add", "remote.origin.fetch", spec)
    before = repo.git("for-each-ref")
    assert "\nPushed 2 entries to origin" in run_llm(SYNC).stdout
    assert repo.git("for-each-ref") == before


@pytest.mark.parametrize("name", [b"-\xff", b"-\xe2\x80\xa8x", b"/x"])
def test_the_refs_that_a_remote_lists_leave_nothing_here(
    name: bytes, repo: Repo, tmp_path: Path, run_llm: RunLlm
) -> None:
    """Names in no encoding, names of two lines, and names that cannot be beside each other."""
    repo.git("push", "-q", "origin", KNOWLEDGE_REF)
    lines = b"".join(b"%s refs/notes/chronicle%s\n" % (repo.head.encode(), n) for n in (b"", name))
    (tmp_path / "origin" / "packed-refs").write_bytes(lines)
    (tmp_path / "origin" / "objects" / "info" / "alternates").write_text(
        f"{repo.path}/.git/objects\n"
    )
    listing = ("for-each-ref", "--format=%(refname)")
    before = repo.git(*listing)
    assert "refs/notes/chronicle\n" not in before
    result = run_llm(SYNC)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert repo.git(*listing).replace("refs/notes/chronicle\n", "") == before


@pytest.mark.parametrize("key", ["credential.helper", "credential.http://127.0.0.1.helper"])
def test_passwords_are_asked_for_by_the_users_own_helpers(
    marker: Path, tmp_path: Path, key: str, home: Path
) -> None:
    """Not by those of the repository, and not by `.netrc`, which curl reads unasked."""
    sent: list[str | None] = []

    def demand(handler: BaseHTTPRequestHandler) -> None:
        sent.append(handler.headers.get("Authorization"))
        handler.send_response(401)
        handler.send_header("WWW-Authenticate", 'Basic realm="x"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    repo = make_repo(tmp_path / "repo")
    own = tmp_path / "own"
    own.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    own.chmod(0o755)
    run_git("config", "--global", "credential.helper", f"!{own}")
    (home / ".netrc").write_text("default login me password hunter2\n")
    repo.git("config", key, f"!{marker}")
    with serve_site() as site:
        url = site.answer("/x/info/refs?service=git-upload-pack", demand).partition("/info")[0]
        with pytest.raises(GitError):
            fetch_notes(repo.path, url)
    assert (is_sprung(marker), (tmp_path / "asked").exists()) == (False, True)
    assert set(sent) == {None}


@pytest.mark.parametrize("way", ["config", "config.worktree", "included"])
def test_the_settings_of_a_repository_do_not_count_on_the_way_to_a_server(
    way: str, repo: Repo, home: Path
) -> None:
    """They named proxies, cookies to send, and any file of the user's to write cookies to."""
    victim = home / ".bashrc"
    victim.write_text("127.0.0.1\tFALSE\t/\tFALSE\t9999999999\tsession\thunter2\n")
    before = victim.read_text()
    (home / "ours").write_text('[http]\n\textraHeader = "X-Ours: \\"a\\\\b\\""\n')
    (home / ".gitconfig").write_text(f'[includeIf "gitdir:{repo.path}/"]\n\tpath = {home}/ours\n')
    if way == "config.worktree":
        repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "include.path", "included")
    with serve_site() as site:
        path = "/x/info/refs?service=git-upload-pack"
        site.answer(path, Answer(status=404, headers={"Set-Cookie": "a=b; Max-Age=99"}))
        with (repo.path / ".git" / way).open("a") as config:
            config.write(
                f"[http]\n\tcookieFile = {victim}\n\tsaveCookies = true\n"
                "\tproxy = http://127.0.0.1:1\n\textraHeader = X-Theirs: x\n"
                f'[http "{site.url}"]\n\tproxy = http://127.0.0.1:1\n'
                f'[url "http://127.0.0.1:1"]\n\tinsteadOf = {site.url}\n'
                f'[remote "origin"]\n\tproxy = http://127.0.0.1:1\n'
            )
        repo.git("config", "remote.origin.url", f"{site.url}/x")
        with pytest.raises(GitError, match="not found"):
            fetch_notes(repo.path, "origin")
    assert site.requests == [f"GET {path}"]
    (received,) = site.received
    assert received["x-ours"] == '"a\\b"'
    assert {"cookie", "x-theirs"}.isdisjoint(received)
    assert victim.read_text() == before


def test_a_bare_repository_among_the_files_is_not_entered(
    marker: Path, tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone can bring one, with a configuration that a clone cannot bring in `.git`."""
    repo = make_repo(tmp_path / "repo")
    inner = repo.path / "inner"
    run_git("init", "--quiet", "--bare", str(inner))
    config = inner / "config"
    config.write_text(f"{config.read_text()}\tfsmonitor = {marker}\n\tpager = {marker}\n")
    monkeypatch.chdir(inner)
    for args, stdin in COMMANDS.values():
        run_llm(args, stdin)
    assert not is_sprung(marker)
    with pytest.raises(GitError, match=r"safe\.bareRepository"):
        run_git("rev-parse", "HEAD", cwd=inner)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_ALLOW_PROTOCOL", "https"),
        ("GIT_PROTOCOL_FROM_USER", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
    ],
)
def test_the_users_own_guards_are_kept(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    seen = run_git("-c", "alias.x=!env", "x", cwd=tmp_path, server=True).decode()
    assert f"{name}={value}\n" in seen


def test_programs_are_not_looked_for_in_the_current_directory(
    marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(marker, tmp_path / "git")
    real = find_program("git")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", os.environ["PATH"]]))
    assert find_program("git") == real
    started = git_environment()["PATH"].split(os.pathsep)
    assert len(started) > 0
    assert all(map(os.path.isabs, started))
    run_git("version")
    assert not is_sprung(marker)


# Sizes


def bomb(remote: Remote, levels: int) -> str:
    """Commit ten to the power of `levels` files in a few kilobytes; return the commit."""
    entry = f"100644 blob {remote.git('rev-parse', 'HEAD:README.md')}"
    for _ in range(levels):
        table = "".join(f"{entry}\td{n}\n" for n in range(10))
        tree = subprocess.run(
            ["git", "mktree"], cwd=remote.directory, input=table, capture_output=True,
            encoding="utf-8", check=True,
        ).stdout.strip()  # fmt: skip
        entry = f"040000 tree {tree}"
    commit = remote.git("commit-tree", tree, "-m", "bomb")
    remote.git("update-ref", "refs/heads/main", commit)
    return commit


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(root=tmp_path / "references", settings=SETTINGS)


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path / "remote", {"README.md": "hello\n"})


def test_a_tree_that_unfolds_is_left_at_the_limit(library: Library, remote: Remote) -> None:
    source = GitSource(url=remote.url, commit=bomb(remote, 8))
    policy = Policy(allow_protocols=("file",), timeout=20, max_files=1000)
    with Remotes(policy, library.scratch) as repositories:
        repository = repositories.open(source)

        def read() -> None:
            with pytest.raises(TooLargeError, match=r"max_files \(1,000\); narrow it by paths"):
                repository.list_files(source)

        assert peak_of(read) < 20_000_000
        narrow = GitSource(url=remote.url, commit=source.commit, paths=("d0/d1/d2/d3/d4/d5/d6/",))
        assert len(repository.list_files(narrow)[0]) == 10


@pytest.mark.slow
def test_a_tree_that_unfolds_to_nothing_is_left_at_the_timeout(
    library: Library, remote: Remote
) -> None:
    """Directories without files: git would walk for hours and print nothing."""
    empty = remote.git("hash-object", "-t", "tree", "-w", "/dev/null")
    entry = f"040000 tree {empty}"
    for _ in range(12):
        table = "".join(f"{entry}\td{n}\n" for n in range(10))
        tree = subprocess.run(
            ["git", "mktree"], cwd=remote.directory, input=table, capture_output=True,
            encoding="utf-8", check=True,
        ).stdout.strip()  # fmt: skip
        entry = f"040000 tree {tree}"
    commit = remote.git("commit-tree", tree, "-m", "bomb")
    remote.git("update-ref", "refs/heads/main", commit)
    policy = Policy(allow_protocols=("file",), timeout=2)
    source = GitSource(url=remote.url, commit=commit)
    with (
        Remotes(policy, library.scratch) as repositories,
        pytest.raises(FetchError, match="timed out after 2 s"),
    ):
        repositories.open(source).list_files(source)


def test_of_endless_messages_the_last_are_kept() -> None:
    flood = "yes 'remote: words' | head -c 50000000 >&2; echo the end >&2; exit 1"

    def run() -> None:
        with pytest.raises(GitError, match="the end") as caught:
            run_git("-c", f"alias.flood=!{flood}", "flood", timeout=60)
        assert len(caught.value.stderr) <= 4096

    assert peak_of(run) < 5_000_000


def test_endless_output_is_ended() -> None:
    with pytest.raises(GitError, match="over 1,000,000 bytes"):
        run_git("-c", "alias.y=!yes", "y", timeout=60, max_output=1_000_000)


@pytest.mark.skipif(os.name != "posix", reason="limits of processes are of POSIX")
def test_no_file_may_outgrow_its_limit(tmp_path: Path) -> None:
    """The floor under `watch`, which looks a few times a second."""
    writes = "head -c 5000000 /dev/zero > big"
    with pytest.raises(GitError):
        run_git("-c", f"alias.w=!{writes}", "w", cwd=tmp_path, timeout=60, max_file=10**6)
    assert (tmp_path / "big").stat().st_size < 1_001_000


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_the_memory_of_a_transfer_is_bounded(tmp_path: Path) -> None:
    """Git keeps every ref that a server lists."""
    takes = f"{sys.executable} -c 'bytearray(3_000_000_000)'"
    with pytest.raises(GitError, match="MemoryError"):
        run_git("-c", f"alias.t=!{takes}", "t", cwd=tmp_path, timeout=60, max_file=10**6)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_a_server_that_lists_refs_for_ever_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def packet(text: str) -> bytes:
        return f"{len(text) + 4:04x}{text}".encode()

    def list_refs(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        handler.end_headers()
        handler.wfile.write(packet("# service=git-upload-pack\n") + b"0000")
        with suppress(OSError):
            for number in count():
                refs = range(number * 1_000, number * 1_000 + 1_000)
                lines = (packet(f"{'a' * 40} refs/heads/branch-{each}\n") for each in refs)
                handler.wfile.write(b"".join(lines))

    monkeypatch.setattr("llm_kb.files.git.SPARE_MEMORY", 200_000_000)
    policy = Policy(allow_hosts=("127.0.0.1",), timeout=60, max_bytes=1_000_000)
    with serve_site() as site:
        url = site.answer("/x/info/refs?service=git-upload-pack", list_refs).partition("/info")[0]
        with pytest.raises(FetchError, match=r"[Oo]ut of memory|malloc"):
            find_commit(GitSource(url=url), policy)


def test_repositories_of_long_ids_are_read(library: Library, tmp_path: Path) -> None:
    directory = tmp_path / "sha256"
    run_git("init", "-q", "--object-format=sha256", "--initial-branch=main", str(directory))
    (directory / "a.md").write_text("words")
    run_git("config", "uploadpack.allowFilter", "true", cwd=directory)
    run_git("add", "--all", cwd=directory)
    run_git("commit", "-qm", "first", cwd=directory)
    create_topic(library, request(GitSource(url=directory.as_uri())), yes)
    assert files_of(library) == {"a.md": "words"}


# Endings

FAKE_GIT = """#!/bin/sh
case "$*" in
*ls-remote*) echo "1111111111111111111111111111111111111111\tHEAD";;
*fetch*) sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait;;
*) exec {git} "$@";;
esac
"""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
def test_git_ends_with_us_and_leaves_nothing(
    number: signal.Signals, tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    pids, temporary = tmp_path / "pids", tmp_path / "tmp"
    temporary.mkdir()
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(FAKE_GIT.format(pids=pids, git=find_program("git")))
    fake.chmod(0o755)
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_protocols = ["file"]\n')
    create = ["kb", "references", "create", "-y", "--title", "T", "--body", "b"]
    process = Process(
        [*create, "--git", "file:///nowhere/x"],
        env=os.environ
        | {
            "PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": str(temporary),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_until(pids.exists, 30)
        family = [int(pid) for pid in pids.read_text().split()]
        assert all(map(is_alive, family))
        process.send_signal(number)
        process.wait(30)
        assert wait_until(lambda: not any(map(is_alive, family)), 30)
        assert wait_until(lambda: not list(temporary.iterdir()), 30)
    finally:
        process.kill()
        process.wait()
    run_llm(["kb", "references", "list"])
    staging = user_dir / "kb" / "references" / ".staging"
    assert list(staging.iterdir()) == []


def test_a_command_ends_though_a_repository_makes_git_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its HEAD, its rules, or a file that its configuration includes, may be a pipe."""
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    os.mkfifo(tmp_path / ".gitignore")
    monkeypatch.setattr("llm_kb.files.git.MOST_SECONDS", 0.2)
    with pytest.raises(KbError, match=r"a named pipe makes git wait: find \. -type p"):
        propose_topics(tmp_path)


def test_a_nul_in_a_path_of_git_ends_no_command(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git" / "commondir").write_bytes(b".\0x")
    (tmp_path / ".git" / "info" / "exclude").write_text("a.md\n")
    (tmp_path / "a.md").touch()
    assert GitIgnored().find(tmp_path).holds(f"{tmp_path}/a.md")
