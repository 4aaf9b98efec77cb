"""What it costs and brings that documentation ranks above code.

    python bench/roles.py

Questions whose answers are in documentation (headings) and in code (docstrings) are
asked of one index of both; the sets are those of known_items.py. No docstring names code, so
the second kind shows the most that can be lost. Printed is hit@5 of either kind, with `COSTS`
times some factors; the first tree is for choosing, the second for reporting. Keywords alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from known_items import CACHE, Query, build_set, folder

from llm_kb.search.index.index import open_index
from llm_kb.search.ranking import Candidates, rank
from llm_kb.search.search import find_candidates

TREES = {
    "tune": ("headings-small-tune", "code-small-tune"),
    "report": ("headings-small", "code-small"),
}
FACTORS = (0.0, 0.5, 1.0, 2.0)


def hit_at_5(found: Sequence[tuple[Query, Candidates]], factor: float) -> float:
    right = 0
    for query, candidates in found:
        hits = [hit._replace(prior=factor * hit.prior) for hit in candidates.hits]
        ranked = rank(replace(candidates, hits=hits), 5)
        right += any(query.is_answered_by(h.path, h.first_line, h.last_line) for h in ranked)
    return 100 * right / len(found)


def main() -> None:
    for tree, names in TREES.items():
        directory = CACHE / "roles" / tree
        queries = {name: build_set(name, directory / name) for name in names}
        found = {}
        with open_index(folder(directory)) as index:
            print(f"\n{tree}: {index.update().chunks} chunks\n")
            for name in names:
                questions = [q._replace(path=f"{name}/{q.path}") for q in queries[name]]
                found[name] = [(q, find_candidates(index, q.text, {})) for q in questions]
        print(f"| factor | {' | '.join(names)} | mean |\n|---|---|---|---|")
        for factor in FACTORS:
            values = [hit_at_5(each, factor) for each in found.values()]
            cells = [f"{value:.1f}" for value in [*values, sum(values) / len(values)]]
            print(f"| {factor} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
