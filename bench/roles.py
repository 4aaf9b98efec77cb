"""What it costs and brings that documentation ranks above code.

    python bench/roles.py

Questions whose answers are in documentation (headings) and in code (docstrings) are
asked of one index of both; the sets are those of known_items.py. Printed is hit@5 of
either kind, and of both with the same weight, for some values of `DOCS_PLACES`; the
first tree is for choosing, the second for reporting. Keywords alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from known_items import CACHE, Query, build_set, folder

from llm_kb.references import ask as roles
from llm_kb.references.ask import LIMIT, SPARE
from llm_kb.search.hits import Hit
from llm_kb.search.index.index import open_index
from llm_kb.search.ranking import rank
from llm_kb.search.search import find_candidates

TREES = {
    "tune": ("headings-small-tune", "code-small-tune"),
    "report": ("headings-small", "code-small"),
}
PLACES = (0.0, 0.5, 1.5, 2.5, 3.5, 5.5)


def hit_at_5(found: Sequence[tuple[Query, Sequence[Hit]]], places: float) -> float:
    right = 0
    for query, hits in found:
        with patch.object(roles, "DOCS_PLACES", places):
            ranked = roles.rank_by_role(hits, lambda hit: roles.infer_role(hit.path))
        right += any(query.is_answered_by(h.path, h.first_line, h.last_line) for h in ranked[:5])
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
                found[name] = [
                    (q, rank(find_candidates(index, q.text, {}), LIMIT + SPARE)) for q in questions
                ]
        print(f"| places | {' | '.join(names)} | mean |\n|---|---|---|---|")
        for places in PLACES:
            values = [hit_at_5(hits, places) for hits in found.values()]
            cells = [f"{value:.1f}" for value in [*values, sum(values) / len(values)]]
            print(f"| {places} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
