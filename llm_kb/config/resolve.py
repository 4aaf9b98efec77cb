"""The effective configuration of merged layers, and the settings that wait for trust.

Pure: `load` finds and reads the files, `layers` reads their tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from llm_kb.config.keys import TOPIC_KEYS, Value
from llm_kb.config.layers import LayerConfig, Setting, topic_key
from llm_kb.errors import ConfigError
from llm_kb.files.values import suggest
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

T = TypeVar("T", bound=Value)

_PASSING = frozenset({Layer.FRAGMENT, Layer.COMMAND_LINE})
"""Layers of one run, which rarely mean to define a topic."""


ACTING_KEYS = ("kb.auto", "kb.capture.offer")
"""Keys by which a workspace acts on requests that do not ask for it."""


def find_withheld(layer: LayerConfig, below: LayerConfig, root: Path) -> tuple[str, ...]:
    """Return the dotted keys of a workspace's layer that count only once it is trusted.

    They are what acts unasked, such as `auto = true`, and, of a topic whose directory a
    lower layer put outside the workspace, whatever could bring more of it before a model.
    Turning such a topic off and disabling subjects of it needs no trust. `root` has its
    links resolved.
    """
    keys = [key for key in ACTING_KEYS if _is_true(layer, key)]
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
        show_reads=_get(settings, "kb.show_reads", bool, base.show_reads),
        outline_over=_get(settings, "kb.outline_over", int, base.outline_over),
        search=_get_search(settings),
        config_load_paths=tuple(root / place for place in load_path_values(merged)),
        allow_links_to=links,
        topics=tuple(topic for id_, topic in resolved.items() if id_ not in adjusted),
        adjustments=tuple(topic for id_, topic in resolved.items() if id_ in adjusted),
        references=_resolve_references(settings),
        capture=Capture(
            offer=_get(settings, "kb.capture.offer", bool, base.capture.offer),
            branch_only=_get(settings, "kb.capture.branch_only", bool, base.capture.branch_only),
            shared=_get(settings, "kb.capture.shared", bool, base.capture.shared),
        ),
        check_ignore=_get(settings, "kb.check.ignore", tuple, ()),
        workspace=workspace,
        workspace_file=workspace_file,
        withheld=tuple(withheld),
        origins=MappingProxyType({key: setting.origins for key, setting in settings.items()}),
    )


def _get_search(settings: Mapping[str, Setting]) -> bool | str:
    value = settings["kb.search"].value if "kb.search" in settings else "auto"
    return value if isinstance(value, bool | str) else "auto"


def _get(settings: Mapping[str, Setting], key: str, kind: type[T], default: T) -> T:
    value = settings[key].value if key in settings else default
    # Every key has one type, checked when it was read.
    return value if isinstance(value, kind) else default


def _is_adjustment(merged: LayerConfig, id_: str) -> bool:
    """Tell whether a topic's table changes one that has its subjects elsewhere.

    Those are the topics we bring, and to the user alone the references they fetched.
    """
    if topic_key(id_, "subjects") in merged.settings:
        return False
    if _find_misplaced(merged, id_):
        return False
    by_user = all(origin.layer is not Layer.WORKSPACE for origin in merged.topics[id_])
    return id_ in BUILT_IN_TOPICS or (by_user and id_.startswith(REFERENCE_PREFIX))


def _find_misplaced(merged: LayerConfig, id_: str) -> tuple[str, ...]:
    """Return the keys set for a topic that only one with a directory of its own can have."""
    keys = (topic_key(id_, name) for name in ("disabled", "ignore", "layout"))
    # An empty list counts as unset: it is left when the last pattern is removed.
    return tuple(key for key in keys if key in merged.settings and merged.settings[key].value)


def _require_subjects(merged: LayerConfig) -> None:
    missing: dict[str, list[str]] = {}
    for id_, origins in merged.topics.items():
        if topic_key(id_, "subjects") not in merged.settings and not _is_adjustment(merged, id_):
            where = origins[0].place or origins[0].layer.value
            missing.setdefault(where, []).append(_describe_missing(merged, id_))
    for where, problems in missing.items():
        raise ConfigError(where, problems)


def _describe_missing(merged: LayerConfig, id_: str) -> str:
    """Return the problem of a topic without `subjects`, and what was most likely meant."""
    misplaced = _find_misplaced(merged, id_)
    if misplaced and (id_ in BUILT_IN_TOPICS or id_.startswith(REFERENCE_PREFIX)):
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


def _get_menu(
    settings: Mapping[str, Setting], default: bool | tuple[str, ...]
) -> bool | tuple[str, ...]:
    value = settings["kb.references.menu"].value if "kb.references.menu" in settings else default
    return value if isinstance(value, bool | tuple) else default


def _resolve_references(settings: Mapping[str, Setting]) -> References:
    base = References()
    directory = _get(settings, "kb.references.dir", str, "")
    return References(
        ask_first=_get(settings, "kb.references.ask_first", bool, base.ask_first),
        allow_hosts=_get(settings, "kb.references.allow_hosts", tuple, ()),
        allow_protocols=_get(settings, "kb.references.allow_protocols", tuple, ()),
        dir=Path(directory) if directory else None,
        menu=_get_menu(settings, base.menu),
        embedding_model=_get(settings, "kb.references.embedding_model", str, "") or None,
        max_bytes=_get(settings, "kb.references.max_bytes", int, base.max_bytes),
        max_files=_get(settings, "kb.references.max_files", int, base.max_files),
        timeout=_get(settings, "kb.references.timeout", int, base.timeout),
    )
