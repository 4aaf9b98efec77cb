"""Tell a person that what they asked for is disabled, and by which setting.

A model is told nothing of the kind: to it, what is disabled is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from llm_kb.api import KnowledgeBase
from llm_kb.config_layers import topic_key
from llm_kb.directory import DirectoryCatalog
from llm_kb.errors import KbError, NoMatchError, show_place
from llm_kb.selection import select
from llm_kb.topics import Config, Topic


class DisabledError(KbError):
    """A pattern that matches nothing, and would match what is disabled."""

    def __init__(self, error: NoMatchError, setting: str) -> None:
        self.topic = error.topic
        self.pattern = error.pattern
        self.setting = setting
        super().__init__(
            f"no subject of topic {error.topic!r} matches {error.pattern!r}: what would is "
            f"disabled by {setting}"
        )


@contextmanager
def explain_disabled(kb: KnowledgeBase) -> Iterator[None]:
    """Raise DisabledError in the place of a NoMatchError that `disabled` is the reason for."""
    try:
        yield
    except NoMatchError as error:
        setting = _find_setting(kb.config, error)
        if setting is None:
            raise
        raise DisabledError(error, setting) from error


def _find_setting(config: Config, error: NoMatchError) -> str | None:
    topic = next((topic for topic in config.topics if topic.id == error.topic), None)
    if topic is None or not topic.disabled or not _matches(topic, (), error.pattern):
        return None
    # One entry may do it alone, or several may share what the pattern matches.
    entries = [e for e in topic.disabled if not _matches(topic, (e,), error.pattern)]
    key = topic_key(topic.id, "disabled")
    places = [show_place(o.place) for o in config.origins.get(key, ()) if o.place is not None]
    return f"{key} ({', '.join(entries or topic.disabled)}) in {', '.join(places)}"


def _matches(topic: Topic, disabled: tuple[str, ...], pattern: str) -> bool:
    catalog = DirectoryCatalog(replace(topic, disabled=disabled))
    return bool(select(catalog, [pattern]).subjects)
