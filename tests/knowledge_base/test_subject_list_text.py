"""Totals of listed topics, and how they are rendered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llm_kb.knowledge_base.subject_list import (
    MANY,
    ListedSubject,
    ListedTopic,
    State,
    Totals,
    render_subjects,
    render_topic,
    render_tree,
)
from llm_kb.subjects.topics import Skipped
from tests.presented import BARE, PROJECT

DAY = 20_000 * 86_400.0
QUALITY = ListedSubject(
    name="code-quality", path="code-quality.md", state=State.AVAILABLE, size=1_234, changed=DAY
)
ALICE = ListedSubject(
    name="maintainers/alice",
    path="maintainers/alice.md",
    state=State.PRELOADED,
    size=5,
    changed=DAY + 86_400,
)
NOTES = ListedSubject(name="notes", path=".notes.md", state=State.HIDDEN, size=9, changed=DAY)
OLD = ListedSubject(name="old", path="old.md", state=State.DISABLED)
LINK = Skipped(path="link\n.md", reason="the link leads outside the topic")

TOPIC = ListedTopic(topic=PROJECT, subjects=(QUALITY, ALICE), skipped=(LINK,))
WHOLE = replace(TOPIC, subjects=(QUALITY, ALICE, NOTES, OLD), whole=True)


def test_totals_are_those_of_the_listed_subjects() -> None:
    assert WHOLE.totals == Totals(subjects=2, size=1_239, tokens=311, changed=DAY + 86_400)
    empty = ListedTopic(topic=PROJECT)
    assert empty.totals == Totals(subjects=0, size=0, tokens=0, changed=None)


def test_a_topic_as_json() -> None:
    record = {
        "id": "project",
        "title": "General Project Knowledge",
        "introduction": "foo bar baz...",
        "enable": True,
        "root": "/kb/project",
        "subjects": 2,
        "size": 1_239,
        "tokens": 311,
        "changed": "2024-10-05T00:00:00+00:00",
        "preloaded": 1,
        "skipped": 1,
        "not_searched": [],
        "problem": None,
    }
    assert TOPIC.as_dict() == record
    assert WHOLE.as_dict() == {**record, "hidden": 1, "disabled": 1}


def test_subjects_as_json() -> None:
    assert TOPIC.subject_dicts() == [
        {
            "slug": "code-quality",
            "path": "code-quality.md",
            "state": "available",
            "size": 1_234,
            "tokens": 309,
            "changed": "2024-10-04T00:00:00+00:00",
        },
        {
            "slug": "maintainers/alice",
            "path": "maintainers/alice.md",
            "state": "pre-loaded",
            "size": 5,
            "tokens": 2,
            "changed": "2024-10-05T00:00:00+00:00",
        },
    ]
    assert WHOLE.subject_dicts()[3:] == [
        {
            "slug": "old",
            "path": "old.md",
            "state": "disabled",
            "size": None,
            "tokens": None,
            "changed": None,
        },
        {
            "slug": None,
            "path": "link\n.md",
            "state": "skipped",
            "reason": "the link leads outside the topic",
        },
    ]


@pytest.mark.parametrize(
    ("terms", "is_about"),
    [
        ([], True),
        (["PROJ"], True),
        (["knowledge", "baz"], True),
        (["knowledge", "absent"], False),
        (["/kb"], False),
    ],
)
def test_terms_are_looked_for_in_id_title_and_introduction(
    terms: list[str], is_about: bool
) -> None:
    assert TOPIC.is_about(terms) is is_about


def test_only_the_subjects_of_some_terms() -> None:
    assert WHOLE.only(["MAIN", "ali"]).subjects == (ALICE,)
    assert WHOLE.only([]) == WHOLE


def test_a_topic_in_lines() -> None:
    assert list(render_topic(TOPIC)) == [
        "project: General Project Knowledge",
        "  2 subjects, 1.2 KB, ~311 tokens, changed 2024-10-05",
        "  1 pre-loaded, 1 skipped",
    ]
    assert list(render_topic(WHOLE))[2:] == [
        "  1 pre-loaded, 1 hidden, 1 disabled, 1 skipped",
        "  skipped link .md: the link leads outside the topic",
    ]


def test_a_topic_without_subjects_says_why() -> None:
    topic = ListedTopic(topic=BARE, problem="/kb/bare: no such directory")
    assert list(render_topic(topic)) == ["bare", "  no subjects: /kb/bare: no such directory"]
    assert list(render_subjects(topic)) == ["no subjects: /kb/bare: no such directory"]
    assert list(render_tree(topic)) == ["bare/", "  no subjects: /kb/bare: no such directory"]


def test_subjects_that_could_not_be_measured_have_no_date() -> None:
    topic = ListedTopic(topic=BARE, subjects=(replace(OLD, state=State.AVAILABLE),))
    assert list(render_topic(topic)) == ["bare", "  1 subject, 0 B, ~0 tokens"]


def test_a_title_is_one_line_of_the_width() -> None:
    topic = ListedTopic(topic=replace(BARE, title="A\n" + "long " * 40), problem="x")
    heading = next(render_topic(topic))
    assert (heading[:8], len(heading)) == ("bare: A ", 80)


def test_subjects_in_columns() -> None:
    assert list(render_subjects(WHOLE)) == [
        "code-quality          1.2 KB      ~309 tokens  2024-10-04",
        "maintainers/alice        5 B        ~2 tokens  2024-10-05  pre-loaded",
        "notes                    9 B        ~3 tokens  2024-10-04  hidden",
        "old                                                        disabled",
        "skipped link .md: the link leads outside the topic",
    ]


def test_a_tree() -> None:
    deeper = replace(ALICE, name="maintainers/a/deep", state=State.AVAILABLE)
    beside = replace(ALICE, name="other/a/deep", state=State.AVAILABLE)
    tree = replace(WHOLE, subjects=(QUALITY, ALICE, deeper, beside, OLD), whole=False)
    assert list(render_tree(tree)) == [
        "project/",
        "  code-quality  1.2 KB",
        "  maintainers/",
        "    a/",
        "      deep  5 B",
        "    alice  5 B  pre-loaded",
        "  old  disabled",
        "  other/",
        "    a/",
        "      deep  5 B",
    ]


def test_files_that_are_never_text_are_counted() -> None:
    subjects = [
        ListedSubject(name=name, path=name, state=State.AVAILABLE, size=1)
        for name in ("a.md", "logo.PNG", "x/font.woff2", ".png", "png")
    ]
    lines = list(render_topic(ListedTopic(topic=BARE, subjects=tuple(subjects))))
    assert lines[2:] == ["  2 not text"]


def _many(*names: str) -> ListedTopic:
    found = (ListedSubject(name=n, path=n, state=State.AVAILABLE, size=4) for n in names)
    return ListedTopic(topic=PROJECT, subjects=tuple(found))


def test_many_subjects_are_folded_by_directory() -> None:
    listed = _many("a", *(f"b/{n}/x" for n in range(150)), *(f"c/{n}" for n in range(150)))
    assert [line.split() for line in render_subjects(listed)] == [
        ["a", "4", "B", "~1", "tokens"],
        ["b/", "600", "B", "~150", "tokens", "150", "subjects"],
        ["c/", "600", "B", "~150", "tokens", "150", "subjects"],
        ["301", "subjects;", "--all", "lists", "each", "of", "them"],
    ]
    assert len(list(render_subjects(replace(listed, whole=True)))) == 301


def test_many_subjects_of_one_directory_are_cut() -> None:
    lines = list(render_subjects(_many(*(f"p{n}" for n in range(300)))))
    assert len(lines) == MANY + 1
    assert lines[-1] == "300 subjects; --all lists each of them"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit_the_width(width: int) -> None:
    listed = _many(
        "a-very/long-name/of-a-subject/that-goes-on/and-on/until/it-does-not/fit-any-more"
    )
    assert all(len(line) <= width for line in render_subjects(listed, width))
