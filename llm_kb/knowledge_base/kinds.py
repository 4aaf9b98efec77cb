"""Topics: of every kind, one of them in a request, the names by which they are found.

No other module of this room or above it needs to know where the subjects of a topic are; only the
commands and tools of a kind know their own. The user's directory in `llm` is found here, too.
Importing the host takes half a second, so it is imported only to embed something.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from llm_kb import addons, hookspecs
from llm_kb.config.load import find_kind, load_config
from llm_kb.config.settings import Config
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import MAX_SHOWN, NoMatchError, PatternError, UnreadableError, show_place
from llm_kb.files import fields
from llm_kb.files.conversion import Conversions
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.git_ignored import GitIgnored
from llm_kb.files.text_topic import TextTopic
from llm_kb.files.topic_documents import TopicDocuments, Watched, find_index
from llm_kb.hookspecs import Find
from llm_kb.rendering.parts import WHOLE
from llm_kb.search.titles import find_named
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import (
    CONFIGURED,
    Kind,
    Listing,
    Selection,
    Subject,
    TopicConfig,
    select,
)
from llm_kb.texts.formats import MARKDOWN_ENDING, is_readable

if TYPE_CHECKING:
    from llm_kb.search.index.index import Embedder


CONVERTED = Path("kb", "converted")
"""The directory of converted documents, below the host's user directory."""


class Topic(Watched, Protocol):
    """A topic of any kind: what can be listed, read and searched."""

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether the menu of a request has it.

        `asked` tells whether the request, or the configuration, names it; `tools` are those that
        come with a kind, as far as the request offers them.
        """

    def find_size(self, subject: Subject) -> int:
        """Return the bytes of a subject as a model reads it. Raises OSError and UnreadableError."""

    def find_file(self, path: str) -> Path | None:
        """Return the file of a subject, by its path, for its owner to edit; None without one."""

    def documents(self) -> TopicDocuments:
        """Return its subjects as a search reads them. Raises KbError if it is not searched."""


def _find_configured(config: Config, cwd: Path | None, user_dir: Path) -> Iterator[Topic]:  # noqa: ARG001 - of others
    conversions = cache(partial(Conversions, user_dir / CONVERTED))
    index = cache(partial(find_index, user_dir, config.workspace))
    git = GitIgnored()
    for topic in config.topics:
        yield DirectoryTopic(topic, conversions, index=index, workspace=config.workspace, git=git)


SHIPPED = Kind(ids="llm-kb")
"""The kind of the topic that comes with the package and its add-ons."""


class ShippedTopic(TextTopic):
    """The pages on the tools of add-ons, for models that use them."""

    def __init__(self, index: Callable[[], Path]) -> None:
        pages = list(addons.gather(hookspecs.skills))
        own = [("llm-kb", page) for page in sorted(Path(__file__).parent.glob("skills/*.md"))]
        self._files = addons.name_each([*pages, *own], lambda _, page: (page.stem, page))
        described = {add_on for add_on, _ in pages}
        tools = addons.gather(hookspecs.tools)
        self._tools = {each.name for add_on, each in tools if add_on in described}
        config = TopicConfig(
            id=SHIPPED.ids,
            kind=SHIPPED,
            title="Using llm-kb",
            introduction="How to use the tools that come with it.",
            root=Path(__file__).parent,
            is_offered=False,
        )
        super().__init__(config, self._read_all, index)

    def _read_all(self) -> Mapping[str, str]:
        return {name: file.read_text(encoding="utf-8") for name, file in self._files.items()}

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether a menu has it: if a tool is offered that it describes."""
        return not self._tools.isdisjoint(tools)

    def find_file(self, path: str) -> Path | None:
        """Return the file of a page."""
        return self._files.get(path.removesuffix(MARKDOWN_ENDING))


def _find_shipped(config: Config, cwd: Path | None, user_dir: Path) -> Iterator[Topic]:  # noqa: ARG001 - of others
    yield ShippedTopic(partial(find_index, user_dir, config.workspace))


@cache
def find_kinds() -> Mapping[Kind, Find]:
    """Return all kinds in the order of the menu; an id belongs to the first that has it."""
    found = addons.gather(hookspecs.kinds)
    return {
        CONFIGURED: _find_configured,
        **dict(addons.name_each(found, _read_kind, [SHIPPED.ids]).values()),
        SHIPPED: _find_shipped,
    }


def _read_kind(add_on: str, each: tuple[Kind, Find]) -> tuple[str, tuple[Kind, Find]]:
    kind, find = each
    return kind.ids, (kind, addons.guard(add_on, partial(addons.list_all, find), ()))


def given_kinds() -> Sequence[Kind]:
    """Return the kinds whose topics need no configuration."""
    return [kind for kind in find_kinds() if kind.ids]


def find_topics(config: Config, cwd: Path | None, user_dir: Path) -> dict[str, Topic]:
    """Return every enabled topic by id, in the order of the menu."""
    found: dict[str, Topic] = {}
    for find in find_kinds().values():
        for topic in find(config, cwd, user_dir):
            found.setdefault(topic.config.id, topic)
    for adjustment in config.adjustments:
        if adjustment.id in found:
            topic = found[adjustment.id]
            topic.config = _adjust(topic.config, adjustment)
    return {id_: topic for id_, topic in found.items() if topic.config.enable}


def _adjust(topic: TopicConfig, adjustment: TopicConfig) -> TopicConfig:
    """Return a topic with the settings that the configuration has for it."""
    return replace(
        topic,
        title=adjustment.title or topic.title,
        introduction=adjustment.introduction or topic.introduction,
        description=adjustment.description or topic.description,
        learned=adjustment.learned,
        enable=adjustment.enable,
    )


# A topic in one request


class OpenTopic:
    """A topic in one request: its content when the prompt was made, and what is sent of it.

    `asked` are the patterns that the request pre-loads, besides those of the configuration.
    """

    is_repeated = False
    """Whether pre-loaded subjects can also be learned, since a model may not have them."""

    def __init__(self, topic: Topic, asked: Iterable[str] = ()) -> None:
        self.topic = topic
        self.config: TopicConfig = topic.config
        self.patterns = tuple(dict.fromkeys((*topic.config.learned, *asked)))
        """The patterns of the subjects that are pre-loaded."""

    @cached_property
    def listing(self) -> Listing:
        """The subjects when the prompt was made; answers of tools list them anew."""
        return self.topic.list()

    @cached_property
    def learned(self) -> Selection:
        """The subjects and parts that are pre-loaded."""
        return select(self.topic, self.patterns)

    @property
    def preloaded(self) -> frozenset[str]:
        """The identities of the subjects that are pre-loaded whole and not sent again."""
        if self.is_repeated:
            return frozenset()
        return frozenset(
            subject.identity
            for subject in self.learned.subjects
            if not {None, WHOLE}.isdisjoint(self.learned.asked_of(subject))
        )

    @cached_property
    def left(self) -> Sequence[Subject]:
        """The subjects to learn when the prompt was made."""
        preloaded = self.preloaded
        return [
            subject
            for subject in self.listing.listed
            if subject.identity not in preloaded and is_readable(subject.path)
        ]

    def find_size(self, subject: Subject) -> int | None:
        """Return the bytes of a subject as a model reads it; None if it is gone or unreadable."""
        with suppress(OSError, UnreadableError):
            return self.topic.find_size(subject)
        return None


class EmptyTopicError(NoMatchError):
    """A pattern for a topic that has no subjects at all."""

    def __init__(self, config: TopicConfig, listing: Listing, pattern: str = "**") -> None:
        reason = explain_empty(config, listing)
        message = f"topic {config.id!r} lists no subjects: {reason}"
        super().__init__(config.id, pattern, message=message)


def explain_empty(config: TopicConfig, listing: Listing) -> str:
    """Return the reason why a topic lists no subjects, and what to do."""
    place = show_place(config.root)
    if unreadable := [skipped.reason for skipped in listing.skipped if not skipped.path]:
        return f"{place}: {unreadable[0]}; correct that, or `subjects` in the configuration"
    if listing.subjects:
        return f"those of {place} are hidden; `llm kb list {config.id} --all` shows them"
    if config.disabled and DirectoryTopic(config).list_disabled():
        return f"those of {place} are all disabled; `llm kb disable --undo` takes one back"
    if listing.skipped:
        # For example links that leave the topic, or a damaged store.
        first = listing.skipped[0]
        return f"{show_place(first.path)}: {first.reason}"
    return f"{place} is empty; `llm kb new {config.id}/NAME` writes one"


# The names of topics, and suggestions for names that no topic has

MOST_SUGGESTED = 3
"""Maximum number of subjects in the error for an unknown topic."""


def find_id(name: str, topics: Collection[TopicConfig]) -> str | None:
    """Return the id that a name stands for: an id, a title, or words that name a topic by it.

    None if the words may mean several topics.
    """
    if any(topic.id == name for topic in topics):
        return name
    ids = {topic.label.casefold(): topic.id for topic in reversed([*topics])}
    ids |= {topic.id.casefold(): topic.id for topic in reversed([*topics])}
    if id_ := ids.get(name.strip().casefold()):
        return id_
    named = find_named((topic for topic in topics if topic.kind.has_words), name)
    return named[0].id if len(named) == 1 else None


def suggest(name: str, typed: str, topics: Iterable[Topic]) -> str:
    """Return suggestions for a topic that does not exist; empty without any."""
    if len(typed) > MAX_SHOWN:
        return ""
    if (kind := find_kind(name, given_kinds())) and kind.advice:
        return f"; nothing is in it yet ({kind.advice})"
    offered = [topic for topic in topics if topic.config.is_offered]
    if found := list(islice(_find_addresses(offered, typed), MOST_SUGGESTED)):
        return f"; {typed!r} names subjects, not a topic: write {' or '.join(found)}"
    known = [topic.config for topic in offered]
    if named := find_named((topic for topic in known if topic.kind.has_words), typed):
        ids = [repr(topic.id) for topic in named[:MOST_SUGGESTED]]
        return f"; did you mean {' or '.join(ids)}?"
    return fields.suggest(
        name, {label: topic.id for topic in known for label in (topic.label, topic.id)}
    )


def _find_addresses(topics: Iterable[Topic], typed: str) -> Iterator[str]:
    """Yield the addresses of the listed subjects that a pattern names at any level."""
    try:
        is_glob = parse_pattern(typed).literal is None
        pattern = parse_pattern(f"**/{typed.casefold()}")
    except PatternError:
        return
    for topic in topics:
        names = [subject.name for subject in topic.list().listed]
        found = [name for name in names if pattern.matches(name.casefold())]
        shown = [f"**/{typed}"] if found and is_glob else found
        yield from (f"{topic.config.id}/{name}" for name in shown)


# The user's directory in the host


def find_user_dir() -> Path:
    """Return the host's user directory, which may be missing: only what is written creates it."""
    return Path(os.environ.get("LLM_USER_PATH") or click.get_app_dir("io.datasette.llm"))


def read_default_embedding_model() -> str | None:
    """Return the id of the host's default embedding model; None if none is set."""
    try:
        text = (find_user_dir() / "default_embedding_model.txt").read_text("utf-8", "replace")
    except OSError:  # there is no usable directory of the user
        return None
    return text.strip() or None


def find_embedder(name: str | None) -> Embedder | None:
    """Return the embedding model of this name, by default llm's; None if none is set, or "".

    Raises EmbeddingError for a name that no model has.
    """
    from llm_kb.search.index.index import Embedder, EmbeddingError  # noqa: PLC0415 - few requests need it

    wanted = read_default_embedding_model() if name is None else name
    if not wanted:
        return None
    from llm import UnknownModelError  # noqa: PLC0415 - see above

    try:
        model = _get_model(wanted)
    except UnknownModelError as error:
        if name is None:
            return None  # the plugin of the default model was uninstalled
        raise EmbeddingError(name, "is unknown; see `llm embed-models`") from error

    def embed(texts: Sequence[str]) -> list[Sequence[float]]:
        try:
            return list(model.embed_multi(texts))
        except Exception as error:  # a model's plugin may raise anything
            raise EmbeddingError(model.model_id, f"failed: {error}") from error

    return Embedder(model=model.model_id, embed=embed)


@lru_cache(maxsize=1)
def _get_model(name: str) -> Any:
    """Return an embedding model, the same for all searches: a local one loads its weights once."""
    import llm  # noqa: PLC0415 - few requests need it

    return llm.get_embedding_model(name)


def load_here(fragments: Sequence[str] = ()) -> Config:
    """Return the configuration in effect in the current directory. Raises KbError."""
    return load_config(
        find_cwd(),
        user_dir=find_user_dir(),
        environ=os.environ,
        fragments=fragments,
        given=given_kinds(),
    )
