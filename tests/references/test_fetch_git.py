"""What a repository, or its URL, may do to us: each attack on real git, and that it fails."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.git import GitError, run_remote
from llm_kb.references.errors import BlockedAddressError, FetchError, TooLargeError
from llm_kb.references.fetch_git import GitFile, GitPolicy, Repositories, find_commit, select_files
from llm_kb.references.library import Library
from llm_kb.references.plan import TopicRequest
from llm_kb.references.sources import GitSource
from tests.references.remotes import Remote

LOCAL = GitPolicy(allow_protocols=("file",), timeout=20)


def request(source: GitSource) -> TopicRequest:
    return TopicRequest(topic_id="topic-frob", title="Frob", body="", sources=(source,))


def fetch(library: Library, remote: Remote, **options: object) -> dict[str, str]:
    library.create(request(GitSource(url=remote.url, **options)), lambda plan: True)  # type: ignore[arg-type]
    return library.store.hash_files("topic-frob")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A file that exists once something of the repository was run."""
    return tmp_path / "sprung"


def test_hooks_of_a_repository_and_of_templates_do_not_run(
    library: Library, remote: Remote, trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "template"
    for hooks in (remote.directory / ".git" / "hooks", template / "hooks", tmp_path / "global"):
        hooks.mkdir(parents=True, exist_ok=True)
        for name in ("post-checkout", "post-merge", "reference-transaction", "pre-auto-gc"):
            (hooks / name).write_text(f"#!/bin/sh\ntouch {trap}\n")
            (hooks / name).chmod(0o755)
    subprocess.run(["git", "config", "--global", "init.templateDir", template], check=True)
    subprocess.run(["git", "config", "--global", "core.hooksPath", tmp_path / "global"], check=True)
    fetch(library, remote)
    library.refresh("topic-frob", lambda plan, reason: True)
    assert not trap.exists()
    # The trap works: a clone as people make it springs it.
    subprocess.run(
        ["git", "-c", "core.hooksPath=", "clone", "-q", remote.url, tmp_path / "clone"],
        check=False,
        capture_output=True,
    )
    subprocess.run(["git", "checkout", "-q", "-b", "x"], cwd=remote.directory, check=False)
    assert trap.exists()


def test_filters_and_fsmonitor_do_not_run(library: Library, remote: Remote, trap: Path) -> None:
    for key in ("filter.lfs.smudge", "filter.evil.smudge", "core.fsmonitor", "core.pager"):
        subprocess.run(["git", "config", "--global", key, f"touch {trap}; cat"], check=True)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    # Written with plumbing: `git add` would run the filters itself.
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--no-filters", "--stdin"],
        input=pointer,
        cwd=remote.directory,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.strip()
    attributes = subprocess.run(
        ["git", "hash-object", "-w", "--no-filters", "--stdin"],
        input="*.bin filter=lfs\n*.txt filter=evil\n",
        cwd=remote.directory,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.strip()
    tree = subprocess.run(
        ["git", "mktree"],
        input=(
            f"100644 blob {attributes}\t.gitattributes\n"
            f"100644 blob {blob}\ta.txt\n100644 blob {blob}\tbig.bin\n"
        ),
        cwd=remote.directory,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.strip()
    commit = remote.git("commit-tree", tree, "-m", "filters")
    remote.git("update-ref", "refs/heads/main", commit)
    assert sorted(fetch(library, remote)) == [".gitattributes", "a.txt", "big.bin"]
    assert (library.store.directory("topic-frob") / "big.bin").read_text() == pointer
    assert not trap.exists()


def test_links_and_submodules_are_left_out_and_counted(
    library: Library, remote: Remote, tmp_path: Path
) -> None:
    (remote.directory / "passwd").symlink_to("/etc/passwd")
    (remote.directory / "up").symlink_to("../..")
    remote.write({})
    remote.git("update-index", "--add", "--cacheinfo", f"160000,{remote.commit},sub")
    remote.git("commit", "--quiet", "-m", "submodule")
    plan = library.plan(request(GitSource(url=remote.url)))
    assert plan.sources[0].notes == ("left out: 2 links", "left out: 1 submodule")
    assert sorted(fetch(library, remote)) == ["README.md", "docs/guide.md", "src/frob.py"]


@pytest.mark.parametrize(
    "path",
    [
        "../../evil.md",
        "/etc/evil",
        "a/../../evil",
        ".git/config",
        "sub/.GIT/hooks/post-checkout",
        "a\\..\\evil",
        "C:evil",
        "nul.txt",
        "line\nbreak.md",
        "\x1b[31mred.md",
        "rtl\u202egnp.md",
        "bad\udcff.md",
        "trailing.",
        "x" * 260,
    ],
)
def test_names_that_lead_outside_or_deceive_are_left_out(path: str) -> None:
    entries = [("100644", GitFile(path=name, blob="0" * 40)) for name in (path, "good.md")]
    tree = select_files(GitSource(url="https://e.org/x"), entries)
    assert [file.path for file in tree.files] == ["good.md"]
    assert tree.notes == ("left out: 1 file with an unsafe name",)


def test_a_tree_that_leads_outside_writes_nothing_there(library: Library, remote: Remote) -> None:
    """Git itself makes no such tree, so it is written byte by byte."""
    blob = bytes.fromhex(remote.git("rev-parse", "HEAD:README.md"))

    def write_tree(entries: bytes) -> bytes:
        done = subprocess.run(
            ["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"],
            input=entries,
            cwd=remote.directory,
            capture_output=True,
            check=True,
        )
        return bytes.fromhex(done.stdout.strip().decode())

    inner = write_tree(b"100644 evil.md\0" + blob)
    tree = write_tree(b"40000 ..\0" + inner + b"100644 good.md\0" + blob)
    commit = remote.git("commit-tree", tree.hex(), "-m", "evil")
    remote.git("update-ref", "refs/heads/main", commit)
    assert sorted(fetch(library, remote)) == ["good.md"]
    assert list(library.root.parent.rglob("evil.md")) == []


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c 'touch {trap}'",
        "ext::sh -c touch% {trap}",
        "fd::17",
        "--upload-pack=touch {trap}",
        "-oProxyCommand=touch {trap}",
        "ssh://-oProxyCommand=touch%20{trap}/x",
    ],
)
def test_git_itself_refuses_what_got_past_the_check(trap: Path, url: str) -> None:
    """The sources' own rules are passed by: this is the second fence."""
    source = GitSource(url=url.format(trap=trap))
    with pytest.raises(FetchError):
        find_commit(source, replace(LOCAL, allow_protocols=("file", "ssh", "git")))
    assert not trap.exists()


def test_a_ref_cannot_be_an_option(remote: Remote, trap: Path) -> None:
    source = GitSource(url=remote.url, ref=f"--upload-pack=touch {trap}")
    with pytest.raises(FetchError), Repositories(LOCAL) as repositories:
        repositories.open(source)
    assert not trap.exists()


def test_local_repositories_need_the_users_word(remote: Remote) -> None:
    with pytest.raises(FetchError, match="allow_protocols"):
        find_commit(GitSource(url=remote.url), GitPolicy(timeout=20))


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1"])
def test_hosts_with_private_addresses_are_refused(address: str) -> None:
    policy = replace(LOCAL, resolver=lambda host, port: [address])
    with pytest.raises(BlockedAddressError):
        find_commit(GitSource(url="https://evil.example/x"), policy)


def test_git_connects_to_the_address_that_was_checked(tmp_path: Path) -> None:
    """The name is one that no name server knows: without the pin git could not connect."""
    policy = GitPolicy(
        allow_hosts=("wiki.invalid",), timeout=20, resolver=lambda host, port: ["127.0.0.1"]
    )
    with pytest.raises(FetchError) as caught:
        find_commit(GitSource(url="http://wiki.invalid:9/x"), policy)
    assert "Could not resolve" not in str(caught.value)
    assert "onnect" in str(caught.value)


def test_a_git_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(GitError, match="timed out after 1 s"):
        run_remote("git", "-c", "alias.x=!sleep 60 & sleep 60", "x", timeout=1)
    assert time.monotonic() - started < 10


def test_a_fetch_over_the_limit_is_ended_while_it_runs(remote: Remote) -> None:
    def refuse() -> None:
        raise TooLargeError("x", "too much")

    with pytest.raises(TooLargeError):
        run_remote("git", "-c", "alias.x=!sleep 60", "x", timeout=30, watch=refuse)


def test_tags_branches_and_commits_are_found(remote: Remote) -> None:
    first = remote.commit
    remote.git("tag", "-a", "v1", "-m", "v1")
    remote.git("branch", "feature/x")
    second = remote.write({"more.md": "more"})
    found = {
        ref: find_commit(GitSource(url=remote.url, ref=ref), LOCAL)
        for ref in (None, "main", "v1", "feature/x", "refs/heads/main", first)
    }
    assert found == {
        None: second,
        "main": second,
        "v1": first,
        "feature/x": first,
        "refs/heads/main": second,
        first: first,
    }
    with pytest.raises(FetchError, match="no branch or tag 'nope'"):
        find_commit(GitSource(url=remote.url, ref="nope"), LOCAL)


# GitHub through gh


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, object]], Path]:
    """A `gh` that plays recorded answers by endpoint; returns its log."""

    def install(answers: dict[str, object]) -> Path:
        directory = tmp_path / "bin"
        directory.mkdir()
        log = directory / "log"
        (directory / "answers.json").write_text(json.dumps(answers))
        script = directory / "gh"
        script.write_text(
            "#!/usr/bin/env python3\n"
            "import json, sys\n"
            f"open({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
            f"answers = json.load(open({str(directory / 'answers.json')!r}))\n"
            "answer = answers.get(sys.argv[-1])\n"
            "if isinstance(answer, int): sys.exit(answer)\n"
            "if answer is None: sys.exit('gh: Not Found (HTTP 404)')\n"
            "print(json.dumps(answer))\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
        return log

    return install


@pytest.fixture
def github(library: Library, remote: Remote) -> Library:
    """A library for which the repository `o/frob` of GitHub is the one on this disk."""
    key = f"url.{remote.directory.as_uri()}.insteadOf"
    subprocess.run(["git", "config", "--global", key, "https://github.com/o/frob"], check=True)
    return replace(library, resolver=lambda host, port: ["140.82.112.3"])


def recorded(remote: Remote) -> dict[str, object]:
    """What GitHub would say of the repository."""
    entries = []
    for line in remote.git("ls-tree", "-r", "-t", "-l", "HEAD").splitlines():
        meta, path = line.split("\t")
        mode, kind, sha, size = meta.split()
        entry = {"path": path, "mode": mode, "type": kind, "sha": sha}
        entries.append(entry | ({"size": int(size)} if kind == "blob" else {}))
    commit = remote.commit
    return {
        "repos/o/frob/commits/HEAD": {"sha": commit, "commit": {"message": "x"}},
        f"repos/o/frob/git/trees/{commit}?recursive=1": {
            "sha": commit,
            "tree": entries,
            "truncated": False,
        },
    }


def test_github_is_asked_for_sizes_and_nothing_is_fetched_for_a_plan(
    github: Library, remote: Remote, gh: Callable[[dict[str, object]], Path]
) -> None:
    log = gh(recorded(remote))
    source = GitSource(url="https://github.com/o/frob", paths=("docs/", "README.md"))
    remote.directory.rename(remote.directory.with_name("unreachable"))
    plan = github.plan(request(source))
    assert (plan.files, plan.summary) == (2, "o/frob (2 files, 81 B)")
    assert [line.split()[-1] for line in log.read_text().splitlines()] == [
        "repos/o/frob/commits/HEAD",
        f"repos/o/frob/git/trees/{plan.sources[0].source.commit}?recursive=1",  # type: ignore[union-attr]
    ]


def test_a_topic_from_github_is_fetched_at_the_planned_commit_and_refreshed_by_one_request(
    github: Library, remote: Remote, gh: Callable[[dict[str, object]], Path]
) -> None:
    log = gh(recorded(remote))
    planned = remote.commit
    source = GitSource(url="https://github.com/o/frob")

    def approve(plan: object) -> bool:
        remote.write({"later.md": "not planned"})
        return True

    assert github.create(request(source), approve).file_count == 3
    topic = github.store.read("topic-frob")
    assert topic.sources == (replace(source, commit=planned),)
    log.write_text("")
    assert github.refresh("topic-frob", lambda plan, reason: True).changed is False
    assert log.read_text() == "api --method GET repos/o/frob/commits/HEAD\n"


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({"repos/o/frob/commits/HEAD": 4}, id="logged out"),
        pytest.param(None, id="too many files to list"),
    ],
)
def test_plain_git_is_asked_where_gh_cannot_tell(
    github: Library,
    remote: Remote,
    gh: Callable[[dict[str, object]], Path],
    answers: dict[str, object] | None,
) -> None:
    if answers is None:
        answers = recorded(remote)
        tree = next(key for key in answers if "trees" in key)
        answers[tree] = {"sha": "x", "tree": [], "truncated": True}
    else:
        tree = f"repos/o/frob/git/trees/{remote.commit}?recursive=1"
        answers = {**answers, tree: 4}
    gh(answers)
    plan = github.plan(request(GitSource(url="https://github.com/o/frob")))
    assert (plan.files, plan.size) == (3, 123)


def test_what_gh_says_of_a_missing_repository_is_passed_on(
    github: Library, gh: Callable[[dict[str, object]], Path]
) -> None:
    gh({})
    planned = github.plan
    with pytest.raises(Exception, match=r"gh: Not Found \(HTTP 404\)"):
        planned(request(GitSource(url="https://github.com/o/private")))
