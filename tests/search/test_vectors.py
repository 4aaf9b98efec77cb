"""Dense vectors: stored by content, one model at a time, and compared exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import inf, sqrt
from operator import mul
from pathlib import Path

import pytest

from llm_kb.search.index.index import (
    Embed,
    Embedder,
    EmbeddingError,
    Index,
    find_missing,
    open_index,
    rank_by_vector,
    update_vectors,
)
from llm_kb.search.index.update import Progress
from tests.search.embedding import HashingModel
from tests.search.folders import folder

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
    with open_index(topic.parent / "index.sqlite3") as opened:
        opened.update(folder(topic))
        yield opened


def embed_missing(
    index: Index,
    name: str,
    model: Embed,
    *,
    batch: int = 32,
    seconds: float = inf,
    first: Sequence[int] = (),
    progress: Progress | None = None,
) -> None:
    embedder = Embedder(model=name, embed=model, batch=batch)
    update_vectors(index, embedder, seconds=seconds, first=first, progress=progress)


def nearest(index: Index, model: HashingModel, text: str, name: str = "m") -> str:
    (id_,) = rank_by_vector(index, name, model.embed(text), 1)
    return index.read_hits({}, {id_: 1.0})[0].path


def test_the_nearest_chunk_comes_first(index: Index) -> None:
    model = HashingModel()

    embed_missing(index, "m", model)
    assert find_missing(index, "m") == []
    assert [nearest(index, model, f"the {name} lives") for name in ANIMALS] == [
        f"{name}.md" for name in ANIMALS
    ]


def test_only_what_is_new_is_embedded(index: Index, topic: Path) -> None:
    embed_missing(index, "m", HashingModel())
    (topic / "walrus.md").rename(topic / "moved.md")
    (topic / "new.md").write_text("A stork.\n")
    index.update(folder(topic))
    model = HashingModel()

    embed_missing(index, "m", model)
    assert find_missing(index, "m") == []
    assert model.texts == ["\n\nA stork.\n"]
    assert nearest(index, model, "walrus lives here") == "moved.md"


def test_equal_chunks_are_embedded_once_and_found_each(index: Index, topic: Path) -> None:
    (topic / "copy.md").write_text((topic / "walrus.md").read_text())
    index.update(folder(topic))
    model = HashingModel()
    embed_missing(index, "m", model)

    assert len(model.texts) == len(ANIMALS)
    found = index.read_hits({}, rank_by_vector(index, "m", model.embed("walrus"), 2))
    assert {hit.path for hit in found} == {"copy.md", "walrus.md"}


def test_an_interrupted_run_goes_on_where_it_was(index: Index) -> None:
    with pytest.raises(KeyboardInterrupt):
        embed_missing(index, "m", HashingModel(fail_after=2), batch=2)
    model = HashingModel()
    steps: list[tuple[int, int]] = []

    assert len(find_missing(index, "m")) == len(ANIMALS) - 4
    embed_missing(index, "m", model, batch=2, progress=lambda *step: steps.append(step))
    assert find_missing(index, "m") == []
    assert len(model.texts) == len(ANIMALS) - 4
    assert steps == [(2, 4), (4, 4)]


def test_what_there_is_no_time_for_is_left_and_counted(index: Index) -> None:
    model = HashingModel()
    *_, last = find_missing(index, "m")

    embed_missing(index, "m", model, batch=3, seconds=0.0, first=[last])

    found = rank_by_vector(index, "m", model.embed("walrus"), 100)
    assert len(found) == 3
    assert last in found


def test_of_equal_chunks_the_one_that_should_come_first_is_embedded(
    index: Index, topic: Path
) -> None:
    (topic / "zoo").mkdir()
    (topic / "zoo" / "salmon.md").write_text((topic / "salmon.md").read_text())
    index.update(folder(topic))
    (copy,) = index.connection.execute("SELECT max(id) FROM chunks").fetchone()

    assert find_missing(index, "m", [copy])[0] == copy
    assert len(find_missing(index, "m")) == len(ANIMALS)


def test_models_are_never_mixed(index: Index) -> None:
    small, large = HashingModel(64), HashingModel(128)
    embed_missing(index, "small", small)
    embed_missing(index, "large", large)

    assert nearest(index, small, "otter", "small") == nearest(index, large, "otter", "large")
    assert rank_by_vector(index, "other", small.embed("otter"), 3) == {}
    with pytest.raises(EmbeddingError, match="'small' returned 128 numbers where it returned 64"):
        rank_by_vector(index, "small", large.embed("otter"), 3)


def test_a_model_that_changes_its_dimensions_is_an_error(index: Index, topic: Path) -> None:
    embed_missing(index, "m", HashingModel(64))
    (topic / "new.md").write_text("A stork.\n")
    index.update(folder(topic))

    with pytest.raises(EmbeddingError, match="returned 32 numbers where it returned 64 before"):
        embed_missing(index, "m", HashingModel(32))


def test_a_model_that_returns_too_few_vectors_is_an_error(index: Index) -> None:
    with pytest.raises(EmbeddingError, match="returned 1 vectors for 8 texts"):
        embed_missing(index, "m", lambda _: [[1.0, 2.0]])


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")], ids=str)
def test_vectors_without_a_direction_are_never_found_and_not_asked_for_again(
    index: Index, topic: Path, bad: float
) -> None:
    (topic / "bad.md").write_text("BAD\n")
    index.update(folder(topic))
    model = HashingModel()
    embed_missing(
        index, "m", lambda texts: [[bad] * 64 if "BAD" in t else model.embed(t) for t in texts]
    )

    assert find_missing(index, "m") == []
    assert len(rank_by_vector(index, "m", model.embed("walrus"), 100)) == len(ANIMALS)
    assert rank_by_vector(index, "m", [bad] * 64, 10) == {}


def test_what_is_gone_is_not_found(index: Index, topic: Path) -> None:
    model = HashingModel()
    embed_missing(index, "m", model)
    assert nearest(index, model, "walrus lives") == "walrus.md"

    (topic / "walrus.md").unlink()
    index.update(folder(topic))

    assert nearest(index, model, "walrus lives") != "walrus.md"
    assert len(rank_by_vector(index, "m", model.embed("walrus"), 100)) == len(ANIMALS) - 1


def test_the_order_is_that_of_the_exact_cosines(index: Index, topic: Path) -> None:
    chance = random.Random(1)
    made = {name: [chance.gauss(0, 1) for _ in range(96)] for name in ANIMALS}
    embed_missing(
        index, "m", lambda texts: [next(made[n] for n in ANIMALS if n in text) for text in texts]
    )
    query = [chance.gauss(0, 1) for _ in range(96)]

    found = rank_by_vector(index, "m", query, 100)

    expected = sorted(ANIMALS, key=lambda name: -cosine(made[name], query))
    assert [hit.path for hit in index.read_hits({}, found)] == [f"{n}.md" for n in expected]
    assert list(found.values()) == pytest.approx(
        [cosine(made[name], query) for name in expected], abs=1e-6
    )


def cosine(one: list[float], other: list[float]) -> float:
    return float(
        sum(map(mul, one, other)) / sqrt(sum(map(mul, one, one)) * sum(map(mul, other, other)))
    )
