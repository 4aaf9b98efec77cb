"""Listing topics that are not directories, and files that disappear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llm_kb.config.settings import Config
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.subject_list import (
    ListedSubject,
    ListedTopic,
    list_topic,
    list_topics,
)
from llm_kb.subjects.topics import Listing, Slug, Subject, TopicConfig
from tests.memory import MemoryTopic, make_topic, make_topics

GONE = Subject(slug=Slug("gone"), name="gone", path="gone.md")


class Vanishing(DirectoryTopic):
    """A directory that lists a file which is there no more."""

    def list(self, reference: str | None = None) -> Listing:
        """Return the listing from before."""
        return Listing(subjects=[GONE])


def test_a_topic_that_is_no_directory_is_measured_by_reading() -> None:
    catalog = MemoryTopic({"a.md": "12345", "b.md": None, ".c.md": "1"})
    kb = KnowledgeBase(Config(), make_topics((make_topic("t"), catalog)))
    assert list(list_topics(kb, everything=True)) == [
        ListedTopic(
            topic=make_topic("t"),
            subjects=[
                ListedSubject(name="a", path="a.md", tokens=2),
                ListedSubject(name="b", path="b.md"),
                ListedSubject(name="c", path=".c.md", state="hidden", tokens=1),
            ],
            skipped=[],
            absent=[],
            whole=True,
        )
    ]
    assert {limit for _, limit in catalog.reads} == {0}


def test_a_file_that_went_away_has_no_size(tmp_path: Path) -> None:
    topic = TopicConfig(id="t", root=tmp_path)
    kb = KnowledgeBase(Config(), make_topics((topic, Vanishing(topic))))
    assert list_topic(kb.topics["t"]).subjects == [ListedSubject(name="gone", path="gone.md")]


def test_a_picture_costs_no_tokens() -> None:
    catalog = MemoryTopic({"a.md": "x" * 401, "b.webp": "x" * 1_000_000})
    kb = KnowledgeBase(Config(), make_topics((make_topic("t"), catalog)))
    (listed,) = list_topics(kb)
    assert [subject.tokens for subject in listed.subjects] == [101, None]
    assert listed.tokens == 101


def test_disabled_topics_are_part_of_everything() -> None:
    topic = replace(make_topic("off"), enable=False)
    kb = KnowledgeBase(Config(topics=(topic,)), make_topics())
    assert list(list_topics(kb)) == []
    assert [topic.problem for topic in list_topics(kb, everything=True)] == [
        "the topic is disabled"
    ]
