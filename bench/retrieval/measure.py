"""How well search finds what people ask for, and known items of every kind, beside others.

    python bench/retrieval/measure.py [--SPLIT] [--dense]

Real questions are asked of whole projects as `llm kb init` leaves them (asked.py), known items of a
tree for each source (known_items.py). Printed are tables of hit@1 / 5 / 10 by kind, with the number
of questions and the 95 % interval of our hit@5 (Wilson); then ours against the best rival by hit@5,
with the exact McNemar test of both; then the length of what a search of real questions returns.
SPLIT is one of asked.py or sources.py, `report` by default, or `asked`, all real questions of
asked.py. Some are asked in a model's words as well. `--dense` asks with an embedding model as well;
of the known items, those of the sources of `EMBEDDED`.
Sources that cannot be cloned are left out, and named.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

from asked import PROJECTS, Project, read_projects
from known_items import build_trees
from rivals import (
    Chunk,
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
from sources import CACHE, EMBEDDED, SPLITS

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.topic_documents import TopicDocuments, find_index
from llm_kb.search.index.index import Index, open_current
from llm_kb.subjects.topics import TopicConfig

OURS, HYBRID, FIRST = "**llm-kb, keywords**", "**llm-kb, hybrid**", "llm-kb, BM25 alone"
QMD = "qmd, whole documents (right file)"
EVERY = "asked"
UNTOUCHED = frozenset({"kept"})
"""The splits with which nothing was chosen."""
REAL = tuple(name for name in PROJECTS if name != "manual")
NOT_RIVALS = frozenset({OURS, HYBRID, FIRST, QMD})

Ranks = dict[str, dict[str, list[int]]]
"""By kind and ranker: the rank of the first answer to each question, 99 where there is none."""


class Question(Protocol):
    """A question of which the places that answer are known."""

    @property
    def text(self) -> str:
        """What is asked."""

    def is_answered_by(self, path: str, first_line: int, last_line: int) -> bool:
        """Tell whether some lines answer it."""


class Case(NamedTuple):
    """Topics that are searched, where they are, and the questions asked of them by kind."""

    name: str
    group: Sequence[TopicDocuments]
    places: Mapping[str, str]
    """The path of each topic, with a slash at its end, from where the answers are named."""
    questions: Mapping[str, Sequence[Question]]

    @property
    def is_asked(self) -> bool:
        """Whether the questions are real ones."""
        return any(kind.startswith("asked") for kind in self.questions)


def group_of(directory: Path) -> list[TopicDocuments]:
    """Return the files of a tree as a topic with an index of its own."""
    topic = TopicConfig(id=directory.name, root=directory)
    place = directory.parents[1] / "index" / directory.parent.name / f"{directory.name}.sqlite3"
    return [TopicDocuments(DirectoryTopic(topic), index=place, hidden=True)]


def read_cases(split: str) -> Iterator[Case]:
    """Yield the projects with real questions, then the trees of known items."""
    for name in REAL if split == EVERY else [split]:
        for project in read_projects(name):
            yield _read_project(project, name)
    for source in SPLITS.get(split, {}):
        try:
            for tree in build_trees({source: SPLITS[split][source]}):
                group = group_of(tree.directory)
                yield Case(source, group, {tree.directory.name: ""}, tree.questions)
        except subprocess.CalledProcessError:
            print(f"left out: {source}, which cannot be cloned", file=sys.stderr)


def _read_project(project: Project, split: str) -> Case:
    index = find_index(CACHE, project.directory)
    group = [
        DirectoryTopic(each.config, index=lambda: index, workspace=project.directory).documents()
        for each in project.kb.offered
    ]
    places = {id_: f"{id_}/" for id_ in project.kb.menu_ids}
    questions = {f"asked by users, {split}": project.questions}
    if project.calls:
        questions[f"asked by models, {split}"] = project.calls
    return Case(project.directory.name, group, places, questions)


def make_rankers(
    group: Sequence[TopicDocuments], index: Index, *, dense: bool
) -> dict[str, Ranker]:
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
        OURS: make_ours(group, index),
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
            HYBRID: make_ours(group, index, embedder),
        }
    return rankers


def find_ranks(case: Case, index: Index, rankers: Mapping[str, Ranker]) -> Ranks:
    chunks = {chunk.id: chunk for chunk in read_chunks(index)}
    # An index may also have topics that the project had before.
    paths = {id_: f"{case.places.get(each.topic)}{each.path}" for id_, each in chunks.items()}

    def answers(title: str, query: Question, id_: int) -> bool:
        lines = (0, 10**9) if title == QMD else (chunks[id_].first_line, chunks[id_].last_line)
        return query.is_answered_by(paths[id_], *lines)

    ranks: Ranks = {}
    for kind, queries in case.questions.items():
        for query in queries:
            for title, ranker in rankers.items():
                found = ranker(query.text)[:10]
                place = next(
                    (n for n, id_ in enumerate(found, 1) if answers(title, query, id_)), 99
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
    """Add what all formats of headings, and all languages of code, come to together.

    Real questions are also joined apart: those of untouched splits, and those chosen with.
    """
    for whole, is_wanted in (("untouched", True), ("chosen with", False)):
        parts = [
            found
            for kind, found in ranks.items()
            if kind.startswith("asked by users, ")
            and (kind.rpartition(" ")[2] in UNTOUCHED) is is_wanted
        ]
        if parts:
            ranks[f"real questions, {whole}"] = {
                title: [rank for part in parts for rank in part[title]] for title in parts[0]
            }
    for whole in ("headings", "code", "asked by users", "asked by models"):
        parts = [found for kind, found in ranks.items() if kind.startswith(f"{whole}, ")]
        if parts:
            ranks[f"{whole}, all"] = {
                title: [rank for part in parts for rank in part[title]] for title in parts[0]
            }
    return ranks


def print_lengths(split: str) -> None:
    """Print what a search of the real questions returns, as `llm kb search` shows it.

    Beside it stands plain OR with as many characters: its chunks from the top, the last one cut.
    """
    lengths, ranks, plain_ranks, nothing = [], [], [], 0
    names = REAL if split == EVERY else [split]
    for project in chain.from_iterable(map(read_projects, names)):
        case = _read_project(project, split)
        with open_current(case.group[0].index, case.group) as index:
            chunks = read_chunks(index)
        plain, held = make_plain(chunks), {chunk.id: chunk for chunk in chunks}
        for asked in project.questions:
            found = project.kb.find_passages(asked.text).passages
            lengths.append(sum(len(passage.text) for passage in found))
            nothing += not found
            spans = [
                (f"{each.topic}/{each.path}", each.first_line, each.last_line) for each in found
            ]
            ranks.append(_find_answering(asked, spans))
            best = [held[id_] for id_ in plain(asked.text)]
            plain_ranks.append(_find_answering(asked, _cut_chunks(best, lengths[-1])))
    shares = (
        f"first {hit(each, 1):.0f} %, among four {hit(each, 4):.0f} %, in any {hit(each, 98):.0f} %"
        for each in (ranks, plain_ranks)
    )
    print(
        f"\n{len(lengths)} real questions: {sum(lengths) / len(lengths):,.0f} characters each;"
        f" shown lines answer {next(shares)}; plain OR of the same length {next(shares)};"
        f" {nothing} without an answer"
    )


def _find_answering(asked: Question, spans: Iterable[tuple[str, int, int]]) -> int:
    """Return the place of the first span that answers; 99 if none does."""
    places = (number for number, span in enumerate(spans, 1) if asked.is_answered_by(*span))
    return next(places, 99)


def _cut_chunks(chunks: Iterable[Chunk], room: int) -> Iterator[tuple[str, int, int]]:
    """Yield path and lines of the first chunks that have so many characters together."""
    for chunk in chunks:
        if room <= 0:
            return
        lines = chunk.text[:room].count("\n")
        last = min(chunk.last_line, chunk.first_line + lines)
        yield f"{chunk.topic}/{chunk.path}", chunk.first_line, last
        room -= len(chunk.text)


def main(arguments: Sequence[str]) -> None:
    dense = "--dense" in arguments
    split = next((name for name in (*PROJECTS, EVERY) if f"--{name}" in arguments), "report")
    ranks: Ranks = {}
    for case in read_cases(split):
        if dense and case.name not in EMBEDDED and not case.is_asked:
            continue
        with open_current(case.group[0].index, case.group) as index:
            asked = find_ranks(case, index, make_rankers(case.group, index, dense=dense))
        for kind, found in asked.items():
            for title, places in found.items():
                ranks.setdefault(kind, {}).setdefault(title, []).extend(places)
        print(case.name, file=sys.stderr, flush=True)
    print_tables(join_kinds(ranks))
    print_tests(ranks, OURS, lambda title: title not in NOT_RIVALS and _is_of_words(title))
    if dense:
        print_tests(ranks, HYBRID, lambda title: title == OURS)
        print_tests(ranks, HYBRID, lambda title: title.endswith("dense, RRF"))
        print_tests(ranks, HYBRID, lambda title: title not in NOT_RIVALS)
    else:
        print_lengths(split)


def _is_of_words(title: str) -> bool:
    return not title.endswith((", fused", "RRF", "dense alone"))


if __name__ == "__main__":
    main(sys.argv[1:])
