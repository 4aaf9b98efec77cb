"""Search sets of documents: always by keywords, and by vectors with an embedding model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from llm_kb.search.hits import Hit
from llm_kb.search.index.database import DocumentsGoneError, IndexUnusableError
from llm_kb.search.index.documents import Documents, LeftOut
from llm_kb.search.index.index import NO_WORD, Index, IndexReport, Progress, WordCount, with_index
from llm_kb.search.index.vectors import Embedder, EmbeddingError, rank_by_vector, update_vectors
from llm_kb.search.question import (
    bound_question,
    build_match,
    find_name,
    is_correctable,
    list_neighbours,
    list_runs,
    parse_question,
    replace_words,
    split_words,
)
from llm_kb.search.ranking import CANDIDATES, Candidates, join_candidates, rank
from llm_kb.search.roles import Asked, Role, Scope

JUST_CHECKED = 60.0
"""Seconds for which an index counts as up to date after a comparison with its files."""

MAX_CORRECTED = 3
"""Number of words of a question that are looked up in another spelling."""

MAX_SPELLED = 8
"""Number of similar words whose exact spelling is looked up in the texts."""

RANKED = 150
"""Number of chunks compared by score and role alone, before the best are read."""

WEAK = 0.4
"""Score below which a hit is a weak answer."""

EMBED_AT_ONCE = 256
"""Number of chunks that a search embeds itself; an update embeds more."""


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits, best first, and the legs that ran: `keyword`, `dense`.

    An incomplete dense leg is named with its share: `dense (120 of 400 chunks)`.
    """

    hits: tuple[Hit, ...]
    legs: tuple[str, ...]
    problems: tuple[IndexUnusableError, ...] = ()
    """Why an index could not be used; one was made in memory for this search."""
    left_out: tuple[tuple[str, LeftOut], ...] = ()
    """The documents of each set that were not searched, keyed by its name."""
    unknown: tuple[str, ...] = ()
    """Telling words of the question that no set has."""
    counts: tuple[tuple[str, int], ...] = ()
    """The other telling words, with the number of passages that have each."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Pairs of an unknown word and the nearest word, which was searched instead."""
    rarities: Mapping[str, float] = field(default_factory=dict, compare=False)
    """The stems of the question's words, and their rarities."""
    is_covered: bool = True
    """Whether the scope has any document."""
    words_only: str = ""
    """Why the search was by words only, although there is an embedding model."""

    @property
    def is_weak(self) -> bool:
        """Whether no hit has most of what the question asks for."""
        return max((hit.score for hit in self.hits), default=0.0) < WEAK

    @property
    def notices(self) -> list[str]:
        """Notices on the limits of this search, and on documents it left out."""
        return [
            *([f"searched by words only: {self.words_only}"] if self.words_only else ()),
            *(f"searched without an index: {problem}" for problem in self.problems),
            *(left.of(name) for name, left in self.left_out),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The hits in one set."""

    candidates: Candidates
    report: IndexReport
    missing: int
    """The number of chunks that the dense leg did not see."""
    is_covered: bool
    """Whether the scope has any document of the set."""


def search(  # noqa: PLR0913 - each is a choice of the caller
    sets: Sequence[Documents],
    question: str,
    *,
    limit: int = 10,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
    max_age: float = 0.0,
    scope: Scope | None = None,
) -> SearchResult:
    """Search sets of documents together, replacing words that no set has by the nearest one.

    Every index is brought up to date with its files first, unless this process did so
    less than `max_age` seconds ago. If an index cannot be used, one is made in memory
    and the result says so. Of several sets, one that has been deleted meanwhile is left
    out. Raises DocumentsGoneError, EmbeddingError, and IndexUnusableError if SQLite
    itself cannot be used.
    """
    question = bound_question(question)
    run = partial(_search, sets, limit=limit, embedder=embedder, progress=progress, scope=scope)
    result = run(question, max_age=max_age)
    replaced = _find_nearest(sets, result.unknown)
    if not replaced:
        return result
    corrected = replace_words(question, replaced)
    return replace(
        run(corrected, max_age=JUST_CHECKED),
        unknown=result.unknown,
        replaced=tuple(replaced.items()),
    )


def search_as_possible(
    sets: Sequence[Documents],
    question: str,
    find_embedder: Callable[[], Embedder | None],
    **options: Any,
) -> SearchResult:
    """Search with these options of `search`, by words only if the embedding model fails."""
    try:
        return search(sets, question, embedder=find_embedder(), **options)
    except EmbeddingError as error:
        return replace(search(sets, question, **options), words_only=str(error))


def _find_nearest(sets: Sequence[Documents], unknown: Sequence[str]) -> dict[str, str]:
    """Return the nearest word of the sets for words that they do not have."""
    found: dict[str, WordCount] = {}
    nearest: dict[str, str] = {}
    for word in [word for word in unknown if is_correctable(word)][:MAX_CORRECTED]:
        candidates = list_neighbours(word)
        found.clear()
        for counts in _ask_again(sets, partial(Index.count_words, words=candidates)):
            for candidate, count in counts.items():
                if count.frequency > found.get(candidate, NO_WORD).frequency:
                    found[candidate] = count
        likely = sorted(found, key=lambda candidate: -found[candidate].frequency)
        # Texts are counted by stems, but a spelling with that stem may be in no text.
        for each in likely[:MAX_SPELLED]:
            if any(_ask_again(sets, partial(Index.has_spelling, word=each))):
                nearest[word] = each
                break
    return nearest


def _ask_again(sets: Sequence[Documents], work: Callable[[Index], Answer]) -> Iterator[Answer]:
    """Yield the results of the sets that have an index."""
    for documents in sets:
        with suppress(IndexUnusableError):
            yield with_index(documents, lambda index, _: work(index), max_age=JUST_CHECKED)


def _search(  # noqa: PLR0913 - as above
    sets: Sequence[Documents],
    question: str,
    *,
    limit: int = 10,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
    max_age: float = 0.0,
    scope: Scope | None = None,
) -> SearchResult:
    """Search sets of documents together for the exact words of a question."""
    vector = next(iter(embedder.embed([question]))) if embedder and question.strip() else None
    found: dict[str, _Found] = {}
    problems: list[IndexUnusableError] = []

    def search_one(index: Index, report: IndexReport) -> _Found:
        cosines: dict[int, float] = {}
        missing = report.chunks
        is_covered = not scope or index.narrow(scope)
        if embedder and vector is not None:
            missing = update_vectors(index, embedder.model, embedder.embed, limit=EMBED_AT_ONCE)
            cosines = rank_by_vector(index, embedder.model, vector, CANDIDATES)
        candidates = find_candidates(index, question, cosines)
        return _Found(candidates=candidates, report=report, missing=missing, is_covered=is_covered)

    for documents in sets:
        try:
            found[documents.name] = with_index(
                documents, search_one, progress=progress, max_age=max_age
            )
        except DocumentsGoneError:
            if len(sets) == 1:
                raise
        except IndexUnusableError as error:
            problems.append(error)
            found[documents.name] = with_index(
                documents, search_one, progress=progress, in_memory=True
            )
    candidates = join_candidates([each.candidates for each in found.values()])
    return SearchResult(
        hits=tuple(rank(candidates, limit)),
        legs=_legs(
            sum(each.report.chunks for each in found.values()),
            sum(each.missing for each in found.values()),
        ),
        problems=tuple(problems),
        left_out=tuple(
            (name, left) for name, each in found.items() for left in each.report.left_out
        ),
        unknown=tuple(
            word
            for word, frequency in zip(candidates.words, candidates.frequencies, strict=True)
            if not frequency
        ),
        counts=tuple(
            (word, frequency)
            for word, frequency in zip(candidates.words, candidates.frequencies, strict=True)
            if frequency
        ),
        rarities=candidates.question.rarities,
        is_covered=not scope or any(each.is_covered for each in found.values()),
    )


def _read_best(
    index: Index, scores: Mapping[int, float], cosines: Mapping[int, float]
) -> list[Hit]:
    """Return the best chunks, and the best of documentation, which code cannot displace."""
    best = [id_ for id_ in scores if id_ not in cosines]
    first, others = {*cosines, *best[:CANDIDATES]}, best[CANDIDATES:]
    hits = index.read_hits({id_: scores[id_] for id_ in scores if id_ in first}, cosines)
    explaining = sum(hit.role is Role.DOCS for hit in hits if hit.cosine is None)
    if explaining < CANDIDATES // 2:
        docs = index.find_with_role(others, Role.DOCS)
        more = [id_ for id_ in others if id_ in docs]
        hits += index.read_hits({id_: scores[id_] for id_ in more[: CANDIDATES // 2 - explaining]})
    return hits


def _legs(total: int, missing: int) -> tuple[str, ...]:
    """Name the legs that ran; `missing` chunks were not seen by the dense one."""
    if missing >= total:
        return ("keyword",)
    if missing:
        return ("keyword", f"dense ({total - missing} of {total} chunks)")
    return ("keyword", "dense")


def find_candidates(index: Index, question: str, cosines: Mapping[int, float]) -> Candidates:
    """Return the best chunks of an index by their words, and those that the dense leg found."""
    terms = parse_question(question)
    words = [term for term in terms if " " not in term]
    counts = index.count_words(words)
    frequencies = {word: count.frequency for word, count in counts.items()}
    total = index.count_chunks()
    sequence = split_words(question)
    lines = question.splitlines() if "\n" in question.strip() else ()
    asked = Asked(question)
    match = build_match(terms, list_runs(sequence), frequencies, total)
    scores = index.match(match, RANKED, list(cosines)) if match else {}
    return Candidates(
        hits=[
            hit._replace(prior=asked.find_prior(hit.role, hit.path, index.documents.trust))
            for hit in _read_best(index, scores, cosines)
        ],
        words=words,
        stems=[counts[word].stem for word in words],
        frequencies=[frequencies[word] for word in words],
        total=total,
        sequence=sequence,
        lines=[
            [counts[word].stem for word in parse_question(line) if word in counts] for line in lines
        ],
        name=find_name(question),
    )
