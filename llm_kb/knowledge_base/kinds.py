"""The kinds of topics, and what is asked of a topic of any kind.

No other module of this room or above it needs to know where the subjects of a topic are; only the
commands and tools of a kind know their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from llm_kb.capture import captured
from llm_kb.config.settings import Config
from llm_kb.files.conversion import Conversions
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.git_ignored import GitIgnored
from llm_kb.files.topic_documents import TopicDocuments, Watched, find_index
from llm_kb.references import fetched
from llm_kb.subjects.topics import CONFIGURED, Kind, Subject, TopicConfig

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


Find = Callable[[Config, "Path | None", Path], Iterable[Topic]]
"""Finds the topics of a kind under a configuration, in a directory (None if it is gone), for the
user with this directory."""


def _find_configured(config: Config, cwd: Path | None, user_dir: Path) -> Iterator[Topic]:  # noqa: ARG001 - of others
    conversions = Conversions(user_dir / CONVERTED)
    index = find_index(user_dir, config.workspace)
    git = GitIgnored()
    for topic in config.topics:
        yield DirectoryTopic(topic, conversions, index=index, workspace=config.workspace, git=git)


SHIPPED = Kind(ids="llm-kb")
"""The kind of the topic that comes with the package."""


class ShippedTopic(DirectoryTopic):
    """The subjects that come with the package, for models that gather or capture knowledge."""

    is_ours = True

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether a menu has it: if a tool is offered that it describes."""
        described = {"References", "emit_knowledge", "propose_subject"}
        return self.config.is_offered or not described.isdisjoint(tools)


def _find_shipped(config: Config, cwd: Path | None, user_dir: Path) -> Iterator[Topic]:  # noqa: ARG001 - of others
    shipped = TopicConfig(
        id=SHIPPED.ids,
        kind=SHIPPED,
        title="Using llm-kb",
        introduction="How to gather references, to capture what a repository teaches, and to"
        " propose pages.",
        root=Path(__file__).parent / "skills",
        is_offered=config.capture_offer or config.propose_offer,
    )
    yield ShippedTopic(shipped, index=find_index(user_dir, config.workspace))


KINDS: Mapping[Kind, Find] = {
    CONFIGURED: _find_configured,
    captured.KIND: captured.find,
    fetched.KIND: fetched.find,
    SHIPPED: _find_shipped,
}
"""All kinds in the order of the menu; an id belongs to the first that has a topic of it."""

GIVEN = tuple(kind for kind in KINDS if kind.ids)
"""The kinds whose topics need no configuration."""


def find_topics(config: Config, cwd: Path | None, user_dir: Path) -> dict[str, Topic]:
    """Return every enabled topic by id, in the order of the menu."""
    found: dict[str, Topic] = {}
    for find in KINDS.values():
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
