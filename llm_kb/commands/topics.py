"""`llm kb add`, `remove`, `learned` and `disable`: edit the topics of a configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._config import edit_file, file_of_topic, nearest_file, require_change
from llm_kb.commands._options import complete_slug, complete_topic
from llm_kb.commands._output import confirm, say
from llm_kb.config.changes import define_topic, drop_topic, extend_patterns, reduce_patterns
from llm_kb.config.load import read_layer
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import KbError, NoMatchError, show_place
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.host.terminal import is_terminal
from llm_kb.knowledge_base.topics import EmptyTopicError
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import find_near
from llm_kb.subjects.topics import Layout
from llm_kb.upkeep.check import disables_any, holds
from llm_kb.upkeep.first_topics import find_layout, measure

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
    order are kept. A topic of a workspace must be inside it; with --user it may be
    anywhere.

    \b
        llm kb add project kb/project --title "General Project Knowledge"
        llm kb add skills .claude/skills --layout skills
        llm kb add notes ~/notes --user
    """
    file = nearest_file(user=user)
    place = Path(os.path.normpath((find_cwd() or Path("/")) / directory))
    is_there = os.path.isdir(place)  # noqa: PTH112 - it never raises, however long the name
    is_skills = is_there and layout is None and find_layout(place) is Layout.SKILLS
    layout = Layout.SKILLS.value if is_skills else layout
    fields = {
        "title": title,
        "introduction": introduction,
        "description": description,
        "subjects": _name_directory(place, None if user else file.base),
        "layout": layout,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    decide = partial(define_topic, id_=topic, fields=given)
    if is_there:
        require_change(file, decide)  # before a directory is counted, and a question asked
        if is_skills:
            say(
                f"{show_place(place)} holds skills, so each is one subject;"
                " --layout files changes that"
            )
        _announce(place, Layout(layout or Layout.FILES))
    edit_file(file, decide)
    say(f"Added topic {topic} to {show_place(file.path)}")
    if is_there:
        _say_nested(topic)
    else:
        say(f"{show_place(place)} does not exist yet; 'llm kb new {topic}/SLUG' creates it")


def _say_nested(topic: str) -> None:
    """Print the topics that hold all subjects of a new one, or whose subjects it holds."""
    kb = KnowledgeBase.discover()
    new = kb.topics.get(topic)
    for id_ in (each.id for each in kb.config.topics if each.id != topic):
        other = kb.topics.get(id_)
        if new and other and (holds(other, new) or holds(new, other)):
            inner, outer = (topic, id_) if holds(other, new) else (id_, topic)
            say(f"All subjects of {inner} are in {outer} too, and would be found twice:")
            say(f"remove a topic ('llm kb remove {id_}'), or use `ignore` in the configuration")


def _announce(place: Path, layout: Layout) -> None:
    """Print the size of a directory, and ask on a terminal if it is large."""
    subjects, tokens = measure(place, layout)
    size = f"{count(subjects, 'subject')}, ~{tokens:,} tokens"
    say(f"{show_place(place)}: {size}")
    is_large = subjects > MANY_SUBJECTS or tokens > MANY_TOKENS
    if is_large and is_terminal(sys.stdin):
        confirm("Make all of it one topic? (`ignore` in the configuration can leave files out)")


def _name_directory(place: Path, root: Path | None) -> str:
    """Return a directory as a configuration file in this root names it; None for the user's."""
    if root is None:
        return str(place)
    name = Path(os.path.relpath(place, root))
    if name.parts[:1] == ("..",):
        raise click.ClickException(
            f"{show_place(place)} is outside the workspace {show_place(root)};"
            " with --user, a topic may be anywhere"
        )
    return name.as_posix()


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.option("yes", "-y", "--yes", is_flag=True, help="Remove without asking")
def remove(topic: str, yes: bool) -> None:
    """
    Remove TOPIC from the configuration; its files stay

    \b
        llm kb remove project
        llm kb remove project -y
    """
    file = file_of_topic(topic)
    confirm(f"Remove topic {topic} from {show_place(file.path)}?", yes=yes)
    edit_file(file, lambda document: drop_topic(document, topic))
    say(f"Removed topic {topic} from {show_place(file.path)}; its files are where they were")


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.argument(
    "patterns", nargs=-1, required=True, metavar="PATTERN...", shell_complete=complete_slug
)
@click.option("--remove", is_flag=True, help="Remove the patterns instead")
def learned(topic: str, patterns: tuple[str, ...], remove: bool) -> None:
    """
    Pre-load the subjects of TOPIC that match PATTERN

    They are then part of every section, and no longer in the menu. --remove takes a
    PATTERN back as it was written.

    \b
        llm kb learned project code-quality 'maintainers/*'
        llm kb learned project code-quality --remove
    """
    edit_patterns(topic, "learned", patterns, remove=remove)


def edit_patterns(topic: str, name: str, patterns: Sequence[str], *, remove: bool) -> None:
    """Add patterns to a list of a topic, or remove them. Raises KbError.

    A name that no subject has is an error; a glob may be meant for future subjects.
    """
    wanted = [parse_pattern(pattern).text for pattern in patterns]
    file = file_of_topic(topic)
    unmatched = [] if remove else list(_find_unmatched(topic, name, wanted))
    for error in unmatched:
        if parse_pattern(error.pattern).literal and not isinstance(error, EmptyTopicError):
            raise error
    decide = reduce_patterns if remove else extend_patterns
    edit_file(file, lambda document: decide(document, topic, name, wanted))
    key = f"kb.topic.{topic}.{name}"
    now = read_layer(file).settings[key].value
    held = f"now holds: {', '.join(now)}" if isinstance(now, tuple) and now else "is now empty"
    say(f"{key} in {show_place(file.path)} {held}")
    for error in unmatched:
        say(f"llm-kb: saved, but matches nothing yet: {error}")


def _find_unmatched(id_: str, name: str, patterns: Sequence[str]) -> Iterator[NoMatchError]:
    """Yield an error for each pattern that matches no subject of a topic.

    Yields none for a missing topic: references and captured knowledge may be absent.
    """
    try:
        kb = KnowledgeBase.discover()
    except KbError:
        return  # reported when the file is edited
    if name == "disabled":
        for topic in kb.config.topics:
            whole = DirectoryCatalog(replace(topic, disabled=()))
            for pattern in patterns if topic.id == id_ else ():
                if not disables_any(topic, pattern):
                    yield NoMatchError(id_, pattern, find_near(pattern, whole))
        return
    for pattern in patterns if id_ in kb.topics else ():
        try:
            kb.require(id_, pattern)
        except NoMatchError as error:
            yield error


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.argument(
    "patterns", nargs=-1, required=True, metavar="PATTERN...", shell_complete=complete_slug
)
@click.option("--remove", is_flag=True, help="Remove the patterns instead")
def disable(topic: str, patterns: tuple[str, ...], remove: bool) -> None:
    """
    Exclude the subjects of TOPIC that match PATTERN

    A disabled subject is never listed, loaded, suggested or found. --remove takes a
    PATTERN back as it was written.

    \b
        llm kb disable project drafts 'old/**'
        llm kb disable project drafts --remove
    """
    edit_patterns(topic, "disabled", patterns, remove=remove)
