"""How well search finds known items of every kind, beside what others would answer.

    python bench/retrieval/measure.py [--tune] [--dense]

Each source is a topic of its own; the kinds of questions are those of known_items.py. Printed
are tables of hit@1 / 5 / 10 by kind, with the number of questions and, below 500, the 95 %
interval of our hit@5 (Wilson); then ours against the best rival by hit@5, with the exact
McNemar test of both. `--dense` asks the sources of `EMBEDDED` alone, with vectors.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from known_items import Tree, build_trees
from rivals import (
    Ranker,
    fuse,
    load_embedder,
    make_bm25s,
    make_docs_mcp,
    make_first,
    make_near,
    make_ours,
    make_plain,
    make_qmd,
    make_t_koma,
    make_tantivy,
    read_chunks,
)
from sources import EMBEDDED

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import TopicDocuments
from llm_kb.search.index.index import Index, open_index
from llm_kb.subjects.topics import Topic

OURS, HYBRID, FIRST = "**llm-kb, keywords**", "**llm-kb, hybrid**", "llm-kb, first stage"
QMD = "qmd, whole documents (right file)"
NOT_RIVALS = frozenset({OURS, HYBRID, FIRST, QMD})

Ranks = dict[str, dict[str, list[int]]]
"""By kind and ranker: the rank of the first answer to each question, 99 where there is none."""


def documents(directory: Path) -> TopicDocuments:
    """Return the files of a tree as what an index is of."""
    topic = Topic(id=directory.name, root=directory)
    place = directory.parents[1] / "index" / directory.parent.name / f"{directory.name}.sqlite3"
    return TopicDocuments(topic, DirectoryCatalog(topic), place, hidden=True)


def make_rankers(index: Index, *, dense: bool) -> dict[str, Ranker]:
    chunks = read_chunks(index)
    plain, docs_mcp, t_koma = make_plain(chunks), make_docs_mcp(chunks), make_t_koma(chunks)
    rankers: dict[str, Ranker] = {
        "plain FTS5 OR": plain,
        "docs-mcp-server, words": docs_mcp,
        "t-koma, words": t_koma,
        QMD: make_qmd(chunks),
        "bm25s": make_bm25s(chunks),
        "tantivy": make_tantivy(chunks),
        FIRST: make_first(index),
        OURS: make_ours(index),
    }
    if dense:
        embedder = load_embedder()
        near = make_near(index, embedder)

        def meaning(question: str) -> Sequence[int]:
            return list(near(question))

        rankers |= {
            "dense alone": meaning,
            "plain FTS5 OR + dense, RRF": fuse(plain, meaning),
            "docs-mcp-server, fused": fuse(docs_mcp, meaning),
            "t-koma, fused": fuse(t_koma, meaning),
            "our keywords + dense, RRF": fuse(rankers[OURS], meaning),
            HYBRID: make_ours(index, embedder),
        }
    return rankers


def find_ranks(tree: Tree, index: Index, rankers: Mapping[str, Ranker]) -> Ranks:
    chunks = {chunk.id: chunk for chunk in read_chunks(index)}
    ranks: Ranks = {}
    for kind, queries in tree.questions.items():
        for query in queries:
            for title, ranker in rankers.items():
                found = ranker(query.text)[:10]
                place = next(
                    (
                        number
                        for number, id_ in enumerate(found, 1)
                        if query.is_answered_by(*chunks[id_][1:4])
                        or (title == QMD and chunks[id_].path == query.path)
                    ),
                    99,
                )
                ranks.setdefault(kind, {}).setdefault(title, []).append(place)
    return ranks


def hit(ranks: Sequence[int], k: int) -> float:
    return 100 * sum(rank <= k for rank in ranks) / len(ranks)


def interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share in percent (Wilson)."""
    p, z = share / 100, 1.96
    centre = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return 100 * (centre - half), 100 * (centre + half)


def mcnemar(ours: Sequence[int], other: Sequence[int], k: int = 5) -> float:
    """Return the exact two-sided probability that neither is better at hit@k."""
    won = sum(a <= k < b for a, b in zip(ours, other, strict=True))
    lost = sum(b <= k < a for a, b in zip(ours, other, strict=True))
    tail = sum(math.comb(won + lost, n) for n in range(min(won, lost) + 1))
    return float(min(1.0, 2 * tail / 2 ** (won + lost)))


def print_tables(ranks: Ranks) -> None:
    kinds = sorted(ranks)
    for start in range(0, len(kinds), 4):
        shown = kinds[start : start + 4]
        titles = [f"{kind} ({len(ranks[kind][OURS])})" for kind in shown]
        print(f"\n| hit@1 / 5 / 10 | {' | '.join(titles)} |\n|---|{'---|' * len(shown)}")
        for title in ranks[shown[0]]:
            cells = [
                " / ".join(f"{hit(ranks[kind][title], k):.1f}" for k in (1, 5, 10))
                for kind in shown
            ]
            print(f"| {title} | {' | '.join(cells)} |")


def print_tests(ranks: Ranks, ours: str, is_rival: Callable[[str], bool]) -> None:
    print(f"\n| hit@5 | questions | {ours} | 95 % | best other | | difference | p |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in sorted(ranks):
        found = ranks[kind]
        best = max(filter(is_rival, found), key=lambda title: hit(found[title], 5))
        own, other, count = hit(found[ours], 5), hit(found[best], 5), len(found[ours])
        low, high = interval(own, count)
        within = f"{low:.0f} to {high:.0f}" if count < 500 else ""
        print(
            f"| {kind} | {count} | {own:.1f} | {within} | {best} | {other:.1f} | {own - other:+.1f}"
            f" | {mcnemar(found[ours], found[best]):.3f} |"
        )


def join_kinds(ranks: Ranks) -> Ranks:
    """Add what all formats of headings, and all languages of code, come to together."""
    for whole in ("headings", "code"):
        parts = [found for kind, found in ranks.items() if kind.startswith(f"{whole}, ")]
        if parts:
            ranks[f"{whole}, all"] = {
                title: [rank for part in parts for rank in part[title]] for title in parts[0]
            }
    return ranks


def main(arguments: Sequence[str]) -> None:
    dense = "--dense" in arguments
    ranks: Ranks = {}
    chunks = 0
    for tree in build_trees("tune" if "--tune" in arguments else "report"):
        if dense and tree.directory.name not in EMBEDDED:
            continue
        started = time.perf_counter()
        with open_index(documents(tree.directory)) as index:
            chunks += index.update().chunks
            for kind, found in find_ranks(tree, index, make_rankers(index, dense=dense)).items():
                for title, places in found.items():
                    ranks.setdefault(kind, {}).setdefault(title, []).extend(places)
        seconds = time.perf_counter() - started
        print(f"{tree.directory.parent.name} {tree.directory.name}: {seconds:.0f} s",
              file=sys.stderr)  # fmt: skip
    print(f"{chunks:,} chunks")
    print_tables(join_kinds(ranks))
    print_tests(ranks, OURS, lambda title: title not in NOT_RIVALS and _is_of_words(title))
    if dense:
        print_tests(ranks, HYBRID, lambda title: title == OURS)
        print_tests(ranks, HYBRID, lambda title: title.endswith("dense, RRF"))
        print_tests(ranks, HYBRID, lambda title: title not in NOT_RIVALS)


def _is_of_words(title: str) -> bool:
    return not title.endswith((", fused", "RRF", "dense alone"))


if __name__ == "__main__":
    main(sys.argv[1:])
