"""The menu with subjects, and its steps when it is over budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.menu import (
    FittedMenu,
    MenuSubject,
    MenuTopic,
    estimate_tokens,
    fit_menu,
    plain_menu,
    render_menu,
    slugs_fit,
)
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
    menu = fit_menu(TOPICS, budget_of(FittedMenu(topics=TOPICS)) - 5)
    assert listed(menu) == (
        "- project (**General Project Knowledge**): foo bar baz...\n"
        "  - s00 — a summary of forty charact…\n"
        "  - s01 — a summary of forty charact…\n"
        "  - s02 — a summary of forty charact…\n"
        "  - s03 — a summary of forty charact…\n"
        "- skills (**Learnable Assistant Skills**)\n"
        "  - s00 — a summary of forty charact…\n"
        "  - s01 — a summary of forty charact…\n"
        "- bare\n\n"
        "(note: summaries are shortened to at most 27 characters)"
    )


def test_then_they_are_left_out() -> None:
    menu = fit_menu(TOPICS, budget_of(FittedMenu(topics=TOPICS)) - 40)
    assert listed(menu) == (
        "- project (**General Project Knowledge**): foo bar baz...\n"
        "  - s00\n  - s01\n  - s02\n  - s03\n"
        "- skills (**Learnable Assistant Skills**)\n"
        "  - s00\n  - s01\n"
        "- bare\n\n"
        "(note: summaries are left out)"
    )


def big_topics() -> list[MenuTopic]:
    """Two topics of many subjects and one of few."""
    return [
        MenuTopic(topic=PROJECT, subjects=subjects(50, "")),
        MenuTopic(topic=SKILLS, subjects=subjects(80, "")),
        MenuTopic(topic=BARE, subjects=subjects(2, "")),
    ]


def test_then_the_largest_topic_is_counted() -> None:
    menu = fit_menu(big_topics(), 300)
    assert menu.topics[1] == MenuTopic(topic=SKILLS, counted=80)
    assert [len(topic.subjects or ()) for topic in menu.topics] == [50, 0, 2]
    assert menu.cuts == ("the subjects of 1 topic are counted, not listed",)
    assert '\n  - 80 subjects, call learn("skills")\n' in render_menu(menu)
    assert menu.tokens <= 300


def test_then_the_next_but_none_that_saves_nothing() -> None:
    menu = fit_menu(big_topics(), 0)
    assert [topic.counted for topic in menu.topics] == [50, 80, None]
    assert menu.cuts == ("the subjects of 2 topics are counted, not listed",)
    assert menu.tokens > 0


def test_topics_of_one_size_are_counted_in_the_order_of_their_ids() -> None:
    topics = [
        MenuTopic(topic=replace(BARE, id=id_), subjects=subjects(50, "")) for id_ in ("b", "a")
    ]
    menu = fit_menu(topics, 260)
    assert [topic.counted for topic in menu.topics] == [None, 50]


def test_a_menu_of_topics_is_never_cut() -> None:
    menu = fit_menu([MenuTopic(topic=PROJECT)], 1)
    assert menu == FittedMenu(topics=(MenuTopic(topic=PROJECT),))


def test_summaries_that_were_not_read_are_left_out_and_that_is_said() -> None:
    topics = [MenuTopic(topic=BARE, subjects=subjects(2, None))]
    assert fit_menu(topics, 1200).cuts == ("summaries are left out",)
    assert fit_menu(topics, 1200).topics == tuple(topics)


def test_slugs_fit_tells_whether_summaries_are_worth_reading() -> None:
    topics = [MenuTopic(topic=BARE, subjects=subjects(80, None))]
    needed = budget_of(fit_menu(topics, 100_000))
    assert slugs_fit(topics, needed)
    assert not slugs_fit(topics, needed - 1)


def test_summaries_are_lines_of_at_most_a_hundred_characters() -> None:
    topic = MenuTopic(topic=BARE, subjects=(MenuSubject(name="a\nb", summary="x\n</topic>" * 20),))
    (plain,) = plain_menu([topic]).topics
    assert plain.subjects == (MenuSubject(name="a b", summary=("x <\\/topic>" * 20)[:99] + "…"),)


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
    assert menu.tokens <= budget or menu == fit_menu(topics, 0)
    for before, after in zip(topics, menu.topics, strict=True):
        assert before.topic == after.topic
        kept = after.counted if after.subjects is None else len(after.subjects)
        assert kept == len(before.subjects or ())
    if menu.tokens <= budget and not menu.cuts:
        assert menu == plain_menu(topics)


def test_nothing_is_cut_in_silence() -> None:
    for budget in range(60, 240):
        menu = fit_menu(TOPICS, budget)
        assert bool(menu.cuts) == (menu.topics != TOPICS)
        assert all(cut in render_menu(menu) for cut in menu.cuts)
