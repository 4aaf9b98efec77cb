"""`llm kb init`: write a first configuration, or add what is new to one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from shutil import get_terminal_size

import click
from click import wrap_text

from llm_kb.config.changes import define_topic
from llm_kb.config.workspace import WORKSPACE_FILES, find_foreign_owner
from llm_kb.errors import show_place
from llm_kb.files.atomic import create_below, make_directory_below
from llm_kb.files.containment import resolve_links
from llm_kb.knowledge_base.user_dir import load_here
from llm_kb.rendering.plain_text import command_line, count, shorten
from llm_kb.terminal.configured import edit_file, require_cwd, workspace_file
from llm_kb.terminal.output import confirm, say, show
from llm_kb.texts.safe import visible_line
from llm_kb.upkeep.accounts import Leftover
from llm_kb.upkeep.first_topics import Proposal, Proposals, propose_topics
from llm_kb.upkeep.project_files import RULES

_FILE = "llm-kb.toml"
_WIDTH = 60
_LEAST_EXAMPLE = 12

_LARGE = 100_000
"""Tokens from which a page that is most of its topic is named."""

_EMPTY = Proposal("project", "Project", "How we work on this project, and why.", "kb/project")
"""The proposal for an empty workspace; its directory must be created."""

_START = """\
# The knowledge that models can learn here: `llm kb list` shows it, `llm kb prompt` what
# a model sees of it, and `llm -T learn "your question"` lets one read what it needs.

[kb]
# menu = "subjects"        # list every subject with a summary, not the topics alone
# auto = true              # as if every prompt had -T learn; counts after `llm kb trust`

# A topic is a directory of text files. More about one:
#   learned = ["code-quality", "maintainers/*"]     # in every section that is sent
#   disabled = ["drafts/**"]                        # never shown to a model
"""
"""A first configuration without topics."""


@click.command()
@click.option(
    "rules",
    "--with",
    multiple=True,
    type=click.Choice(list(RULES)),
    help="Also take what this rule leaves out",
)
@click.option("--dry-run", is_flag=True, help="Print the file and the topics, write nothing")
@click.option("yes", "-y", "--yes", is_flag=True, help="Add new topics without asking")
def init(rules: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """
    Write a first llm-kb.toml in this directory

    Takes every page that git knows: Markdown, reStructuredText, AsciiDoc, notebooks,
    skills, rules for coding tools. Groups them into topics by directory, and prints the
    topics and what was left out, with the command that takes it. In a directory that has
    an llm-kb.toml, it proposes topics for pages that no topic has yet.

    \b
        llm kb init
        llm kb init --dry-run
        llm kb init --with changes --with tests
    """
    root = require_cwd()
    is_new = not any((root / name).exists() for name in WORKSPACE_FILES)
    existing = () if is_new else load_here().topics
    found = propose_topics(root, rules, existing)
    topics = found.topics
    if is_new:
        _write(root, topics, dry_run=dry_run)
    _report(found if is_new or dry_run else found._replace(left_out={}, others=()))
    if not is_new and not topics:
        say("Every page is in a topic already, or left out: llm kb init --dry-run counts these")
    elif not is_new and not dry_run:
        _add(topics, yes=yes or bool(rules))
    for topic in () if dry_run else topics:
        _say_largest(topic)
    if dry_run:
        say("Nothing was written")
    elif is_new:
        _say_next(is_empty=not topics)


def _write(root: Path, topics: Sequence[Proposal], *, dry_run: bool) -> None:
    """Write the first configuration, or print it."""
    if owner := find_foreign_owner(root):
        say(f"{show_place(root)} belongs to another user (uid {owner})")
        say("llm uses a configuration here only after 'llm kb trust'")
    text = _START
    for topic in topics or [_EMPTY]:
        text = _define(text, topic)
    if dry_run:
        show(text, nl=False)
        return
    place = show_place(root / _FILE)
    if not topics:
        make_directory_below(root, _EMPTY.subjects)
    try:
        create_below(resolve_links(root), _FILE, text.encode())
    except FileExistsError as error:
        raise click.ClickException(f"{place} exists already and is left as it is") from error
    say(f"Wrote {place}")


def _add(topics: Sequence[Proposal], *, yes: bool) -> None:
    """Add topics to the configuration."""
    if file := workspace_file():
        confirm(f"Add them to {show_place(file.path)}?", yes=yes)
        for topic in topics:
            edit_file(file, partial(_define, topic=topic))
        say(f"Added {count(len(topics), 'topic')} to {show_place(file.path)}")


def _define(text: str, topic: Proposal) -> str:
    """Return the text of a configuration with a topic."""
    keys = ("title", "introduction", "subjects", "include", "ignore", "layout")
    given = {key: getattr(topic, key) for key in keys}
    lists = {key: list(value) for key, value in given.items() if not isinstance(value, str)}
    fields = {key: value for key, value in (given | lists).items() if value}
    return define_topic(text, topic.id, fields)


def _report(found: Proposals) -> None:
    """Print the topics with their sizes, and what was left out with the command to take it."""
    topics = found.topics
    width = max((len(topic.id) for topic in topics), default=0)
    for topic in topics:
        subjects, tokens = topic.totals
        sizes = f"{count(subjects, 'subject'):>14}  {f'~{tokens:,} tokens':>18}"
        say(f"  {topic.id:{width}}  {sizes}  {_name_place(topic)}")
    if found.left_out or found.others:
        by_rule = " (llm kb init --with NAME takes it)" if found.left_out.keys() & RULES else ""
        say(f"Left out{by_rule}:")
    for what, others, take in found.others:
        if take:
            _say_left_out(what, others)
            say(f"          {visible_line(take)}")
    for rule, paths in found.left_out.items():
        is_rule = rule in RULES
        what = f"{rule}: {RULES[rule].what}" if is_rule else "pages that no topic can hold"
        _say_left_out(what, paths)
    _say_others([other for other in found.others if not other.take])


def _say_largest(topic: Proposal) -> None:
    """Print how to leave out a page that is most of a topic, such as a generated list."""
    (name, size), (subjects, tokens) = topic.largest, topic.totals
    if subjects > 1 and size > max(_LARGE, tokens / 2):
        say(f"{visible_line(name)} is {size / tokens:.0%} of {topic.id}; to leave it out:")
        say(f"  {command_line('disable', f'{topic.id}/{visible_line(name)}')}")


def _say_left_out(what: str, paths: Collection[str]) -> None:
    """Print a line about files in no topic, with an example if there is room."""
    room = 67 - len(what)  # of 80 columns
    example = shorten(visible_line(next(iter(paths))), room) if room >= _LEAST_EXAMPLE else ""
    say(f"  {len(paths):>6,}  {visible_line(what)}{f' ({example})' if example else ''}")


def _say_others(others: Sequence[Leftover]) -> None:
    """Print what no command takes: the number of files of each kind."""
    ranked = sorted(others, key=lambda other: -len(other.paths))
    kinds = "; ".join(f"{visible_line(each.what)} {len(each.paths):,}" for each in ranked)
    total = sum(len(each.paths) for each in others)
    if others:
        width = get_terminal_size().columns
        say(
            wrap_text(
                f"  {total:>6,}  files of other kinds: {kinds}", width, subsequent_indent=" " * 10
            )
        )


def _name_place(topic: Proposal) -> str:
    """Return the directory of a topic, or its first pages if it is the project's own."""
    ranked = sorted(topic.pages, key=lambda path: (path.count("/"), not path.isupper(), path))
    place = ", ".join(ranked[:4]) if topic.subjects == "." else topic.subjects
    return shorten(visible_line(place), _WIDTH)


def _say_next(*, is_empty: bool) -> None:
    if not is_empty:
        say("Edit the introductions: a model chooses by them what to read")
        say("Next, without a model: llm kb check; llm kb search how do I contribute")
        say('With one: llm -T learn "How do I contribute?"')
    else:
        say(f"Found nothing to read; {_EMPTY.subjects} is the topic for what you write")
        say(f'Next: llm kb new {_EMPTY.id}/overview; then: llm -T learn "your question"')
