"""The configuration in effect where a command runs, and the file of it that a command edits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from llm_kb.config.changes import edit_config
from llm_kb.config.layers import LayerSource, by_topic
from llm_kb.config.load import find_kind, find_source, read_layer, user_source
from llm_kb.config.settings import Config
from llm_kb.config.trust import render_withheld
from llm_kb.config.workspace import find_cwd, find_workspace
from llm_kb.errors import ConfigError, UnknownTopicError
from llm_kb.knowledge_base.kinds import find_user_dir, given_kinds, load_here
from llm_kb.terminal.output import say


def require_cwd() -> Path:
    """Return the current directory. Raises ClickException if it was deleted."""
    cwd = find_cwd()
    if cwd is None:
        raise click.ClickException("the current directory is gone; change to another one")
    return cwd


def say_withheld(config: Config) -> None:
    """Print the line about skipped settings of the workspace that a request would print."""
    if skipped := render_withheld(config):
        say(f"llm-kb: {skipped}")


def workspace_file() -> LayerSource | None:
    """Return the workspace layer's file, if there is one."""
    file = find_workspace(find_cwd(), os.environ, user_dir=find_user_dir())
    return find_source(file, find_user_dir()) if file else None


def nearest_file(*, user: bool) -> LayerSource:
    """Return the file to which a new topic is added."""
    file = user_source(find_user_dir()) if user else workspace_file()
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
    user = user_source(find_user_dir())
    files = [file for file in (workspace_file(), user) if file is not None]
    topics = {id_: file for file in reversed(files) for id_ in by_topic(read_layer(file))}
    if topic in topics:
        return topics[topic]
    if kind := find_kind(topic, given_kinds()):
        return user if kind.is_users else files[0]
    raise UnknownTopicError(topic, sorted(topics))


def edit_file(file: LayerSource, change: Callable[[str], str]) -> bool:
    """Change the text of a file, and tell whether the configuration as a whole is valid then.

    If not, the reason is printed. Raises KbError for a text that cannot be changed.
    """
    edit_config(file, change)
    try:
        load_here()
    except ConfigError as error:
        say(f"llm-kb: the configuration as a whole is not valid now: {error}")
        return False
    return True
