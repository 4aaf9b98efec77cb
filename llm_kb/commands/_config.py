"""The configuration in effect where a command runs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llm_kb.commands._output import say
from llm_kb.config.load import Layers, load_config, read_layers
from llm_kb.config.report import render_notices
from llm_kb.config.workspace import find_cwd
from llm_kb.subjects.topics import Config
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
