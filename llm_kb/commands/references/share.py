"""`llm kb references export` and `import`: share a topic as one file."""

from __future__ import annotations

import re
from pathlib import Path

import click

from llm_kb.commands._output import confirm, say
from llm_kb.commands.references._shared import (
    complete_reference,
    current_library,
    json_option,
    show_progress,
)
from llm_kb.commands.references.create import tell_created
from llm_kb.references.ask import find_id
from llm_kb.references.errors import ShareError
from llm_kb.references.fetch.share import export_topic, fetch_archive, import_topic
from llm_kb.references.sources.rules import show_host
from llm_kb.references.topic.provenance import hash_content
from llm_kb.rendering.plain_text import count


@click.command()
@click.argument("topic", shell_complete=complete_reference)
@click.argument("file", type=click.Path(path_type=Path))
def export(topic: str, file: Path) -> None:
    """
    Write a topic into a new .tar.gz, with the record of its files

    \b
        llm kb references export topic-dioxus-ui dioxus.tar.gz
    """
    library = current_library()
    topic = find_id(library, topic)
    number = export_topic(library, topic, file)
    digest = hash_content(file.read_bytes())
    say(f"Wrote {topic} to {file}: {count(number, 'file')}, {digest}")


@click.command("import")
@click.argument("place", metavar="FILE|URL")
@click.option("--sha256", metavar="HEX", help="What the SHA-256 of the archive must be")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before a URL is fetched")
@json_option
def import_(place: str, sha256: str | None, yes: bool, json_: bool) -> None:
    """
    Create a topic from an exported archive, verified by its hashes

    For a URL (https), you are asked before its host is contacted. Nothing else is fetched;
    only a refresh contacts the sources that the topic names.

    \b
        llm kb references import dioxus.tar.gz
        llm kb references import https://example.com/dioxus.tar.gz --sha256 1f3a…
    """
    if sha256 and not re.fullmatch("[0-9a-f]{64}", sha256):
        raise click.UsageError("--sha256 takes 64 digits from 0 to f")
    library = current_library()

    def approve(host: str) -> bool:
        confirm(f"Fetch an archive from {show_host(host)}?", yes=yes)
        return True

    with show_progress() as progress:
        if "://" in place:
            created = fetch_archive(library, place, sha256, approve, progress)
        else:
            path = Path(place)
            if not path.exists():
                raise click.ClickException(f"{place}: no such file")
            if sha256 and hash_content(path.read_bytes()) != f"sha256:{sha256}":
                raise ShareError(place, "its SHA-256 is another")
            created = import_topic(library, path, progress)
    tell_created(created, json_=json_)
