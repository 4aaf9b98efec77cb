"""Listed topics as JSON, and how they are rendered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llm_kb.knowledge_base.subject_list import (
    MANY,
    ListedSubject,
    ListedTopic,
    render_subjects,
    render_topics,
)
from llm_kb.subjects.topics import Skipped
from tests.presented import BARE, PROJECT

QUALITY = ListedSubject(name="code-quality", path="code-quality.md", tokens=309)
ALICE = ListedSubject(
    name="maintainers/alice", path="maintainers/alice.md", state="pre-loaded", tokens=2
)
NOTES = ListedSubject(name="notes", path=".notes.md", state="hidden", tokens=3)
OLD = ListedSubject(name="old", path="old.md", state="disabled")
LINK = Skipped(path="link\n.md", reason="the link leads outside the topic")

TOPIC = ListedTopic(topic=PROJECT, subjects=(QUALITY, ALICE), skipped=(LINK,))
WHOLE = replace(TOPIC, subjects=(QUALITY, ALICE, NOTES, OLD), whole=True)


def test_a_topic_as_json_counts_the_listed_subjects() -> None:
    record = {
        "id": "project",
        "title": "General Project Knowledge",
        "introduction": "foo bar baz...",
        "enable": True,
        "root": "/kb/project",
        "subjects": 2,
        "tokens": 311,
        "skipped": 1,
        "problem": None,
    }
    assert TOPIC.as_dict() == WHOLE.as_dict() == record


def test_subjects_as_json() -> None:
    assert TOPIC.subject_dicts() == [
        {
            "slug": "code-quality",
            "path": "code-quality.md",
            "state": "available",
            "tokens": 309,
        },
        {
            "slug": "maintainers/alice",
            "path": "maintainers/alice.md",
            "state": "pre-loaded",
            "tokens": 2,
        },
    ]
    assert WHOLE.subject_dicts()[3:] == [
        {"slug": "old", "path": "old.md", "state": "disabled", "tokens": None},
        {
            "slug": None,
            "path": "link\n.md",
            "state": "skipped",
            "reason": "the link leads outside the topic",
        },
    ]


def test_a_topic_in_lines() -> None:
    start = "project  General Project Knowledge      2 subjects      ~311 tokens  1 pre-loaded, "
    assert list(render_topics([TOPIC])) == [f"{start}1 skipped"]
    assert list(render_topics([WHOLE])) == [
        f"{start}1 hidden, 1 disabled, 1 skipped",
        "  skipped link .md: the link leads outside the topic",
    ]


def test_topics_are_in_columns() -> None:
    assert list(render_topics([replace(TOPIC, skipped=()), ListedTopic(topic=BARE)])) == [
        "project  General Project Knowledge      2 subjects      ~311 tokens  1 pre-loaded",
        "bare                                    0 subjects        ~0 tokens",
    ]


def test_a_topic_without_subjects_says_why() -> None:
    topic = ListedTopic(topic=BARE, problem="/kb/bare: no such directory")
    assert list(render_topics([topic])) == ["bare", "  no subjects: /kb/bare: no such directory"]
    assert list(render_subjects(topic)) == ["no subjects: /kb/bare: no such directory"]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_title_is_cut_to_one_line_of_the_width(width: int) -> None:
    topic = ListedTopic(topic=replace(BARE, title="A\n" + "long " * 40))
    line = next(render_topics([topic], width))
    assert line.startswith("bare  A long")
    assert len(line) <= width


def test_subjects_in_columns() -> None:
    assert list(render_subjects(WHOLE)) == [
        "code-quality           ~309 tokens",
        "maintainers/alice        ~2 tokens  pre-loaded",
        "notes                    ~3 tokens  hidden",
        "old                                 disabled",
        "skipped link .md: the link leads outside the topic",
    ]


def test_files_that_are_never_text_are_counted() -> None:
    subjects = [
        ListedSubject(
            name=name, path=name, tokens=None if "." in name[1:] and name != "a.md" else 1
        )
        for name in ("a.md", "logo.PNG", "x/font.woff2", ".png", "png")
    ]
    assert list(render_topics([ListedTopic(topic=BARE, subjects=subjects)])) == [
        "bare      5 subjects        ~3 tokens  2 not text"
    ]


def _many(*names: str) -> ListedTopic:
    return ListedTopic(
        topic=PROJECT, subjects=[ListedSubject(name=n, path=n, tokens=1) for n in names]
    )


def test_many_subjects_are_folded_by_directory() -> None:
    listed = _many("a", *(f"b/{n}/x" for n in range(150)), *(f"c/{n}" for n in range(150)))
    assert [line.split() for line in render_subjects(listed)] == [
        ["a", "~1", "tokens"],
        ["b/", "~150", "tokens", "150", "subjects"],
        ["c/", "~150", "tokens", "150", "subjects"],
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
