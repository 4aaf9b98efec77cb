"""Parses a layer of the configuration from a table, and merges layers.

`keys` lists the keys; `resolve` makes the effective configuration of merged layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from llm_kb.config.keys import (
    TABLES,
    TOPIC_ID,
    TOPIC_ID_RULE,
    TOPIC_KEYS,
    Key,
    LayerSource,
    ListKey,
    Value,
)
from llm_kb.errors import ConfigError, quote
from llm_kb.files.fields import BadValueError, Fields
from llm_kb.subjects.topics import Config, Layer, Origin

MAX_TOPICS = 1_000
"""The most topics of one configuration."""


MOST_ITEMS = 5_000
"""The most values of all lists of a file: each pattern may need a look at every subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and every origin that set or extended it, lowest layer first.

    The last origin of a scalar set its value.
    """

    value: Value
    origins: tuple[Origin, ...]
    replaces: bool = False
    """Whether a list replaces the list of lower layers rather than extending it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerConfig:
    """The settings of one layer, or of several merged."""

    settings: Mapping[str, Setting] = field(default_factory=dict)
    """The settings by dotted key: `kb.menu`, `kb.topic.project.learned`."""
    topics: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    """The origins of each topic's tables, by topic id, in order."""

    def without(self, keys: Iterable[str]) -> LayerConfig:
        """Return this layer without the settings of these dotted keys."""
        dropped = frozenset(keys)
        kept = {key: setting for key, setting in self.settings.items() if key not in dropped}
        return LayerConfig(settings=kept, topics=self.topics)


def topic_key(topic: str, field_name: str) -> str:
    """Return the dotted key of a topic's field."""
    return f"kb.topic.{topic}.{field_name}"


def parse_layer(
    table: Mapping[str, object],
    source: LayerSource,
    *,
    replaces: bool = False,
    find_more: Callable[[LayerConfig], Sequence[str]] = lambda _: (),
) -> LayerConfig:
    """Return the layer that a decoded TOML document makes.

    `replaces` tells whether its lists replace those of lower layers. Raises one ConfigError
    with all problems of the document, and those that `find_more` finds in its valid settings
    and its topics without `subjects`.
    """
    document = Fields(table)
    reader = _LayerReader(source, replaces=replaces)
    reader.read_kb(document.fields("kb"))
    for key in sorted({"topic", "references", "check", *TABLES["kb"]} & table.keys()):
        document.has(key)
        document.report(key, f"unknown key; allowed: kb; did you mean 'kb.{key}'?")
    document.reject_unknown()
    if document.problems:
        where = source.origin.place or source.origin.layer.value
        more = find_more(LayerConfig(settings=reader.settings, topics=reader.bare))
        raise ConfigError(where, [*document.problems, *more])
    return LayerConfig(settings=reader.settings, topics=reader.topics)


class _LayerReader:
    """Collects the settings of a document."""

    def __init__(self, source: LayerSource, *, replaces: bool) -> None:
        self.settings: dict[str, Setting] = {}
        self.topics: dict[str, tuple[Origin, ...]] = {}
        self.bare: dict[str, tuple[Origin, ...]] = {}
        """The topics without `subjects`."""
        self._source = source
        self._replaces = replaces
        self._items = 0

    def read_kb(self, kb: Fields) -> None:
        topics, references = kb.fields("topic"), _read_references(kb)
        for table in (kb, references, kb.fields("capture"), kb.fields("check")):
            self._read_keys(table, TABLES[table.path])
        if len(topics.table) > MAX_TOPICS:
            found = f"{len(topics.table):,} topics"
            topics.refuse(topics.path, BadValueError(found, f"at most {MAX_TOPICS:,}"))
            return
        for id_ in topics:
            if TOPIC_ID.fullmatch(id_) is None:
                found = f"the topic id {quote(id_)}"
                topics.refuse(topics.path, BadValueError(found, TOPIC_ID_RULE))
            else:
                self.topics[id_] = (self._source.origin,)
                topic = topics.fields(id_)
                if not topic.has("subjects"):
                    self.bare[id_] = self.topics[id_]
                self._read_keys(topic, TOPIC_KEYS)

    def _read_keys(self, fields: Fields, keys: Mapping[str, Key]) -> None:
        for name in fields:
            if name in keys:
                self._read_key(fields, name, keys[name])
        fields.reject_unknown(*keys)

    def _read_key(self, fields: Fields, name: str, key: Key) -> None:
        layer = self._source.origin.layer
        if key.user_only and layer is not Layer.USER:
            fields.report(
                name,
                f"not allowed in the {layer.value} layer; "
                "it belongs in the user layer's kb.toml (see `llm kb path --user`)",
            )
            return
        value: Value | None
        if isinstance(key, ListKey):
            found = fields.table.get(name)
            self._items += len(found) if isinstance(found, list) else 0
            if self._items > MOST_ITEMS:
                fields.report(
                    name,
                    f"the lists of a file may have {MOST_ITEMS:,} values together;"
                    " a pattern such as 'drafts/**' stands for many",
                )
                return
            read_item = key.read
            value = fields.texts(name, lambda item: read_item(item, self._source))
        else:
            value = fields.get(name, lambda found: key.read(found, self._source))
        if value is not None:
            self.settings[fields.place(name)] = Setting(
                value=value,
                origins=(self._source.origin,),
                replaces=self._replaces and isinstance(key, ListKey),
            )


def _read_references(kb: Fields) -> Fields:
    """Return the fields of `[kb.references]`; `references = true` is short for its `menu`."""
    value = kb.table.get("references")
    if not isinstance(value, bool | list):
        return kb.fields("references")
    kb.has("references")
    return Fields({"menu": value}, kb.place("references"), kb.problems)


def merge(layers: Iterable[LayerConfig]) -> LayerConfig:
    """Return one layer for several, lowest first; the operation is associative."""
    return reduce(_merge_two, layers, LayerConfig())


def _merge_two(low: LayerConfig, high: LayerConfig) -> LayerConfig:
    settings = dict(low.settings)
    for key, setting in high.settings.items():
        settings[key] = _merge_settings(settings[key], setting) if key in settings else setting
    topics = dict(low.topics)
    for id_, origins in high.topics.items():
        topics[id_] = (*topics.get(id_, ()), *origins)
    return LayerConfig(settings=settings, topics=topics)


def _merge_settings(low: Setting, high: Setting) -> Setting:
    if high.replaces:
        return high
    origins = (*low.origins, *high.origins)
    if isinstance(low.value, tuple) and isinstance(high.value, tuple):
        items = tuple(dict.fromkeys((*low.value, *high.value)))
        return Setting(value=items, origins=origins, replaces=low.replaces)
    return Setting(value=high.value, origins=origins)


def iter_values(config: Config) -> Iterator[tuple[str, str, Any]]:
    """Yield the table, name and value of every key, except for those of topics."""
    records = {"kb": config, "kb.references": config.references, "kb.capture": config.capture}
    for table, record in records.items():
        yield from ((table, name, getattr(record, name)) for name in TABLES[table])
    yield "kb.check", "ignore", config.check_ignore


def default_layer() -> LayerConfig:
    """Return the lowest layer, with every key that has a default."""
    values: dict[str, Value] = {
        f"{table}.{name}": value
        for table, name, value in iter_values(Config())
        if value not in {None, ()}
    }
    values["kb.config_load_paths"] = (".llm/config.d",)
    origins = (Origin(layer=Layer.DEFAULT),)
    return LayerConfig(
        settings={key: Setting(value=value, origins=origins) for key, value in values.items()}
    )
