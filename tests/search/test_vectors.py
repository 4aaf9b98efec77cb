"""Dense vectors: kept by content, never mixed, exact where it counts."""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from math import sqrt
from operator import mul
from pathlib import Path

import pytest

from llm_kb.search.index import vectors
from llm_kb.search.index.database import IndexUnusableError
from llm_kb.search.index.index import Index, open_index
from llm_kb.search.index.packed_vectors import discard_packed, packed_path
from llm_kb.search.index.vectors import EmbeddingError, rank_by_vector, update_vectors
from tests.search.embedding import HashingModel

ANIMALS = ["walrus", "penguin", "giraffe", "otter", "badger", "heron", "lizard", "salmon"]


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    directory = tmp_path / "references" / "topic-x"
    directory.mkdir(parents=True)
    for name in ANIMALS:
        (directory / f"{name}.md").write_text(f"The {name} lives here, and no other.\n")
    return directory


@pytest.fixture
def index(topic: Path) -> Iterator[Index]:
    with open_index(topic) as opened:
        opened.update()
        yield opened


def nearest(index: Index, model: HashingModel, text: str, name: str = "m") -> str:
    (id_,) = rank_by_vector(index, name, model.embed(text), 1)
    return index.read_chunks([id_])[id_].path


def test_the_nearest_chunk_comes_first(index: Index) -> None:
    model = HashingModel()

    assert update_vectors(index, "m", model) == 0
    assert [nearest(index, model, f"the {name} lives") for name in ANIMALS] == [
        f"{name}.md" for name in ANIMALS
    ]


def test_only_what_is_new_is_embedded(index: Index, topic: Path) -> None:
    update_vectors(index, "m", HashingModel())
    (topic / "walrus.md").rename(topic / "moved.md")
    (topic / "new.md").write_text("A stork.\n")
    index.update()
    model = HashingModel()

    assert update_vectors(index, "m", model) == 0
    assert model.texts == ["\n\nA stork.\n"]
    assert nearest(index, model, "walrus lives here") == "moved.md"


def test_equal_chunks_are_embedded_once_and_found_each(index: Index, topic: Path) -> None:
    (topic / "copy.md").write_text((topic / "walrus.md").read_text())
    index.update()
    model = HashingModel()
    update_vectors(index, "m", model)

    assert len(model.texts) == len(ANIMALS)
    found = index.read_chunks(rank_by_vector(index, "m", model.embed("walrus"), 2)).values()
    assert {chunk.path for chunk in found} == {"copy.md", "walrus.md"}


def test_an_interrupted_run_goes_on_where_it_was(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "BATCH", 2)
    with pytest.raises(KeyboardInterrupt):
        update_vectors(index, "m", HashingModel(fail_after=2))
    model = HashingModel()
    steps: list[tuple[int, int]] = []

    assert len(index.vectors.find_missing("m")) == len(ANIMALS) - 4
    assert update_vectors(index, "m", model, progress=lambda *step: steps.append(step)) == 0
    assert len(model.texts) == len(ANIMALS) - 4
    assert steps == [(2, 4), (4, 4)]


def test_a_limit_leaves_the_rest_and_says_how_many(index: Index) -> None:
    model = HashingModel()

    assert update_vectors(index, "m", model, limit=3) == len(ANIMALS) - 3
    assert len(rank_by_vector(index, "m", model.embed("walrus"), 100)) == 3


def test_models_are_never_mixed(index: Index) -> None:
    small, large = HashingModel(64), HashingModel(128)
    update_vectors(index, "small", small)
    update_vectors(index, "large", large)

    assert nearest(index, small, "otter", "small") == nearest(index, large, "otter", "large")
    assert rank_by_vector(index, "other", small.embed("otter"), 3) == {}
    with pytest.raises(EmbeddingError, match="'small' returned 128 numbers where it returned 64"):
        rank_by_vector(index, "small", large.embed("otter"), 3)


def test_a_model_that_changes_its_dimensions_is_an_error(index: Index, topic: Path) -> None:
    update_vectors(index, "m", HashingModel(64))
    (topic / "new.md").write_text("A stork.\n")
    index.update()

    with pytest.raises(EmbeddingError, match="returned 32 numbers where it returned 64 before"):
        update_vectors(index, "m", HashingModel(32))


def test_a_model_that_returns_too_few_vectors_is_an_error(index: Index) -> None:
    with pytest.raises(EmbeddingError, match="returned 1 vectors for 8 texts"):
        update_vectors(index, "m", lambda _: [[1.0, 2.0]])


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")], ids=str)
def test_vectors_without_a_direction_are_never_found_and_not_asked_for_again(
    index: Index, topic: Path, bad: float
) -> None:
    (topic / "bad.md").write_text("BAD\n")
    index.update()
    model = HashingModel()
    update_vectors(
        index, "m", lambda texts: [[bad] * 64 if "BAD" in t else model.embed(t) for t in texts]
    )

    assert index.vectors.find_missing("m") == []
    assert len(rank_by_vector(index, "m", model.embed("walrus"), 100)) == len(ANIMALS)
    assert rank_by_vector(index, "m", [bad] * 64, 10) == {}


def test_the_packed_file_follows_the_index(index: Index, topic: Path) -> None:
    model = HashingModel()
    update_vectors(index, "m", model)
    assert nearest(index, model, "walrus lives") == "walrus.md"
    before = packed_path(index.database, "m").read_bytes()
    assert nearest(index, model, "otter lives") == "otter.md"
    assert packed_path(index.database, "m").read_bytes() == before

    (topic / "walrus.md").unlink()
    index.update()

    assert nearest(index, model, "walrus lives") != "walrus.md"
    assert packed_path(index.database, "m").read_bytes() != before


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"short", id="short"),
        pytest.param(lambda data: b"x" * 5000, id="other"),
        pytest.param(lambda data: data[: len(data) // 2], id="half"),
        pytest.param(lambda data: data[:-1], id="a byte short"),
        pytest.param(lambda data: data + b"x", id="a byte long"),
        pytest.param(lambda data: data[:80] + bytes(len(data) - 80), id="zeros"),
        pytest.param(lambda data: data[:64] + bytes([255] * 8) + data[72:], id="negative"),
    ],
)
def test_a_damaged_packed_file_is_made_anew(index: Index, damage: Callable[[bytes], bytes]) -> None:
    model = HashingModel()
    update_vectors(index, "m", model)
    assert nearest(index, model, "otter lives") == "otter.md"
    path = packed_path(index.database, "m")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))

    assert nearest(index, model, "otter lives") == "otter.md"
    assert path.read_bytes() == whole


def test_a_packed_file_that_cannot_be_made_is_an_error_that_names_it(index: Index) -> None:
    model = HashingModel()
    update_vectors(index, "m", model)
    path = packed_path(index.database, "m")
    path.mkdir()

    with pytest.raises(IndexUnusableError, match=re.escape(str(path))):
        nearest(index, model, "otter lives")


def test_nothing_of_packed_files_is_left(index: Index) -> None:
    model = HashingModel()
    update_vectors(index, "m", model)
    path = packed_path(index.database, "m")
    abandoned, in_the_making = (path.with_name(f"{path.name}.{pid}.1") for pid in (1, 2))
    abandoned.write_bytes(b"")
    os.utime(abandoned, (1, 1))
    in_the_making.write_bytes(b"")
    other = path.with_name("topic-other.0123456789ab.vectors")
    other.write_bytes(b"")

    nearest(index, model, "otter lives")
    assert (path.exists(), abandoned.exists(), in_the_making.exists()) == (True, False, True)
    discard_packed(index.database)
    assert [p.name for p in path.parent.iterdir() if ".vectors" in p.name] == [other.name]


def test_a_packed_file_of_an_index_that_was_rebuilt_is_not_used(topic: Path) -> None:
    model = HashingModel()
    for name in ("walrus", "otter"):
        with open_index(topic) as index:
            index.update()
            update_vectors(index, "m", model)
            assert nearest(index, model, f"{name} lives") == f"{name}.md"
        index.database.unlink()
        (topic / f"{name}.md").write_text("Nobody at all is in this place today.\n")


def test_sign_bits_find_what_exact_cosines_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "CANDIDATES", 120)
    chance = random.Random(1)
    made: dict[str, list[float]] = {}
    directory = tmp_path / "topic-many"
    directory.mkdir()
    for number in range(600):
        text = f"Number {number}.\n"
        (directory / f"{number}.md").write_text(text)
        made[f"\n\n{text}"] = [chance.gauss(0, 1) for _ in range(96)]
    with open_index(directory) as index:
        index.update()
        update_vectors(index, "m", lambda texts: [made[text] for text in texts])
        read = index.read_chunks(range(1, 601))
        by_id = {id_: made[f"\n\n{chunk.text}"] for id_, chunk in read.items()}
        shared = 0
        for target in range(1, 601, 20):
            query = [number + chance.gauss(0, 0.5) for number in by_id[target]]
            exact = sorted(by_id, key=lambda id_: -cosine(by_id[id_], query))[:10]
            found = list(rank_by_vector(index, "m", query, 10))
            assert found[0] == exact[0] == target
            shared += len(set(found) & set(exact))
    assert shared > 0.8 * 300


def cosine(one: list[float], other: list[float]) -> float:
    return float(sum(map(mul, one, other)) / sqrt(sum(map(mul, one, one))))


def test_numpy_ranks_the_same(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy", reason="the extra llm-kb[fast]")
    model = HashingModel()
    update_vectors(index, "m", model)
    assert "numpy" in sys.modules
    fast = [rank_by_vector(index, "m", model.embed(name), 3) for name in ANIMALS]
    monkeypatch.setattr(vectors, "_use_numpy", lambda _: False)

    for name, expected in zip(ANIMALS, fast, strict=True):
        found = rank_by_vector(index, "m", model.embed(name), 3)
        assert list(found) == list(expected)
        assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-6)


@pytest.mark.parametrize(
    ("candidates", "limit", "found"),
    [
        (1, 1, ["one b"]),  # of those equally far, all are compared
        (2, 1, ["one b"]),
        (3, 1, ["two"]),
        (4, 1, ["three"]),
        (100, 1, ["three"]),
        (1, 3, ["two", "one b", "one a"]),
        (1, 100, ["three", "two", "one b", "one a"]),
    ],
)
def test_as_many_are_compared_as_candidates_are_wanted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    candidates: int,
    limit: int,
    found: list[str],
) -> None:
    """Each is named by the number of its signs that are not the query's; its cosine grows too."""
    monkeypatch.setattr(vectors, "CANDIDATES", candidates)
    monkeypatch.setattr(vectors, "_use_numpy", lambda _: False)
    made = {
        "one a": [0.1, 1, 1, -0.1],
        "one b": [1, 1, 1, -0.1],
        "two": [1, 0.5, -0.1, -0.1],
        "three": [1, -0.1, -0.1, -0.1],
    }
    directory = tmp_path / "topic-few"
    directory.mkdir()
    for name in made:
        (directory / f"{name}.md").write_text(f"{name}\n")
    with open_index(directory) as index:
        index.update()
        update_vectors(
            index, "m", lambda texts: [made[text.split("\n\n")[1].strip()] for text in texts]
        )
        ids = rank_by_vector(index, "m", [1, 0.1, 0.1, 0.1], limit)
        chunks = index.read_chunks(ids)
    assert [chunks[id_].text.strip() for id_ in ids] == found
