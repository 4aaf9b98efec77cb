"""What git ignores, and other repositories, are not part of a topic."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.git import GitError, run_git
from llm_kb.files.git_ignored import GitIgnored
from llm_kb.subjects.topics import TopicConfig
from tests.conftest import RunLlm


def git(root: Path, *args: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=b")
    command = ["git", *identity, *args]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def make(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with topic `docs`."""
    make(tmp_path, {"docs/a.md": "# A\n", "docs/sub/b.md": "# B\n"})
    git(tmp_path, "init", "-q")
    return tmp_path


def list_paths(root: Path) -> list[str]:
    topic = DirectoryTopic(TopicConfig(id="t", root=Path(os.path.realpath(root))))
    return sorted(subject.path for subject in topic.list().subjects if not subject.hidden)


def name_own_rules(repository: Path) -> None:
    make(repository, {"rules": "b.md\n"})
    git(repository, "config", "core.excludesFile", str(repository / "rules"))


def include_a_file_of_settings(repository: Path) -> None:
    make(Path.home(), {".gitconfig": "[include]\n\tpath = more\n"})
    make(Path.home(), {"more": "[core]\n\texcludesFile = ~/rules\n", "rules": "b.md\n"})


def include_a_file_for_this_directory(repository: Path) -> None:
    place = f'[includeIf "gitdir:{os.path.realpath(repository)}/"]\n\tpath = more\n'
    make(Path.home(), {".gitconfig": place, "rules": "b.md\n"})
    make(Path.home(), {"more": "[core]\n\texcludesFile = ~/rules\n"})


def split_the_index(repository: Path) -> None:
    make(repository, {".gitignore": "b.md\n"})
    git(repository, "add", "docs/a.md")
    git(repository, "update-index", "--split-index")


def ignore_case(repository: Path) -> None:
    git(repository, "config", "core.ignoreCase", "true")
    make(repository, {".gitignore": "B.MD\nBUILD/\n", "docs/build/x.md": ""})


def track_in_an_ignored_directory(repository: Path) -> None:
    make(repository, {".gitignore": "build/\n", "docs/build/x.md": "", "docs/build/deep/y.md": ""})
    git(repository, "add", "-f", "docs/build/deep/y.md")


def add_rules_in_directories(repository: Path) -> None:
    make(repository, {".gitignore": "*.gen.md\n!keep.gen.md\n", "docs/.gitignore": "/sub/b.*\n"})
    make(repository, {"docs/c.gen.md": "", "docs/keep.gen.md": "", "docs/sub/.gitignore": "!d*\n"})
    make(repository, {"docs/sub/d.gen.md": ""})


def write_odd_rules(repository: Path) -> None:
    odd = "a.md\n./docs/b.md\n./src/a.ts\n[z-a]\na[\n!\n\\\nx//y\n[[:nope:]]\nb?.md\n"
    make(repository, {".gitignore": f"{odd}{'x' * 5_000}\n", "docs/b\u00e9.md": ""})


def write_odd_names(repository: Path) -> None:
    make(
        repository, {".gitignore": "*.log.md\n", "docs/two\nlines.log.md": "", "docs/ä.log.md": ""}
    )


def exclude_in_the_clone(repository: Path) -> None:
    make(repository, {".git/info/exclude": "b.md\n", ".gitignore": "!a.md\n"})


CASES = (
    name_own_rules, include_a_file_of_settings, include_a_file_for_this_directory, split_the_index,
    ignore_case, track_in_an_ignored_directory, add_rules_in_directories, write_odd_rules,
    write_odd_names, exclude_in_the_clone,
)  # fmt: skip


@pytest.mark.parametrize("prepare", CASES, ids=lambda each: each.__name__)
def test_what_git_ignores_is_no_subject(repository: Path, prepare: Callable[[Path], None]) -> None:
    prepare(repository)
    asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "docs")
    known = [path.removeprefix("docs/") for path in git(repository, *asked).split("\0")]
    shown = sorted(path for path in known if path.endswith(".md") and "\n" not in path)
    assert list_paths(repository / "docs") == shown
    assert len(shown) < len([*(repository / "docs").rglob("*.md")])


@pytest.mark.parametrize("rule", ["./build", "./src/a.ts", "[z-a]", "a[", "!", "x" * 5_000])
def test_a_rule_of_git_is_no_error_of_ours(repository: Path, run_llm: RunLlm, rule: str) -> None:
    make(repository, {".gitignore": f"{rule}\n", "README.md": "# Hi\n\nText.\n"})
    assert run_llm(["kb", "init"]).exit_code == 0
    checked = run_llm(["kb", "check"])
    assert (checked.exit_code, "gitignore" in checked.output) == (0, False), checked.output
    assert "skipped" not in run_llm(["kb", "list"]).output


def test_the_settings_of_the_environment_count(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(repository, {"mine": f"[core]\n\texcludesFile = {repository}/rules\n", "rules": "b.md\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repository / "mine"))
    assert list_paths(repository / "docs") == ["a.md"]


RULES = {
    ".gitignore": "secret/\n*.gen.md\n!keep.gen.md\n/docs/site\nbuild/\n",
    "docs/sub/.gitignore": "local.*\n!x.gen.md\n",
    "docs/secret/s.md": "", "docs/c.gen.md": "", "docs/keep.gen.md": "", "docs/site/i.md": "",
    "docs/sub/local.md": "", "docs/sub/x.gen.md": "", "docs/build/deep/y.md": "",
    "docs/build/deep/tracked.md": "", "docs/é.gen.md": "", "docs/local.md": "",
}  # fmt: skip


def test_they_are_counted(repository: Path) -> None:
    make(repository, RULES)
    root = repository / "docs"
    assert DirectoryTopic(TopicConfig(id="t", root=root)).list().absent == {"ignored by git": 6}


def test_a_topic_in_an_ignored_directory_is_meant(repository: Path) -> None:
    make(repository, {".gitignore": "notes/\n*.log.md\n", "notes/x/a.md": "", "notes/b.log.md": ""})
    assert list_paths(repository / "notes") == ["b.log.md", "x/a.md"]
    assert list_paths(repository / "notes/x") == ["a.md"]


def test_what_is_ignored_in_a_topic_is_left_out_though_it_is_all_of_it(repository: Path) -> None:
    make(repository, {".gitignore": "*.log.md\n", "logs/b.log.md": "", "logs/c/d.log.md": ""})
    assert list_paths(repository / "logs") == []
    assert list_paths(repository / "logs/c") == []


def fail(repository: Path) -> str:
    (repository / ".git/index").write_bytes(b"DIRC\0\0\0\2\0\0\0\7damaged")
    return "index file smaller than expected"


def wait_for_rules(repository: Path) -> str:
    (repository / ".gitignore").unlink()
    os.mkfifo(repository / ".gitignore")
    return "timed out after 2 s"


def wait_for_a_file(repository: Path) -> str:
    (repository / ".git/packed-refs").unlink(missing_ok=True)
    os.mkfifo(repository / ".git/packed-refs")
    return "packed-refs is not a regular file"


@pytest.mark.parametrize("damage", [fail, wait_for_rules, wait_for_a_file])
def test_without_an_answer_nothing_is_ignored_and_one_line_says_so(
    repository: Path, run_llm: RunLlm, damage: Callable[[Path], str]
) -> None:
    make(repository, {".gitignore": "b.md\n"})
    make(repository, {"llm-kb.toml": '[kb.topic.docs]\nsubjects = "docs"\nintroduction = "X."\n'})
    assert "sub/b" not in run_llm(["kb", "list", "docs"]).output
    reason = damage(repository)
    started = time.monotonic()
    for arguments in (["list", "docs"], ["list", "docs"], ["search", "b"]):
        result = run_llm(["kb", *arguments])
        assert result.exit_code == 0, result.output
    assert time.monotonic() - started < 5
    listed = run_llm(["kb", "list", "docs"]).output
    assert "sub/b" in listed
    assert listed.count("git cannot say what it ignores") == 1
    assert reason in " ".join(listed.split())


def test_rules_of_the_clone_and_of_the_user_count(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(repository, {"docs/c.md": "", "docs/d.md": "", "docs/e.md": "", ".gitignore": "!e.md\n"})
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    make(home, {".config/git/ignore": "d.md\ne.md\n"})
    make(repository, {".git/info/exclude": "c.md\n"})
    assert list_paths(repository / "docs") == ["a.md", "e.md", "sub/b.md"]
    make(home, {".gitconfig": "[core]\n\texcludesFile = ~/rules # mine\n", "rules": "b.md\n"})
    assert list_paths(repository / "docs") == ["a.md", "d.md", "e.md"]
    git(repository, "add", "docs/a.md")
    git(repository, "commit", "-qm", "a")
    tree = tmp_path_factory.mktemp("tree") / "t"
    git(repository, "worktree", "add", "-q", str(tree))
    make(tree, {"docs/c.md": "", "docs/d.md": ""})
    assert list_paths(tree / "docs") == ["a.md", "d.md"]


def test_a_link_is_no_way_to_an_ignored_file(repository: Path) -> None:
    make(repository, {".gitignore": "secret.md\n", "docs/secret.md": ""})
    (repository / "docs/link.md").symlink_to("secret.md")
    assert list_paths(repository / "docs") == ["a.md", "sub/b.md"]


def test_repositories_below_a_topic_are_left_out(repository: Path) -> None:
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "x")
    git(repository, "worktree", "add", "-q", "docs/tree", "-b", "f")
    git(repository, "clone", "-q", ".", "docs/sub/clone")
    git(
        repository,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        "./",
        "docs/module",
    )
    make(repository, {"docs/like/.git/x": "", "docs/like/c.md": ""})
    (repository / "docs/way").symlink_to("tree/docs")
    root = repository / "docs"
    assert list_paths(root) == ["a.md", "like/c.md", "sub/b.md"]
    catalog = DirectoryTopic(TopicConfig(id="t", root=root))
    assert catalog.list().absent == {"a repository of its own": 3}
    assert [each.path for each in catalog.list("tree/docs/a").subjects] == []
    assert [each.path for each in catalog.list("way/a").subjects] == []
    assert list_paths(root / "tree") == ["docs/a.md", "docs/sub/b.md"]


def change_rules(repository: Path) -> None:
    make(repository, {".gitignore": "b.md\n"})


def change_the_clone(repository: Path) -> None:
    make(repository, {".git/info/exclude": "b.md\n"})


def change_settings(repository: Path) -> None:
    make(Path.home(), {".gitconfig": "[core]\n\texcludesFile = ~/rules\n", "rules": "b.md\n"})


@pytest.mark.parametrize("change", [change_rules, change_the_clone, change_settings])
def test_a_changed_rule_is_noticed_by_the_next_search(
    repository: Path, run_llm: RunLlm, change: Callable[[Path], None]
) -> None:
    make(repository, {"llm-kb.toml": '[kb.topic.docs]\nsubjects = "docs"\nintroduction = "X."\n'})
    make(repository, {"docs/sub/b.md": "# B\n\nwalrus\n"})
    for path in repository.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    for _ in range(2):
        assert "walrus" in run_llm(["kb", "search", "walrus"]).stdout
    change(repository)
    assert "walrus" not in run_llm(["kb", "search", "walrus"]).stdout


def test_git_is_asked_once_for_all_topics_of_a_work_tree(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(repository, {".gitignore": "b.md\n"})
    shared = GitIgnored()
    found = shared.find(repository / "docs")
    monkeypatch.setenv("PATH", "/none")
    assert shared.find(repository / "docs/sub") is found
    assert found.list_names(f"{repository}/docs/sub/") == {"b.md"}


def test_nothing_that_a_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    make(repository, {".gitignore": "b.md\n", "run": "#!/bin/sh\ntouch ran\n"})
    (repository / "run").chmod(0o755)
    program = str(repository / "run")
    git(repository, "config", "core.fsmonitor", program)
    git(repository, "config", "core.hooksPath", str(repository))
    git(repository, "config", "core.sshCommand", program)
    git(repository, "config", "core.pager", program)
    git(repository, "config", "core.worktree", "/")
    assert list_paths(repository / "docs") == ["a.md"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["HEAD", "index", "config", "packed-refs", "info/exclude"])
def test_git_is_not_started_where_a_pipe_makes_it_wait(repository: Path, name: str) -> None:
    (repository / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repository / ".git" / name)
    with pytest.raises(GitError, match=f"{name} is not a regular file"):
        run_git("status", cwd=repository / "docs")
