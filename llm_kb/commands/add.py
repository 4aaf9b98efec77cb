"""`llm kb add`: make a directory a topic."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from llm_kb.commands._editing import edit_file, nearest_file
from llm_kb.commands._output import confirm, say
from llm_kb.config.changes import define_topic
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import show_place
from llm_kb.host.terminal import is_terminal
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.topics import Layout
from llm_kb.upkeep.proposals import find_layout, measure

MANY_SUBJECTS = 500
MANY_TOKENS = 500_000
"""A topic of more than either is only made after a question."""


@click.command()
@click.argument("topic")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--title", help="Name shown to the model instead of the id")
@click.option("--introduction", help="One sentence for the menu")
@click.option("--description", help="Text shown by learn and above pre-loaded subjects")
@click.option(
    "--layout",
    type=click.Choice([layout.value for layout in Layout]),
    help="'skills' for one subject per directory with a SKILL.md, 'files' for one per file"
    "  [default: what DIRECTORY looks like]",
)
@click.option("--user", is_flag=True, help="A topic of your own, offered in every workspace")
def add(
    *,
    topic: str,
    directory: Path,
    title: str | None,
    introduction: str | None,
    description: str | None,
    layout: str | None,
    user: bool,
) -> None:
    """
    Make DIRECTORY a topic called TOPIC

    Adds it to the nearest configuration file ('llm kb path'), whose comments and
    order are kept. A topic of a workspace lies inside it; with --user it may be
    anywhere.

    \b
        llm kb add project kb/project --title "General Project Knowledge"
        llm kb add skills .claude/skills --layout skills
        llm kb add notes ~/notes --user
    """
    file = nearest_file(user=user)
    place = Path(os.path.normpath((find_cwd() or Path("/")) / directory))
    is_there = os.path.isdir(place)  # noqa: PTH112 - it never raises, however long the name
    if is_there and layout is None and find_layout(place) is Layout.SKILLS:
        layout = Layout.SKILLS.value
        say(
            f"{show_place(place)} holds skills, so each is one subject; --layout files changes that"
        )
    fields = {
        "title": title,
        "introduction": introduction,
        "description": description,
        "subjects": _name_directory(place, None if user else file.source.base),
        "layout": layout,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    if is_there:
        _announce(place, Layout(layout or Layout.FILES))
    edit_file(file, lambda document: define_topic(document, topic, given))
    say(f"Added topic {topic} to {show_place(file.path)}")
    if not is_there:
        say(f"{show_place(place)} is not there yet; 'llm kb new {topic}/SLUG' makes it")


def _announce(place: Path, layout: Layout) -> None:
    """Print the size of a directory, and ask on a terminal if it is large."""
    totals = measure(place, layout)
    size = f"{count(totals.subjects, 'subject')}, ~{totals.tokens:,} tokens"
    say(f"{show_place(place)}: {size}")
    is_large = totals.subjects > MANY_SUBJECTS or totals.tokens > MANY_TOKENS
    if is_large and is_terminal(sys.stdin):
        confirm("Make all of it one topic? (`ignore` in the configuration can leave files out)")


def _name_directory(place: Path, root: Path | None) -> str:
    """Return a directory as a configuration file in this root names it; None for the user's."""
    if root is None:
        return str(place)
    return Path(os.path.relpath(place, root)).as_posix()
