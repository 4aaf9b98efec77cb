"""Fit the weights of ranking.py on the tune sets of known_items.py.

    python bench/fit_reranking.py        needs numpy; some minutes

A question's candidates compete for it: the softmax of their scores should give those
that answer it the most. The score is the logarithm of BM25's and a weighted sum of the
features; no weight is below 0. Every set counts the same whatever its size, but
headings twice: that is where least is gained over others. Printed are the weights,
and hit@1 and hit@5 with those and with the present ones. What the dense leg counts is
left to fusing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from known_items import CACHE, Query, build_set, folder

from llm_kb.search.features import Features, find_best, find_features
from llm_kb.search.index.index import Index, open_index
from llm_kb.search.ranking import CANDIDATES, LEAST, PER_FILE, WEIGHTS, spread
from llm_kb.search.search import find_candidates

IMPORTANCE = {"headings-tune": 2.0, "links-tune": 1.0, "code-tune": 1.0}
STEPS = 400
RIDGE, LASSO = 1e-4, 1e-3


class Case(NamedTuple):
    """A question: the features of its candidates, which of them answer, and their files."""

    features: np.ndarray
    """A row a candidate: the logarithm of its score first."""
    answers: np.ndarray
    paths: Sequence[str]


def read_case(index: Index, query: Query, cosines: Mapping[int, float]) -> Case | None:
    candidates = find_candidates(index, query.text, cosines)
    hits = candidates.hits
    if not hits:
        return None
    best = find_best(hits)
    found = find_features(hits, candidates.question)
    return Case(
        np.array(
            [
                [np.log(max(hit.bm25 / best, LEAST)), *features]
                for hit, features in zip(hits, found, strict=True)
            ]
        ),
        np.array([query.is_answered_by(hit.path, hit.first_line, hit.last_line) for hit in hits]),
        [hit.path for hit in hits],
    )


def fit(sets: dict[str, list[Case | None]]) -> np.ndarray:
    """Maximize the likelihood of the answers by Adam, projected on weights from 0."""
    cases = [
        (IMPORTANCE[name] / len(found), case)
        for name, found in sets.items()
        for case in found
        if case and case.answers.any()
    ]
    rows = np.zeros((len(cases), CANDIDATES, 1 + len(Features._fields)))
    absent = np.full((len(cases), CANDIDATES), -1e9)
    wrong = np.full((len(cases), CANDIDATES), -1e9)
    for number, (_, case) in enumerate(cases):
        count = len(case.answers)
        rows[number, :count] = case.features
        absent[number, :count] = 0
        wrong[number, :count][case.answers] = 0
    share = np.array([importance for importance, _ in cases])
    share /= share.sum()
    weights = np.full(rows.shape[2], 0.1)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        scores = rows @ weights + absent
        # By how much the chance of each candidate differs, were the answer known.
        surprise = softmax(scores + wrong) - softmax(scores)
        gradient = np.einsum("q,qc,qcf->f", share, surprise, rows)
        gradient -= 2 * RIDGE * weights + LASSO * np.sign(weights)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = 0.1 if step < 0.7 * STEPS else 0.02
        moved = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights = np.maximum(weights + rate * moved, 0)
    return weights


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def find_ranks(cases: Sequence[Case | None], score: Callable[[Case], np.ndarray]) -> np.ndarray:
    """Return the rank of the first answer of each question, 99 where none is among ten."""
    ranks = []
    for case in cases:
        order = [int(at) for at in np.argsort(-score(case), kind="stable")] if case else []
        paths = case.paths if case else ()
        first = spread(order, paths.__getitem__, per_group=PER_FILE, limit=10)
        ranks.append(next((n for n, at in enumerate(first, 1) if case and case.answers[at]), 99))
    return np.array(ranks)


def measure(cases: Sequence[Case | None], weights: np.ndarray) -> str:
    ranks = find_ranks(cases, lambda case: case.features @ weights)
    return " / ".join(f"{100 * (ranks <= k).mean():.1f}" for k in (1, 5))


def main() -> None:
    sets: dict[str, list[Case | None]] = {}
    for name in IMPORTANCE:
        directory = CACHE / "sets" / name
        queries = build_set(name, directory)
        with open_index(folder(directory)) as index:
            index.update()
            sets[name] = [read_case(index, query, {}) for query in queries]
    fitted = fit(sets)
    fitted /= fitted[0]
    present = np.array([1.0, *WEIGHTS])
    for name, *values in zip(Features._fields, fitted[1:], present[1:], strict=True):
        if not name.endswith("dense"):
            print(f"{name:12} {values[0]:.2f}   now {values[1]:.2f}")
    for name, cases in sets.items():
        print(f"{name:16} {measure(cases, fitted)}   now {measure(cases, present)}")


if __name__ == "__main__":
    main()
