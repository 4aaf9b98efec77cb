"""Search topics together: always by words, and by meaning with an embedding model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

from llm_kb.search.index.database import (
    DocumentsGoneError,
    IndexUnusableError,
    ReadOnlyError,
)
from llm_kb.search.index.documents import Documents
from llm_kb.search.index.index import (
    Embedder,
    EmbeddingError,
    Index,
    open_current,
    rank_by_vector,
    rebuild_damaged,
    update_vectors,
)
from llm_kb.search.index.update import Progress
from llm_kb.search.question import (
    Question,
    build_match,
    is_correctable,
    list_forms,
    list_neighbours,
)
from llm_kb.search.ranking import CANDIDATES, Hit, Rarities, rank
from llm_kb.search.roles import Scope

NEAREST = 50
"""Number of chunks that the dense leg contributes."""

RARE = 3
"""Number of chunks with a word from which its other forms are not looked for: with them all, on 83
questions 44 instead of 47 first passages answered."""

MAX_CORRECTED = 3
"""Number of words of a question that are looked up in another spelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits, best first, and the legs that ran: `keyword`, `dense`.

    A dense leg that compared some chunks only is named with its share: `dense (96 of 150 chunks)`.
    """

    hits: tuple[Hit, ...]
    legs: tuple[str, ...]
    notices: tuple[str, ...] = ()
    """Notices on the limits of this search, and on documents it left out."""
    unknown: tuple[str, ...] = ()
    """Telling words of the question that no text has."""
    counts: tuple[tuple[str, int], ...] = ()
    """The other telling words, with the number of passages that have each."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Pairs of an unknown word and the nearest word, which was searched instead."""
    rarities: Mapping[str, float] = field(default_factory=dict, compare=False)
    """The stems of the question's words, and their rarities."""
    is_covered: bool = True
    """Whether the scope has any document."""

    def noting(self, notice: str) -> SearchResult:
        """Return the result with one more notice, before the others."""
        return replace(self, notices=(notice, *self.notices))


def search(  # noqa: PLR0913 - each is a choice of the caller
    topics: Sequence[Documents],
    question: Question,
    find_embedder: Callable[[], Embedder | None] = lambda: None,
    *,
    limit: int = 10,
    progress: Progress | None = None,
    scope: Scope | None = None,
) -> SearchResult:
    """Search topics together, replacing words that no text has by the nearest one.

    `limit` hits are returned at most. Every topic is brought up to date with its files first;
    `scope` limits the search to some documents. If an index cannot be used, all are made in memory
    and the result says so, unless its place is only read; if the embedding model fails, the search
    is by words only, and the result says that. A topic that has been deleted meanwhile is left
    out. Raises DocumentsGoneError if it is the only one, and IndexUnusableError if SQLite itself
    cannot be used.
    """
    groups: dict[Path | None, list[Documents]] = {}
    for topic in topics:
        groups.setdefault(topic.index, []).append(topic)

    def find(
        groups: Mapping[Path | None, Sequence[Documents]], embedder: Embedder | None
    ) -> SearchResult:
        with _open_all(groups, progress) as indexes:
            return _search(indexes, embedder, question, limit, scope)

    def search_anew(embedder: Embedder | None) -> SearchResult:
        try:
            return rebuild_damaged(partial(find, groups, embedder))
        except IndexUnusableError as error:
            if error.database is None:
                raise
            found = find({None: topics}, embedder)
            if isinstance(error, ReadOnlyError):
                return found  # nobody in a sandbox can do anything about it
            return found.noting(f"searched without an index: {error}")

    try:
        return search_anew(find_embedder())
    except EmbeddingError as error:
        return search_anew(None).noting(f"searched by words only: {error}")


@contextmanager
def _open_all(
    groups: Mapping[Path | None, Sequence[Documents]], progress: Progress | None
) -> Iterator[list[Index]]:
    """Open the indexes of topics, given by their paths."""
    with ExitStack() as stack:
        indexes: list[Index] = []
        for database, topics in groups.items():
            try:
                indexes.append(stack.enter_context(open_current(database, topics, progress)))
            except DocumentsGoneError:
                if sum(map(len, groups.values())) == 1:
                    raise
        yield indexes


def _search(
    indexes: Sequence[Index],
    embedder: Embedder | None,
    question: Question,
    limit: int,
    scope: Scope | None,
) -> SearchResult:
    """Search open indexes for a question, or for its nearest spelling in them."""
    if not indexes:
        return SearchResult(hits=(), legs=("keyword",))
    forms = _find_forms(indexes, question)
    unknown = tuple(word for word, found in forms.items() if not found)
    nearest = _find_nearest(indexes, unknown)
    if nearest:
        question = question.correct(nearest)
        forms = _find_forms(indexes, question)
    total = sum(index.count_chunks() for index in indexes)
    terms = list(dict.fromkeys(each for found in forms.values() for each in found))
    _, stems = _count_words(indexes, [*forms, *terms])
    rarities = Rarities(forms, stems, total)
    hits: list[Hit] = []
    covered = [scope is None]
    for index in indexes:
        covered.append(index.narrow_to(scope))
        hits += _find_hits(index, question, [*terms, *question.phrases], embedder)
    return SearchResult(
        hits=tuple(rank(hits, question, rarities)[:limit]),
        legs=("keyword", _name_dense_leg(hits)) if embedder else ("keyword",),
        notices=tuple(notice for index in indexes for notice in index.left_out),
        unknown=unknown,
        counts=tuple((word, max(found.values())) for word, found in forms.items() if found),
        replaced=tuple(nearest.items()),
        rarities=rarities.of_stems,
        is_covered=any(covered),
    )


def _count_words(
    indexes: Sequence[Index], words: Sequence[str]
) -> tuple[dict[str, int], dict[str, str]]:
    """Return how many chunks of all indexes have each word, and the start of its forms."""
    frequencies, stems = Counter(dict.fromkeys(words, 0)), dict.fromkeys(words, "")
    for index in indexes:
        counts, stems = index.count_words(words)
        frequencies.update(counts)
    return frequencies, stems


def _find_forms(indexes: Sequence[Index], question: Question) -> dict[str, dict[str, int]]:
    """Return the forms of each word of a question that texts have, with numbers of chunks.

    Of a word that several chunks have, other forms would find more than they show.
    """
    known, stems = _count_words(indexes, question.words)
    forms = {word: {word: number} if number else {} for word, number in known.items()}
    for word in [word for word, number in known.items() if number < RARE]:
        halves = [(word[:at], word[at:]) for at in range(1, len(word)) if len(word) <= 30]
        singles = {*list_forms(word), *question.joined.get(word, ())}
        counts, starts = _count_words(indexes, list({*singles, *chain.from_iterable(halves)}))
        pairs = [" ".join(pair) for pair in halves if all(map(counts.get, pair))]
        counts |= _count_words(indexes, pairs)[0]
        others = [each for each in singles if starts[each] != stems[word]]
        forms[word] |= {each: counts[each] for each in sorted([*others, *pairs]) if counts[each]}
    return forms


def _find_nearest(indexes: Sequence[Index], unknown: Sequence[str]) -> dict[str, str]:
    """Return the nearest word of the indexes for words that they do not have."""
    nearest: dict[str, str] = {}
    for word in [word for word in unknown if is_correctable(word)][:MAX_CORRECTED]:
        candidates = list_neighbours(word)
        frequencies, _ = _count_words(indexes, candidates)
        likely = sorted(filter(frequencies.get, candidates), key=lambda each: -frequencies[each])
        # Texts are counted by stems, but a spelling with that stem may be in no text.
        spelled = (each for each in likely if any(index.has_spelling(each) for index in indexes))
        if found := next(spelled, ""):
            nearest[word] = found
    return nearest


def _find_hits(
    index: Index, question: Question, terms: Sequence[str], embedder: Embedder | None
) -> list[Hit]:
    """Return the best chunks of an index by words and phrases, and those near in meaning."""
    own, _ = index.count_words(terms)
    match = build_match(terms, own)
    scores = index.match(match, CANDIDATES) if match else {}
    cosines: dict[int, float] = {}
    if embedder:
        update_vectors(index, embedder, seconds=embedder.search_seconds, first=scores)
        vector = next(iter(embedder.embed([question.text])), ())
        cosines = rank_by_vector(index, embedder.model, vector, NEAREST, scores)
    return index.read_hits(scores, cosines)


def _name_dense_leg(hits: Sequence[Hit]) -> str:
    """Name the dense leg, with its share if it did not compare all hits."""
    compared = sum(hit.cosine is not None for hit in hits)
    return f"dense ({compared} of {len(hits)} chunks)" if compared < len(hits) else "dense"
