"""Inspecting topics that are not directories; the rest is in tests/commands/test_check.py."""

from __future__ import annotations

from pathlib import Path

from llm_kb.config.settings import Config
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.upkeep.check import LEVELS, Finding, Inspection, Rule
from tests.memory import MemoryTopic, make_topic, make_topics


def ignore(_done: int, _total: int) -> None:
    """Show no progress."""


def test_what_cannot_be_read_is_found_and_the_rest_inspected() -> None:
    files = {"a.md": None, "b.md": 'learn("t") learn("t", "a") learn("t", "*")', ".c.md": None}
    topic = make_topic("t", introduction="What it is.")
    kb = OpenTopics(Config(topics=(topic,)), make_topics((topic, MemoryTopic(files))))
    inspection = Inspection(kb, Path("/"), ignore)
    assert inspection.run() == [
        Finding(Rule.SKIPPED, "t/a.md", "permission denied"),
    ]
    assert inspection.subjects == 2


def test_of_what_was_fetched_or_captured_only_what_the_user_can_fix() -> None:
    catalog = MemoryTopic({"con.md": "\u202e", ".hidden.md": "x"})
    topic = make_topic("fetched", learned=("absent",))
    inspection = Inspection(
        OpenTopics(Config(adjustments=(topic,)), make_topics((topic, catalog))), Path("/"), ignore
    )
    assert inspection.run() == [
        Finding(Rule.UNMATCHED, "fetched", "kb.topic.fetched.learned: 'absent' matches nothing")
    ]


def test_errors_come_first_and_each_line_of_a_file_in_order() -> None:
    files = {"b.md": "\n" * 9 + 'learn("t", "x")', "a.md": 'x\nlearn("t", "y")\nlearn("t", "x")'}
    topic = make_topic("t")
    kb = OpenTopics(Config(topics=(topic,)), make_topics((topic, MemoryTopic(files))))
    found = Inspection(kb, Path("/"), ignore).run()
    assert [(f.rule, f.file, f.line) for f in found] == [
        (Rule.DANGLING, "t/a.md", 2),
        (Rule.DANGLING, "t/a.md", 3),
        (Rule.DANGLING, "t/b.md", 10),
        (Rule.NO_INTRODUCTION, "t", None),
    ]
    levels = [rule.level for rule in Rule]
    assert levels == sorted(levels, key=LEVELS.index)


def test_rules_speak_in_sentences() -> None:
    for rule in Rule:
        assert rule.advice.endswith(".")
    assert Rule.NO_INTRODUCTION.id == "no-introduction"
