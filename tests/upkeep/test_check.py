"""Inspecting topics that are not directories; the rest is in tests/commands/test_check.py."""

from __future__ import annotations

from llm_kb.config.settings import Config
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.upkeep import check
from llm_kb.upkeep.check import LEVELS, RULES, Finding, find_problems
from tests.memory import MemoryTopic, make_topic, make_topics


def test_what_cannot_be_read_is_found_and_the_rest_inspected() -> None:
    files = {"a.md": None, "b.md": 'learn("t") learn("t", "a") learn("t", "*")', ".c.md": None}
    topic = make_topic("t", introduction="What it is.")
    kb = KnowledgeBase(Config(topics=(topic,)), make_topics((topic, MemoryTopic(files))))
    assert find_problems(kb) == [
        Finding(check.SKIPPED, "t/a.md", "permission denied"),
    ]


def test_of_what_was_fetched_or_captured_only_what_the_user_can_fix() -> None:
    catalog = MemoryTopic({"con.md": "\u202e", ".hidden.md": "x"})
    topic = make_topic("fetched", learned=("absent",))
    kb = KnowledgeBase(Config(adjustments=(topic,)), make_topics((topic, catalog)))
    assert find_problems(kb) == [
        Finding(check.UNMATCHED, "fetched", "kb.topic.fetched.learned: 'absent' matches nothing")
    ]


def test_errors_come_first_and_each_line_of_a_file_in_order() -> None:
    files = {"b.md": "\n" * 9 + 'learn("t", "x")', "a.md": 'x\nlearn("t", "y")\nlearn("t", "x")'}
    topic = make_topic("t")
    kb = KnowledgeBase(Config(topics=(topic,)), make_topics((topic, MemoryTopic(files))))
    found = find_problems(kb)
    assert [(f.rule, f.file, f.line) for f in found] == [
        (check.DANGLING, "t/a.md", 2),
        (check.DANGLING, "t/a.md", 3),
        (check.DANGLING, "t/b.md", 10),
        (check.NO_INTRODUCTION, "t", None),
    ]
    levels = [rule.level for rule in RULES]
    assert levels == sorted(levels, key=LEVELS.index)


def test_rules_speak_in_sentences() -> None:
    for rule in RULES:
        assert rule.advice.endswith(".")
    assert len({rule.id for rule in RULES}) <= 12
