"""Swapped roots, foreign directories and hard links: nothing outside a topic is read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb import KnowledgeBase
from llm_kb.commands import new
from llm_kb.config.load import load_config
from llm_kb.errors import ConfigError, KbError

NOBODY = 65534
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away"
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one topic, beside a directory with a secret."""
    workspace = tmp_path / "ws"
    (workspace / "kb").mkdir(parents=True)
    (workspace / "kb" / "f.md").write_text("fine\n")
    (workspace / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "f.md").write_text("TOPSECRET\n")
    monkeypatch.chdir(workspace)
    return workspace


def swap_in_link(workspace: Path) -> None:
    (workspace / "kb").rename(workspace / "moved")
    (workspace / "kb").symlink_to("../secret")


def swap_in_parent(workspace: Path) -> None:
    """Swap the directory that holds the workspace for one whose `kb` leads elsewhere."""
    other = workspace.parent / "other"
    other.mkdir()
    (other / "kb").symlink_to("../secret")
    workspace.rename(workspace.parent / "moved")
    workspace.symlink_to("other")


CALLS: dict[str, Callable[[KnowledgeBase], str]] = {
    "learn": lambda kb: kb.learn("p", "f"),
    "learn a glob": lambda kb: kb.learn("p", "**"),
    "list": lambda kb: kb.learn("p"),
}


@pytest.mark.parametrize("swap", [swap_in_link, swap_in_parent])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_root_swapped_after_the_configuration_was_read_shows_nothing(
    workspace: Path, swap: Callable[[Path], None], call: Callable[[KnowledgeBase], str]
) -> None:
    kb = KnowledgeBase.discover()
    swap(workspace)
    try:
        answer = call(kb)
    except KbError as error:
        answer = str(error)
    assert "TOPSECRET" not in answer
    assert "- f" not in answer


@pytest.mark.slow
def test_a_root_swapped_all_the_time_never_leaks(workspace: Path) -> None:
    """Another process exchanges directory and link while one call after the other is made."""
    kb, link, done = workspace / "kb", workspace / "link", threading.Event()
    link.symlink_to("../secret")

    def swap() -> None:
        while not done.is_set():
            kb.rename(workspace / "aside")
            link.rename(kb)
            (workspace / "aside").rename(link)

    thread = threading.Thread(target=swap)
    thread.start()
    answers: set[str] = set()
    try:
        for _ in range(300):
            try:
                answers.add(KnowledgeBase.discover().learn("p", "f"))
            except KbError:
                continue  # it was not there, or led outside; nothing else may be raised
    finally:
        done.set()
        thread.join()
    assert [answer for answer in answers if "TOPSECRET" in answer] == []


def test_a_root_that_cannot_be_resolved_is_an_error_of_the_configuration(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that becomes a directory while it is read makes the system say EINVAL."""

    def refuse(path: object, **_: object) -> str:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os.path, "realpath", refuse)
    with pytest.raises(ConfigError, match="its links cannot be resolved: Invalid argument"):
        load_config(workspace, user_dir=workspace.parent / "user", environ={})


def give(*paths: Path) -> None:
    for path in paths:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


FILE = "llm-kb.toml"


def foreign_link(shared: Path, mine: Path) -> None:
    """Another user's file is a link to my configuration."""
    (shared / FILE).symlink_to(mine / FILE)
    give(shared / FILE)


def foreign_directory(shared: Path, mine: Path) -> None:
    """Another user's directory holds a hard link to my configuration."""
    (shared / FILE).hardlink_to(mine / FILE)
    give(shared)


def foreign_link_on_the_way(shared: Path, mine: Path) -> None:
    """My file is a link to a link of another user."""
    (shared / "way").symlink_to(mine / FILE)
    (shared / FILE).symlink_to("way")
    give(shared / "way")


def foreign_topic(shared: Path, mine: Path) -> None:
    """My configuration names a directory that another user made."""
    (shared / FILE).write_bytes((mine / FILE).read_bytes())


@as_root
@pytest.mark.parametrize(
    "attack", [foreign_link, foreign_directory, foreign_link_on_the_way, foreign_topic]
)
def test_what_another_user_can_change_reaches_no_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: Callable[[Path, Path], None]
) -> None:
    shared, mine = tmp_path / "shared", tmp_path / "mine"
    for directory in (shared / "kb", mine / "kb"):
        directory.mkdir(parents=True)
    (shared / "kb" / "evil.md").write_text("EVIL")
    (mine / FILE).write_text('[kb.topic.p]\nsubjects = "kb"\nlearned = ["**"]\n')
    give(shared / "kb")
    attack(shared, mine)
    monkeypatch.chdir(shared)
    with pytest.raises(ConfigError, match="belongs to another user"):
        load_config(shared, user_dir=tmp_path / "user", environ={})


def test_links_and_directories_of_ones_own_are_followed(tmp_path: Path) -> None:
    ws, real = tmp_path / "ws", tmp_path / "real"
    (ws / "kb").mkdir(parents=True)
    real.mkdir()
    (real / FILE).write_text('[kb.topic.p]\nsubjects = "kb"\n')
    (ws / "way").symlink_to(real / FILE)
    (ws / FILE).symlink_to("way")
    config = load_config(ws, user_dir=tmp_path / "user", environ={})
    assert [topic.id for topic in config.topics] == ["p"]


@pytest.mark.parametrize("swapped", ["kb", "kb/a"])
def test_a_new_subject_is_not_written_through_a_link_swapped_in_after_the_check(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    (workspace / "kb" / "a").mkdir()
    (topic,) = load_config(workspace, user_dir=workspace / "u", environ={}).topics

    def swap(*_: object) -> str:
        (workspace / swapped).rename(workspace / "moved")
        (workspace / swapped).symlink_to(workspace.parent / "secret")
        return ""

    # Asked for after the place was checked, and before the file is made.
    monkeypatch.setattr(new, "render_template", swap)
    with pytest.raises(KbError, match="outside the directory that may be changed"):
        new.create_subject(topic, "a/b/c")
    assert [path.name for path in (workspace.parent / "secret").iterdir()] == ["f.md"]


@pytest.mark.parametrize("name", [".git", ".git/logs", ".GIT", "docs/.ssh", "page", "deep/.hg"])
def test_no_topic_of_a_workspace_is_where_passwords_are(workspace: Path, name: str) -> None:
    """`.git/config` may hold a token, and a clone may name `.git`, or a link to it."""
    (workspace / "docs" / ".ssh").mkdir(parents=True)
    (workspace / "deep" / ".hg").mkdir(parents=True)
    (workspace / ".git" / "logs").mkdir(parents=True)
    (workspace / "page").symlink_to(".git")
    (workspace / "llm-kb.toml").write_text(f'[kb.topic.p]\nsubjects = "{name}"\n')
    with pytest.raises(ConfigError, match="never subjects"):
        KnowledgeBase.discover(workspace)
