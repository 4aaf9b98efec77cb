"""What one layer of the configuration says: read from a table, and merged with others.

Pure: the tables were read elsewhere. `config_keys` knows the keys, `config` what
merged layers amount to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import TypeAlias

from llm_kb.config.keys import (
    KB_KEYS,
    REFERENCE_KEYS,
    TOPIC_ID,
    TOPIC_ID_RULE,
    TOPIC_KEYS,
    BadItemsError,
    BadValueError,
    Key,
    Speaker,
    Value,
    describe_found,
    suggest,
)
from llm_kb.errors import ConfigError
from llm_kb.subjects.topics import Config, Layer, Origin, References

_ReadTable: TypeAlias = "Callable[[str, object], None]"
"""Reads a table, given its dotted key and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and everyone who had a say in it, lowest layer first.

    Of several origins of a scalar the last one's value stands.
    """

    value: Value
    origins: tuple[Origin, ...]
    replaces: bool = False
    """For a list: whether it replaces what lower layers said, or extends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerConfig:
    """What one layer says, or several merged."""

    settings: Mapping[str, Setting] = field(default_factory=dict)
    """By dotted key: `kb.menu`, `kb.topic.project.learned`."""
    topics: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    """The ids of the topics that are spoken of, in order, and by whom."""

    def without(self, keys: Iterable[str]) -> LayerConfig:
        """Return this layer without the settings of these dotted keys."""
        dropped = frozenset(keys)
        kept = {key: setting for key, setting in self.settings.items() if key not in dropped}
        return LayerConfig(settings=MappingProxyType(kept), topics=self.topics)


def topic_key(topic: str, field_name: str) -> str:
    """Return the dotted key of a topic's field."""
    return f"kb.topic.{topic}.{field_name}"


def parse_layer(
    table: Mapping[str, object], speaker: Speaker, *, replaces: bool = False
) -> LayerConfig:
    """Read a TOML document, already decoded, into what its layer says.

    `replaces` says what its lists do to those of lower layers. Raises one
    ConfigError with all problems of the document.
    """
    reading = _Reading(speaker, replaces=replaces)
    reading.read_table("", table, {}, {"kb": reading.read_kb})
    if reading.problems:
        raise ConfigError(speaker.origin.place or speaker.origin.layer.value, reading.problems)
    return LayerConfig(
        settings=MappingProxyType(reading.settings), topics=MappingProxyType(reading.topics)
    )


class _Reading:
    """The settings and the problems found so far while a document is walked."""

    def __init__(self, speaker: Speaker, *, replaces: bool) -> None:
        self.speaker = speaker
        self.replaces = replaces
        self.settings: dict[str, Setting] = {}
        self.topics: dict[str, tuple[Origin, ...]] = {}
        self.problems: list[str] = []

    def read_kb(self, prefix: str, value: object) -> None:
        tables = {"topic": self.read_topics, "references": self.read_references}
        self.read_table(prefix, value, KB_KEYS, tables)

    def read_references(self, prefix: str, value: object) -> None:
        self.read_table(prefix, value, REFERENCE_KEYS, {})

    def read_topics(self, prefix: str, value: object) -> None:
        if not isinstance(value, Mapping):
            return self.refuse(prefix, describe_found(value), "a table of topics, by id")
        for id_, table in value.items():
            if TOPIC_ID.fullmatch(id_) is None:
                self.refuse(prefix, f"the topic id {id_!r}", TOPIC_ID_RULE)
            else:
                self.topics[id_] = (self.speaker.origin,)
                self.read_table(f"{prefix}.{id_}", table, TOPIC_KEYS, {})
        return None

    def read_table(
        self, prefix: str, value: object, keys: Mapping[str, Key], tables: Mapping[str, _ReadTable]
    ) -> None:
        if not isinstance(value, Mapping):
            return self.refuse(prefix, describe_found(value), "a table")
        for name, item in value.items():
            dotted = f"{prefix}.{quote_key(name)}" if prefix else quote_key(name)
            if name in tables:
                tables[name](dotted, item)
            elif name in keys:
                self.read_key(dotted, item, keys[name])
            else:
                known = [*keys, *tables]
                allowed = ", ".join(sorted(known)) + suggest(name, known)
                self.problems.append(f"{dotted}: unknown key; allowed: {allowed}")
        return None

    def read_key(self, dotted: str, value: object, key: Key) -> None:
        if key.user_only and self.speaker.origin.layer is not Layer.USER:
            layer = self.speaker.origin.layer.value
            self.problems.append(
                f"{dotted}: not allowed in the {layer} layer; "
                "it belongs in the user layer's kb.toml (see `llm kb path --user`)"
            )
            return
        try:
            read = key.read(value, self.speaker)
        except BadValueError as error:
            self.refuse(dotted, error.found, error.allowed)
            return
        except BadItemsError as error:
            for item in error.errors:
                self.refuse(dotted, item.found, item.allowed)
            return
        self.settings[dotted] = Setting(
            value=read,
            origins=(self.speaker.origin,),
            replaces=self.replaces and key.is_list,
        )

    def refuse(self, dotted: str, found: str, allowed: str) -> None:
        self.problems.append(f"{dotted}: found {found}; allowed: {allowed}")


def quote_key(name: str) -> str:
    """Return one part of a dotted key as TOML would write it, on one line."""
    return name if re.fullmatch(r"[A-Za-z0-9._-]+", name) else repr(name)


def merge(layers: Iterable[LayerConfig]) -> LayerConfig:
    """Lay layers over one another, lowest first; associative."""
    return reduce(_merge_two, layers, LayerConfig())


def _merge_two(low: LayerConfig, high: LayerConfig) -> LayerConfig:
    settings = dict(low.settings)
    for key, setting in high.settings.items():
        settings[key] = _merge_settings(settings[key], setting) if key in settings else setting
    topics = dict(low.topics)
    for id_, origins in high.topics.items():
        topics[id_] = (*topics.get(id_, ()), *origins)
    return LayerConfig(settings=MappingProxyType(settings), topics=MappingProxyType(topics))


def _merge_settings(low: Setting, high: Setting) -> Setting:
    if high.replaces:
        return high
    origins = (*low.origins, *high.origins)
    if isinstance(low.value, tuple) and isinstance(high.value, tuple):
        items = tuple(dict.fromkeys((*low.value, *high.value)))
        return Setting(value=items, origins=origins, replaces=low.replaces)
    return Setting(value=high.value, origins=origins)


def default_layer() -> LayerConfig:
    """Return the lowest layer: every key of `[kb]` that has a default."""
    config, references = Config(), References()
    values: dict[str, Value] = {
        "kb.auto": config.auto,
        "kb.menu": config.menu,
        "kb.menu_budget": config.menu_budget,
        "kb.max_result_chars": config.max_result_chars,
        "kb.config_load_paths": (".llm/config.d",),
        "kb.references.max_bytes": references.max_bytes,
        "kb.references.max_files": references.max_files,
        "kb.references.timeout": references.timeout,
    }
    origins = (Origin(layer=Layer.DEFAULT),)
    return LayerConfig(
        settings={key: Setting(value=value, origins=origins) for key, value in values.items()}
    )
