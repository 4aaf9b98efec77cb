"""`llm kb new`: write a new subject."""

from __future__ import annotations

import os

import click

from llm_kb.commands._completion import complete_topic_slash
from llm_kb.commands._config import say
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._subjects import find_topic, open_editor, split_name
from llm_kb.directory import DirectoryCatalog
from llm_kb.subject_files import SubjectExistsError, create_subject
from llm_kb.terminal import has_terminal


@click.command()
@click.argument("name", metavar="TOPIC/SLUG", shell_complete=complete_topic_slash)
@click.option("--no-edit", is_flag=True, help="Only write the file")
@kb_errors
def new(name: str, no_edit: bool) -> None:
    """
    Write a new subject and open it in your editor

    The file is SLUG.md below the topic's directory, or SLUG itself where it ends
    in an extension; a leading dot makes it a hidden subject. Prints the path.
    Without a terminal the editor is left out.

    \b
        llm kb new project/maintainers/release-manager
        llm kb new project/.internal-notes
        llm kb new project/ruff.toml --no-edit
    """
    topic_id, slug = split_name(name)
    topic = find_topic(topic_id)
    catalog = DirectoryCatalog(topic)
    for subject in catalog.find(slug):
        raise SubjectExistsError(topic.id, slug, topic.root / subject.path)
    path = create_subject(topic, slug)
    click.echo(os.fsencode(path))  # as bytes: a name need not be text
    if not catalog.find(path.relative_to(topic.root).as_posix()):
        say(f"llm-kb: {slug} is ignored or disabled in topic {topic.id}: no model will see it")
    if not no_edit and has_terminal():
        open_editor(path)
