"""Searching topics: what is found, in which order, and by which legs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm_kb.search import search as search_module
from llm_kb.search.index.database import IndexUnusableError, TopicGoneError
from llm_kb.search.index.index import index_path
from llm_kb.search.index.vectors import Embedder
from llm_kb.search.search import Hit, SearchResult, search
from tests.search.embedding import HashingModel


def make_topic(root: Path, name: str, files: dict[str, str]) -> Path:
    directory = root / name
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return directory


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    return make_topic(
        tmp_path,
        "topic-zoo",
        {
            "docs/walrus.md": "# Walrus\n\nA large animal with tusks.\n",
            "docs/otter.md": "# Otter\n\nA small animal that swims.\n",
            "src/zoo.py": "class ZooKeeper:\n    def feed_walrus(self):\n        return 'fish'\n",
        },
    )


def test_a_hit_says_where_it_stands(zoo: Path) -> None:
    assert search([zoo], "tusks") == SearchResult(
        hits=(
            Hit(
                topic="topic-zoo",
                path="docs/walrus.md",
                first_line=1,
                last_line=3,
                title="Walrus",
                text="# Walrus\n\nA large animal with tusks.\n",
                score=1.0,
            ),
        ),
        legs=("keyword",),
    )


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("feed_walrus", ["src/zoo.py", "docs/walrus.md"]),
        ("keeper of the zoo", ["src/zoo.py"]),
        ("swimming animals", ["docs/otter.md", "docs/walrus.md"]),
        ("nothing-of-that", []),
        ("", []),
        ('"tusks" AND ( NOT *', ["docs/walrus.md"]),
    ],
)
def test_questions(zoo: Path, question: str, paths: list[str]) -> None:
    assert [hit.path for hit in search([zoo], question).hits] == paths


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.text())
def test_any_question_can_be_asked(zoo: Path, question: str) -> None:
    assert search([zoo], question).legs == ("keyword",)


def test_one_file_does_not_fill_the_results(tmp_path: Path) -> None:
    long = "".join(f"## Part {n}\n\n" + "walrus and more. " * 40 + "\n\n" for n in range(20))
    topic = make_topic(
        tmp_path, "t", {"long.md": long} | {f"{n}.md": f"The walrus {n}.\n" for n in range(6)}
    )

    paths = [hit.path for hit in search([topic], "walrus", limit=10).hits]

    assert paths.count("long.md") == 4
    assert len(paths) == 10


def test_topics_are_searched_together_and_named(zoo: Path, tmp_path: Path) -> None:
    other = make_topic(tmp_path, "topic-sea", {"a.md": "The walrus of the sea has tusks.\n"})

    found = {(hit.topic, hit.path) for hit in search([zoo, other], "tusks").hits}

    assert found == {("topic-zoo", "docs/walrus.md"), ("topic-sea", "a.md")}
    assert len(search([zoo, other], "tusks", limit=1).hits) == 1


def test_the_topic_that_answers_comes_before_those_that_share_a_word(tmp_path: Path) -> None:
    others = [
        make_topic(tmp_path, f"topic-{name}", {"a.md": f"How {name} grow in the sea.\n"})
        for name in ("corals", "kelps")
    ]
    about = make_topic(
        tmp_path,
        "topic-walrus",
        {f"{n}.md": f"How tusks of a walrus grow, part {n}.\n" for n in range(3)},
    )

    hits = search([*others, about], "how do the tusks of a walrus grow").hits

    assert [hit.topic for hit in hits] == [*["topic-walrus"] * 3, "topic-corals", "topic-kelps"]


def test_a_topic_whose_index_cannot_be_used_is_a_problem_of_the_result(
    zoo: Path, tmp_path: Path
) -> None:
    broken = make_topic(tmp_path, "topic-broken", {"a.md": "The walrus.\n"})
    index_path(broken).mkdir(parents=True)

    result = search([broken, zoo], "tusks")

    assert result.hits == search([zoo], "tusks").hits
    assert [problem.database for problem in result.problems] == [index_path(broken)]
    with pytest.raises(IndexUnusableError):
        search([broken], "tusks")
    with pytest.raises(IndexUnusableError):
        search([broken, tmp_path / "topic-gone"], "tusks")


def test_the_dense_leg_finds_what_shares_no_word(zoo: Path) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        """Embed `pinniped` where the walrus is."""
        return [
            [1.0, 0.0] if "walrus" in t.lower() or "pinniped" in t else [0.0, 1.0] for t in texts
        ]

    embedder = Embedder(model="m", embed=embed)  # type: ignore[arg-type]

    assert search([zoo], "pinniped").hits == ()
    result = search([zoo], "pinniped", embedder=embedder)
    assert result.legs == ("keyword", "dense")
    assert "walrus" in result.hits[0].text.lower()


@pytest.mark.parametrize(
    ("question", "place"),
    [("what swims fastest in the sea", 0), ("swims", 1), ("pinniped", 0)],
    ids=["a question", "a look-up", "a look-up of what no text holds"],
)
def test_what_the_dense_leg_decides(tmp_path: Path, question: str, place: int) -> None:
    files = {f"{name}.md": f"The {name} swims in the sea.\n" for name in "abcd"}
    topic = make_topic(tmp_path, "topic-sea", files)
    by_words = [hit.path for hit in search([topic], "swims in the sea").hits]

    def embed(texts: list[str]) -> list[list[float]]:
        """Embed the question where the text is that comes last by its words."""
        nearest = f"The {by_words[-1].removesuffix('.md')} "
        return [[1.0, 0.0] if nearest in t or t == question else [0.0, 1.0] for t in texts]

    found = search([topic], question, embedder=Embedder(model="m", embed=embed))  # type: ignore[arg-type]

    assert len(by_words) == 4
    assert found.hits[place].path == by_words[-1]
    assert sorted(hit.path for hit in found.hits) == sorted(by_words)


def test_the_legs_tell_what_the_dense_one_could_not_see(
    zoo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "EMBED_AT_ONCE", 1)
    embedder = Embedder(model="m", embed=HashingModel())

    assert search([zoo], "walrus", embedder=embedder).legs == (
        "keyword",
        "dense (1 of 3 chunks)",
    )
    search([zoo], "walrus", embedder=embedder)
    assert search([zoo], "walrus", embedder=embedder).legs == ("keyword", "dense")


def test_a_topic_that_is_gone_is_left_out_unless_it_is_the_only_one(
    zoo: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "topic-gone"

    assert search([gone, zoo], "tusks") == search([zoo], "tusks")
    assert [path.name for path in (tmp_path / ".index").iterdir()] == ["topic-zoo.sqlite3"]
    with pytest.raises(TopicGoneError):
        search([gone], "tusks")
