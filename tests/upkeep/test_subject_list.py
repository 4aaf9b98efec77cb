"""Taking stock of topics that are no directories, and of files that go away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.knowledge_base import KnowledgeBase
from llm_kb.subjects.topics import Config, Listing, Slug, Subject, Topic
from llm_kb.upkeep.subject_list import State, StockedSubject, StockedTopic, stock_topic, take_stock
from tests.memory import MemoryCatalog, make_topic

GONE = Subject(slug=Slug("gone"), name="gone", path="gone.md")


class Vanishing(DirectoryCatalog):
    """A directory that lists a file which is there no more."""

    def list_subjects(self) -> Listing:
        """Return the listing from before."""
        return Listing(subjects=[GONE])


def test_a_topic_that_is_no_directory_is_measured_by_reading() -> None:
    catalog = MemoryCatalog({"a.md": "12345", "b.md": None, ".c.md": "1"})
    kb = KnowledgeBase(Config(), [(make_topic("t"), catalog)])
    assert list(take_stock(kb, everything=True)) == [
        StockedTopic(
            topic=make_topic("t"),
            subjects=(
                StockedSubject(name="a", path="a.md", state=State.AVAILABLE, size=5),
                StockedSubject(name="b", path="b.md", state=State.AVAILABLE),
                StockedSubject(name="c", path=".c.md", state=State.HIDDEN, size=1),
            ),
            whole=True,
        )
    ]
    assert {limit for _, limit in catalog.reads} == {0}


def test_a_file_that_went_away_has_neither_size_nor_change(tmp_path: Path) -> None:
    topic = Topic(id="t", root=tmp_path)
    kb = KnowledgeBase(Config(), [(topic, Vanishing(topic))])
    assert stock_topic(kb.topics["t"]).subjects == (
        StockedSubject(name="gone", path="gone.md", state=State.AVAILABLE),
    )


def test_disabled_topics_are_part_of_everything() -> None:
    topic = replace(make_topic("off"), enable=False)
    kb = KnowledgeBase(Config(topics=(topic,)), [(topic, MemoryCatalog({"a.md": "x"}))])
    assert list(take_stock(kb)) == []
    assert [stocked.problem for stocked in take_stock(kb, everything=True)] == [
        "the topic is disabled"
    ]
