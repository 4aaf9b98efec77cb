"""What git ignores, and other repositories, are not part of a topic."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.git_ignored import GitIgnored, Limits
from llm_kb.subjects.topics import TopicConfig


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


def list_paths(root: Path, *, ignored: bool = False) -> list[str]:
    catalog = DirectoryTopic(
        TopicConfig(id="t", root=Path(os.path.realpath(root)), ignored=ignored)
    )
    return sorted(subject.path for subject in catalog.list().subjects if not subject.hidden)


RULES = {
    ".gitignore": "secret/\n*.gen.md\n!keep.gen.md\n/docs/site\nbuild/\n",
    "docs/sub/.gitignore": "local.*\n!x.gen.md\n",
    "docs/secret/s.md": "", "docs/c.gen.md": "", "docs/keep.gen.md": "", "docs/site/i.md": "",
    "docs/sub/local.md": "", "docs/sub/x.gen.md": "", "docs/build/deep/y.md": "",
    "docs/build/deep/tracked.md": "", "docs/é.gen.md": "", "docs/local.md": "",
}  # fmt: skip


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_files_that_git_would_not_add_are_left_out(repository: Path, version: str) -> None:
    make(repository, RULES)
    git(repository, "config", "index.version", version)
    git(repository, "add", ".")
    git(repository, "add", "-f", "docs/build/deep/tracked.md", "docs/é.gen.md")
    git(repository, "update-index", "--index-version", version)
    shown = git(repository, "ls-files", "-z", "-co", "--exclude-standard", "docs").split("\0")
    known = sorted(path.removeprefix("docs/") for path in shown if path.endswith(".md"))
    assert list_paths(repository / "docs") == known
    assert "build/deep/tracked.md" in known
    assert "sub/x.gen.md" in known
    assert "sub/local.md" not in known
    assert len(list_paths(repository / "docs", ignored=True)) == 12


def test_they_are_counted(repository: Path) -> None:
    make(repository, RULES)
    root = repository / "docs"
    assert DirectoryTopic(TopicConfig(id="t", root=root)).list().absent == {"ignored by git": 6}


def test_a_topic_in_an_ignored_directory_is_meant(repository: Path) -> None:
    make(repository, {".gitignore": "notes/\n*.log.md\n", "notes/x/a.md": "", "notes/b.log.md": ""})
    assert list_paths(repository / "notes") == ["b.log.md", "x/a.md"]
    assert list_paths(repository / "notes/x") == ["a.md"]


def test_no_index_and_an_unreadable_one_are_different(repository: Path) -> None:
    make(repository, {".gitignore": "b.md\n"})
    assert list_paths(repository / "docs") == ["a.md"]
    (repository / ".git/index").write_bytes(b"DIRC\0\0\0\2\0\0\0\7damaged")
    assert list_paths(repository / "docs") == ["a.md", "sub/b.md"]


def test_what_is_read_is_bounded(repository: Path) -> None:
    make(repository, {".gitignore": "b.md\n"})
    git(repository, "add", "docs/a.md", ".gitignore")
    root = repository / "docs"
    assert GitIgnored(root).leaves_out("sub/b.md")
    for key, most in {"index_bytes": 10, "entries": 1, "rules_bytes": 1}.items():
        git_ignored = GitIgnored(root, Limits(**{key: most}))
        assert not git_ignored.leaves_out("sub/b.md")
        problem = {
            "index_bytes": ("../.git/index", "it cannot be read: no file counts as ignored by git"),
            "entries": ("../.git/index", "it cannot be read: no file counts as ignored by git"),
            "rules_bytes": ("../.gitignore", "its rules are left out: all such files are too long"),
        }[key]
        assert problem in git_ignored.problems


def test_rules_that_are_too_many_are_said_and_comments_are_no_rules(repository: Path) -> None:
    make(repository, {".gitignore": "# comment\n\n" * 500 + "b.md\n"})
    git(repository, "add", "docs/a.md", ".gitignore")
    git_ignored = GitIgnored(repository / "docs")
    assert git_ignored.leaves_out("sub/b.md")
    assert git_ignored.problems == []
    (repository / ".gitignore").write_text("x\n" * 500 + "b.md\n")
    git_ignored = GitIgnored(repository / "docs")
    assert not git_ignored.leaves_out("sub/b.md")
    reason = "the rules from line 501 on are left out: there are too many"
    assert git_ignored.problems == [("../.gitignore", reason)]


def test_rules_of_the_clone_and_of_the_user_count(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(repository, {"docs/c.md": "", "docs/d.md": "", "docs/e.md": "", ".gitignore": "!e.md\n"})
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    make(home, {".config/git/ignore": "d.md\ne.md\n"})
    make(repository, {".git/info/exclude": "c.md\n"})
    assert list_paths(repository / "docs") == ["a.md", "e.md", "sub/b.md"]
    make(home, {".gitconfig": "[core]\n\texcludesFile = ~/rules # mine\n", "rules": "b.md\n"})
    assert list_paths(repository / "docs") == ["a.md", "d.md", "e.md"]
    ignored = GitIgnored(repository / "docs")
    assert ignored.leaves_out("b.md")
    assert os.path.relpath(home / ".gitconfig", repository / "docs") in ignored.read
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


def test_a_change_of_the_rules_or_the_index_is_seen(repository: Path) -> None:
    make(repository, {".gitignore": "# nothing\n"})
    root = repository / "docs"
    catalog = DirectoryTopic(TopicConfig(id="t", root=root))
    exclude = repository / ".git/info/exclude"
    own = Path.home() / ".gitconfig"
    for path in (repository / ".gitignore", exclude, own, root, root / "sub", root / "a.md"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    _, stamps = catalog.list_watched()
    assert stamps is not None
    assert "../.gitignore" in stamps
