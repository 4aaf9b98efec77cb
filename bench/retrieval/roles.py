"""What it costs and brings that documentation ranks above code.

    python bench/retrieval/roles.py [--tune]

The words of deleted headings and the first sentences of deleted docstrings are asked of one index
of a project's documentation and its code. No docstring names code, so the second kind shows
the most that can be lost. Printed is hit@5 of either kind with all costs times some factors, as it
is and put as a question that asks for an explanation: "how do I …?", "how does it …?". Keywords
alone; of all projects together.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace

from known_items import Query, build_trees
from measure import documents
from sources import CACHE

from llm_kb.search.index.index import open_index
from llm_kb.search.ranking import Candidates, rank
from llm_kb.search.search import find_candidates

PAIRS = {
    "tune": [
        *(("scrapy-docs", "scrapy"), ("mkdocs", "mkdocs-code"), ("celery-docs", "celery")),
        *(("fastapi", "fastapi-code"), ("typeorm-docs", "typeorm")),
    ],
    "report": [("pytest-docs", "pytest")],
}
FACTORS = (0.0, 0.5, 1.0, 2.0, 4.0)


def hit_at_5(found: Sequence[tuple[Query, Candidates]], factor: float) -> float:
    right = 0
    for query, candidates in found:
        hits = [hit._replace(prior=factor * hit.prior) for hit in candidates.hits]
        ranked = rank(replace(candidates, hits=hits), 5)
        right += any(query.is_answered_by(h.path, h.first_line, h.last_line) for h in ranked)
    return 100 * right / len(found)


def main(arguments: Sequence[str]) -> None:
    split = "tune" if "--tune" in arguments else "report"
    trees = {
        tree.directory.name: tree
        for each in (split, "beside")
        for tree in build_trees(each)
        if tree.directory.parent.name == "held-out"
    }
    found: dict[str, list[tuple[Query, Candidates]]] = {}
    for pair in PAIRS[split]:
        directory = CACHE / "trees" / "roles" / pair[1]
        questions: dict[str, list[Query]] = {}
        for name in pair:
            shutil.copytree(trees[name].directory, directory, dirs_exist_ok=True)
            for kind, queries in trees[name].questions.items():
                kind, opening = (
                    ("docstrings", "how does it")
                    if kind.startswith("code")
                    else ("headings", "how do I")
                )
                asked = [q._replace(text=f"{opening} {q.text.lower()}?") for q in queries]
                questions |= {kind: queries, f"{kind}, as a question": asked}
        with open_index(documents(directory)) as index:
            index.update()
            for kind, queries in questions.items():
                found.setdefault(kind, []).extend(
                    (query, find_candidates(index, query.text, {})) for query in queries
                )
    titles = [f"{kind} ({len(each)})" for kind, each in found.items()]
    print(f"| factor | {' | '.join(titles)} |\n|---|{'---|' * len(titles)}")
    for factor in FACTORS:
        cells = [f"{hit_at_5(each, factor):.1f}" for each in found.values()]
        print(f"| {factor} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
