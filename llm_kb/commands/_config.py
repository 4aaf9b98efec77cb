"""The configuration in effect where a command runs, and the file of it that a command edits."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from llm_kb.commands._output import say
from llm_kb.config.changes import Change, edit_config, prepare_edit
from llm_kb.config.keys import LayerSource
from llm_kb.config.layers import LayerConfig
from llm_kb.config.load import (
    Layers,
    find_source,
    load_config,
    read_layer,
    read_layers,
    user_source,
)
from llm_kb.config.report import render_notices
from llm_kb.config.workspace import find_cwd, find_workspace, user_config_path
from llm_kb.errors import ConfigError, UnknownTopicError
from llm_kb.subjects.topics import BUILT_IN_TOPICS, REFERENCE_PREFIX, Config
from llm_kb.user_dir import find_user_dir


def require_cwd() -> Path:
    """Return the current directory. Raises ClickException if it was deleted."""
    cwd = find_cwd()
    if cwd is None:
        raise click.ClickException("the current directory is gone; change to another one")
    return cwd


def current_layers(*, any_owner: bool = False) -> Layers:
    """Read the files in effect here, as `read_layers`. Raises ConfigError."""
    return read_layers(
        find_cwd(), user_dir=find_user_dir(), environ=os.environ, any_owner=any_owner
    )


def current_config(kb_cfg: tuple[str, ...] = ()) -> Config:
    """Load the configuration in effect here. Raises KbError."""
    return load_config(find_cwd(), user_dir=find_user_dir(), environ=os.environ, fragments=kb_cfg)


def say_notices(config: Config) -> None:
    """Print the lines about the workspace that a request would print."""
    for notice in render_notices(config):
        say(f"llm-kb: {notice}")


def user_file() -> LayerSource:
    """Return the user layer's file, even if it does not exist."""
    return user_source(user_config_path(find_user_dir()), os.environ)


def workspace_file() -> LayerSource | None:
    """Return the workspace layer's file, if there is one."""
    file = find_workspace(find_cwd(), os.environ, user_dir=find_user_dir())
    return find_source(file, find_user_dir()) if file else None


def nearest_file(*, user: bool) -> LayerSource:
    """Return the file to which a new topic is added."""
    file = user_file() if user else workspace_file()
    if file is None:
        require_cwd()
        raise click.ClickException(
            "there is no llm-kb.toml here or above; run 'llm kb init' first, "
            "or use --user for a topic of your own"
        )
    return file


def file_of_topic(topic: str) -> LayerSource:
    """Return the nearest file that configures a topic, or may configure a built-in one.

    Raises UnknownTopicError.
    """
    workspace, user = workspace_file(), user_file()
    files = [file for file in (workspace, user) if file is not None]
    layers = [read_layer(file) for file in files]
    for file, layer in zip(files, layers, strict=True):
        if topic in layer.topics:
            return file
    if topic in BUILT_IN_TOPICS:
        return files[0]
    if topic.startswith(REFERENCE_PREFIX):
        return user
    raise UnknownTopicError(topic, sorted({id_ for layer in layers for id_ in layer.topics}))


def edit_file(file: LayerSource, decide: Callable[[dict[str, Any]], Change]) -> None:
    """Make one change to a file, unless it makes the layers inconsistent.

    If they are inconsistent already, the change is made and a message says so: an edit
    may be one of several that fix them. Raises KbError.
    """
    before = _find_fitting()
    edit_config(file, decide, partial(_require_fit, before, file))
    if before is None and _find_fitting() is None:
        say("llm-kb: the configuration as a whole is still not valid; see 'llm kb config'")


def require_change(file: LayerSource, decide: Callable[[dict[str, Any]], Change]) -> None:
    """Raise the KbError of a change that could not be made, and change nothing."""
    prepare_edit(file, decide, partial(_require_fit, _find_fitting(), file))


def _find_fitting() -> Layers | None:
    """Return the layers in effect, or None if they are inconsistent."""
    try:
        layers = current_layers()
        layers.require_fit()
    except ConfigError:
        return None
    return layers


def _require_fit(before: Layers | None, source: LayerSource, layer: LayerConfig) -> None:
    """Raise ConfigError if an edited layer makes consistent layers inconsistent."""
    if before is None:
        return
    try:
        before.with_edited(layer, source).require_fit()
    except ConfigError as error:
        problem = f"the configuration as a whole would not be valid: {error}"
        raise ConfigError(error.where, [problem]) from error
