"""How well a search of many topics at once finds what is in one of them.

    python bench/across.py [--dense] [SET ...]        --dense as in retrieval.py

Every project of a set (see known_items.py) is a topic of its own. Compared are, by
hit@1, hit@5 and hit@10: the right topic searched alone, which knows what this cannot;
all of them searched together; and the best of each in turn, which is what ranking by
place alone gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain, zip_longest

from known_items import CACHE, SETS, Query, build_set, folder
from retrieval import MODEL, load_embedder

from llm_kb.search.hits import Hit
from llm_kb.search.index.index import open_index
from llm_kb.search.index.vectors import rank_by_vector, update_vectors
from llm_kb.search.ranking import CANDIDATES, Candidates, join_candidates, rank
from llm_kb.search.search import find_candidates

Search = Callable[[Query, dict[str, Candidates]], Sequence[Hit]]


def alone(query: Query, pools: dict[str, Candidates]) -> Sequence[Hit]:
    return rank(pools[query.path.partition("/")[0]], 10)


def together(_: Query, pools: dict[str, Candidates]) -> Sequence[Hit]:
    return rank(join_candidates(list(pools.values())), 10)


def in_turn(_: Query, pools: dict[str, Candidates]) -> Sequence[Hit]:
    rows = zip_longest(*(rank(pool, 10) for pool in pools.values()))
    return [hit for hit in chain.from_iterable(rows) if hit][:10]


def find_place(query: Query, hits: Sequence[Hit]) -> int:
    for place, hit in enumerate(hits, 1):
        if query.is_answered_by(f"{hit.topic}/{hit.path}", hit.first_line, hit.last_line):
            return place
    return 99


def main(arguments: Sequence[str]) -> None:
    embedder = load_embedder() if "--dense" in arguments else None
    searches: dict[str, Search] = {
        "the right topic alone": alone,
        "all together": together,
        "the best of each in turn": in_turn,
    }
    for name in [name for name in arguments if name in SETS] or ["headings", "links", "code"]:
        directory = CACHE / "sets" / name
        queries = build_set(name, directory)
        places: dict[str, list[int]] = {title: [] for title in searches}
        with ExitStack() as stack:
            topics = sorted({query.path.partition("/")[0] for query in queries})
            databases = {topic: CACHE / "across" / f"{name}-{topic}.sqlite3" for topic in topics}
            indexes = {
                topic: stack.enter_context(open_index(folder(directory / topic, databases[topic])))
                for topic in topics
            }
            for index in indexes.values():
                index.update()
                if embedder:
                    update_vectors(index, MODEL, embedder.embed)
            for query in queries:
                vector = next(iter(embedder.embed([query.text]))) if embedder else ()
                pools = {
                    topic: find_candidates(
                        index,
                        query.text,
                        rank_by_vector(index, MODEL, vector, CANDIDATES) if vector else {},
                    )
                    for topic, index in indexes.items()
                }
                for title, search in searches.items():
                    places[title].append(find_place(query, search(query, pools)))
        print(f"\n{name}: {len(queries)} queries, {len(topics)} topics")
        for title, found in places.items():
            hits = [100 * sum(place <= k for place in found) / len(found) for k in (1, 5, 10)]
            print(f"{title:26}" + " / ".join(f"{value:.1f}" for value in hits), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
