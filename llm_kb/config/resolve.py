"""Resolves merged layers to the effective configuration, and finds settings that need trust.

Pure: `load` reads the files, and `layers` their tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_kb.config.keys import TABLES, TOPIC_KEYS
from llm_kb.config.layers import LayerConfig, Setting, topic_key
from llm_kb.errors import ConfigError
from llm_kb.files.fields import suggest
from llm_kb.subjects.topics import (
    BUILT_IN_TOPICS,
    REFERENCE_PREFIX,
    Capture,
    Config,
    Layer,
    Layout,
    References,
    Topic,
)

_PASSING = frozenset({Layer.FRAGMENT, Layer.COMMAND_LINE})
"""The layers of one run, which rarely define a topic."""

EXCLUDING = ("disabled", "enable")
"""The keys of a topic by which a model sees less of it."""

ACTING_KEYS = ("kb.auto", "kb.capture.offer")
"""Keys by which a workspace affects requests that do not ask for it."""

SHOWING_KEY = "kb.references.menu"
"""The key by which a workspace shows the user's reference topics to models."""


def find_withheld(layer: LayerConfig, below: LayerConfig, root: Path) -> tuple[str, ...]:
    """Return the dotted keys of a workspace's layer that count only once it is trusted.

    These are settings that act unasked, such as `auto = true`, and those by which a model
    could see more of what is not the workspace's: the reference topics, and a topic that a
    lower layer defined outside the workspace, or adjusted. Turning such a topic off, or
    disabling subjects of it, needs no trust. `root` is the workspace with links resolved.
    """
    keys = [
        key
        for key in (*ACTING_KEYS, SHOWING_KEY)
        if key in layer.settings and layer.settings[key].value not in {False, ()}
    ]
    for id_ in layer.topics:
        is_own = not _is_outside(below, id_, root) and not _is_adjustment(below, id_)
        if is_own or topic_key(id_, "subjects") in layer.settings:
            continue
        for name in TOPIC_KEYS:
            key = topic_key(id_, name)
            is_less = name in EXCLUDING and not _is_true(layer, key)
            if key in layer.settings and not is_less:
                keys.append(key)
    return tuple(keys)


def _is_outside(layer: LayerConfig, id_: str, root: Path) -> bool:
    subjects = layer.settings.get(topic_key(id_, "subjects"))
    return subjects is not None and not Path(str(subjects.value)).is_relative_to(root)


def _is_true(layer: LayerConfig, key: str) -> bool:
    return key in layer.settings and layer.settings[key].value is True


def list_exclusions(config: Config) -> Iterator[str]:
    """Yield the assignments that repeat what the config fragments of one run exclude."""
    values = {"kb.max_result_chars": config.max_result_chars}
    for topic in (*config.topics, *config.adjustments):
        values |= {topic_key(topic.id, name): getattr(topic, name) for name in EXCLUDING}
    for key, value in values.items():
        if key in config.origins and config.origins[key][-1].layer in _PASSING:
            if isinstance(value, tuple):
                yield f"{key}+={json.dumps(value)}"
            elif value is not True:
                yield f"{key}={json.dumps(value)}"


def load_path_values(merged: LayerConfig) -> tuple[str, ...]:
    """Return `config_load_paths` as written; relative ones belong to the workspace."""
    found: tuple[str, ...] = _given(merged.settings, "kb").get("config_load_paths", ())
    return found


def resolve(
    merged: LayerConfig,
    *,
    root: Path,
    workspace: Path | None = None,
    workspace_file: Path | None = None,
    withheld: Sequence[str] = (),
) -> Config:
    """Return the effective configuration of merged layers.

    `root` is the base of relative `config_load_paths`. Raises ConfigError
    for a topic without `subjects`.
    """
    settings = merged.settings
    general = _given(settings, "kb")
    links = tuple(map(Path, general.pop("allow_links_to", ())))
    general.pop("config_load_paths", None)
    for where, problems in find_missing(merged).items():
        raise ConfigError(where, problems)
    resolved = {id_: _resolve_topic(settings, id_, links) for id_ in merged.topics}
    adjusted = {id_ for id_ in resolved if _is_adjustment(merged, id_)}
    return Config(
        **general,
        config_load_paths=tuple(root / place for place in load_path_values(merged)),
        allow_links_to=links,
        topics=tuple(topic for id_, topic in resolved.items() if id_ not in adjusted),
        adjustments=tuple(topic for id_, topic in resolved.items() if id_ in adjusted),
        references=_resolve_references(settings),
        capture=Capture(**_given(settings, "kb.capture")),
        check_ignore=_given(settings, "kb.check").get("ignore", ()),
        workspace=workspace,
        workspace_file=workspace_file,
        withheld=tuple(withheld),
        origins={key: setting.origins for key, setting in settings.items()},
    )


def _given(settings: Mapping[str, Setting], table: str) -> dict[str, Any]:
    """Return the settings of a table by name, without empty texts."""
    found = {name: settings.get(f"{table}.{name}") for name in TABLES.get(table, TOPIC_KEYS)}
    return {name: each.value for name, each in found.items() if each and each.value != ""}


def is_given(id_: str) -> bool:
    """Tell whether a topic may exist without configuration: a built-in or a reference topic."""
    return id_ in BUILT_IN_TOPICS or id_.startswith(REFERENCE_PREFIX)


def _is_adjustment(merged: LayerConfig, id_: str) -> bool:
    """Tell whether a topic's table changes a topic that is not defined by configuration.

    These are the built-in topics and, for the user's own layers, reference topics.
    """
    if id_ not in merged.topics or topic_key(id_, "subjects") in merged.settings:
        return False
    if _find_misplaced(merged, id_):
        return False
    by_user = all(origin.layer is not Layer.WORKSPACE for origin in merged.topics[id_])
    return is_given(id_) and (by_user or id_ in BUILT_IN_TOPICS)


def _find_misplaced(merged: LayerConfig, id_: str) -> tuple[str, ...]:
    """Return the keys set for a topic that only a topic with a directory can have."""
    keys = (topic_key(id_, name) for name in ("disabled", "ignore", "layout", "generated"))
    # An empty list counts as unset: it remains after the last pattern is removed.
    return tuple(key for key in keys if key in merged.settings and merged.settings[key].value)


def find_missing(merged: LayerConfig) -> dict[str, list[str]]:
    """Return the problems of topics without `subjects`, keyed by the file to change."""
    missing: dict[str, list[str]] = {}
    for id_, origins in merged.topics.items():
        if topic_key(id_, "subjects") not in merged.settings and not _is_adjustment(merged, id_):
            where = origins[0].place or origins[0].layer.value
            missing.setdefault(where, []).append(_describe_missing(merged, id_))
    return missing


def _describe_missing(merged: LayerConfig, id_: str) -> str:
    """Return the problem of a topic without `subjects`, with its most likely solution."""
    misplaced = _find_misplaced(merged, id_)
    if misplaced and is_given(id_):
        return (
            f"{misplaced[0]}: not for topic {id_!r}, whose subjects are not in a directory of "
            "yours; 'enable = false' leaves all of it out"
        )
    if all(origin.layer in _PASSING for origin in merged.topics[id_]):
        known = sorted(topic for topic in merged.topics if topic != id_)
        return (
            f"kb.topic.{id_}: unknown topic {id_!r}; valid topics: {', '.join(known) or 'none'}"
            f"{suggest(id_, known)}"
        )
    key = topic_key(id_, "subjects")
    return f"{key}: missing; topic {id_!r} needs the directory of its subjects"


def _resolve_topic(
    settings: Mapping[str, Setting], id_: str, allow_links_to: tuple[Path, ...]
) -> Topic:
    given = _given(settings, f"kb.topic.{id_}")
    root, layout = Path(given.pop("subjects", "")), Layout(given.pop("layout", Layout.FILES))
    return Topic(id=id_, root=root, layout=layout, allow_links_to=allow_links_to, **given)


def _resolve_references(settings: Mapping[str, Setting]) -> References:
    given = _given(settings, "kb.references")
    directory = given.pop("dir", None)
    return References(dir=Path(directory) if directory else None, **given)
