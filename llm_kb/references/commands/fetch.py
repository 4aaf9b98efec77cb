"""`llm kb references create` and `refresh`: what fetches a topic."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from llm_kb.errors import KbError
from llm_kb.files.fields import Fields
from llm_kb.references.commands import group
from llm_kb.references.errors import DeniedError
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.lookup import find_id
from llm_kb.references.plan import Plan, render_plan
from llm_kb.references.sources.records import (
    MAX_CRAWL_DEPTH,
    MAX_CRAWL_PAGES,
    PACKAGE_PAGES,
    Source,
)
from llm_kb.references.topic import topic_file
from llm_kb.rendering.plain_text import count
from llm_kb.terminal.output import say, show_json
from llm_kb.terminal.screen import can_ask, confirm
from llm_kb.texts.safe import visible_line

MAX_AGE = 30
"""After how many days a topic is stale, unless something says otherwise."""


@click.command()
@click.option(
    "--title", metavar="TITLE", help="What the topic is about  [default: the name of the source]"
)
@click.option("--body", default="", metavar="TEXT", help="Description")
@click.option("git", "--git", multiple=True, metavar="URL", help="A repository")
@click.option("--ref", metavar="REF", help="Branch, tag or commit id of --git")
@click.option("paths", "--path", multiple=True, metavar="PATH", help="Only this file or directory")
@click.option("web", "--web", multiple=True, metavar="URL", help="A page")
@click.option("crawl", "--crawl", multiple=True, metavar="URL", help="A page and those below it")
@click.option(
    "--depth",
    type=click.IntRange(0, MAX_CRAWL_DEPTH),
    help="How many links deep to crawl  [default: 2]",
)
@click.option(
    "--max-pages",
    type=click.IntRange(1, MAX_CRAWL_PAGES),
    help="Maximum number of pages to crawl  [default: 50]",
)
@click.option(
    "--include", multiple=True, metavar="PATTERN", help="Crawl only matching pages: guide/**"
)
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Skip matching pages: blog/**")
@click.option("pypi", "--pypi", multiple=True, metavar="NAME", help="A Python package: flask==3.0")
@click.option("npm", "--npm", multiple=True, metavar="NAME", help="A Node package: vite@5.4")
@click.option("crate", "--crate", multiple=True, metavar="NAME", help="A Rust crate's docs")
@click.option("tags", "--tag", multiple=True, metavar="TAG", help="A word to find the topic by")
@click.option(
    "--max-age-days",
    default=MAX_AGE,
    show_default=True,
    type=click.IntRange(0, topic_file.MAX_AGE_DAYS),
    help="After how many days it is stale; 0: never",
)
@group.yes_option
@group.json_option
def create(title: str | None, body: str, yes: bool, json_: bool, **options: Any) -> None:
    """
    Fetch a new reference topic, after showing what would be fetched

    Options for sources may be given more than once. --ref and --path belong
    to the one --git; others can be written into topic.md, and refreshed.

    \b
        llm kb references create --title "Dioxus - Rust UI Framework" \\
          --git https://github.com/DioxusLabs/docsite --path docs-src/0.6/ \\
          --web https://dioxuslabs.com/learn/0.6/ --tag rust
        llm kb references create --pypi flask==3.0.3
        llm kb references create --title Guides --crawl https://example.com/guide/
    """
    if body == "-":
        raise click.UsageError('--body reads no standard input; write --body "$(cat FILE)"')
    library = group.current_library()
    options["git"] = [_find_clone(text) for text in options["git"]]
    sources = _read_sources(_collect_sources(options), library.settings.allow_protocols)
    fields = {
        "title": title or _name_source(options),
        "body": body,
        "tags": list(options["tags"]),
        "max_age_days": options["max_age_days"],
    }
    request = topic_file.parse_request(fields, created_by={"ghost": "operator"}, sources=sources)
    if not (yes or can_ask()):
        raise click.ClickException("there is no terminal to ask on; -y fetches without asking")

    def approve(plan: Plan) -> bool:
        say(render_plan(plan))
        return yes or confirm("Keep this?")

    try:
        with group.show_progress() as progress:
            created = create_topic(library, request, approve, progress)
    except DeniedError as error:
        raise click.Abort from error
    _tell_created(created, json_=json_)


def _find_clone(text: str) -> str:
    """Return the URL of a clone on this machine that is given by its path; others unchanged."""
    if not text.startswith(("/", "./", "../", "~/")) and text not in {".", ".."}:
        return text
    place = Path(text).expanduser().resolve()
    if not any(os.path.lexists(place / name) for name in (".git", "HEAD")):
        raise click.UsageError(
            f"{text!r} is not a git repository; models read a directory in place:\n"
            f"llm kb add NAME {text}"
        )
    return place.as_uri()


def _read_sources(
    tables: Sequence[dict[str, Any]], protocols: Collection[str]
) -> list[Source | None]:
    """Return the sources of the options. Raises KbError."""
    problems: list[str] = []
    sources = [
        topic_file.read_new_source(Fields(table, problems=problems), (*protocols, "file"))
        for table in tables
    ]
    if problems:
        raise KbError("; ".join(problems))
    return sources


def _collect_sources(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sources of the options, as tables like those that models write."""
    git: list[dict[str, Any]] = [{"type": "git", "url": url} for url in options["git"]]
    if (options["ref"] or options["paths"]) and len(git) != 1:
        raise click.UsageError("--ref and --path belong to one --git; more can be in topic.md")
    for tree in git:
        tree |= {"ref": options["ref"], "paths": list(options["paths"])}
    crawl_limits = {key: options[key] for key in ("depth", "max_pages") if options[key] is not None}
    crawl_limits |= {key: list(options[key]) for key in ("include", "exclude") if options[key]}
    if crawl_limits and not options["crawl"]:
        raise click.UsageError("--depth, --max-pages, --include and --exclude belong to --crawl")
    packages = [
        _read_package(ecosystem, name) for ecosystem in PACKAGE_PAGES for name in options[ecosystem]
    ]
    tables = [
        *git,
        *packages,
        *({"type": "web", "url": url} for url in options["web"]),
        *({"type": "crawl", "url": url, **crawl_limits} for url in options["crawl"]),
    ]
    if not tables:
        raise click.UsageError("give at least one of --git, --web, --crawl, --pypi, --npm, --crate")
    return tables


def _read_package(ecosystem: str, text: str) -> dict[str, Any]:
    """Return the source of a package that is written as `flask`, `flask==3.0` or `vite@5.4`."""
    name, version = _split_version(text)
    return {"type": "package", "ecosystem": ecosystem, "name": name, "version": version}


def _split_version(text: str) -> tuple[str, str | None]:
    """Return name and version of a package; the `@` of npm's scopes begins no version."""
    name, _, version = text.partition("==") if "==" in text else text.rpartition("@")
    return (name, version) if name else (text, None)


def _name_source(options: dict[str, Any]) -> str:
    """Return a title for the one package or repository of a request."""
    packages = (text for ecosystem in PACKAGE_PAGES for text in options[ecosystem])
    names = [_split_version(text)[0] for text in packages]
    names += [url.rstrip("/").rpartition("/")[2].removesuffix(".git") for url in options["git"]]
    if len(names) != 1 or not names[0]:
        raise click.UsageError("Missing option '--title'.")
    return str(names[0])


def _tell_created(created: dict[str, Any], *, json_: bool) -> None:
    for warning in created.get("warnings", ()):
        say(f"warning: {warning}")
    if json_:
        show_json(created)
    else:
        click.echo(f"{created['topic_id']}: {count(created['file_count'], 'page')}")
        say(f'Next: llm kb search -t {created["topic_id"]} "…"')


@click.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=group.complete_reference)
@click.option("--stale", is_flag=True, help="Refresh only stale topics")
@group.yes_option
@group.json_option
def refresh(topics: tuple[str, ...], stale: bool, yes: bool, json_: bool) -> None:
    """
    Fetch what has changed since a topic was fetched

    Without TOPIC, all topics are refreshed that are not obsolete. A page or repository that has
    not changed costs one request. You are asked only if a topic leads to a host that was not
    approved here, or has grown to more than twice its size.

    \b
        llm kb references refresh topic-dioxus-ui
        llm kb references refresh --stale
    """
    library = group.current_library()
    answers = []
    failed = False
    for wanted in dict.fromkeys(topics or library.ids()):
        try:
            topic = library.read(find_id(library, wanted))
            if _is_due(library, topic, by_name=bool(topics), stale=stale):
                answers.append(_refresh(library, topic.id, yes=yes))
        except KbError as error:
            failed = True
            say(f"Error: {wanted}: {error}")
    if not answers and not failed:
        say("Nothing to refresh: no topic is stale." if stale else "No topics to refresh.")
    if json_:
        show_json(answers)
    for answer in [] if json_ else answers:
        click.echo(f"{answer['topic_id']}: {_render_counts(answer)}")
    if failed:
        raise click.exceptions.Exit(1)


def _is_due(library: Library, topic: topic_file.TopicFile, *, by_name: bool, stale: bool) -> bool:
    """Tell whether a topic is to be refreshed: a stale one, or any that is not obsolete."""
    if stale and not (topic_file.is_stale(topic, library.clock()) or library.find_outdated(topic)):
        return False
    return by_name or topic.status is not topic_file.Status.OBSOLETE


def _render_counts(answer: dict[str, Any]) -> str:
    if not answer["changed"]:
        return "unchanged"
    counts = "{added} added, {modified} modified, {removed} removed".format_map(answer)
    return counts + (f", {len(answer['own'])} of your own kept" if answer["own"] else "")


def _refresh(library: Library, topic_id: str, *, yes: bool) -> dict[str, Any]:
    def approve_changes(reason: str) -> bool:
        if yes:
            say(f"{topic_id}: {reason}")
            return True
        if not can_ask():
            raise KbError(
                f"{reason}; to fetch it all the same: llm kb references refresh {topic_id} -y"
            )
        if not confirm(visible_line(f"{topic_id}: {reason}. Keep it?")):
            raise click.Abort
        return True

    with group.show_progress() as progress:
        refreshed = refresh_topic(library, topic_id, approve_changes, progress)
    for warning in refreshed["warnings"]:
        say(f"Warning: {warning}")
    return refreshed
