"""The topic that words name: the right one, or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.topic.topic_file import TopicFile, make_topic_id
from llm_kb.search.titles import find_named


def topic(title: str, *tags: str, body: str = "") -> TopicFile:
    return TopicFile(id=make_topic_id(title), title=title, body=body, tags=tags)


TOPICS = [
    topic("Dioxus - Rust UI Framework", "rust", "ui", body="RSX is like React, for the web."),
    topic("Django docs", "python", "web", body="Forms hold arrays of fields."),
    topic("Django REST framework", "python", "web"),
    topic("pytest: testing for Python", "testing"),
    topic("pytest-cov - a plugin of pytest", "testing"),
    topic("The Rust Book", "rust"),
    topic("C++ (cppreference)"),
    topic("Widgets 0.6"),
]


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        pytest.param("dioxus", ["Dioxus - Rust UI Framework"], id="name"),
        pytest.param("the Dioxus docs", ["Dioxus - Rust UI Framework"], id="name and kind"),
        pytest.param("rust ui", ["Dioxus - Rust UI Framework"], id="title and tags"),
        pytest.param("numpy docs", [], id="another with a common word"),
        pytest.param("React web framework", [], id="words of a description"),
        pytest.param("array broadcasting", [], id="a question"),
        pytest.param("django", ["Django docs"], id="all of a name but its kind"),
        pytest.param("django rest", ["Django REST framework"], id="more of another name"),
        pytest.param("pytest", ["pytest: testing for Python"], id="name up to a colon"),
        pytest.param("pytest cov", ["pytest-cov - a plugin of pytest"], id="name up to a dash"),
        pytest.param("rust book", ["The Rust Book"], id="kinds decide"),
        pytest.param("rust", ["The Rust Book"], id="what is named by it, not what has its tag"),
        pytest.param(
            "testing",
            ["pytest: testing for Python", "pytest-cov - a plugin of pytest"],
            id="several",
        ),
        pytest.param("docs", ["Django docs"], id="a kind alone"),
        pytest.param("widget 0.6", ["Widgets 0.6"], id="singular and version"),
        pytest.param("dioxus libraries", ["Dioxus - Rust UI Framework"], id="plural of a kind"),
        pytest.param("widgets 0.7", [], id="another version"),
        pytest.param("c++", ["C++ (cppreference)"], id="symbols"),
        pytest.param("C#", [], id="other symbols"),
        pytest.param(
            "django framework",
            ["Django docs", "Django REST framework"],
            id="a name, and another that has all words",
        ),
        pytest.param("diox", [], id="the start of a name"),
        pytest.param("?!", [], id="no words"),
    ],
)
def test_words_name_the_topic_that_has_all_of_them(words: str, titles: list[str]) -> None:
    assert [found.title for found in find_named(TOPICS, words)] == titles


@given(st.text(min_size=1))
def test_a_title_names_its_own_topic_if_it_has_words(title: str) -> None:
    named = find_named([topic(title)], title)
    assert named in ([topic(title)], [])
    assert bool(named) == any(c.isalnum() for c in title.casefold())
