"""Fit the weights of ranking.py on the tune sources, and say what each feature is worth.

    python bench/retrieval/fit.py [--ablate] [--dense]        needs numpy

A question's candidates compete for it: the softmax of their scores should give those that
answer it the most. The score is the logarithm of BM25's and a weighted sum of the features; no
weight is below 0, since a heading that was deleted would else mark down all others. Every kind
of question counts the same, headings twice. `--ablate` leaves out each feature in turn, with the
other weights as they are, and prints what that changes of hit@5. `--dense` fits what the dense
leg counts, the other weights being those of the keywords.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from known_items import Query, build_trees
from measure import documents
from rivals import load_embedder, make_near
from sources import EMBEDDED

from llm_kb.search.features import Features, find_best, find_features
from llm_kb.search.index.index import Index, open_index
from llm_kb.search.question import replace_words
from llm_kb.search.ranking import CANDIDATES, LEAST, PER_FILE, WEIGHTS, spread
from llm_kb.search.search import find_candidates, search

HEADINGS = 2
"""How often the kinds count whose heading was deleted: least is gained over others there."""

STEPS = 200
RIDGE, LASSO = 1e-4, 1e-3
ROOM = 3 * CANDIDATES


class Case(NamedTuple):
    """A question: the features of its candidates, which of them answer, and their files."""

    features: np.ndarray
    """A row a candidate: the logarithm of its score first."""
    answers: np.ndarray
    paths: Sequence[str]


def read_case(index: Index, query: Query, cosines: dict[int, float]) -> Case | None:
    candidates = find_candidates(index, query.text, cosines)
    hits = candidates.hits
    if not hits:
        return None
    best = find_best(hits)
    found = find_features(hits, candidates.question)
    rows = [
        [np.log(max(hit.bm25 / best, LEAST)), *features]
        for hit, features in zip(hits, found, strict=True)
    ]
    answers = [query.is_answered_by(hit.path, hit.first_line, hit.last_line) for hit in hits]
    return Case(np.array(rows), np.array(answers), [hit.path for hit in hits])


def read_cases(split: str, *, dense: bool) -> dict[str, list[Case | None]]:
    """Return the cases of every kind of question."""
    cases: dict[str, list[Case | None]] = {}
    for tree in build_trees(split):
        if dense and tree.directory.name not in EMBEDDED:
            continue
        with open_index(documents(tree.directory)) as index:
            index.update()
            near = make_near(index, load_embedder()) if dense else lambda _: {}
            for kind, queries in tree.questions.items():
                asked = [query._replace(text=correct(index, query.text)) for query in queries]
                found = [read_case(index, query, near(query.text)) for query in asked]
                cases.setdefault(kind, []).extend(found)
    return cases


def correct(index: Index, question: str) -> str:
    """Return a question with the words that a search puts in place of unknown ones."""
    result = search([index.documents], question, max_age=math.inf)
    return replace_words(question, dict(result.replaced))


def fit(kinds: dict[str, list[Case | None]], free: Sequence[bool], start: np.ndarray) -> np.ndarray:
    """Maximize the likelihood of the answers by Adam, projected on weights from 0."""
    cases = [
        ((HEADINGS if kind.startswith("headings") else 1) / len(found), case)
        for kind, found in kinds.items()
        for case in found
        if case and case.answers.any()
    ]
    rows = np.zeros((len(cases), ROOM, len(start)), np.float32)
    absent = np.full((len(cases), ROOM), -1e9, np.float32)
    wrong = np.full((len(cases), ROOM), -1e9, np.float32)
    for number, (_, case) in enumerate(cases):
        count = len(case.answers)
        rows[number, :count] = case.features
        absent[number, :count] = 0
        wrong[number, :count][case.answers] = 0
    share = np.array([importance for importance, _ in cases])
    share /= share.sum()
    weights = start.copy()
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        scores = rows @ weights + absent
        # By how much the chance of each candidate differs, were the answer known.
        surprise = softmax(scores + wrong) - softmax(scores)
        gradient = np.einsum("q,qcf->f", share, np.einsum("qc,qcf->qf", surprise, rows)[:, None])
        gradient -= 2 * RIDGE * weights + LASSO * np.sign(weights)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = 0.1 if step < 0.7 * STEPS else 0.02
        moved = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights = np.where(free, np.maximum(weights + rate * moved, 0), weights)
    return weights


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def find_ranks(cases: Sequence[Case | None], weights: np.ndarray) -> np.ndarray:
    """Return the rank of the first answer of each question, 99 where none is among ten."""
    ranks = []
    for case in cases:
        order = list(np.argsort(-(case.features @ weights), kind="stable")) if case else []
        paths = case.paths if case else ()
        first = spread(order, paths.__getitem__, per_group=PER_FILE, limit=10)
        ranks.append(next((n for n, at in enumerate(first, 1) if case and case.answers[at]), 99))
    return np.array(ranks)


def measure(kinds: dict[str, list[Case | None]], weights: np.ndarray, k: int = 5) -> np.ndarray:
    return np.array([100 * (find_ranks(found, weights) <= k).mean() for found in kinds.values()])


def ablate(kinds: dict[str, list[Case | None]], weights: np.ndarray) -> None:
    """Print what hit@5 of each kind gains and loses where one feature is left out."""
    whole = measure(kinds, weights)
    print(f"\n| without | {' | '.join(kinds)} | mean |\n|---|{'---|' * (len(kinds) + 1)}")
    for number, name in enumerate(Features._fields, 1):
        fewer = weights.copy()
        fewer[number] = 0
        show(name, measure(kinds, fewer) - whole, "{:+.1f}")


def show(title: str, values: np.ndarray, shape: str) -> None:
    cells = " | ".join(shape.format(value) for value in [*values, values.mean()])
    print(f"| {title} | {cells} |", flush=True)


def main(arguments: Sequence[str]) -> None:
    kinds = read_cases("tune", dense="--dense" in arguments)
    present = np.array([1.0, *WEIGHTS])
    dense = np.array([False, *(name == "dense" for name in Features._fields)])
    free = dense if "--dense" in arguments else ~dense
    # Only the order counts: weights are told as shares of that of BM25's score.
    free[0] = "--dense" not in arguments
    fitted = fit(kinds, free, np.where(free, 0.3, present))
    fitted /= fitted[0]
    for name, value, now in zip(Features._fields, fitted[1:], WEIGHTS, strict=True):
        print(f"{name:12} {value:.2f}   now {now:.2f}")
    print(f"\n| weights | {' | '.join(kinds)} | mean |\n|---|{'---|' * (len(kinds) + 1)}")
    show("BM25 alone", measure(kinds, np.eye(len(present))[0]), "{:.1f}")
    show("fitted", measure(kinds, fitted), "{:.1f}")
    show("present", measure(kinds, present), "{:.1f}")
    if "--ablate" in arguments:
        ablate(kinds, present)


if __name__ == "__main__":
    main(sys.argv[1:])
