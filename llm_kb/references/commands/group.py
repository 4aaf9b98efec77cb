"""`llm kb references`: list, describe, verify and delete topics, and what all share."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from llm_kb.references import calls as reference_calls
from llm_kb.references.library import Library
from llm_kb.references.lookup import find_id, list_topics, topic_details
from llm_kb.references.topic.topic_file import Status
from llm_kb.rendering.plain_text import count, shorten
from llm_kb.terminal.options import complete_quietly
from llm_kb.terminal.output import confirm, say, show_content, show_json
from llm_kb.terminal.screen import is_terminal, style
from llm_kb.texts.safe import one_line, visible_line

if TYPE_CHECKING:
    from llm_kb.references.fetch.sources import Progress

json_option = click.option("json_", "--json", is_flag=True, help="Output as JSON")
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask")


def current_library() -> Library:
    """Return the reference topics, after cleaning up after killed processes."""
    library = reference_calls.current_library()
    library.clean()
    return library


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show on one line of a terminal what is being done, and how much of it."""
    last = ""

    def show(step: str, done: int, total: int) -> None:
        nonlocal last
        share = f"  {min(100, 100 * done // total)}%" if total else ""
        room = get_terminal_size().columns - len(share) - 1
        line = f"{visible_line(step)[:room]}{share}" if step else ""
        if line != last:
            click.echo(f"\r{line}\x1b[K", nl=False, err=True)
            last = line

    try:
        yield show if is_terminal(sys.stderr) else lambda *_: None
    finally:
        if last:
            click.echo("\r\x1b[K", nl=False, err=True)


@complete_quietly
def complete_reference(_ctx: click.Context, typed: str) -> list[CompletionItem]:
    """Complete the id of a reference topic."""
    topics, _ = reference_calls.current_library().topics()
    return [CompletionItem(t.id, help=one_line(t.title)) for t in topics if t.id.startswith(typed)]


_TOLD_ELSEWHERE = frozenset(
    {"files", "body", "sources", "is_stale", "created_by", "created_by_ghost"}
)
"""The keys that `show` leaves out or words differently: `status` includes staleness."""

MOST_OF_A_TITLE = 40
"""The most characters of a title in a list."""

topic_argument = click.argument("topic", shell_complete=complete_reference)


@click.command("list")
@click.option("--include-obsolete", is_flag=True, help="Include obsolete topics")
@json_option
def list_(include_obsolete: bool, json_: bool) -> None:
    """
    List reference topics, with their age

    \b
        llm kb references list
        llm kb references list --include-obsolete --json
    """
    entries, problems = list_topics(current_library(), include_obsolete)
    if json_:
        show_json(entries)
    for line in [] if json_ else _render_entries(entries):
        click.echo(line)
    for problem in problems:
        say(f"Left out: {problem}")
    if not entries and not problems and not json_:
        say("No reference topics. 'llm kb references create' makes one.")


def _render_entries(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each topic, in columns, and below it why it is out of date."""
    ids = max((len(entry["topic_id"]) for entry in entries), default=0)
    shown = [shorten(visible_line(entry["title"]), MOST_OF_A_TITLE) for entry in entries]
    titles = max(map(len, shown), default=0)
    for entry, title in zip(entries, shown, strict=True):
        id_ = style(f"{entry['topic_id']:{ids}}", bold=True)
        status = entry["status"]
        if status != Status.ACTIVE.value:
            status = style(status, fg="yellow")
        files, fetched = count(entry["file_count"], "page"), (entry["fetched_at"] or "never")[:10]
        trust = f", trust {entry['trust_score']}/10" if "trust_score" in entry else ""
        yield f"{id_}  {title:{titles}}  {files:>12}  fetched {fetched}  {status}{trust}"
        if "outdated" in entry:
            yield style(f"  {visible_line(entry['outdated'])}", dim=True)


@click.command()
@click.argument("topic", required=False, shell_complete=complete_reference)
@click.option(
    "--verify", is_flag=True, help="Compare its files with what was fetched; or all topics'"
)
@json_option
def show(topic: str | None, verify: bool, json_: bool) -> None:
    """
    Show what a reference topic is and where it came from

    --verify compares the files with what was fetched, without TOPIC those of all topics. The
    exit code is 1 if one differs or cannot be read.

    \b
        llm kb references show topic-dioxus-ui
        llm kb references show --verify
    """
    library = current_library()
    if verify:
        _verify(library, [find_id(library, topic)] if topic else library.ids(), json_=json_)
        return
    if topic is None:
        raise click.UsageError("Missing argument 'TOPIC'.")
    details = topic_details(library, find_id(library, topic))
    if json_:
        show_json(details)
        return
    for key, value in details.items():
        if key not in _TOLD_ELSEWHERE and value not in (None, [], {}):
            click.echo(f"{key}: {visible_line(_render_value(value))}")
    for source in details["sources"]:
        click.echo(f"source: {visible_line(_render_value(source))}")
    body = details["body"].strip()
    show_content(f"\n{body}")


def _verify(library: Library, topics: Sequence[str], *, json_: bool) -> None:
    """Print how the files of topics differ from what was fetched; exit with 1 if any does."""
    found = {topic: library.verify(topic) for topic in topics}
    if json_:
        show_json(found)
    differs = {topic: any(table.values()) for topic, table in found.items()}
    for topic, table in {} if json_ else found.items():
        click.echo(f"{topic}: {'differs' if differs[topic] else 'unchanged since it was fetched'}")
        for kind, texts in table.items():
            for text in texts:
                label = kind.removesuffix("s").replace("_", " ")
                click.echo(f"  {label}: {visible_line(text)}")
    if any(differs.values()):
        raise click.exceptions.Exit(1)


@click.command()
@topic_argument
@yes_option
def delete(topic: str, yes: bool) -> None:
    """
    Delete a topic, its files and its index

    \b
        llm kb references delete topic-old-thing
    """
    library = current_library()
    topic = find_id(library, topic)
    confirm(f"Delete {topic}?", yes=yes)
    library.delete(topic)
    say(f"Deleted {topic}")


def _render_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_render_value(item)}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
