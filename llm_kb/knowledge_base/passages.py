"""Searches topics of every kind together, and returns passages with addresses."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from llm_kb import __version__
from llm_kb.capture.catalog import KnowledgeCatalog
from llm_kb.errors import UnreadableError
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import MemoryDocuments, TopicDocuments
from llm_kb.files.layouts import is_shown
from llm_kb.knowledge_base.tool_text import DEFAULT_LIMIT
from llm_kb.knowledge_base.topics import EmptyTopicError, OpenTopic
from llm_kb.references.catalog import ReferenceCatalog, reference_topic
from llm_kb.references.find_topics import find_meant
from llm_kb.references.library import Library
from llm_kb.references.topic.topic_file import (
    Status,
    TopicFile,
    format_time,
    stale_since,
    without_heading,
)
from llm_kb.rendering.excerpt import (
    find_excerpt,
    find_key_sentence,
    find_missing_sentence,
    mark_cuts,
    name_more,
    trim,
)
from llm_kb.rendering.parts import find_line, find_line_numbers
from llm_kb.rendering.passages import Passage, Passages, find_notes
from llm_kb.rendering.plain_text import name_some, shorten
from llm_kb.search.index.database import DocumentsGoneError
from llm_kb.search.index.documents import MAX_FILE_BYTES, TopicGroup
from llm_kb.search.index.index import Embedder
from llm_kb.search.index.update import Progress
from llm_kb.search.question import parse_question
from llm_kb.search.roles import Scope
from llm_kb.search.search import search
from llm_kb.subjects.selection import keep_tagged
from llm_kb.texts.decoding import decode_text
from llm_kb.texts.markup import hide_embedded
from llm_kb.texts.outlines.outline import find_outline

if TYPE_CHECKING:
    from llm_kb.search.ranking import Hit
    from llm_kb.subjects.topics import Subject
    from llm_kb.texts.outlines.sections import Outline

SPARE = 12
"""Number of additional hits, in place of those that show nothing new or may not be shown."""

WEAK = 0.4
"""Score below which a passage is a weak answer."""

MAX_PASSAGE = 2400
"""Number of characters of a passage for a reader who cannot load more."""

FIRST_PASSAGE, NEXT_PASSAGE = 600, 300
"""Number of characters of the first passage, which a reader should not need to load, and of each
other one, which shows whether it is worth loading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The options of a search."""

    index_dir: Path | None = None
    """The directory of the indexes of workspaces; None keeps none."""
    workspace: Path | None = None
    """The directory of the workspace, whose topics share an index."""
    find_embedder: Callable[[], Embedder | None] = lambda: None
    """Finds the embedding model. Raises EmbeddingError."""
    progress: Progress | None = None
    whole: bool = False
    """Whether passages are shown whole, for a reader who cannot load more."""
    scope: Scope | None = None
    """The documents that are searched; None for all."""


def find_passages(
    topics: Sequence[OpenTopic], question: str, limit: int, options: SearchOptions
) -> Passages:
    """Return the passages of some topics that answer a question, best first.

    Hidden and disabled subjects are never among them. Every subject is looked up again
    before it is shown: the index is never trusted. Raises EmptyQuestionError and
    IndexUnusableError.
    """
    asked = parse_question(question)
    sets = {opened.topic.id: open_documents(opened, options.workspace) for opened in topics}
    try:
        result = search(
            group_topics(topics, sets, options),
            asked,
            options.find_embedder,
            limit=limit + SPARE,
            progress=options.progress,
            scope=options.scope,
        )
    except DocumentsGoneError:
        gone = EmptyTopicError(topics[0].topic, topics[0].catalog.list())
        return Passages(passages=(), topics=tuple(sets), why_nothing=str(gone))
    by_id = {opened.topic.id: opened for opened in topics}
    sources: dict[tuple[str, str], _Source | None] = {}
    shown: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    passages: list[Passage] = []
    for hit in result.hits:
        if len(passages) == limit:
            break
        topic, path = place = hit.topic, hit.path
        if place not in sources:
            sources[place] = _open(by_id[topic], sets[topic].find_subject(path))
        most = FIRST_PASSAGE if all(each.is_preloaded for each in passages) else NEXT_PASSAGE
        most = MAX_PASSAGE if options.whole else most
        if source := sources[place]:
            passages += _cut(source, hit, result.rarities, most, shown[place])
    is_weak = all(passage.score < WEAK for passage in passages)
    return Passages(
        passages=tuple(passages),
        topics=tuple(sets),
        legs=result.legs,
        unknown=result.unknown,
        counts=result.counts if passages and is_weak else (),
        replaced=result.replaced,
        notices=result.notices,
        why_nothing="" if result.is_covered else f"there is no {options.scope}",
    )


def open_documents(opened: OpenTopic, workspace: Path | None) -> TopicDocuments | MemoryDocuments:
    """Return the documents of a topic for the index."""
    topic, catalog = opened.topic, opened.catalog
    if isinstance(catalog, ReferenceCatalog):
        return catalog.documents
    if isinstance(catalog, KnowledgeCatalog):
        return MemoryDocuments(topic.id, catalog)
    place = _find_place(topic.root, workspace)
    return TopicDocuments(topic, cast(DirectoryCatalog, catalog), place=place, rules=__version__)


def _find_place(root: Path, workspace: Path | None) -> str:
    """Return the path of a directory below the workspace, or its name if it is elsewhere."""
    root = root.resolve()
    if workspace and root.is_relative_to(workspace.resolve()):
        below = root.relative_to(workspace.resolve()).as_posix()
        return "" if below == "." else f"{below}/"
    return f"{root.name}/"


def group_topics(
    topics: Sequence[OpenTopic],
    opened: Mapping[str, TopicDocuments | MemoryDocuments],
    options: SearchOptions,
) -> list[TopicGroup]:
    """Return the documents of topics, those of the workspace and the fetched ones together."""
    fetched = {o.topic.id: o.catalog for o in topics if isinstance(o.catalog, ReferenceCatalog)}
    groups: list[TopicGroup] = []
    if own := [documents for name, documents in opened.items() if name not in fetched]:
        database = None
        if options.index_dir:
            workspace = str(options.workspace.resolve()) if options.workspace else ""
            key = hashlib.blake2b(workspace.encode(errors="surrogateescape"), digest_size=10)
            database = options.index_dir / f"{key.hexdigest()}.sqlite3"
        groups.append(TopicGroup(database=database, topics=own))
    if fetched:
        index = next(iter(fetched.values())).index
        groups.append(TopicGroup(database=index, topics=[opened[name] for name in fetched]))
    return groups


_Source: TypeAlias = "tuple[Subject, Outline, str | None, bool]"
"""A subject, its text, the origin of that, and whether it is pre-loaded."""


def _open(opened: OpenTopic, subject: Subject | None) -> _Source | None:
    """Return a subject with its text; None if it is gone, or may not be shown."""
    if subject is None or not is_shown(subject, opened.topic.layout):
        return None
    try:
        content = opened.catalog.read(subject, MAX_FILE_BYTES + 1)
    except UnreadableError:
        return None
    text = decode_text(content.data)
    if text is None:
        return None
    text, _ = hide_embedded(text)
    is_preloaded = subject.identity in opened.preloaded
    return subject, find_outline(subject.path, text), content.origin, is_preloaded


def _cut(
    source: _Source,
    hit: Hit,
    rarities: Mapping[str, float],
    most: int,
    shown: list[tuple[int, int]],
) -> Iterator[Passage]:
    """Yield the passage for a hit, unless its lines were `shown` before."""
    subject, outline, origin, is_preloaded = source
    text = outline.text
    start = find_line(text, 0, hit.first_line - 1)
    end = find_line(text, start, hit.last_line - hit.first_line + 1)
    found = find_excerpt(outline, (start, end), rarities, most, shown)
    if found is None:
        return
    start, end, part = found
    shown.append((start, end))
    lines = find_line_numbers(text, start, end)
    above, key = find_key_sentence(text[start:end], rarities)
    missing_line, missing = 0, ""
    if most == FIRST_PASSAGE:
        missing_line, missing = find_missing_sentence(outline, start, end, rarities, hit.title)
    yield Passage(
        topic=hit.topic,
        name=subject.name,
        path=subject.path,
        address=f"{subject.name}#{part.anchor}",
        first_line=lines[0],
        last_line=lines[1],
        part=find_line_numbers(text, *trim(text, *part[:2])),
        more=name_more(outline, start, end),
        title=hit.title,
        text=mark_cuts(text, start, end),
        key=key,
        key_line=lines[0] + above,
        missing=missing,
        missing_line=missing_line,
        score=hit.score,
        role=hit.role,
        also_in=hit.also_in,
        origin=origin,
        is_preloaded=is_preloaded,
    )


# Answers from fetched topics as JSON, for `reference_search` and its command

LONGEST_DESCRIPTION = 500
"""Number of characters of a topic's description that precede the passages found in it."""


def search_references(  # noqa: PLR0913 - each narrows the search
    library: Library,
    question: str,
    topic: str | None = None,
    limit: int = DEFAULT_LIMIT,
    *,
    scope: Scope | None = None,
    tags: Sequence[str] = (),
) -> dict[str, Any]:
    """Search the topics that `topic` names, or all that are not obsolete, for `limit` passages.

    `tags` keeps the topics with one of them. The answer begins with the topics: those that were
    named, else those with a passage. It warns of files that were not searched. Raises
    EmptyQuestionError for a question without a word.
    """
    problems: list[str] = []
    if topic:
        chosen = find_meant(library, topic)
    else:
        found, unreadable = library.topics()
        chosen = [each for each in found if each.status is not Status.OBSOLETE]
        problems = [f"not searched: {name_some(unreadable)}"] if unreadable else []
    chosen = [chosen[number] for number in keep_tagged([each.tags for each in chosen], tags)]
    options = SearchOptions(find_embedder=library.find_embedder, whole=True, scope=scope)
    answer = find_passages(
        [_open_fetched(library, each) for each in chosen], question, limit, options
    )
    topics = {each.id: each for each in chosen}
    searched = list(dict.fromkeys(passage.topic for passage in answer.passages))
    problems += _find_warnings(library, answer, [topics[each] for each in searched])
    shown = topics if topic else {topic_id: topics[topic_id] for topic_id in searched}
    return _describe(library, answer, shown) | ({"warnings": problems} if problems else {})


def _open_fetched(library: Library, described: TopicFile) -> OpenTopic:
    """Open a fetched topic, of which hidden files are searched as well."""
    topic = reference_topic(described, library.directory(described.id))
    return OpenTopic(topic, ReferenceCatalog(topic, described, library))


def _find_warnings(
    library: Library, answer: Passages, searched: Sequence[TopicFile]
) -> Iterator[str]:
    """Yield the notes of a search, why it found nothing, and the topics that are outdated."""
    yield from find_notes(answer)
    if answer.why_nothing:
        yield answer.why_nothing
    elif answer.topics and not answer.passages:
        yield "no text has a word of that; try the words such a text would use"
    for topic in searched:
        if outdated := library.find_outdated(topic):
            yield f"{topic.id}: {outdated}; to follow: llm kb references refresh {topic.id}"


def _describe(
    library: Library, answer: Passages, topics: Mapping[str, TopicFile]
) -> dict[str, Any]:
    """Return the answer of `reference_search`: the topics, then the passages, best first."""
    return {
        "topics": [_describe_topic(topic) for topic in topics.values()],
        "legs": list(answer.legs),
        "results": [
            _describe_passage(passage, stale_since(topics[passage.topic], library.clock()))
            for passage in answer.passages
        ],
    }


def _describe_topic(topic: TopicFile) -> dict[str, Any]:
    """Return title, trust and description of a topic that was searched."""
    body = " ".join(without_heading(topic.title, topic.body).split())
    entry: dict[str, Any] = {"topic_id": topic.id, "title": topic.title}
    if topic.trust_score is not None:
        entry["trust_score"] = topic.trust_score
    return entry | ({"description": shorten(body, LONGEST_DESCRIPTION)} if body else {})


def _describe_passage(passage: Passage, since: Any) -> dict[str, Any]:
    """Return one passage: its place, origin and text, and the time its topic became stale."""
    entry: dict[str, Any] = {
        "topic_id": passage.topic,
        "file": passage.path,
        "lines": f"{passage.first_line}-{passage.last_line}",
        "origin": passage.origin,
        "title": passage.title,
        "role": passage.role.value,
        "score": passage.score,
        "text": passage.text,
    }
    if passage.also_in:
        entry["also_in"] = list(passage.also_in)
    return entry | ({"stale_since": format_time(since)} if since else {})
