"""Finds the configuration files of a directory and loads their layers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llm_kb.config.fragments import read_fragment
from llm_kb.config.keys import LayerSource
from llm_kb.config.layers import LayerConfig, default_layer, merge, parse_layer
from llm_kb.config.resolve import (
    ACTING_KEYS,
    SHOWING_KEY,
    find_missing,
    find_withheld,
    is_given,
    load_path_values,
    resolve,
)
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
from llm_kb.subjects.topics import Config, Layer, Origin


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
