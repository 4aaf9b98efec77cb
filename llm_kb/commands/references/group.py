"""`llm kb references`: list, search, describe, verify and delete topics, and what all share."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from llm_kb.errors import KbError
from llm_kb.host import reference_calls
from llm_kb.host.reference_calls import search_references
from llm_kb.knowledge_base.tool_text import DEFAULT_LIMIT
from llm_kb.references.errors import SaidNoError
from llm_kb.references.library import Library
from llm_kb.references.lookup import find_id, list_topics, topic_details
from llm_kb.references.topic.topic_file import Status
from llm_kb.rendering.plain_text import count, shorten
from llm_kb.terminal import screen
from llm_kb.terminal.options import complete_quietly, filter_options, query_argument
from llm_kb.terminal.output import confirm, say, show_content, show_json
from llm_kb.terminal.screen import can_ask, is_terminal, style
from llm_kb.texts.safe import one_line, visible_line, visible_text

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from llm_kb.references.fetch.sources import Progress
    from llm_kb.references.plan import Plan

json_option = click.option("json_", "--json", is_flag=True, help="Output as JSON")
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask")


def current_library() -> Library:
    """Return the reference topics, after cleaning up after killed processes."""
    library = reference_calls.current_library()
    library.clean()
    return library


def approve_plan(library: Library, plan: Plan, *, yes: bool) -> bool:
    """Show a plan and ask; without a terminal store it and say how to approve it."""
    # Imported here: these commands are loaded for a search as well.
    from llm_kb.references.plan import render_plan  # noqa: PLC0415

    say(render_plan(plan))
    if yes:
        return True
    if not can_ask():
        needed = reference_calls.open_plans(library).ask_later(plan)
        raise KbError(f"{needed}, or repeat this with -y")
    if not screen.confirm("Keep this?" if plan.is_measured else "Contact these hosts?"):
        raise SaidNoError(plan.request.title)
    return True


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Draw progress bars on a terminal, one after the other; a label where nothing is counted."""
    label = ""
    bar: ProgressBar[int] | None = None

    def finish() -> None:
        nonlocal bar
        if bar is not None:
            bar.render_finish()
            bar = None

    def show(step: str, done: int, total: int) -> None:
        nonlocal bar, label
        if step != label or not total:
            finish()
            label = step
        shown = visible_line(step[:1].upper() + step[1:])
        if not total:
            if step:
                say(shown)
            return
        if bar is None:
            bar = click.progressbar(length=total, label=shown[:60], file=sys.stderr)
            bar.render_progress()
        bar.length = total  # a crawl finds more pages as it goes
        bar.update(done - bar.pos)

    try:
        yield show if is_terminal(sys.stderr) else lambda *_: None
    finally:
        finish()


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
        files, fetched = count(entry["file_count"], "file"), (entry["fetched_at"] or "never")[:10]
        trust = f", trust {entry['trust_score']}/10" if "trust_score" in entry else ""
        yield f"{id_}  {title:{titles}}  {files:>12}  fetched {fetched}  {status}{trust}"
        if "outdated" in entry:
            yield style(f"  {visible_line(entry['outdated'])}", dim=True)


@click.command()
@topic_argument
@json_option
def show(topic: str, json_: bool) -> None:
    """
    Show what a reference topic is and where it came from

    \b
        llm kb references show topic-dioxus-ui
    """
    library = current_library()
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


@click.command()
@query_argument
@click.option(
    "-t",
    "--topic",
    metavar="TOPIC",
    help="Search this topic only: its id, its title, or words that name it",
    shell_complete=complete_reference,
)
@click.option(
    "limit",
    "-n",
    "--count",
    default=DEFAULT_LIMIT,
    show_default=True,
    type=click.IntRange(1),
    help="Most results",
)
@filter_options
@json_option
def search(
    query: str,
    topic: str | None,
    limit: int,
    filters: dict[str, Any],
    json_: bool,
) -> None:
    """
    Search the files of reference topics

    Shows excerpts, as `llm kb search` does; --json has the whole passages. Without QUERY,
    or if it is '-', standard input is searched for. The
    exit status is 1 if nothing is found.

    \b
        llm kb references search "component lifecycle hooks" -t dioxus
    """
    answer = search_references(current_library(), query, topic, limit, whole=json_, **filters)
    if json_:
        show_json(answer)
        return
    for about in answer["topics"]:
        if "description" in about:
            trust = f", trust {about['trust_score']}/10" if "trust_score" in about else ""
            named = f"{about['topic_id']} ({about['title']}{trust})"
            click.echo(visible_line(f"{named}: {about['description']}"))
    for hit in answer["results"]:
        click.echo(_render_hit(hit))
    found = count(len(answer["results"]), "result")
    where = " of " + ", ".join(each["topic_id"] for each in answer["topics"]) if topic else ""
    say(f"{found} ({' and '.join(answer['legs'])} search{where})")
    for warning in answer.get("warnings", ()):
        say(f"Warning: {warning}")
    if not answer["results"]:
        raise SystemExit(1)


@click.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_reference)
@json_option
def verify(topics: tuple[str, ...], json_: bool) -> None:
    """
    Compare the files of topics with what was fetched

    Without TOPIC, all topics are compared. The exit code is 1 if a file differs or cannot
    be read.

    \b
        llm kb references verify
        llm kb references verify topic-dioxus-ui --json
    """
    library = current_library()
    chosen = [find_id(library, topic) for topic in topics] or library.ids()
    found = {topic: library.verify(topic) for topic in chosen}
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


def _render_hit(hit: dict[str, Any]) -> str:
    text = indent(visible_text(hit["text"].rstrip()), "    ")
    place = style(f"{hit['topic_id']}/{visible_line(hit['file'])}:{hit['lines']}", fg="cyan")
    origin = style(f"  {visible_line(hit['origin'])}", dim=True)
    return f"{place}  {visible_line(hit['title'])}\n{origin}\n{text}\n"


def _render_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_render_value(item)}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
