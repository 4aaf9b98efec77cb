"""`llm kb init`: write a first configuration, or add what is new to one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import click

from llm_kb.config.changes import define_topic
from llm_kb.config.workspace import WORKSPACE_FILE, find_foreign_owner
from llm_kb.errors import show_place
from llm_kb.files.atomic import create_below, make_directory_below
from llm_kb.files.containment import resolve_links
from llm_kb.knowledge_base.kinds import load_here
from llm_kb.rendering.plain_text import count, join_fitting, shorten
from llm_kb.terminal.configured import edit_file, require_cwd, workspace_file
from llm_kb.terminal.output import confirm, say, show
from llm_kb.texts.safe import visible_line
from llm_kb.upkeep.first_topics import REASONS, Proposals, Topic, propose_topics

_FILE = "llm-kb.toml"
_WIDTH = 60

_SMALL = 1_500
"""The most tokens of a project that every request with `learn` sends whole."""

_MOST_REASONS = 3
"""The most lines about pages that are left out; one more has the number of all other files."""

_EMPTY = Topic(
    "project",
    {"title": "Project", "introduction": "How we work here, and why.", "subjects": "kb/project"},
)
"""The topic of an empty workspace; its directory must be created."""

_START = """\
# The knowledge that models can learn here: `llm kb list` shows it, `llm kb prompt` what
# a model sees of it, and `llm -T learn "your question"` lets one read what it needs.

[kb]
guides = true              # AGENTS.md and its like go with every -T learn
# menu = "subjects"        # list every subject with a summary, not the topics alone
# auto = true              # as if every prompt had -T learn; counts after `llm kb trust`

# A topic is a directory of text files; a model chooses by the introductions. More about one:
#   learned = ["code-quality", "maintainers/*"]     # in every section that is sent
#   disabled = ["drafts/**"]                        # never shown to a model
"""
"""A first configuration without topics."""


@click.command()
@click.option("--dry-run", is_flag=True, help="Print the file and the topics, write nothing")
@click.option("yes", "-y", "--yes", is_flag=True, help="Add new topics without asking")
def init(dry_run: bool, yes: bool) -> None:
    """
    Write a first llm-kb.toml in this directory

    Takes every page that git knows: Markdown, reStructuredText, AsciiDoc, notebooks,
    skills, rules for coding tools. Groups them into topics by directory, and prints the
    topics and what was left out; `llm kb add` takes more. In a directory that has an
    llm-kb.toml, it proposes topics for pages that no topic has yet.

    \b
        llm kb init
        llm kb init --dry-run
    """
    root = require_cwd()
    is_new = not (root / WORKSPACE_FILE).exists()
    found = propose_topics(root, () if is_new else load_here().topics)
    topics, tokens = found.topics, sum(topic.tokens for topic in found.topics)
    is_small = is_new and 0 < tokens <= _SMALL and all(topic.subjects for topic in topics)
    if is_small:
        topics = [t._replace(fields={**t.fields, "learned": ["**"]}) for t in topics]
    if is_new:
        _write(root, topics, dry_run=dry_run)
    for line in (*_render_topics(topics), *_render_left_out(found)):
        say(line)
    if is_small:
        say(f"All of it is ~{tokens:,} tokens, and goes with every -T learn.")
    if not is_new and not topics:
        say("Every other page is in a topic already")
    elif dry_run:
        say("Nothing was written")
    elif not is_new:
        _add(topics, yes=yes)
    elif topics:
        say("Next: llm kb search how do I contribute")
    else:
        say(f"Found nothing to read; {_EMPTY.fields['subjects']} is the topic for what you write")
        say(f"Next: llm kb new {_EMPTY.id}/overview")


def _write(root: Path, topics: Sequence[Topic], *, dry_run: bool) -> None:
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
        make_directory_below(root, _EMPTY.fields["subjects"])
    try:
        create_below(resolve_links(root), _FILE, text.encode())
    except FileExistsError as error:
        raise click.ClickException(f"{place} exists already and is left as it is") from error
    say(f"Wrote {place}")


def _add(topics: Sequence[Topic], *, yes: bool) -> None:
    """Add topics to the configuration."""
    if file := workspace_file():
        confirm(f"Add them to {show_place(file.path)}?", yes=yes)
        for topic in topics:
            edit_file(file, partial(_define, topic=topic))
        say(f"Added {count(len(topics), 'topic')} to {show_place(file.path)}")


def _define(text: str, topic: Topic) -> str:
    """Return the text of a configuration with a topic."""
    return define_topic(text, topic.id, {key: each for key, each in topic.fields.items() if each})


def _render_topics(topics: Sequence[Topic]) -> Sequence[str]:
    """Return a line for each topic, with its size and its place."""
    width = max((len(topic.id) for topic in topics), default=0)
    return [
        f"  {topic.id:{width}}  {count(topic.subjects, 'subject'):>14}"
        f"  {f'~{topic.tokens:,} tokens':>18}  {_name_place(topic)}"
        for topic in topics
    ]


def _name_place(topic: Topic) -> str:
    """Return the directory of a topic, or its first pages if it is the project's own."""
    ranked = sorted(topic.pages, key=lambda path: (path.count("/"), not path.isupper(), path))
    place = ", ".join(ranked[:4]) if topic.fields["subjects"] == "." else topic.fields["subjects"]
    hidden = len(topic.pages) - topic.subjects
    return shorten(visible_line(place), _WIDTH) + (f", and {hidden:,} hidden" if hidden else "")


def _render_left_out(found: Proposals) -> Sequence[str]:
    """Return the lines about all other files: the reasons for several pages, and the rest."""
    reasons = sorted(found.left_out, key=lambda reason: -len(found.left_out[reason]))
    several = [reason for reason in reasons if len(found.left_out[reason]) > 1]
    if len(several) > _MOST_REASONS or len(several) < len(reasons):
        several = several[: _MOST_REASONS - 1]
    lines = [_render_pages(REASONS[reason], found.left_out[reason]) for reason in several]
    if rest := [*chain.from_iterable(found.left_out[r] for r in reasons if r not in several)]:
        lines.append(_render_pages("other page" + "s" * (len(rest) > 1), rest))
    if found.others:
        lines.append(f"  {found.others:>6,}  other file{'s' * (found.others > 1)}")
    return ["Left out:", *lines] if lines else []


def _render_pages(what: str, paths: Sequence[str]) -> str:
    """Return a line about pages, with those for which there is room in 80 columns."""
    room = 66 - len(what)
    names = shorten(join_fitting([visible_line(path) for path in paths], room), room)
    return f"  {len(paths):>6,}  {what} ({names})"
