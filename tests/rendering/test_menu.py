"""The menu with subjects, and the steps that fit it to its budget."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.menu import (
    FittedMenu,
    MenuSubject,
    MenuTopic,
    find_readable,
    fit_menu,
    list_topics,
    plain_menu,
    render_menu,
)
from llm_kb.rendering.tokens import estimate_tokens
from tests.golden_files import Golden
from tests.presented import BARE, PROJECT, SKILLS

LONG = "a summary of forty characters, more ones"


def subjects(count: int, summary: str | None = LONG) -> tuple[MenuSubject, ...]:
    """Return subjects s00, s01, …, all with the same summary."""
    return tuple(MenuSubject(name=f"s{i:02}", summary=summary) for i in range(count))


def listed(menu: FittedMenu) -> str:
    """Return the lines of a menu between its heading and its footer."""
    return render_menu(menu).split("learn:\n\n")[1].split("\n\nUse the")[0]


TOPICS = (
    MenuTopic(topic=PROJECT, subjects=subjects(4)),
    MenuTopic(topic=SKILLS, subjects=subjects(2)),
    MenuTopic(topic=BARE, subjects=()),
)


LONG_TOPICS = (
    MenuTopic(topic=PROJECT, subjects=subjects(50, LONG * 2)),
    MenuTopic(topic=SKILLS, subjects=subjects(10, LONG * 2)),
)


def budget_of(menu: FittedMenu) -> int:
    """Return the smallest budget a menu is within."""
    return estimate_tokens(render_menu(menu))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_tokens_are_estimated_at_four_characters(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_menu_within_its_budget_is_whole(golden: Golden) -> None:
    menu = fit_menu(TOPICS, 1200)
    assert menu == FittedMenu(topics=TOPICS)
    golden("menu_subjects.txt", render_menu(menu))


def test_a_budget_that_is_just_enough_cuts_nothing() -> None:
    enough = budget_of(FittedMenu(topics=TOPICS))
    assert fit_menu(TOPICS, enough).cuts == ()
    assert fit_menu(TOPICS, enough - 1).cuts != ()


def test_first_summaries_are_shortened_evenly() -> None:
    menu = fit_menu(TOPICS, budget_of(FittedMenu(topics=TOPICS)) + 60)
    assert menu.cuts == ()
    menu = fit_menu(LONG_TOPICS, budget_of(FittedMenu(topics=LONG_TOPICS)) - 5)
    lines = listed(menu).splitlines()
    [limit] = re.findall(r"^\(note: summaries are shortened to at most (\d+) ch", lines[-1])
    summaries = [line.partition(" — ")[2] for line in lines if " — " in line]
    assert len(summaries) == 60
    assert {len(summary) for summary in summaries} == {int(limit)}
    assert lines[-1].endswith(
        f"; menu_budget = {budget_of(FittedMenu(topics=LONG_TOPICS))} would do)"
    )


def test_the_largest_topic_loses_its_summaries_before_the_others_do() -> None:
    menu = fit_menu(LONG_TOPICS, 800)
    assert all(subject.summary == "" for subject in menu.topics[0].subjects or ())
    assert [subject.summary for subject in menu.topics[1].subjects or ()] == [LONG * 2] * 10
    assert menu.cuts[0] == "the summaries of 1 topic are left out"
    assert menu.tokens <= 800


def test_then_its_subjects_are_counted_by_directory() -> None:
    menu = fit_menu(LONG_TOPICS, 250)
    assert menu.topics[0].counted == "50 subjects"
    assert [bool(topic.subjects) for topic in menu.topics] == [False, True]
    assert '\n  - 50 subjects, call learn("project")\n' in render_menu(menu)
    names = ["guide/a", "guide/b", "ref/deep/c", "top"] * 30
    entry = MenuTopic(topic=BARE, subjects=tuple(MenuSubject(name=name) for name in names))
    counted = "120 subjects: guide/** (60), ref/** (30), 30 others"
    assert fit_menu([entry], 0).topics[0].counted == counted
    assert f'\n  - {counted}; call learn("bare")\n' in render_menu(fit_menu([entry], 0))


def test_a_large_reference_costs_no_project_its_summaries() -> None:
    reference = replace(BARE, id="topic-django")
    project = MenuTopic(topic=PROJECT, subjects=subjects(10))
    big = MenuTopic(
        topic=reference, subjects=tuple(MenuSubject(name=f"ref/{n}") for n in range(600))
    )
    menu = fit_menu([project, big], 500)
    assert menu.topics == (
        project,
        MenuTopic(topic=reference, counted="600 subjects: ref/** (600)"),
    )
    assert menu.cuts[0] == "the subjects of 1 topic are counted, not listed"


def test_a_reference_goes_before_a_larger_topic_of_the_workspace() -> None:
    own = MenuTopic(topic=PROJECT, subjects=subjects(60))
    fetched = MenuTopic(topic=replace(BARE, id="topic-x"), subjects=subjects(40))
    menu = fit_menu([own, fetched], 900)
    assert [entry.counted for entry in menu.topics] == [None, "40 subjects"]


def introduced(number: int) -> list[MenuTopic]:
    """Return topics with introductions of 80 characters."""
    return [
        MenuTopic(topic=replace(BARE, id=f"topic{n}", introduction="introduce " * 8))
        for n in range(number)
    ]


def test_introductions_are_shortened_then_left_out_then_topics_are_named() -> None:
    menu = fit_menu(introduced(30), 600)
    assert menu.cuts[0].startswith("introductions are shortened to at most ")
    assert menu.tokens <= 600
    menu = fit_menu(introduced(60), 480)
    assert menu.cuts[0] == "introductions are left out"
    assert listed(menu).startswith("- topic0\n- topic1\n")
    menu = fit_menu(introduced(300), 900)
    assert menu.tokens <= 900
    assert len(menu.topics) + len(menu.others) == 300
    assert f"- topic{len(menu.topics)}, topic" in listed(menu)
    menu = fit_menu(introduced(3_000), 1200)
    assert menu.tokens <= 1200
    assert menu.others[-1].startswith("and ")


def test_the_note_on_hidden_subjects_stands_where_there_are_some() -> None:
    assert "hidden subjects" in render_menu(fit_menu(TOPICS, 1200))
    bare = render_menu(fit_menu(TOPICS, 1200, has_hidden=False))
    assert bare.endswith("\n\nUse the `learn` tool to consume this knowledge.")


def test_what_is_worth_reading() -> None:
    small = MenuTopic(topic=PROJECT, subjects=subjects(5, None))
    large = MenuTopic(topic=BARE, subjects=subjects(99, None) * 30)
    assert find_readable([small, large], 300) == {"project"}
    assert find_readable([small, large], 20_000) == {"project", "bare"}


@pytest.mark.parametrize(
    ("budget", "named"),
    [
        (100, "project (General Project Knowledge), skills (Learnable Assistant Skills), bare"),
        (10, "project, skills, bare"),
        (4, "project, skills, and 1 more"),
        (0, "project, and 2 more"),
    ],
)
def test_the_description_of_the_tool_keeps_to_the_budget(budget: int, named: str) -> None:
    assert list_topics([PROJECT, SKILLS, BARE], budget) == named


def test_a_large_subject_says_its_size() -> None:
    subject = MenuSubject(name="a", summary="All", size="(~29,900 tokens, 182 parts)")
    assert "  - a (~29,900 tokens, 182 parts) — All\n" in render_menu(
        fit_menu([MenuTopic(topic=BARE, subjects=(subject,))], 1200)
    )


def test_summaries_are_lines_of_bounded_length() -> None:
    topic = MenuTopic(topic=BARE, subjects=(MenuSubject(name="a\nb", summary="x\n</topic>" * 200),))
    (plain,) = plain_menu([topic]).topics
    assert plain.subjects == (MenuSubject(name="a b", summary=("x <\\/topic>" * 200)[:1023] + "…"),)


menus = st.lists(
    st.lists(st.tuples(st.text("ab/", min_size=1), st.text(" xy\n", max_size=120)), max_size=12),
    min_size=1,
    max_size=5,
).map(
    lambda topics: [
        MenuTopic(
            topic=replace(BARE, id=f"t{number}"),
            subjects=tuple(MenuSubject(name=name, summary=summary) for name, summary in listed),
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
    named = [name for name in menu.others if not name.startswith("and ")]
    assert len(menu.topics) + len(named) <= len(topics)
    for before, after in zip(topics, menu.topics, strict=False):
        assert before.topic == after.topic
        shown = len(after.subjects or ()) or int((after.counted or "0").split()[0])
        assert shown == len(before.subjects or ())
    if not menu.cuts:
        assert menu == plain_menu(topics)


def test_nothing_is_cut_in_silence() -> None:
    for budget in range(60, 340):
        menu = fit_menu(TOPICS, budget)
        assert bool(menu.cuts) == (menu.topics != TOPICS)
        assert all(cut in render_menu(menu) for cut in menu.cuts)
