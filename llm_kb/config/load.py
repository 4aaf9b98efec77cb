"""Finds the configuration files of a directory, loads their layers, and resolves them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from llm_kb.config.fragments import read_fragment
from llm_kb.config.keys import TABLES, TOPIC_KEYS, LayerSource
from llm_kb.config.layers import LayerConfig, Setting, default_layer, merge, parse_layer, topic_key
from llm_kb.config.trust import digest_workspace, is_accepted, is_trusted, was_trusted
from llm_kb.config.workspace import (
    WorkspaceFile,
    describe_foreign,
    exists,
    find_workspace,
    read_toml,
    user_config_path,
)
from llm_kb.errors import ConfigError
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import suggest
from llm_kb.subjects.topics import (
    BUILT_IN_TOPICS,
    REFERENCE_PREFIX,
    Capture,
    Config,
    Layer,
    Layout,
    Origin,
    References,
    Topic,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The configured layers, without those of the command line."""

    below: LayerConfig
    """The defaults and the user layer, merged."""
    workspace: LayerConfig
    file: WorkspaceFile | None
    foreign: str | None = None
    """Which part of the workspace's file belongs to another user."""

    @property
    def withheld(self) -> tuple[str, ...]:
        """The keys of the workspace layer that need trust."""
        if self.file is None:
            return ()
        return find_withheld(self.workspace, self.below, resolve_links(self.file.root))

    @property
    def digest(self) -> str:
        """The digest of the settings that trust in the workspace covers."""
        return digest_workspace(self.workspace, self.below)

    def with_edited(self, layer: LayerConfig, source: LayerSource) -> Layers:
        """Return these layers with that of a source replaced."""
        if source.origin.layer is Layer.USER:
            return replace(self, below=merge([default_layer(), layer]))
        return replace(self, workspace=layer)

    def require_fit(self) -> None:
        """Raise ConfigError unless the layers together make a configuration."""
        resolve(merge([self.below, self.workspace]), root=self.file.root if self.file else Path())


def read_layers(
    cwd: Path | None, *, user_dir: Path, environ: Mapping[str, str], any_owner: bool = False
) -> Layers:
    """Read the user's and the workspace's file; a missing one has no settings.

    A workspace's file of another user is read if it is trusted, with the settings it has now, or
    with `any_owner`. Raises ConfigError.
    """
    default, user = default_layer(), user_config_path(user_dir)
    below = merge([default, read_layer(user_source(user, environ), default)])
    file = find_workspace(cwd, environ, user_dir=user_dir)
    if file is None:
        return Layers(below=below, workspace=LayerConfig(), file=None)
    source, foreign = find_source(file, user_dir), describe_foreign(file.path, file.root)
    if any_owner:
        source = replace(source, any_owner=True)
    layers = Layers(below=below, workspace=read_layer(source, below), file=file, foreign=foreign)
    if foreign and not any_owner and not is_trusted(file.path, layers.digest, user_dir):
        raise ConfigError(
            str(file.path),
            [
                f"has changed since you trusted it, and {foreign}; look at it, then run"
                " 'llm kb trust'"
            ],
        )
    return layers


def read_layer(source: LayerSource, below: LayerConfig | None = None) -> LayerConfig:
    """Read a configuration file; a missing one has no settings. Raises ConfigError.

    If the lower layers are given as `below`, an error also reports topics without `subjects`.
    """
    path = source.path
    if not exists(path):
        return LayerConfig()

    def find_more(layer: LayerConfig) -> Sequence[str]:
        return find_missing(merge([below, layer])).get(str(path), ()) if below else ()

    return parse_layer(read_toml(path, owned_below=source.owned_below), source, find_more=find_more)


def user_source(path: Path, environ: Mapping[str, str]) -> LayerSource:
    """Return the source of the user layer's file."""
    origin = Origin(layer=Layer.USER, place=str(path))
    return LayerSource(origin=origin, base=path.parent, home=find_home(environ))


def workspace_source(file: WorkspaceFile) -> LayerSource:
    """Return the source of a workspace layer's file."""
    origin = Origin(layer=Layer.WORKSPACE, place=str(file.path))
    return LayerSource(origin=origin, base=file.root, bounds=file.root)


def find_source(file: WorkspaceFile, user_dir: Path) -> LayerSource:
    """Return the source of a workspace layer's file, whose owner no longer matters if trusted."""
    return replace(workspace_source(file), any_owner=is_accepted(file, user_dir))


def find_home(environ: Mapping[str, str]) -> Path | None:
    """Return the home directory; None if unknown."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - it never raises
    return home if home.is_absolute() else None


def load_config(
    cwd: Path | None,
    *,
    user_dir: Path,
    environ: Mapping[str, str],
    fragments: Sequence[str] = (),
    excluded: Sequence[str] = (),
) -> Config:
    """Load all layers and return the effective configuration.

    `cwd` is None if the current directory was deleted. `fragments` are the values of
    `--kb-cfg`, in order; `excluded` are what `list_exclusions` returned for an earlier
    configuration, without those of topics that are gone. Raises KbError.
    """
    layers = read_layers(cwd, user_dir=user_dir, environ=environ)
    withheld, file = layers.withheld, layers.file
    if file and withheld and is_trusted(file.path, layers.digest, user_dir):
        withheld = ()
    merged = merge([layers.below, layers.workspace.without(withheld)])
    root = file.root if file else (cwd or user_dir)
    workspace = file.root if file else None
    own = LayerSource(
        origin=Origin(layer=Layer.COMMAND_LINE),
        base=root,
        home=find_home(environ),
        any_owner=bool(layers.foreign),
    )
    for text in excluded:
        layer, _ = read_fragment(text, own, cwd=cwd, workspace=workspace, load_paths=())
        if all(id_ in merged.topics or is_given(id_) for id_ in layer.topics):
            merged = merge([merged, layer])
    for text in fragments:
        load_paths = [root / place for place in load_path_values(merged)]
        layer, source = read_fragment(
            text, own, cwd=cwd, workspace=workspace, load_paths=load_paths
        )
        merged = _add_fragment(merged, layer, source)
    config = resolve(
        merged,
        root=root,
        workspace=workspace,
        workspace_file=file.path if file else None,
        withheld=withheld,
    )
    has_lost_trust = bool(file and withheld and was_trusted(file.path, user_dir))
    return replace(config, has_lost_trust=has_lost_trust)


def _add_fragment(merged: LayerConfig, layer: LayerConfig, source: LayerSource) -> LayerConfig:
    """Merge a config fragment. Raises ConfigError for settings that only the user may make."""
    if source.bounds:
        # `auto` counts here: the user named the fragment.
        withheld = find_withheld(layer, merged, resolve_links(source.bounds))
        problems = [
            f"{key}: the reference topics are your own, and not this file's to show; "
            "use -k or an assignment"
            if key == SHOWING_KEY
            else f"{key}: the topic is your own, outside the workspace, and not this file's to "
            "change; use -k or an assignment"
            for key in withheld
            if key not in ACTING_KEYS
        ]
        if problems:
            raise ConfigError(str(source.path), problems)
    return merge([merged, layer])


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
