"""The menu with subjects, and the steps that fit it to its budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.plain_text import estimate_tokens
from llm_kb.rendering.section import (
    Menu,
    MenuSubject,
    MenuTopic,
    fit_menu,
    list_topics,
    render_menu,
)
from llm_kb.subjects.topics import Kind
from tests.golden_files import Golden
from tests.presented import BARE, PROJECT, SKILLS

LONG = "a summary of forty characters, more ones"


def subjects(count: int, summary: str = LONG) -> tuple[MenuSubject, ...]:
    """Return subjects s00, s01, …, all with the same summary."""
    return tuple(MenuSubject(f"s{i:02}", summary) for i in range(count))


TOPICS = (
    MenuTopic(PROJECT, subjects(4)),
    MenuTopic(SKILLS, subjects(2)),
    MenuTopic(BARE),
)

LONG_TOPICS = (
    MenuTopic(PROJECT, subjects(50, LONG * 2)),
    MenuTopic(SKILLS, subjects(10, LONG * 2)),
)


def whole(topics: Sequence[MenuTopic]) -> Menu:
    """Return the menu that is not cut."""
    return fit_menu(topics, 1_000_000)


def summaries(menu: Menu) -> list[str]:
    """Return the summaries in a menu."""
    return re.findall(r"^  - \S+ — (.*)$", menu.lines, re.MULTILINE)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_tokens_are_estimated_at_four_characters(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_menu_within_its_budget_is_whole(golden: Golden) -> None:
    menu = fit_menu(TOPICS, 1200)
    assert menu.cuts == ()
    golden("menu_subjects.txt", render_menu(menu))


def test_a_budget_that_is_just_enough_cuts_nothing() -> None:
    enough = whole(TOPICS).tokens
    assert fit_menu(TOPICS, enough) == whole(TOPICS)
    assert fit_menu(TOPICS, enough - 1).cuts != ()


def test_first_summaries_are_shortened_evenly() -> None:
    menu = fit_menu(LONG_TOPICS, whole(LONG_TOPICS).tokens - 5)
    [limit] = re.findall(r"^summaries are shortened to at most (\d+) characters$", menu.cuts[0])
    assert int(limit) - 1 <= len(summaries(menu)[0]) <= int(limit) < len(LONG * 2)
    assert (len(summaries(menu)), len(menu.cuts)) == (60, 1)


def test_summaries_that_would_be_too_short_are_left_out() -> None:
    menu = fit_menu(LONG_TOPICS, 600)
    assert (summaries(menu), menu.lines.count("\n  - s")) == ([], 60)
    assert menu.cuts == ("summaries are left out",)


def test_then_the_subjects_of_the_largest_topic_are_counted() -> None:
    menu = fit_menu(LONG_TOPICS, 250)
    assert '\n  - 50 subjects, call learn("project")\n' in menu.lines
    assert menu.lines.count("\n  - s") == 10


def test_a_large_reference_costs_no_project_its_summaries() -> None:
    reference = replace(BARE, id="topic-django")
    project = MenuTopic(PROJECT, subjects(10))
    big = MenuTopic(reference, [MenuSubject(f"ref/{n}") for n in range(600)])
    menu = fit_menu([project, big], 500)
    assert menu.lines == (
        f'{whole([project]).lines}- topic-django\n  - 600 subjects, call learn("topic-django")\n'
    )
    assert menu.cuts == ("the subjects of 1 topic are counted, not listed",)


def test_a_reference_goes_before_a_larger_topic_of_the_workspace() -> None:
    own = MenuTopic(PROJECT, subjects(60, ""))
    fetched = MenuTopic(replace(BARE, id="topic-x", kind=Kind(yields=True)), subjects(40, ""))
    menu = fit_menu([own, fetched], 300)
    assert menu.lines.endswith('- topic-x\n  - 40 subjects, call learn("topic-x")\n')
    assert menu.lines.startswith(whole([own]).lines)


def test_only_subjects_that_are_listed_are_described() -> None:
    def describe(topic: MenuTopic) -> MenuTopic:
        assert topic.topic is PROJECT
        return topic._replace(subjects=subjects(5))

    small, large = MenuTopic(PROJECT, subjects(5, "")), MenuTopic(BARE, subjects(99, "") * 30)
    assert summaries(fit_menu([small, large], 300, describe)) == [LONG] * 5


def introduced(number: int) -> list[MenuTopic]:
    """Return topics with introductions of 80 characters."""
    return [
        MenuTopic(replace(BARE, id=f"topic{n}", introduction="introduce " * 8))
        for n in range(number)
    ]


def test_introductions_are_left_out_then_topics_are_named() -> None:
    menu = fit_menu(introduced(60), 480)
    assert menu.cuts[0] == "introductions are left out"
    assert menu.lines.startswith("- topic0\n- topic1\n")
    menu = fit_menu(introduced(300), 900)
    assert menu.tokens <= 900
    assert all(re.search(rf"\btopic{n}\b", menu.lines) for n in range(300))
    menu = fit_menu(introduced(3_000), 1200)
    assert menu.tokens <= 1200
    assert re.search(r", and [\d,]+ more\n$", menu.lines)


def test_the_note_on_hidden_subjects_stands_where_there_are_some() -> None:
    assert "hidden subjects" in render_menu(fit_menu(TOPICS, 1200))
    bare = render_menu(fit_menu(TOPICS, 1200, has_hidden=False))
    assert bare.endswith("\n\nUse the `learn` tool to consume this knowledge.")


@pytest.mark.parametrize(
    ("budget", "named"),
    [
        (100, "project (General Project Knowledge), skills (Learnable Assistant Skills), bare"),
        (10, "project, skills, bare"),
        (6, "project, skills, bare"),
        (5, "project, and 2 more"),
        (0, "project, and 2 more"),
    ],
)
def test_the_description_of_the_tool_keeps_to_the_budget(budget: int, named: str) -> None:
    assert list_topics([PROJECT, SKILLS, BARE], budget) == named


def test_a_large_subject_says_its_size() -> None:
    subject = MenuSubject("a", "All", "(~29,900 tokens, 182 parts)")
    lines = whole([MenuTopic(BARE, [subject])]).lines
    assert lines == "- bare\n  - a (~29,900 tokens, 182 parts) — All\n"


def test_summaries_are_lines_of_bounded_length() -> None:
    topic = MenuTopic(BARE, [MenuSubject("a\nb", "x\n</topic>" * 200)])
    summary = ("x <\\/topic>" * 200)[:1023] + "…"
    assert whole([topic]).lines == f"- bare\n  - a b — {summary}\n"


menus = st.lists(
    st.lists(st.tuples(st.text("ab/", min_size=1), st.text(" xy\n", max_size=120)), max_size=12),
    min_size=1,
    max_size=5,
).map(
    lambda topics: [
        MenuTopic(
            replace(BARE, id=f"t{number}"), [MenuSubject(name, summary) for name, summary in listed]
        )
        for number, listed in enumerate(topics)
    ]
)


@given(menus, st.integers(0, 600))
def test_a_menu_is_within_its_budget_where_counting_can_bring_it_there(
    topics: list[MenuTopic], budget: int
) -> None:
    menu = fit_menu(topics, budget)
    assert fit_menu(topics, budget) == menu
    assert menu.tokens <= max(budget, 190)
    assert bool(menu.cuts) == (menu != whole(topics))
    numbers = re.findall(r"^  - (\d+) subjects?[,:]", menu.lines, re.MULTILINE)
    shown = menu.lines.count("\n  - ") - len(numbers) + sum(map(int, numbers))
    if not any(cut.startswith("only the ids") for cut in menu.cuts):
        assert shown == sum(len(topic.subjects) for topic in topics)


def test_nothing_is_cut_in_silence() -> None:
    for budget in range(60, 340):
        menu = fit_menu(TOPICS, budget)
        assert bool(menu.cuts) == (menu != whole(TOPICS))
        assert all(cut in render_menu(menu) for cut in menu.cuts)


def test_the_title_of_the_only_topic_is_cut() -> None:
    topic = replace(PROJECT, title="x" * 900_000, introduction=None)
    assert len(fit_menu([MenuTopic(topic)], 500).lines) < 1_100
