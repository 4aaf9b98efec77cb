"""`llm kb new`: write a new subject."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click

from llm_kb.capture.catalog import TOPIC_ID
from llm_kb.commands._config import current_config
from llm_kb.commands._options import complete_topic_slash_slug
from llm_kb.commands._output import say, show_content
from llm_kb.errors import UnknownTopicError
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.host.terminal import has_terminal, is_terminal
from llm_kb.subjects.topics import Topic
from llm_kb.upkeep.new_subject import SubjectExistsError, create_subject

MOST_TEXT = 20_000_000
"""The most bytes of a text; a search reads no more of a file."""


@click.command()
@click.argument("name", metavar="TOPIC/SLUG", shell_complete=complete_topic_slash_slug)
def new(name: str) -> None:
    """
    Write a new subject and open it in $VISUAL or $EDITOR

    The file is SLUG.md below the topic's directory, or SLUG itself if it ends in an
    extension; a leading dot makes it a hidden subject. Prints the path. With a text
    that is piped in, or without a terminal, no editor is opened.

    \b
        llm kb new project/maintainers/release-manager
        llm kb new project/.internal-notes
        llm kb new project/ruff.toml < ../ruff.toml
        pbpaste | llm kb new project/incident
    """
    topic_id, slash, slug = name.partition("/")
    if not (topic_id and slash and slug):
        raise click.UsageError(f"{name!r} is not of the form TOPIC/SLUG")
    topic = _find_topic(topic_id)
    catalog = DirectoryCatalog(topic)
    for subject in catalog.list(slug).subjects:
        raise SubjectExistsError(topic.root / subject.path)
    text = _read_piped()
    path = create_subject(topic, slug, text)
    show_content(os.fsencode(path))  # as bytes: a name need not be text
    if not catalog.list(path.relative_to(topic.root).as_posix()).subjects:
        say(f"llm-kb: {slug} is ignored or disabled in topic {topic.id}: no model will see it")
    if not text and has_terminal():
        _open_editor(path)


def _find_topic(name: str) -> Topic:
    """Return the configured topic of this id. Raises UnknownTopicError."""
    topics = {topic.id: topic for topic in current_config().topics}
    if name == TOPIC_ID and name not in topics:
        raise click.ClickException(
            f"the subjects of {name!r} are made from the entries captured in this repository; "
            "`llm kb knowledge add` adds an entry"
        )
    if name not in topics:
        raise UnknownTopicError(name, sorted(topics))
    return topics[name]


def _read_piped() -> bytes:
    """Return the text on standard input; empty for none."""
    if sys.stdin is None or sys.stdin.closed or is_terminal(sys.stdin):
        return b""
    text = sys.stdin.buffer.read(MOST_TEXT + 1)
    if len(text) > MOST_TEXT:
        raise click.ClickException(f"the text is larger than {MOST_TEXT // 1_000_000} MB")
    return text


def _open_editor(path: Path) -> None:
    """Open a file in $VISUAL, $EDITOR or the system's editor, and wait for it."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    # Not `click.edit`: some versions pass the name through a shell.
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode  # noqa: S603
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.ClickException(
            f"cannot run the editor {editor!r}: {reason}; $EDITOR names another"
        ) from error
    if code:
        raise click.ClickException(f"the editor {editor!r} failed with exit code {code}")
