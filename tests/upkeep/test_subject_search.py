"""Searching the subjects of a knowledge base."""

from __future__ import annotations

from llm_kb.knowledge_base import KnowledgeBase
from llm_kb.subjects.topics import Config
from llm_kb.upkeep.content_search import Query, search_subjects
from tests.memory import MemoryCatalog, make_catalogs, make_topic


def test_what_cannot_be_read_is_passed_over() -> None:
    catalog = MemoryCatalog({"a.md": None, "b.md": "words", ".c.md": "words"})
    kb = KnowledgeBase(Config(), make_catalogs((make_topic("t"), catalog)))
    hits = search_subjects(kb, Query.parse("words"))
    assert [(hit.topic, hit.subject.name, hit.found.line) for hit in hits] == [("t", "b", 1)]
    assert [path for path, _ in catalog.reads] == ["a.md", "b.md"]


def test_ties_are_in_the_order_of_topics_and_slugs() -> None:
    files = {"b.md": "word", "a.md": "word"}
    topics = [(make_topic(name), MemoryCatalog(files)) for name in ("two", "one")]
    hits = search_subjects(
        KnowledgeBase(Config(), make_catalogs(*topics)), Query.parse("word"), limit=3
    )
    assert [(hit.topic, hit.subject.name) for hit in hits] == [
        ("one", "a"),
        ("one", "b"),
        ("two", "a"),
    ]


def test_what_no_menu_offers_is_searched_by_name_alone() -> None:
    topic = make_topic("shipped", in_menu=False)
    kb = KnowledgeBase(Config(), make_catalogs((topic, MemoryCatalog({"a.md": "word"}))))
    assert search_subjects(kb, Query.parse("word")) == []
    assert len(search_subjects(kb, Query.parse("word"), ["shipped"])) == 1
