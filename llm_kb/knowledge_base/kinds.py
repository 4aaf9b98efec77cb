"""The kinds of topics, and what is asked of a topic of any kind.

No other module of this room or above it needs to know where the subjects of a topic are; only the
commands and tools of a kind know their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Protocol

from llm_kb import addons, hookspecs
from llm_kb.config.settings import Config
from llm_kb.files.conversion import Conversions
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.git_ignored import GitIgnored
from llm_kb.files.text_topic import TextTopic
from llm_kb.files.topic_documents import TopicDocuments, Watched, find_index
from llm_kb.hookspecs import Find
from llm_kb.references import fetched
from llm_kb.subjects.topics import CONFIGURED, Kind, Subject, TopicConfig
from llm_kb.texts.formats import MARKDOWN_ENDING

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
        pages = [(add_on, page.stem, page) for add_on, page in addons.gather(hookspecs.skills)]
        own = [
            ("llm-kb", page.stem, page)
            for page in sorted(Path(__file__).parent.glob("skills/*.md"))
        ]
        self._files = addons.name_each([*pages, *own], ())
        described = {add_on for add_on, _, _ in pages}
        tools = addons.gather(hookspecs.tools)
        self._tools = {each.name for add_on, each in tools if add_on in described}
        self._tools |= {"References"}
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
    found = (
        (add_on, kind.ids, (kind, find)) for add_on, (kind, find) in addons.gather(hookspecs.kinds)
    )
    added = addons.name_each(found, [SHIPPED.ids]).values()
    return {
        CONFIGURED: _find_configured,
        **dict(added),
        fetched.KIND: fetched.find,
        SHIPPED: _find_shipped,
    }


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
