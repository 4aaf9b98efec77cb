"""Which topics there are beside the configured ones, and how configuration changes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from llm_kb import KnowledgeBase
from llm_kb.capture.emission import parse_emission
from llm_kb.capture.store import add_to_store
from llm_kb.errors import ConfigError, UnknownTopicError


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one captured convention."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "one"], cwd=tmp_path, check=True)
    entry = parse_emission({"entry_type": "convention", "scope": "src/", "rule": "Use tabs"})
    add_to_store(tmp_path, entry, commit="HEAD")
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
    with pytest.raises(ConfigError, match="subjects: missing"):
        KnowledgeBase.discover()


def test_shipped_topic_is_offered_to_those_who_gather_or_capture() -> None:
    assert "- llm-kb (**Using llm-kb**)" in (KnowledgeBase.discover(builtin=True).section() or "")


def test_shipped_topic_is_read_by_whoever_names_it_and_named_by_none() -> None:
    kb = KnowledgeBase.discover()
    assert (kb.section(), kb.is_configured) == (None, False)
    assert "- reference-researcher" in kb.learn("llm-kb")
    with pytest.raises(UnknownTopicError, match="valid topics: none"):
        kb.learn("nope")
