"""What it costs and brings that documentation ranks above code.

    python bench/roles.py

Questions whose answers are in documentation (headings) and in code (docstrings) are
asked of one index of both; the sets are those of known_items.py. Printed is hit@5 of
either kind, and of both with the same weight, for some factors of `DOCS_WEIGHT`; the
first tree is for choosing, the second for reporting. Keywords alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from known_items import CACHE, Query, build_set

from llm_kb.references import ask as roles
from llm_kb.references.ask import LIMIT, SPARE
from llm_kb.search.index.index import open_index
from llm_kb.search.search import Hit, find_pool, rank_hits

TREES = {
    "tune": ("headings-small-tune", "code-small-tune"),
    "report": ("headings-small", "code-small"),
}
FACTORS = (1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3)


def hit_at_5(found: Sequence[tuple[Query, Sequence[Hit]]], factor: float) -> float:
    right = 0
    for query, hits in found:
        with patch.object(roles, "DOCS_WEIGHT", factor):
            ranked = roles.rank_by_role(hits, lambda hit: roles.infer_role(hit.path))
        right += any(query.is_answered_by(h.path, h.first_line, h.last_line) for h in ranked[:5])
    return 100 * right / len(found)


def main() -> None:
    for tree, names in TREES.items():
        directory = CACHE / "roles" / tree
        queries = {name: build_set(name, directory / name) for name in names}
        found = {}
        with open_index(directory) as index:
            print(f"\n{tree}: {index.update().chunks} chunks\n")
            for name in names:
                questions = [q._replace(path=f"{name}/{q.path}") for q in queries[name]]
                found[name] = [
                    (q, rank_hits(find_pool(index, q.text, {}), LIMIT + SPARE)) for q in questions
                ]
        print(f"| factor | {' | '.join(names)} | mean |\n|---|---|---|---|")
        for factor in FACTORS:
            values = [hit_at_5(hits, factor) for hits in found.values()]
            cells = [f"{value:.1f}" for value in [*values, sum(values) / len(values)]]
            print(f"| {factor} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
