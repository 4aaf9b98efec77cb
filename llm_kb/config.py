"""Configuration as values: parse each layer, merge them, resolve the result.

Pure: takes tables that were read elsewhere and returns records. `config_files`
finds and reads the files, `config_keys` knows the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from llm_kb.config_keys import (
    KB_KEYS,
    REFERENCE_KEYS,
    TOPIC_ID,
    TOPIC_ID_RULE,
    TOPIC_KEYS,
    BadValueError,
    Key,
    Speaker,
    Value,
    describe_found,
    suggest,
)
from llm_kb.errors import ConfigError
from llm_kb.topics import (
    BUILT_IN_TOPICS,
    REFERENCE_PREFIX,
    Config,
    Layer,
    Layout,
    Origin,
    References,
    Topic,
)

T = TypeVar("T", bound=Value)

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


def find_withheld(layer: LayerConfig, below: LayerConfig, root: Path) -> tuple[str, ...]:
    """Return the dotted keys of a workspace's layer that count only once it is trusted.

    They are `auto = true`, and, of a topic whose directory a lower layer put outside
    the workspace, whatever could bring more of it before a model. Turning such a topic
    off and disabling subjects of it needs no trust. `root` has its links resolved.
    """
    keys = ["kb.auto"] if _is_true(layer, "kb.auto") else []
    for id_ in layer.topics:
        if not _is_outside(below, id_, root) or topic_key(id_, "subjects") in layer.settings:
            continue
        for name in TOPIC_KEYS:
            key = topic_key(id_, name)
            is_less = name == "disabled" or (name == "enable" and not _is_true(layer, key))
            if key in layer.settings and not is_less:
                keys.append(key)
    return tuple(keys)


def _is_outside(layer: LayerConfig, id_: str, root: Path) -> bool:
    subjects = layer.settings.get(topic_key(id_, "subjects"))
    return subjects is not None and not Path(str(subjects.value)).is_relative_to(root)


def _is_true(layer: LayerConfig, key: str) -> bool:
    return key in layer.settings and layer.settings[key].value is True


def load_path_values(merged: LayerConfig) -> tuple[str, ...]:
    """Return `config_load_paths` as written; relative ones belong to the workspace."""
    return _get(merged.settings, "kb.config_load_paths", tuple, ())


def resolve(
    merged: LayerConfig,
    *,
    root: Path,
    workspace: Path | None = None,
    workspace_file: Path | None = None,
    withheld: Sequence[str] = (),
) -> Config:
    """Return the effective configuration of merged layers.

    `root` is what relative `config_load_paths` start from. Raises ConfigError
    for a topic without `subjects`.
    """
    settings = merged.settings
    links = tuple(Path(place) for place in _get(settings, "kb.allow_links_to", tuple, ()))
    _require_subjects(merged)
    resolved = {id_: _resolve_topic(settings, id_, links) for id_ in merged.topics}
    adjusted = {id_ for id_ in resolved if _is_adjustment(merged, id_)}
    base = Config()
    return Config(
        auto=_get(settings, "kb.auto", bool, base.auto),
        menu=_get(settings, "kb.menu", str, base.menu),
        menu_budget=_get(settings, "kb.menu_budget", int, base.menu_budget),
        max_result_chars=_get(settings, "kb.max_result_chars", int, base.max_result_chars),
        config_load_paths=tuple(root / place for place in load_path_values(merged)),
        allow_links_to=links,
        topics=tuple(topic for id_, topic in resolved.items() if id_ not in adjusted),
        adjustments=tuple(topic for id_, topic in resolved.items() if id_ in adjusted),
        references=_resolve_references(settings),
        workspace=workspace,
        workspace_file=workspace_file,
        withheld=tuple(withheld),
        origins=MappingProxyType({key: setting.origins for key, setting in settings.items()}),
    )


def _get(settings: Mapping[str, Setting], key: str, kind: type[T], default: T) -> T:
    value = settings[key].value if key in settings else default
    # Every key has one type, made sure of when it was read.
    return value if isinstance(value, kind) else default


def _is_adjustment(merged: LayerConfig, id_: str) -> bool:
    """Tell whether a topic's table changes one that has its subjects elsewhere.

    Those are the topics we bring, and to the user alone the references they fetched.
    """
    if topic_key(id_, "subjects") in merged.settings:
        return False
    if any(topic_key(id_, name) in merged.settings for name in ("disabled", "ignore", "layout")):
        return False
    by_user = all(origin.layer is not Layer.WORKSPACE for origin in merged.topics[id_])
    return id_ in BUILT_IN_TOPICS or (by_user and id_.startswith(REFERENCE_PREFIX))


def _require_subjects(merged: LayerConfig) -> None:
    missing: dict[str, list[str]] = {}
    for id_, origins in merged.topics.items():
        key = topic_key(id_, "subjects")
        if key not in merged.settings and not _is_adjustment(merged, id_):
            where = origins[0].place or origins[0].layer.value
            missing.setdefault(where, []).append(
                f"{key}: missing; topic {id_!r} needs the directory of its subjects"
            )
    for where, problems in missing.items():
        raise ConfigError(where, problems)


def _resolve_topic(
    settings: Mapping[str, Setting], id_: str, allow_links_to: tuple[Path, ...]
) -> Topic:
    def key(name: str) -> str:
        return topic_key(id_, name)

    return Topic(
        id=id_,
        root=Path(_get(settings, key("subjects"), str, "")),
        title=_get(settings, key("title"), str, "") or None,
        introduction=_get(settings, key("introduction"), str, "") or None,
        description=_get(settings, key("description"), str, "") or None,
        enable=_get(settings, key("enable"), bool, True),
        learned=_get(settings, key("learned"), tuple, ()),
        disabled=_get(settings, key("disabled"), tuple, ()),
        ignore=_get(settings, key("ignore"), tuple, ()),
        layout=Layout(_get(settings, key("layout"), str, Layout.FILES.value)),
        allow_links_to=allow_links_to,
    )


def _resolve_references(settings: Mapping[str, Setting]) -> References:
    base = References()
    directory = _get(settings, "kb.references.dir", str, "")
    return References(
        allow_hosts=_get(settings, "kb.references.allow_hosts", tuple, ()),
        allow_protocols=_get(settings, "kb.references.allow_protocols", tuple, ()),
        dir=Path(directory) if directory else None,
        embedding_model=_get(settings, "kb.references.embedding_model", str, "") or None,
        max_bytes=_get(settings, "kb.references.max_bytes", int, base.max_bytes),
        max_files=_get(settings, "kb.references.max_files", int, base.max_files),
        timeout=_get(settings, "kb.references.timeout", int, base.timeout),
    )
