"""Choose what the dense leg counts in ranking.py, on the tune sets of known_items.py.

    python bench/fusing.py        needs numpy and what `retrieval.py --dense` needs

Tried are weights of BM25's score, of a chunk's reciprocal rank and of the best one in
its file; the other weights stay. Printed is a table of the best few: hit@1, hit@5,
hit@10 and MRR@10 of each set and the least that any of these gains over BM25 alone,
by which they are chosen: nowhere shall the dense leg do harm. The first two rows are
BM25 alone, and both legs fused by rank alone (k = 60).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from fit_reranking import IMPORTANCE, Case, find_ranks, read_case
from known_items import CACHE, build_set, folder
from retrieval import MODEL, load_embedder

from llm_kb.search.features import DENSE_K
from llm_kb.search.index.index import open_index
from llm_kb.search.index.vectors import rank_by_vector, update_vectors
from llm_kb.search.ranking import CANDIDATES, LEAST, WEIGHTS

SCORE = (1.0, 0.7, 0.5, 0.4)
DENSE = (0.2, 0.35, 0.5, 0.7)
FILE_DENSE = (0.0, 0.15, 0.3, 0.45)
SHOWN = 8
RRF_K = 60

Score = Callable[[Case], np.ndarray]


class Question(NamedTuple):
    """What is to be ranked for one: by its words alone, and with the dense leg."""

    alone: Case | None
    hybrid: Case | None


def read_questions(name: str) -> list[Question]:
    directory = CACHE / "sets" / name
    embedder = load_embedder()
    questions = []
    queries = build_set(name, directory)
    with open_index(folder(directory)) as index:
        index.update()
        update_vectors(index, MODEL, embedder.embed)
        for query in queries:
            (vector,) = embedder.embed([query.text])
            cosines = rank_by_vector(index, MODEL, vector, CANDIDATES)
            questions.append(
                Question(read_case(index, query, {}), read_case(index, query, cosines))
            )
    return questions


def weigh(score: float, dense: float, file_dense: float) -> Score:
    weights = np.array([score, *WEIGHTS._replace(dense=dense, file_dense=file_dense)])
    return lambda case: case.features @ weights


def fuse_ranks(case: Case) -> np.ndarray:
    """Score by rank alone: in the order of the keyword leg, and in the dense one."""
    matched = case.features[:, 0] > np.log(LEAST)
    order = np.argsort(-np.where(matched, weigh(1, 0, 0)(case), -np.inf), kind="stable")
    keyword = np.empty(len(order))
    keyword[order] = 1 / (RRF_K + 1 + np.arange(len(order)))
    reciprocal = case.features[:, -2]
    ranks = (DENSE_K + 1) / np.maximum(reciprocal, 1e-9) - DENSE_K
    return np.where(matched, keyword, 0) + np.where(reciprocal > 0, 1 / (RRF_K + ranks), 0)


def measure(cases: Sequence[Case | None], score: Score) -> np.ndarray:
    """Return hit@1, hit@5, hit@10 and MRR@10, in percent."""
    found = find_ranks(cases, score)
    reciprocal = np.where(found <= 10, 1 / found, 0)
    return 100 * np.array([*((found <= k).mean() for k in (1, 5, 10)), reciprocal.mean()])


def show(title: str, figures: np.ndarray, baseline: np.ndarray) -> None:
    sets = [" / ".join(f"{value:.1f}" for value in part) for part in figures.reshape(-1, 4)]
    print(f"| {title} | {' | '.join(sets)} | {(figures - baseline).min():+.1f} |")


def main() -> None:
    sets = [read_questions(name) for name in IMPORTANCE]

    def measure_all(score: Score) -> np.ndarray:
        return np.concatenate([measure([q.hybrid for q in found], score) for found in sets])

    alone = weigh(1, 0, 0)
    baseline = np.concatenate([measure([q.alone for q in found], alone) for found in sets])
    print(f"| score, dense, file | {' | '.join(IMPORTANCE)} | least gain |")
    print("|---|" + "---|" * (len(IMPORTANCE) + 1))
    show("BM25 alone", baseline, baseline)
    show("ranks alone", measure_all(fuse_ranks), baseline)
    tried = [
        (weights, measure_all(weigh(*weights))) for weights in product(SCORE, DENSE, FILE_DENSE)
    ]
    tried.sort(key=lambda pair: -(pair[1] - baseline).min())
    for weights, figures in tried[:SHOWN]:
        show(", ".join(map(str, weights)), figures, baseline)


if __name__ == "__main__":
    main()
