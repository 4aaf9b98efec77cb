"""The configuration in effect where a command runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import llm

from llm_kb.config.load import Layers, load_config, read_layers
from llm_kb.config.trust_report import render_withheld
from llm_kb.config.workspace import find_cwd
from llm_kb.host.terminal import is_terminal
from llm_kb.rendering.plain_text import visible_line, visible_text
from llm_kb.subjects.topics import Config


def user_dir() -> Path:
    """Return the user directory of the host."""
    return Path(llm.user_dir())


def require_cwd() -> Path:
    """Return the current directory; say what is wrong when it was deleted."""
    cwd = find_cwd()
    if cwd is None:
        raise click.ClickException("the current directory is gone; change to another one")
    return cwd


def current_layers() -> Layers:
    """Read the files in effect here. Raises ConfigError."""
    return read_layers(find_cwd(), user_dir=user_dir(), environ=os.environ)


def current_config(kb_cfg: tuple[str, ...] = (), knowledge: tuple[str, ...] = ()) -> Config:
    """Load the configuration in effect here. Raises KbError."""
    return load_config(
        find_cwd(),
        user_dir=user_dir(),
        environ=os.environ,
        fragments=kb_cfg,
        knowledge=knowledge,
    )


def show(text: str, *, nl: bool = True) -> None:
    """Print text for people; a name that is no text is shown as its codes."""
    click.echo(text.encode("utf-8", "backslashreplace").decode(), nl=nl)


def say_withheld(config: Config) -> None:
    """Name what an untrusted workspace asks for and does not get, as a request does."""
    if config.withheld:
        say(f"llm-kb: {render_withheld(config)}")


def say(text: str) -> None:
    """Talk to the person, on standard error; what could repaint a terminal stands as its code."""
    click.echo(visible_text(text), err=True)


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal and abort on no; without a terminal require `-y`."""
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise click.ClickException(
            f"{visible_line(question)} There is no terminal to ask on: use -y to say yes"
        )
    click.confirm(visible_line(question), abort=True, err=True)
