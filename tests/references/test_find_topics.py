"""The topics that a question searches, and the notes on the others."""

from __future__ import annotations

from typing import Any

import pytest

from llm_kb.errors import KbError
from llm_kb.references.calls import search_references as ask
from llm_kb.references.errors import ObsoleteTopicError, TopicFileError, UnknownReferenceError
from llm_kb.references.library import Library
from llm_kb.references.lookup import find_topic, find_topics
from llm_kb.references.sources.records import GitSource, WebSource
from llm_kb.references.topic.topic_directory import FileRecord, Provenance, render_provenance
from llm_kb.references.topic.topic_file import Status, TopicFile, make_topic_id, render_topic_file
from llm_kb.search.index.index import Embedder
from llm_kb.search.question import EmptyQuestionError
from llm_kb.search.roles import Role, Scope
from tests.search.embedding import HashingModel


def add(library: Library, title: str, text: str = "# A\n\nfrobnicate\n", **more: Any) -> str:
    """Put a topic of one file on disk; return its id."""
    topic = TopicFile(id=make_topic_id(title), title=title, files=("a.md",), **more)
    directory = library.root / topic.id
    directory.mkdir(parents=True)
    (directory / "topic.md").write_text(render_topic_file(topic))
    (directory / "a.md").write_text(text)
    return topic.id


@pytest.fixture
def stocked(library: Library) -> Library:
    """A library of a few topics, one of them obsolete."""
    add(library, "Dioxus - Rust UI Framework", body="RSX is like React.", tags=("rust", "web"))
    add(library, "Django docs", body="Forms may hold arrays.", tags=("python", "web"))
    add(library, "Old Django guide", body="Superseded.", status=Status.OBSOLETE)
    return library


def break_topic(library: Library, name: str = "topic-broken") -> str:
    """Put a topic on disk that cannot be read; return what is wrong with it."""
    path = library.root / name / "topic.md"
    path.parent.mkdir()
    path.write_text("no front matter")
    return f"{path}: it has no front matter between +++ lines"


@pytest.mark.parametrize(
    ("wanted", "topic_id"),
    [
        ("topic-django-docs", "topic-django-docs"),
        ("django DOCS", "topic-django-docs"),
        ("the dioxus docs", "topic-dioxus-rust-ui-framework"),
    ],
    ids=["id", "title", "words"],
)
def test_an_answer_names_the_one_topic_that_was_searched(
    stocked: Library, wanted: str, topic_id: str
) -> None:
    answer = ask(stocked, "frobnicate", wanted)
    assert list(answer) == ["topics", "legs", "results"]
    assert [topic["topic_id"] for topic in answer["topics"]] == [topic_id]
    assert [hit["topic_id"] for hit in answer["results"]] == [topic_id]


def test_without_a_topic_all_are_searched_but_obsolete_ones(stocked: Library) -> None:
    answer = ask(stocked, "frobnicate")
    assert list(answer) == ["topics", "legs", "results"]
    (hit,) = answer["results"]
    assert [topic["topic_id"] for topic in answer["topics"]] == [hit["topic_id"]]
    assert {f"{hit['topic_id']}/{hit['file']}", *hit["also_in"]} == {
        "topic-dioxus-rust-ui-framework/a.md",
        "topic-django-docs/a.md",
    }


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        pytest.param("numpy docs", ("topic-django-docs",), id="another of its kind"),
        pytest.param(
            "React web", ("topic-dioxus-rust-ui-framework", "topic-django-docs"), id="near"
        ),
        pytest.param("quantum chromodynamics", (), id="none"),
        pytest.param("topic-", (), id="start of an id"),
    ],
)
def test_words_that_clearly_name_no_topic_are_answered_with_the_nearest(
    stocked: Library, wanted: str, near: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownReferenceError) as raised:
        ask(stocked, "frobnicate", wanted)
    assert raised.value.near == near
    there = (
        f"nearest: {', '.join(near)}"
        if near
        else "available: topic-dioxus-rust-ui-framework, topic-django-docs"
    )
    assert str(raised.value) == f"unknown reference topic {wanted!r}; {there}"


def test_two_topics_that_words_fit_are_both_searched_and_described(library: Library) -> None:
    """`flask framework` is all of one title, and the name of the other."""
    add(library, "Flask docs site", "# A\n\nfrobnicate here\n", body="Of 2.x: see the caveats.")
    add(library, "Flask web framework", trust_score=8)
    answer = ask(library, "frobnicate", "flask framework")
    assert answer["topics"] == [
        {
            "topic_id": "topic-flask-docs-site",
            "title": "Flask docs site",
            "description": "Of 2.x: see the caveats.",
        },
        {
            "topic_id": "topic-flask-web-framework",
            "title": "Flask web framework",
            "trust_score": 8,
        },
    ]
    assert len(answer["results"]) == 2
    with pytest.raises(UnknownReferenceError):  # what changes a topic needs one
        find_topic(library, "flask framework")


def test_of_topics_that_answer_alike_the_trusted_one_comes_first(library: Library) -> None:
    for title, trust in (("A", 2), ("B", 9), ("C", None)):
        add(library, title, f"# A\n\nfrobnicate {title}\n", trust_score=trust)
    topics = [hit["topic_id"] for hit in ask(library, "frobnicate")["results"]]
    assert topics == ["topic-b", "topic-c", "topic-a"]


def test_a_search_is_narrowed_by_role_path_and_tag(stocked: Library) -> None:
    topic = stocked.root / "topic-django-docs"
    for path in ("docs/use.md", "src/frob.py", "tests/test_frob.py"):
        (topic / path).parent.mkdir(exist_ok=True)
        (topic / path).write_text(f"# frobnicate in {path}\n")

    def files(**narrowed: Any) -> list[str]:
        return sorted(hit["file"] for hit in ask(stocked, "frobnicate", **narrowed)["results"])

    assert files(scope=Scope(roles=[Role.TESTS])) == ["tests/test_frob.py"]
    assert files(scope=Scope(paths=["docs/", "src/*"])) == ["docs/use.md", "src/frob.py"]
    assert files(scope=Scope(roles=[Role.CODE], paths=["docs"])) == []
    assert files(tags=["RUST"]) == ["a.md"]
    with pytest.raises(KbError, match="no topic here has the tag 'go'; tags: python, rust, web"):
        files(tags=["go"])


def test_where_nothing_fits_the_answer_says_so(stocked: Library) -> None:
    answer = ask(stocked, "quagga")
    assert answer["warnings"] == [
        "not found in any text: quagga",
        "no text has a word of that; try the words such a text would use",
    ]
    nowhere = ask(stocked, "frobnicate", scope=Scope(roles=[Role.CODE], paths=["nope/"]))
    assert nowhere["warnings"] == ["there is no file in nope/ with the role code"]
    assert "not found in any text: 'frobincate'" in ask(stocked, "frobincate")["warnings"][0]


def test_a_text_with_one_word_of_a_question_is_a_weak_answer(library: Library) -> None:
    add(library, "Frob", "# A\n\nTo frobnicate, bake.\n")
    answer = ask(library, "chocolate cake recipe with a frobnicate", "topic-frob")
    assert [hit["score"] for hit in answer["results"]] == [0.25]
    assert answer["warnings"] == [
        "no good match; not found in any text: chocolate, cake, recipe; found: frobnicate in 1"
    ]


def test_a_question_without_a_word_is_an_error(stocked: Library) -> None:
    with pytest.raises(EmptyQuestionError):
        ask(stocked, " ?! ")


def test_a_file_has_the_role_of_its_source(library: Library) -> None:
    """What was fetched as a page is documentation, unless it lists changes."""
    page, code = WebSource(url="https://e.org/x"), GitSource(url="file:///x", role=Role.CODE)
    topic = library.root / add(library, "T", sources=(page, code, GitSource(url="file:///y")))
    texts = {"a.md": 0, "tests-in-use.md": 0, "changes.md": 0, "guide.md": 1, "own.py": 2}
    records = {
        path: FileRecord(source=source, url="https://e.org/u") for path, source in texts.items()
    }
    for path in (*texts, "added.md"):
        (topic / path).write_text(f"frobnicate in {path}\n")
    (topic / ".provenance.json").write_bytes(render_provenance(Provenance(files=records)))
    hits = [
        ask(library, "frobnicate", scope=Scope(paths=[path]))["results"][0]
        for path in (*texts, "added.md")
    ]
    assert {hit["file"]: hit["role"] for hit in hits} == {
        "a.md": "docs",
        "tests-in-use.md": "docs",
        "changes.md": "changes",
        "guide.md": "code",
        "own.py": "code",
        "added.md": "docs",
    }


def test_meaning_alone_names_no_topic_but_the_nearest(stocked: Library) -> None:
    embedding = Library(
        root=stocked.root,
        find_embedder=lambda: Embedder(model="hashing", embed=HashingModel()),
    )
    with pytest.raises(UnknownReferenceError) as raised:
        find_topic(embedding, "superset of rusty frameworks")
    assert raised.value.near[0] == "topic-dioxus-rust-ui-framework"


@pytest.mark.parametrize("wanted", ["topic-old-django-guide", "OLD DJANGO GUIDE", "old guide"])
def test_an_obsolete_topic_is_named_with_what_puts_it_back(stocked: Library, wanted: str) -> None:
    with pytest.raises(ObsoleteTopicError) as raised:
        find_topic(stocked, wanted)
    assert 'status = "active"' in str(raised.value)


def test_of_two_topics_of_one_name_the_one_in_use_is_meant(stocked: Library) -> None:
    directory = stocked.root / "topic-renamed"
    (stocked.root / add(stocked, "Renamed")).rename(directory)
    text = (directory / "topic.md").read_text()
    (directory / "topic.md").write_text(text.replace('"Renamed"', '"Old Django guide"'))
    assert find_topic(stocked, "old django guide").id == "topic-renamed"


def test_a_topic_that_cannot_be_read_is_told_of_and_the_others_are_searched(
    stocked: Library,
) -> None:
    problem = break_topic(stocked)
    answer = ask(stocked, "frobnicate")
    assert len(answer["results"]) == 1
    assert answer["warnings"] == [f"not searched: {problem}"]
    assert "warnings" not in ask(stocked, "frobnicate", "django docs")


def test_a_topic_whose_index_cannot_be_used_is_searched_without_one(stocked: Library) -> None:
    expected = ask(stocked, "frobnicate")["results"]
    index = stocked.index
    index.unlink()
    index.mkdir(parents=True)

    answer = ask(stocked, "frobnicate")

    assert answer["results"] == expected
    (warning,) = answer["warnings"]
    assert warning.startswith("searched without an index: cannot use the index ")
    assert str(index) in warning


def test_asking_for_a_topic_that_cannot_be_read_says_why(stocked: Library) -> None:
    problem = break_topic(stocked)
    with pytest.raises(TopicFileError) as raised:
        ask(stocked, "frobnicate", "topic-broken")
    assert str(raised.value) == problem
    with pytest.raises(UnknownReferenceError):
        ask(stocked, "frobnicate", "another")


@pytest.mark.parametrize("wanted", ["../../x", "topic-x\x00", " "])
def test_what_can_be_no_topic_is_an_error(stocked: Library, wanted: str) -> None:
    with pytest.raises(KbError, match="unknown reference topic"):
        find_topic(stocked, wanted)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("rust interfaces", ["topic-dioxus-rust-ui-framework"]),
        ("RSX", ["topic-dioxus-rust-ui-framework"]),
        ("form array", ["topic-django-docs"]),
        ("superseeded", ["topic-old-django-guide"]),
        ("web", ["topic-dioxus-rust-ui-framework", "topic-django-docs"]),
        ("zebra", []),
        ("", []),
    ],
    ids=["title", "body", "other forms", "misspelled, and obsolete", "tag", "none", "nothing"],
)
def test_topics_are_found_by_what_they_are_about(
    stocked: Library, query: str, found: list[str]
) -> None:
    hits = find_topics(stocked, query)
    assert sorted(topic.id for topic, _, _ in hits) == found
    assert all(0 < score <= 1 for _, score, _ in hits)


def test_topics_are_found_as_they_are_described_now(stocked: Library) -> None:
    assert not find_topics(stocked, "metaprogramming")
    stocked.update("topic-django-docs", {}, "Forms and metaprogramming.")
    ((topic, _, snippet),) = find_topics(stocked, "metaprogramming")
    assert (topic.id, snippet) == ("topic-django-docs", "Forms and metaprogramming.")
    stocked.delete("topic-django-docs")
    assert not find_topics(stocked, "metaprogramming")
