"""The topics that need no configuration, and how configuration changes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from llm_kb import KnowledgeBase
from llm_kb.errors import ConfigError, UnknownTopicError
from llm_kb.references.topic.topic_file import TopicFile, render_topic_file
from tests.repositories import Repo


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one captured convention."""
    repo = Repo(path=tmp_path)
    repo.git("init", "-q")
    repo.commit("one")
    repo.record("Use tabs", "src/")
    return tmp_path


def test_captured_entries_are_in_the_menu_and_never_preloaded(repository: Path) -> None:
    kb = KnowledgeBase.discover()
    section = kb.section()
    assert section is not None
    assert "- repo-knowledge (**Repository conventions**)" in section
    assert "Use tabs" not in section
    assert "Use tabs" in kb.learn("repo-knowledge", "conventions")


def test_configuration_preloads_them(repository: Path) -> None:
    Path("llm-kb.toml").write_text('[kb.topic.repo-knowledge]\nlearned = ["**"]\n')
    assert "Use tabs" in (KnowledgeBase.discover().section() or "")


def test_configuration_turns_them_off(repository: Path) -> None:
    Path("llm-kb.toml").write_text("[kb.topic.repo-knowledge]\nenable = false\n")
    assert KnowledgeBase.discover().section() is None


def test_configuration_names_them(repository: Path) -> None:
    Path("llm-kb.toml").write_text('[kb.topic.repo-knowledge]\ntitle = "House rules"\n')
    assert "- repo-knowledge (**House rules**)" in (KnowledgeBase.discover().section() or "")


def test_topic_of_the_same_id_takes_its_place(repository: Path) -> None:
    Path("llm-kb.toml").write_text('[kb.topic.repo-knowledge]\nsubjects = "kb"\n')
    Path("kb").mkdir()
    Path("kb/a.md").write_text("A\n")
    assert KnowledgeBase.discover().learn("repo-knowledge", "a") == "A\n"


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        ("repo-knowledge", "layout: not for topic 'repo-knowledge'"),
        ("topic-x", "layout: not for topic 'topic-x'"),
        ("other", "subjects: missing"),
    ],
)
def test_what_needs_a_directory_still_needs_one(tmp_path: Path, topic: str, problem: str) -> None:
    Path("llm-kb.toml").write_text(f'[kb.topic.{topic}]\nlayout = "skills"\n')
    with pytest.raises(ConfigError, match=f"kb.topic.{topic}.{problem}"):
        KnowledgeBase.discover()


def test_only_the_user_changes_a_reference(tmp_path: Path, user_dir: Path) -> None:
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text("[kb.topic.topic-x]\nenable = false\n")
    assert KnowledgeBase.discover().section() is None
    Path("llm-kb.toml").write_text('[kb.topic.topic-x]\nlearned = ["**"]\n')
    assert KnowledgeBase.discover().config.withheld == ("kb.topic.topic-x.learned",)
    (user_dir / "kb.toml").unlink()
    with pytest.raises(ConfigError, match="subjects: missing"):
        KnowledgeBase.discover()


def test_shipped_topic_is_offered_to_those_who_gather_or_capture() -> None:
    assert "- llm-kb (**Using llm-kb**)" in (
        KnowledgeBase.discover(tools={"References"}).section() or ""
    )


def test_shipped_topic_is_read_by_whoever_names_it_and_named_by_none() -> None:
    kb = KnowledgeBase.discover()
    assert (kb.section(), kb.menu_ids) == (None, [])
    assert "- reference-researcher" in kb.learn("llm-kb")
    with pytest.raises(UnknownTopicError, match="valid topics: none"):
        kb.learn("nope")


@pytest.fixture
def fetched(user_dir: Path) -> None:
    """Two reference topics."""
    for name in ("topic-one", "topic-two"):
        directory = user_dir / "kb" / "references" / name
        directory.mkdir(parents=True)
        for slug in "ab":
            (directory / f"{slug}.md").write_text("A\n")
        topic = TopicFile(id=name, title=f"Title of {name}", body="")
        (directory / "topic.md").write_text(render_topic_file(topic))


@pytest.mark.parametrize("name", ["../guide/x.md", "X.md", "./x", "guide/x.md#use"])
@pytest.mark.usefixtures("fetched")
def test_a_link_between_pages_is_a_name_to_learn(user_dir: Path, name: str) -> None:
    page = user_dir / "kb/references/topic-one/e-org/guide/x.md"
    page.parent.mkdir(parents=True)
    page.write_text("# X\n\n## Use\n\nso\n")
    assert "## Use\n\nso" in KnowledgeBase.discover().learn("topic-one", [name])


@pytest.mark.parametrize("name", ["hooks", "guide/hooks/", "Hooks#use", "hooks/index.md"])
@pytest.mark.usefixtures("fetched")
def test_a_directory_is_a_name_of_its_index(user_dir: Path, name: str) -> None:
    page = user_dir / "kb/references/topic-one/e-org/guide/hooks/index.md"
    page.parent.mkdir(parents=True)
    page.write_text("# X\n\n## Use\n\nso\n")
    (page.parent / "other.md").write_text("# Other\n")
    assert "## Use\n\nso" in KnowledgeBase.discover().learn("topic-one", [name])


TOOLS = {"tools": ["References"]}


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        pytest.param({}, [], id="nobody asks"),
        pytest.param(TOOLS, ["topic-one", "topic-two", "llm-kb"], id="-T References"),
        pytest.param({"knowledge": ["topic-one/b"]}, ["topic-one"], id="-k"),
        pytest.param({"only": ["topic-one"]}, ["topic-one"], id="template"),
    ],
)
@pytest.mark.usefixtures("fetched")
def test_which_references_a_menu_offers(asked: dict[str, Any], offered: list[str]) -> None:
    Path("llm-kb.toml").write_text("[kb]\n")
    kb = KnowledgeBase.discover(**asked)
    assert re.findall("^- ([a-z-]+)", kb.menu().lines, re.MULTILINE) == offered


@pytest.mark.usefixtures("fetched")
def test_outside_of_every_workspace_references_are_offered() -> None:
    kb = KnowledgeBase.discover()
    assert re.findall("^- ([a-z-]+)", kb.menu().lines, re.MULTILINE) == ["topic-one", "topic-two"]
