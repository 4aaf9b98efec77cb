"""`llm kb new` and `edit`: write a new subject, or change one."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path

import click

from llm_kb.config.load import find_kind
from llm_kb.errors import KbError, NoMatchError, UnknownTopicError, join_names, show_place
from llm_kb.files.atomic import create_below, replace_below
from llm_kb.files.containment import read_regular, resolve_links
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import place_subject
from llm_kb.knowledge_base.kinds import given_kinds, load_here
from llm_kb.rendering.differences import render_difference
from llm_kb.rendering.plain_text import command_line
from llm_kb.subjects.topics import Layout, TopicConfig, find_exact, find_near
from llm_kb.terminal.editor import open_editor
from llm_kb.terminal.options import complete_address
from llm_kb.terminal.output import say, show_content
from llm_kb.terminal.screen import confirm_on_tty, has_terminal, is_terminal
from llm_kb.texts.decoding import MOST_BYTES, TOO_LARGE, explain_conversion, is_binary
from llm_kb.texts.formats import MARKDOWN_ENDING
from llm_kb.texts.safe import visible_line


@click.command()
@click.argument("name", metavar="TOPIC/SLUG", shell_complete=complete_address)
def new(name: str) -> None:
    """
    Write a new subject and open it in your editor

    The file is SLUG.md below the topic's directory, or SLUG itself if it ends in a
    common extension of text, such as .toml; a leading dot makes it a hidden subject.
    Prints the path. With a text that is piped in, or without a terminal, no editor is
    opened.

    \b
        llm kb new project/maintainers/release-manager
        llm kb new project/.internal-notes
        llm kb new project/ruff.toml < ../ruff.toml
        pbpaste | llm kb new project/incident
    """
    topic, slug = _find_topic(name)
    if not slug:
        raise click.UsageError(f"{name!r} names no page: llm kb new {topic.id}/SLUG")
    text = _read_text()
    path = create_subject(topic, slug, text)
    show_content(os.fsencode(path))  # as bytes: a name need not be text
    if not DirectoryTopic(topic).list(path.relative_to(topic.root).as_posix()).subjects:
        say(f"llm-kb: {slug} is ignored or disabled in topic {topic.id}: no model will see it")
    if better := _find_place(topic, slug):
        place = show_place(better.root)
        say(f"llm-kb: this is the project's own directory; {better.id}/{slug} would be in {place}")
    if not text and has_terminal():
        open_editor(path)
    if is_terminal(sys.stdout):
        say(f"llm-kb: models know it as {topic.id}/{slug}; next: llm kb check")


@click.command()
@click.argument("name", metavar="TOPIC/SUBJECT", shell_complete=complete_address)
@click.option("-y", "--yes", is_flag=True, help="Replace the text without asking")
@click.option("--shorter", is_flag=True, help="With -y, also by one of less than half its size")
def edit(name: str, yes: bool, shorter: bool) -> None:
    """
    Open a subject in $VISUAL or $EDITOR, or replace its text

    SUBJECT is exact, with or without its extension and dots, so that a hidden
    subject can be edited as well; a #PART behind it does not matter. A text that is
    piped in replaces the subject's, once you have seen the difference and said yes.

    \b
        llm kb edit project/code-quality
        llm kb show project/todo | sort | llm kb edit project/todo
        llm -k project/todo 'Shorten this' | llm kb edit project/todo
    """
    topic, slug = _find_topic(name)
    catalog = DirectoryTopic(topic)
    subjects = find_exact(catalog, slug)[0] if slug else catalog.list().subjects
    if not subjects:
        raise NoMatchError(topic.id, slug, find_near(slug, catalog))
    if len(subjects) > 1:
        shown = join_names([f"{topic.id}/{subject.name}" for subject in subjects])
        raise KbError(f"{name!r} names several subjects: {shown}")
    path = topic.root / subjects[0].path
    before = read_regular(path, follow_link=True, most=MOST_BYTES)
    if problem := explain_conversion(before):  # what is written here is UTF-8
        raise KbError(f"cannot edit {show_place(path)}: {problem}")
    text = _read_text()
    if text.strip():
        if _may_replace(show_place(path), path.name, before, text, yes=yes, shorter=shorter):
            _replace_subject(topic, path, before, text)
        show_content(os.fsencode(path))
    elif _is_piped():
        raise click.ClickException(f"the text is empty; {show_place(path)} stays as it is")
    else:
        open_editor(path)


def _may_replace(
    place: str, name: str, before: bytes, text: bytes, *, yes: bool, shorter: bool
) -> bool:
    """Tell whether a text is to be replaced: a person agreed. Raises ClickException."""
    is_shorter = 2 * len(text.strip()) < len(before.strip())
    loss = f"{len(before):,} bytes become {len(text):,}"
    if yes and is_shorter and not shorter:
        raise click.ClickException(f"{loss} in {place}: pass --shorter if that is meant")
    if yes or text == before:
        return text != before
    old, new = (each.decode("utf-8", "replace") for each in (before, text))
    mark = f"WARNING: more than half is lost: {loss}\n" if is_shorter else ""
    shown = "\n".join(render_difference(old, new, name))
    answer = confirm_on_tty(f"{shown}\n{mark}Replace the text of {visible_line(place)}?")
    if answer is None:
        raise click.ClickException(
            f"nothing was written: there is no terminal to ask on; -y replaces {place}"
        )
    if not answer:
        raise click.Abort
    return True


def _is_piped() -> bool:
    """Tell whether standard input is a pipe or a file, from which a text was to come."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or not a real file
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _replace_subject(topic: TopicConfig, path: Path, before: bytes, text: bytes) -> None:
    """Replace a file of a topic, or one outside to which the user lets its links lead."""
    if read_regular(path, follow_link=True, most=MOST_BYTES) != before:
        raise KbError(f"{show_place(path)} has just been changed; nothing was written")
    real = resolve_links(path)
    roots = (topic.root, *topic.allow_links_to)
    root = next((each for each in roots if real.is_relative_to(each)), topic.root)
    replace_below(root, path, text)


def _find_topic(name: str) -> tuple[TopicConfig, str]:
    """Return the configured topic and the slug of `TOPIC/SLUG`. Raises UnknownTopicError."""
    id_, _, slug = name.partition("/")
    topics = {topic.id: topic for topic in load_here().topics}
    if id_ not in topics:
        kind = find_kind(id_, given_kinds())
        advice = f"; {kind.advice}" if kind and kind.advice else ""
        raise UnknownTopicError(id_, sorted(topics), near=advice)
    return topics[id_], slug


def _read_text() -> bytes:
    """Return the text that is piped in; empty for none."""
    if sys.stdin is None or sys.stdin.closed or is_terminal(sys.stdin):
        return b""
    text = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise click.ClickException(f"the text is {TOO_LARGE}")
    if is_binary(text):
        raise click.ClickException("that is not text; copy such a file into the topic's directory")
    return text


def create_subject(topic: TopicConfig, slug: str, text: bytes = b"") -> Path:
    """Write a new subject, by default with a heading, and return its file.

    The slug gets `.md` unless it ends in an extension. Raises KbError.
    """
    found, _ = find_exact(DirectoryTopic(topic), slug)
    place = found[0].path if found else place_subject(slug, topic.layout)
    path = topic.root / place
    try:
        create_below(topic.root, place, text or render_template(path, topic.layout).encode())
    except FileExistsError as error:
        command = command_line("edit", f"{topic.id}/{slug}")
        raise KbError(f"{str(path)!r} exists already; use `{command}`") from error
    return path


def render_template(path: Path, layout: Layout) -> str:
    """Return the first text of a new subject, which is empty unless it is Markdown."""
    if path.suffix.lower() != MARKDOWN_ENDING:
        return ""
    name = path.parent.name if layout is Layout.SKILLS else path.stem.lstrip(".")
    words = re.sub(r"[-_]+", " ", name).strip()
    heading = f"# {words[:1].upper()}{words[1:]}\n\n"
    if layout is not Layout.SKILLS:
        return heading
    return f"---\nname: {name}\ndescription: What it is for, and when to use it.\n---\n\n{heading}"


def _find_place(topic: TopicConfig, slug: str) -> TopicConfig | None:
    """Return a topic with a directory of its own, for a slug in one on the workspace itself."""
    config = load_here()
    if topic.root != config.workspace or "/" in slug:
        return None
    others = (each for each in config.topics if each.root != config.workspace)
    inside = (each for each in others if each.root.is_relative_to(topic.root))
    return next((each for each in inside if each.layout is Layout.FILES), None)
