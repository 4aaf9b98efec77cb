"""`llm kb new` and `edit`: write a new subject, or change one."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import click

from llm_kb.capture.catalog import TOPIC_ID
from llm_kb.commands._config import current_config
from llm_kb.commands._options import complete_topic_slash_slug
from llm_kb.commands._output import say, show_content
from llm_kb.errors import KbError, NoMatchError, UnknownTopicError, show_place
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.host.terminal import has_terminal, is_terminal
from llm_kb.subjects.selection import find_near
from llm_kb.subjects.topics import Layout, Topic
from llm_kb.upkeep.new_subject import SubjectExistsError, create_subject, replace_subject

MOST_TEXT = 20_000_000
"""The most bytes of a text; a search reads no more of a file."""

from_option = click.option(
    "source",
    "--from",
    type=click.File("rb"),
    help="Take the text from this file  [default: standard input, if it is piped]",
)


@click.command()
@click.argument("name", metavar="TOPIC/SLUG", shell_complete=complete_topic_slash_slug)
@from_option
def new(name: str, source: BinaryIO | None) -> None:
    """
    Write a new subject and open it in your editor

    The file is SLUG.md below the topic's directory, or SLUG itself if it ends in an
    extension; a leading dot makes it a hidden subject. Prints the path. With a text
    that is piped in, or without a terminal, no editor is opened.

    \b
        llm kb new project/maintainers/release-manager
        llm kb new project/.internal-notes
        llm kb new project/ruff.toml --from ../ruff.toml
        pbpaste | llm kb new project/incident
    """
    topic_id, slug = split_name(name)
    topic = find_topic(topic_id)
    catalog = DirectoryCatalog(topic)
    for subject in catalog.list(slug).subjects:
        raise SubjectExistsError(topic.id, slug, topic.root / subject.path)
    text = _read_text(source)
    path = create_subject(topic, slug, text)
    show_content(os.fsencode(path))  # as bytes: a name need not be text
    if not catalog.list(path.relative_to(topic.root).as_posix()).subjects:
        say(f"llm-kb: {slug} is ignored or disabled in topic {topic.id}: no model will see it")
    if better := _find_place(topic, slug):
        say(f"llm-kb: this is the project's own directory; {better.id}/{slug} would be in")
        say(f"llm-kb: {show_place(better.root)}")
    if not text and has_terminal():
        open_editor(path)


def _read_text(source: BinaryIO | None) -> bytes:
    """Return the text given with an option or piped in; empty for none."""
    if source is None and (sys.stdin is None or sys.stdin.closed or is_terminal(sys.stdin)):
        return b""
    text = (source or sys.stdin.buffer).read(MOST_TEXT + 1)
    if len(text) > MOST_TEXT:
        raise click.ClickException(f"the text is larger than {MOST_TEXT // 1_000_000} MB")
    return text


def _find_place(topic: Topic, slug: str) -> Topic | None:
    """Return a topic with a directory of its own, for a slug in one on the workspace itself."""
    config = current_config()
    if topic.root != config.workspace or "/" in slug:
        return None
    others = (each for each in config.topics if each.root != config.workspace)
    inside = (each for each in others if each.root.is_relative_to(topic.root))
    return next((each for each in inside if each.layout is Layout.FILES), None)


def split_name(name: str) -> tuple[str, str]:
    """Return the topic and the slug of `TOPIC/SLUG`."""
    topic, slash, slug = name.partition("/")
    if not (topic and slash and slug):
        raise click.UsageError(f"{name!r} is not of the form TOPIC/SLUG")
    return topic, slug


def find_topic(name: str) -> Topic:
    """Return the configured topic of this id. Raises UnknownTopicError."""
    topics = {topic.id: topic for topic in current_config().topics}
    if name == TOPIC_ID and name not in topics:
        raise click.ClickException(
            f"the subjects of {name!r} are made from the entries captured in this repository; "
            "`llm kb knowledge add` adds an entry, and `edit` changes one"
        )
    if name not in topics:
        raise UnknownTopicError(name, sorted(topics))
    return topics[name]


def find_file(topic: Topic, slug: str) -> Path:
    """Return the file of one subject, which may be hidden. Raises KbError."""
    catalog = DirectoryCatalog(topic)
    subjects = catalog.list(slug).subjects
    if not subjects:
        raise NoMatchError(topic.id, slug, find_near(slug, catalog))
    if len(subjects) > 1:
        shown = ", ".join(f"{topic.id}/{subject.name}" for subject in subjects)
        raise KbError(f"{slug!r} of topic {topic.id!r} names several subjects: {shown}")
    return topic.root / subjects[0].path


def open_editor(path: Path) -> None:
    """Open a file in $VISUAL, $EDITOR or the system's editor, and wait for it."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor and not has_terminal():
        raise click.ClickException(
            f"there is no terminal to edit on; the file is {show_place(path)}"
        )
    # Not `click.edit`: some versions pass the name through a shell.
    try:
        command = shlex.split(editor or "vi")
    except ValueError as error:
        raise click.ClickException(f"$VISUAL or $EDITOR cannot be read: {editor!r}") from error
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode  # noqa: S603
    except OSError as error:
        raise click.ClickException(
            f"cannot run the editor {command[0]!r}: {error.strerror}; $EDITOR names another"
        ) from error
    if code:
        raise click.ClickException(f"the editor {command[0]!r} failed with exit code {code}")


@click.command()
@click.argument("name", metavar="TOPIC/SLUG", shell_complete=complete_topic_slash_slug)
@from_option
def edit(name: str, source: BinaryIO | None) -> None:
    """
    Open a subject in $VISUAL or $EDITOR, or replace its text

    SLUG is exact, with or without its extension and dots, so that a hidden
    subject can be edited as well. A text that is piped in replaces the subject's.

    \b
        llm kb edit project/code-quality
        llm kb show project/todo | sort | llm kb edit project/todo
    """
    topic_id, slug = split_name(name)
    topic = find_topic(topic_id)
    path = find_file(topic, slug)
    if text := _read_text(source):
        replace_subject(topic, path, text)
        show_content(os.fsencode(path))
    else:
        open_editor(path)
