"""Searching topics: the hits, their order, and the legs that find them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm_kb.files.topic_documents import TopicDocuments
from llm_kb.search.index.database import DocumentsGoneError
from llm_kb.search.index.documents import File, bound_files
from llm_kb.search.index.index import Embedder, open_index
from llm_kb.search.question import EmptyQuestionError, parse_question
from llm_kb.search.ranking import Hit
from llm_kb.search.search import SearchResult
from llm_kb.search.search import search as search_documents
from llm_kb.texts.document import Document
from tests.search.embedding import HashingModel
from tests.search.folders import folder, index_path, search


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
    result = search([zoo], "tusks")

    (hit,) = result.hits
    assert hit._replace(bm25=0.0, cosine=None) == Hit(
        topic="topic-zoo",
        path="docs/walrus.md",
        first_line=1,
        last_line=3,
        title="Walrus",
        heading="Walrus",
        text="# Walrus\n\nA large animal with tusks.\n",
        score=1.0,
    )
    assert result == SearchResult(hits=(hit,), legs=("keyword",), counts=(("tusks", 1),))


@pytest.mark.parametrize(
    ("question", "least", "most"),
    [
        ("tusks", 1.0, 1.0),
        ("the tusks of an animal", 1.0, 1.0),
        ("tusks and engines", 0.2, 0.7),
        ("tusks engines propellers wings", 0.1, 0.4),
    ],
)
def test_a_score_is_the_share_of_the_telling_words(
    zoo: Path, question: str, least: float, most: float
) -> None:
    assert least <= search([zoo], question).hits[0].score <= most


def test_the_same_text_is_one_hit_that_names_its_copies(zoo: Path) -> None:
    (zoo / "docs/copy.md").write_bytes((zoo / "docs/walrus.md").read_bytes())

    (hit,) = search([zoo], "tusks").hits

    assert {f"{hit.topic}/{hit.path}", *hit.also_in} == {
        f"topic-zoo/docs/{name}.md" for name in ("copy", "walrus")
    }


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("feed_walrus", ["src/zoo.py", "docs/walrus.md"]),
        ("keeper of the zoo", ["src/zoo.py"]),
        ("swimming animals", ["docs/otter.md", "docs/walrus.md"]),
        ("nothing-of-that", []),
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
    with suppress(EmptyQuestionError):
        assert search([zoo], question).legs == ("keyword",)


def test_a_word_that_no_text_has_is_searched_in_its_nearest_spelling(
    zoo: Path, tmp_path: Path
) -> None:
    other = make_topic(tmp_path, "topic-sea", {"a.md": "The walrsu of the sea.\n"})

    result = search([zoo], "the tuskz of a wlarus")

    assert result.hits == search([zoo], "the tusks of a walrus").hits
    assert result.unknown == ("tuskz", "wlarus")
    assert result.replaced == (("tuskz", "tusks"), ("wlarus", "walrus"))
    # What another topic has is not misspelled.
    assert search([zoo, other], "walrsu").replaced == ()


def test_the_nearest_word_is_one_that_stands_in_a_text(tmp_path: Path) -> None:
    long = "It takes a long time. "
    topic = make_topic(
        tmp_path, "topic-trips", {"a.md": long * 9, "b.md": long, "c.md": "A lodge."}
    )

    # `longe` is one letter from it too, and has the stem of `long`.
    assert search([topic], "the lomge").replaced == (("lomge", "lodge"),)


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("如何部署", ["zh.md"]),
        ("部署", ["zh.md"]),
        ("設定", ["ja.md"]),
        ("Djangoの設定を変える", ["ja.md"]),
        ("django", ["ja.md"]),
        ("서버를", ["ko.md"]),
        ("漢字", []),
    ],
)
def test_text_without_spaces_is_found_by_its_words(
    tmp_path: Path, question: str, paths: list[str]
) -> None:
    topic = make_topic(
        tmp_path,
        "topic-cjk",
        {
            "zh.md": "# 指南\n\n首先部署应用程序。\n",
            "ja.md": "Djangoの設定はここです。\n",
            "ko.md": "서버를 시작합니다.\n",
        },
    )

    assert [hit.path for hit in search([topic], question).hits] == paths


@pytest.mark.parametrize(
    "question",
    [
        *("Straße", "straße", "STRAßE", "zurich", "Zürich", "ZÜRICH", "muller", "Müllers"),
        *("cafe", "café", "cafe\u0301", "λόγος", "ΛΌΓΟΣ", "ёлка", "tiếng"),
    ],
)
def test_words_are_found_whatever_their_case_and_accents(tmp_path: Path, question: str) -> None:
    text = "Die Straße nach Zürich: Müller, cafe\u0301, λόγος, Ёлка, Tiếng.\n"
    place = make_topic(tmp_path, "topic-a", {"a.md": text, "b.md": "Something else.\n"})
    (hit,) = search([place], question).hits
    assert (hit.path, hit.score) == ("a.md", 1.0)


def test_a_pasted_message_is_found_where_it_stands_word_for_word(tmp_path: Path) -> None:
    others = {
        f"{n}.md": f"To open the file {n} is what you cannot, that not there.\n" for n in range(80)
    }
    source = "x = 1\nraise OSError('cannot open file that is not there: %s' % name)\n"
    topic = make_topic(tmp_path, "t", others | {"io.py": source})

    hits = search([topic], "cannot open file that is not there: notes.txt").hits

    assert hits[0].path == "io.py"


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

    assert [hit.topic for hit in hits][:3] == ["topic-walrus"] * 3
    assert {hit.topic for hit in hits[3:]} == {"topic-corals", "topic-kelps"}


def test_without_a_place_for_an_index_one_is_made_for_the_search(zoo: Path, tmp_path: Path) -> None:
    other = make_topic(tmp_path, "topic-other", {"a.md": "The walrus.\n", "b.md": "A tusk.\n"})
    expected = search([other, zoo], "tusks").hits
    index_path(other).unlink()
    index_path(other).mkdir(parents=True)

    result = search([other, zoo], "tusks")

    assert result.hits == expected
    (notice,) = result.notices
    assert notice.startswith(
        f"searched without an index: cannot use the index {str(index_path(other))!r}: "
    )
    with open_index(None) as index:
        index.most = 12
        index.update(folder(other))
        assert list(index.match("walrus OR tusk", 9)) == [1]
        assert index.left_out[0].startswith("not searched: topic-other: 1 of 2 files, beyond 100,")


def test_a_file_that_is_too_large_is_named(zoo: Path) -> None:
    (zoo / "data.txt").write_text("tusks " * 3_400_000)

    result = search([zoo], "tusks")

    assert [hit.path for hit in result.hits] == ["docs/walrus.md"]
    assert result.notices == ("not searched: topic-zoo/data.txt (larger than 20 MB)",)
    (zoo / "data.txt").write_text("tusks")
    assert search([zoo], "tusks").notices == ()


def test_under_a_bound_documentation_comes_first_then_small_files() -> None:
    files = [
        File("arch/large.c", 300, 0),
        File("arch/x86/small.c", 5, 0),
        File("docs/guide.rst", 200, 0),
        File("drivers/gpu/a.c", 100, 0),
        File("drivers/gpu/b.c", 90, 0),
        File("drivers/given.c", 400, 0, role="docs"),
    ]

    kept, (left,) = bound_files(files, count=4)

    assert [f.path for f in kept] == [files[n].path for n in (1, 2, 4, 5)]
    assert left.startswith("2 of 6 files, beyond 4 files or 500 MB of a topic")
    assert left.endswith("topics of directories: arch/ 1, drivers/ 1")
    kept, (left,) = bound_files(files, most=600, count=4)
    assert [f.path for f in kept] == [files[n].path for n in (2, 5)]
    assert left.endswith(": arch/ 2, drivers/ 2")
    below = [File(f"drivers/{name}/a.c", 1, 0) for name in "abcdefg"]
    (left,) = bound_files(below, count=0)[1]
    assert left.endswith(
        ": drivers/a/ 1, drivers/b/ 1, drivers/c/ 1, drivers/d/ 1, drivers/e/ 1, 2 more"
    )


@pytest.mark.parametrize("mtime_ns", [10**19, -(10**11), 2**63 - 1])
def test_a_time_no_clock_shows_hides_nothing(zoo: Path, mtime_ns: int) -> None:
    os.utime(zoo / "docs/otter.md", ns=(mtime_ns, mtime_ns))

    assert [hit.path for hit in search([zoo], "tusks").hits] == ["docs/walrus.md"]
    assert [hit.path for hit in search([zoo], "swims").hits] == ["docs/otter.md"]


def test_a_file_that_no_parser_can_take_is_cut_by_length(
    zoo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, text: str) -> Document:
        raise RecursionError(path)

    monkeypatch.setattr("llm_kb.search.chunks.read_document", fail)

    assert [hit.path for hit in search([zoo], "tusks").hits] == ["docs/walrus.md"]


def test_the_dense_leg_finds_what_shares_no_word(zoo: Path) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        """Embed `pinniped` where the walrus is."""
        return [
            [1.0, 0.0] if "walrus" in t.lower() or "pinniped" in t else [0.0, 1.0] for t in texts
        ]

    embedder = Embedder(model="m", embed=embed)  # type: ignore[arg-type]

    assert search([zoo], "pinniped").hits == ()
    result = search([zoo], "pinniped", find_embedder=lambda: embedder)
    assert result.legs == ("keyword", "dense")
    assert "walrus" in result.hits[0].text.lower()


@pytest.mark.parametrize(
    ("question", "number"),
    [("what swims fastest in the sea", 0), ("swims", 3), ("pinniped", 0)],
    ids=["a question", "a look-up that all hold", "a look-up of what no text holds"],
)
def test_what_the_dense_leg_decides(tmp_path: Path, question: str, number: int) -> None:
    files = {f"{name}.md": f"The {name} swims in the sea.\n" for name in "abcd"}
    topic = make_topic(tmp_path, "topic-sea", files)
    by_words = [hit.path for hit in search([topic], "swims in the sea").hits]

    def embed(texts: list[str]) -> list[list[float]]:
        """Embed the question where the text is that comes last by its words."""
        nearest = f"The {by_words[-1].removesuffix('.md')} "
        return [[1.0, 0.0] if nearest in t or t == question else [0.0, 1.0] for t in texts]

    found = search([topic], question, find_embedder=lambda: Embedder(model="m", embed=embed))  # type: ignore[arg-type]

    assert len(by_words) == 4
    assert found.hits[number].path == by_words[-1]
    assert sorted(hit.path for hit in found.hits) == sorted(by_words)


def test_the_legs_tell_what_the_dense_one_could_not_compare(tmp_path: Path) -> None:
    files = {f"{name}.md": f"The {name} swims in the sea.\n" for name in "abc"}
    topic = make_topic(tmp_path, "topic-sea", {**files, "z.md": "A giraffe.\n"})
    embedder = Embedder(model="m", embed=HashingModel(), batch=2, search_seconds=0)

    legs = [search([topic], "what swims", find_embedder=lambda: embedder).legs for _ in range(3)]

    assert legs == [("keyword", "dense (2 of 3 chunks)"), *[("keyword", "dense")] * 2]


@pytest.mark.parametrize("vectors", [[], [[0.0]], [[float("nan")]]], ids=["none", "zero", "NaN"])
def test_a_model_without_usable_vectors_leaves_it_to_the_vectors_of_words(
    zoo: Path, vectors: list[list[float]]
) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return vectors * (len(texts) if texts != ["large tusks"] else 1)

    if not vectors:
        search(
            [zoo], "large tusks", find_embedder=lambda: Embedder(model="m", embed=HashingModel())
        )
    found = search([zoo], "large tusks", find_embedder=lambda: Embedder(model="m", embed=embed))
    assert found.hits == search([zoo], "large tusks").hits


def test_what_has_the_words_is_embedded_first(tmp_path: Path) -> None:
    files = {f"{number}.md": f"Page {number} on birds.\n" for number in range(9)}
    topic = make_topic(tmp_path, "topic-sea", {**files, "z.md": "The walrus has tusks.\n"})
    embedder = Embedder(model="m", embed=HashingModel(), batch=1, search_seconds=0)

    found = search([topic], "tusks of the walrus", find_embedder=lambda: embedder)

    assert [(hit.path, hit.cosine is None) for hit in found.hits] == [("z.md", False)]


def test_a_topic_that_is_gone_is_left_out_unless_it_is_the_only_one(
    zoo: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "topic-gone"

    assert search([gone, zoo], "tusks") == search([zoo], "tusks")
    assert [path.name for path in (tmp_path / ".index").iterdir()] == ["topics.sqlite3"]
    with pytest.raises(DocumentsGoneError):
        search([gone], "tusks")


def test_a_topic_that_cannot_be_listed_hides_no_other(zoo: Path, tmp_path: Path) -> None:
    """As when its directory may not be read."""
    other = make_topic(tmp_path, "topic-other", {"a.md": "The tusks.\n"})
    expected = search([zoo], "tusks").hits

    class Unlistable(TopicDocuments):
        def list(self) -> Iterator[File]:
            raise PermissionError

    unlistable, tusks = folder(other, kind=Unlistable), parse_question("tusks")
    assert search_documents([unlistable, folder(zoo)], tusks).hits == expected
    with pytest.raises(DocumentsGoneError):
        search_documents([unlistable], tusks)


def test_without_a_topic_no_scope_is_missing(tmp_path: Path) -> None:
    """None that is asked for, or none that is still there."""
    gone = [tmp_path / "topic-a", tmp_path / "topic-b"]
    found = [search([], "tusks"), search(gone, "tusks")]
    assert [(result.hits, result.is_covered) for result in found] == [((), True)] * 2


def test_a_topic_of_one_passage_is_ranked_with_a_large_one(tmp_path: Path) -> None:
    """FTS5 gives a word that half of a topic has a weight of almost nothing."""
    convention = "Changelog entries go to docs/unreleased.\n"
    pages = {
        f"{number}.md": f"# Page {number}\n\nThe {'changelog' if number < 9 else 'text'} is long.\n"
        for number in range(60)
    }
    small = make_topic(tmp_path, "small", {"convention.md": convention})
    large = make_topic(tmp_path, "large", pages)

    assert search([large, small], "unreleased changelog entries").hits[0].topic == "small"


def test_of_a_pasted_traceback_the_line_that_says_it_is_found(tmp_path: Path) -> None:
    frames = "".join(f'  File "/home/jo/venv{n}.py", line {n}, in frob{n}\n' for n in range(9))
    message = "GateError: no walrus fits; refer to the tusk mode, which opens wider gates."
    pages = {f"{n}.md": f"# Home {n}\n\nA file and a line.\n" for n in range(9)}
    answer = "# Tusk mode\n\nIn this mode, gates open wider, so that a walrus fits.\n"
    topic = make_topic(tmp_path, "zoo", {**pages, "modes.md": answer})

    hit = search([topic], f"Traceback (most recent call last):\n{frames}{message}").hits[0]

    assert hit.path == "modes.md"


PAGES = {
    "approvals.md": "# Approvals\n\nA change needs two approvals: zwei Freigaben, deux accords, dos"
    " aprobaciones, due approvazioni.\n",
    "tokens.md": "# Tokens\n\nA token expires after a day: Ablauf, expiration du jeton, caducidad,"
    " scadenza.\n",
    "many.md": "# Many things\n\nHow many, how much and how long: viele, combien, muchas, quante."
    " What is possible, why it does, the difference between all of these, and how often.\n",
}


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("how many approvals does a change need", "approvals.md"),
        ("how long is it until a token expires", "tokens.md"),
        ("can I change it without approvals?", "approvals.md"),
        ("is it possible that a token never expires", "tokens.md"),
        ("why does my token expire", "tokens.md"),
        ("what are approvals used for", "approvals.md"),
        ("wie viele Freigaben brauche ich für das", "approvals.md"),
        ("wann ist der Ablauf von dem token", "tokens.md"),
        ("combien faut-il d'accords pour ce change", "approvals.md"),
        ("pourquoi est-ce que le jeton a une expiration", "tokens.md"),
        ("cuántas aprobaciones son para el cambio", "approvals.md"),
        ("por qué es así la caducidad de mi token", "tokens.md"),
        ("quante approvazioni ci sono per questo", "approvals.md"),
        ("perché è questa la scadenza del token", "tokens.md"),
    ],
)
def test_the_words_in_which_a_question_is_put_find_no_other_page(
    tmp_path: Path, question: str, page: str
) -> None:
    topic = make_topic(tmp_path, "topic-forms", PAGES)

    assert search([topic], question).hits[0].path == page


@pytest.mark.parametrize(
    "asked", ["PEP 572", "pep-0572", "PEP572 walrus", "what does PEP 0572 say"]
)
def test_a_document_of_a_series_is_found_by_its_number(asked: str, tmp_path: Path) -> None:
    other = (
        "PEP: 577\nTitle: Others\n\nRationale\n=========\n\nPEP 572, the walrus, and PEP 572 say.\n"
    )
    files = {
        "pep-0572.rst": "PEP: 572\nTitle: Walrus\nStatus: Withdrawn\n\nWhy\n===\n\nText.\n",
        **{f"pep-0{n}.rst": other.replace("577", str(n)) for n in range(577, 583)},
    }
    hits = search([make_topic(tmp_path, "peps", files)], asked).hits
    assert hits[0].path == "pep-0572.rst"
    assert hits[0].title.startswith("PEP 572: Walrus (Withdrawn)")


def test_a_page_is_not_found_by_where_its_links_lead(tmp_path: Path) -> None:
    files = {"a.md": "# A\n\n[top](#travel) [b](./travel.md)\n", "b.md": "# B\n\nWe travel.\n"}
    assert [hit.path for hit in search([make_topic(tmp_path, "t", files)], "travel").hits] == [
        "b.md"
    ]
