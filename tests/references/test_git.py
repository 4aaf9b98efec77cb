"""Attacks by a repository or its URL on the real git, each of which fails."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.files.atomic import WriteError
from llm_kb.references.errors import FetchError, NothingFetchedError
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.git import Remotes, find_commit
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import Policy
from llm_kb.references.topic.topic_directory import hash_fetched
from llm_kb.references.topic.topic_file import TopicFile
from tests.references.remotes import Remote
from tests.references.requests import plan_topic

LOCAL = Policy(allow_protocols=("file",), timeout=20)


def request(source: GitSource) -> TopicFile:
    return TopicFile(id="topic-frob", title="Frob", body="", sources=(source,))


def fetch(library: Library, remote: Remote, **options: object) -> list[str]:
    create_topic(library, request(GitSource(url=remote.url, **options)), lambda plan: True)  # type: ignore[arg-type]
    return sorted(hash_fetched(library.directory("topic-frob")))


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
    refresh_topic(library, "topic-frob", lambda reason: True)
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
    pointer = "what git-lfs replaces\n"
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
    assert fetch(library, remote) == [".gitattributes", "a.txt", "big.bin"]
    assert (library.directory("topic-frob") / "big.bin").read_text() == pointer
    assert not trap.exists()


def test_a_plan_counts_what_is_left_out(library: Library, remote: Remote) -> None:
    (remote.directory / "passwd").symlink_to("/etc/passwd")
    (remote.directory / "up").symlink_to("../..")
    remote.write({"a.pdf": f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\n"})
    remote.git("update-index", "--add", "--cacheinfo", f"160000,{remote.commit},sub")
    remote.git("commit", "--quiet", "-m", "submodule")
    plan = plan_topic(library, request(GitSource(url=remote.url)))
    left_out = ("2 links", "1 submodule", "1 file in Git LFS, never fetched")
    assert plan.sources[0].notes == tuple(f"left out: {what}" for what in left_out)
    assert fetch(library, remote) == ["README.md", "docs/guide.md", "src/frob.py"]


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
    assert fetch(library, remote) == ["good.md"]
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
        find_commit(source, replace(LOCAL, allow_protocols=("file", "ssh")))
    assert not trap.exists()


def test_a_ref_cannot_be_an_option(library: Library, remote: Remote, trap: Path) -> None:
    source = GitSource(url=remote.url, ref=f"--upload-pack=touch {trap}")
    with pytest.raises(FetchError), Remotes(LOCAL, library.scratch) as repositories:
        repositories.open(source)
    assert not trap.exists()


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
    with pytest.raises(FetchError, match=r"no branch or tag 'nope'$"):
        find_commit(GitSource(url=remote.url, ref="nope"), LOCAL)
    for ref in (first[:8], first.upper()):
        with pytest.raises(FetchError, match=r"a commit id must be given in full \(40 digits\)"):
            find_commit(GitSource(url=remote.url, ref=ref), LOCAL)


def test_no_room_for_a_repository_is_said(library: Library, remote: Remote) -> None:
    library.root.write_text("not a directory")
    with pytest.raises(WriteError, match=r"cannot write '.*/\.locks'"):
        plan_topic(library, request(GitSource(url=remote.url, ref=remote.commit)))


@pytest.mark.slow
def test_a_file_near_the_limit_of_an_output_is_read_with_those_beside_it(
    library: Library, remote: Remote
) -> None:
    remote.write({"a.bin": bytes(97_000_000), "b.bin": bytes(13_000_000)})
    assert {"a.bin", "b.bin"} <= set(fetch(library, remote))


def test_files_that_the_server_did_not_send_are_an_error(
    library: Library, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    real = remote.git("--exec-path") + "/git"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *--stdin*) exit 0;; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent), prepend=":")
    with pytest.raises(NothingFetchedError) as caught:
        plan_topic(library, request(GitSource(url=remote.url)))
    [reason] = caught.value.reasons
    assert reason.startswith(f"{remote.url}: git: ")
    assert "promisor remote" in reason


@pytest.mark.parametrize("ref", ["feat/\u00fcn\u00ef", "tags/v1", "heads/main", "@x/frob@1.0"])
def test_branches_and_tags_are_found_by_the_names_that_git_knows(
    library: Library, remote: Remote, ref: str
) -> None:
    for tag in ("v1", "@x/frob@1.0"):
        remote.git("tag", tag)
    remote.git("branch", "feat/\u00fcn\u00ef")
    plan = plan_topic(library, request(GitSource(url=remote.url, ref=ref)))
    (source,) = (each.source for each in plan.sources)
    assert isinstance(source, GitSource)
    assert source.commit == remote.git("rev-parse", "HEAD")
