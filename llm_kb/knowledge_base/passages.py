"""Searches topics of every kind together, and returns passages with addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from llm_kb.errors import UnreadableError
from llm_kb.files.layouts import is_shown
from llm_kb.files.topic_documents import TopicDocuments
from llm_kb.knowledge_base.kinds import EmptyTopicError, OpenTopic
from llm_kb.rendering.excerpt import (
    find_beside,
    find_excerpt,
    find_key_sentence,
    mark_cuts,
    trim,
)
from llm_kb.rendering.passages import Passage, Passages
from llm_kb.search.index.database import DocumentsGoneError
from llm_kb.search.index.index import Embedder
from llm_kb.search.index.update import Progress
from llm_kb.search.question import find_stems, parse_question
from llm_kb.search.roles import Scope
from llm_kb.search.search import SearchResult, search
from llm_kb.texts.decoding import MOST_BYTES, open_text
from llm_kb.texts.document import find_line, find_line_numbers
from llm_kb.texts.outlines.outline import read_document

if TYPE_CHECKING:
    from llm_kb.search.ranking import Hit
    from llm_kb.subjects.topics import Subject
    from llm_kb.texts.document import Document

SPARE = 12
"""Number of additional hits, in place of those that show nothing new or may not be shown."""

ENOUGH = 0.5
"""Share of a question's words, or else likeness, below which a hit is not a good match."""

TELLING = 0.4
"""Score below which it is none either, if half of the words are in no text."""

MAX_PASSAGE = 2400
"""Number of characters of a passage for a reader who cannot load more."""

FIRST_PASSAGE, NEXT_PASSAGE = 600, 300
"""Number of characters of the first passage, which a reader should not need to load, and of each
other one, which shows whether it is worth loading."""


def find_passages(  # noqa: PLR0913 - each is a choice of the caller
    topics: Sequence[OpenTopic],
    question: str,
    limit: int,
    find_embedder: Callable[[], Embedder | None] = lambda: None,
    *,
    progress: Progress | None = None,
    whole: bool = False,
    scope: Scope | None = None,
) -> Passages:
    """Return the passages of some topics that answer a question, best first.

    They are shown `whole` for a reader who cannot load more. `scope` are the documents that are
    searched, None for all. Hidden and disabled subjects are never among them. Every subject is
    looked up again before it is shown: the index is never trusted. Raises EmptyQuestionError,
    IndexUnusableError, and what `find_embedder` raises and `Topic.documents`.
    """
    asked = parse_question(question)
    documents = {each.config.id: each.topic.documents() for each in topics}
    open_once = {
        each.config.id: cache(partial(_open, each, documents[each.config.id])) for each in topics
    }
    try:
        result = search(
            list(documents.values()),
            asked,
            find_embedder,
            limit=limit + SPARE,
            progress=progress,
            scope=scope,
        )
    except DocumentsGoneError:
        gone = EmptyTopicError(topics[0].config, topics[0].topic.list())
        return Passages(passages=(), topics=tuple(documents), why_nothing=str(gone))
    passages: list[Passage] = []
    is_weak = True
    for hit in _prefer_good(result, {each.config.id for each in topics if each.config.kind.yields}):
        if len(passages) == limit:
            break
        most = FIRST_PASSAGE if all(each.is_preloaded for each in passages) else NEXT_PASSAGE
        most = MAX_PASSAGE if whole else most
        if source := open_once[hit.topic](hit.path):
            for passage in _cut(source, hit, result.rarities, most):
                passages.append(passage)
                is_weak = is_weak and not _is_good(hit, result)
    return Passages(
        passages=tuple(passages),
        topics=tuple(documents),
        legs=result.legs,
        unknown=result.unknown,
        counts=result.counts if passages and is_weak else (),
        replaced=result.replaced,
        notices=result.notices,
        why_nothing="" if result.is_covered else f"there is no {scope}",
    )


def _prefer_good(result: SearchResult, fetched: Collection[str]) -> Sequence[Hit]:
    """Return the hits, first the good ones of fetched topics if the others have no good one."""
    good = [hit for hit in result.hits if _is_good(hit, result)]
    if any(hit.topic not in fetched for hit in good):
        return result.hits
    return sorted(result.hits, key=lambda hit: hit not in good)


def _is_good(hit: Hit, result: SearchResult) -> bool:
    """Tell whether a hit has enough of a question. A word put in place of another counts as had."""
    stems = result.rarities
    own = find_stems(f"{hit.path} {hit.title} {hit.text}", stems)
    share = len(own) / len(stems) if own else hit.score
    return share >= ENOUGH and (hit.score >= TELLING or 2 * len(result.unknown) < len(stems))


class _Source(NamedTuple):
    """A subject whose lines are shown."""

    subject: Subject
    outline: Document
    """Its text."""
    origin: str | None
    is_preloaded: bool
    shown: list[tuple[int, int]]
    """What was shown of it: starts and ends."""


def _open(opened: OpenTopic, documents: TopicDocuments, path: str) -> _Source | None:
    """Return the subject at a path of a topic; None if it is gone, or may not be shown."""
    subject = documents.find_subject(path)
    if subject is None or (subject.hidden and not is_shown(subject, opened.config.layout)):
        return None
    try:
        content = opened.topic.read(subject, MOST_BYTES + 1)
    except UnreadableError:
        return None
    found = open_text(content.data)
    if found.problem:
        return None
    is_preloaded = subject.identity in opened.preloaded
    outline = read_document(subject.path, found.text)
    return _Source(subject, outline, content.origin, is_preloaded, [])


def _cut(source: _Source, hit: Hit, rarities: Mapping[str, float], most: int) -> Iterator[Passage]:
    """Yield the passage for a hit, unless its lines were shown before."""
    subject, outline, origin, is_preloaded, shown = source
    text = outline.text
    start = find_line(text, 0, hit.first_line - 1)
    # A line may have many chunks.
    start = max(start, text.find(hit.text, start))
    end = start + len(hit.text)
    found = find_excerpt(outline, (start, end), rarities, most, shown)
    if found is None:
        return
    start, end, part = found
    shown.append((start, end))
    lines = find_line_numbers(text, start, end)
    above, key = find_key_sentence(text[start:end], rarities)
    before, after = find_beside(outline, start, end)
    yield Passage(
        topic=hit.topic,
        name=subject.name,
        path=subject.path,
        address=f"{subject.name}#{part.anchor}",
        first_line=lines[0],
        last_line=lines[1],
        part=find_line_numbers(text, *trim(text, *part[:2])),
        before=before,
        after=after,
        title=hit.title,
        text=mark_cuts(text, start, end),
        key=key,
        key_line=lines[0] + above,
        score=hit.score,
        role=hit.role,
        also_in=hit.also_in,
        origin=origin,
        is_preloaded=is_preloaded,
    )
