"""`llm kb learned` and `disable`: edit the patterns of a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._completion import complete_slug, complete_topic
from llm_kb.commands._editing import edit_file, file_of_topic
from llm_kb.commands._output import say
from llm_kb.config.changes import extend_patterns, reduce_patterns
from llm_kb.errors import KbError, NoMatchError, show_place
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.knowledge_base.topics import EmptyTopicError
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import find_near
from llm_kb.upkeep.check import disables_any


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.argument(
    "patterns", nargs=-1, required=True, metavar="PATTERN...", shell_complete=complete_slug
)
@click.option("--remove", is_flag=True, help="Take the patterns out instead")
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
    now = file.layer.settings[key].value
    held = ", ".join(now) if isinstance(now, tuple) and now else "nothing"
    say(f"{key} in {show_place(file.path)} now holds: {held}")
    for error in unmatched:
        say(f"llm-kb: not yet useful: {error}")


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
@click.option("--remove", is_flag=True, help="Take the patterns out instead")
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
