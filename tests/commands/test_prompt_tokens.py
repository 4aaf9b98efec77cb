"""The counts of `llm kb prompt --tokens`."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.commands.reading import count_costs, render_costs
from llm_kb.config.settings import Config
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.plain_text import estimate_tokens
from tests.conftest import RunLlm
from tests.memory import MemoryTopic, make_topic, make_topics

FILES = {"a.md": "x" * 400, "b/c.md": "y" * 80, ".hidden.md": "z" * 4000, "gone.md": None}

COSTS = {
    "section": 1_234,
    "guides": [],
    "menu": 56,
    "inlined": 12_573,
    "topics": [
        {
            "id": "project",
            "tokens": 1_020,
            "inlined": 12_345,
            "subjects": [
                {"slug": "a", "tokens": 1_000},
                {"slug": "a/long/slug", "tokens": 20},
            ],
        },
        {"id": "skills", "tokens": 0, "inlined": 70, "subjects": []},
    ],
}


def open_kb(**fields: object) -> KnowledgeBase:
    """Return a knowledge base of one topic, `t`."""
    topic = make_topic("t", **fields)
    return KnowledgeBase(Config(topics=(topic,)), make_topics((topic, MemoryTopic(FILES))))


def test_listed_subjects_are_counted_where_they_can_be_read() -> None:
    costs = count_costs(open_kb(), learn=True)
    assert costs["topics"] == [{"id": "t", "tokens": 0, "inlined": 120, "subjects": []}]
    assert costs["inlined"] == 120 + costs["section"] - costs["menu"]


def test_a_subject_counts_as_it_is_sent_which_is_whole() -> None:
    catalog = MemoryTopic({"big.md": "x" * 99 + "\n" + "y" * 400_000})
    topic = make_topic("t", learned=("big",))
    kb = KnowledgeBase(Config(topics=(topic,), max_result_chars=400), make_topics((topic, catalog)))
    costs = count_costs(kb, learn=True)
    (counted,) = costs["topics"]
    assert counted["subjects"] == [{"slug": "big", "tokens": 100_025}]
    assert counted["inlined"] == counted["tokens"] < costs["section"]


def test_what_is_not_sent_is_estimated_from_its_size() -> None:
    catalog = MemoryTopic({"a.md": "x" * 100_000, "b.png": "x" * 1_000})
    topic = make_topic("t")
    config = Config(topics=(topic,), max_result_chars=40)
    costs = count_costs(KnowledgeBase(config, make_topics((topic, catalog))), learn=True)
    assert costs["topics"] == [{"id": "t", "tokens": 0, "inlined": 25_000, "subjects": []}]
    assert catalog.reads == [("a.md", 0)]


@pytest.mark.parametrize("name", ["a.md", "</subject>.md", "a.py"])
def test_parts_never_exceed_the_whole(name: str) -> None:
    catalog = MemoryTopic({name: "</subject>" * 9, "b/c.md": "\0", "d.md": "x"})
    topic = make_topic("t", learned=("**",))
    costs = count_costs(
        KnowledgeBase(Config(topics=(topic,)), make_topics((topic, catalog))), learn=True
    )
    assert len(costs["topics"][0]["subjects"]) == 3
    assert costs["menu"] + costs["topics"][0]["tokens"] < costs["section"]


def test_what_is_preloaded_is_counted_by_subject() -> None:
    kb = open_kb(learned=("a",))
    costs = count_costs(kb, learn=True)
    assert costs["topics"][0]["subjects"] == [{"slug": "a", "tokens": 100}]
    assert costs["section"] == estimate_tokens(kb.section() or "")
    assert 0 < costs["menu"] < costs["section"]


def test_without_learn_there_is_no_menu_to_pay_for() -> None:
    kb = open_kb(learned=("a",))
    costs = count_costs(kb, learn=False)
    assert costs["menu"] == 0
    assert costs["section"] == estimate_tokens(kb.section(learn=False) or "")


def test_a_table_breaks_the_cost_down() -> None:
    assert render_costs(COSTS) == (
        "                    sent  all of it   (estimated tokens)\n"
        "menu                  56\n"
        "project            1,020     12,345\n"
        "  a                1,000\n"
        "  a/long/slug         20\n"
        "skills                 0         70\n"
        "frame                158        158\n"
        "total              1,234     12,573"
    )


@pytest.mark.parametrize("learned", [(), ("a",), ("**",), ("hidden",), ("hidden", "**", "gone")])
@pytest.mark.parametrize("learn", [True, False])
def test_what_is_sent_of_a_topic_is_never_more_than_all_of_it(
    learned: tuple[str, ...], learn: bool
) -> None:
    costs = count_costs(open_kb(learned=learned), learn=learn)
    for topic in costs["topics"]:
        assert topic["tokens"] <= topic["inlined"]
    assert costs["section"] - costs["menu"] <= costs["inlined"]


def test_the_command_prints_the_table(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("x" * 400, encoding="utf-8")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.t]\nsubjects = "kb"\n', encoding="utf-8")
    table = run_llm(["kb", "prompt", "-k", "t/a", "--preloaded", "--tokens"]).stdout
    assert "\n  a            100\n" in table
