"""`llm kb search`: find subjects by what they say."""

from __future__ import annotations

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._completion import complete_topic
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show_json
from llm_kb.host.terminal import style
from llm_kb.rendering.plain_text import one_line, shorten, visible_line
from llm_kb.upkeep.content_search import (
    LONGEST_LINE,
    EmptyQueryError,
    Hit,
    Query,
    search_subjects,
)


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "topics",
    "-t",
    "--topic",
    multiple=True,
    metavar="TOPIC",
    help="Search this topic only",
    shell_complete=complete_topic,
)
@click.option(
    "-n", "--count", default=10, show_default=True, type=click.IntRange(1), help="Most results"
)
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@kb_cfg_option
@kb_errors
def search(
    query: tuple[str, ...],
    topics: tuple[str, ...],
    count: int,
    json_: bool,
    kb_cfg: tuple[str, ...],
) -> None:
    """
    Find the subjects that say something about QUERY

    Subjects with more of the words come first, then those that have them in a
    heading or in their slug. Hidden and disabled subjects are never found.

    \b
        llm kb search code review
        llm kb search -t project -n 3 deadline
    """
    try:
        words = Query.parse(" ".join(query))
    except EmptyQueryError as error:
        raise click.UsageError("QUERY has no word to look for") from error
    hits = search_subjects(KnowledgeBase.discover(fragments=kb_cfg), words, topics, count)
    if json_:
        show_json([_as_dict(hit) for hit in hits])
        return
    for hit in hits:
        click.echo(_render(hit))
    if not hits:
        say("llm-kb: no subject says anything about that")


def _as_dict(hit: Hit) -> dict[str, object]:
    return {
        "topic": hit.topic,
        "slug": hit.subject.name,
        "path": hit.subject.path,
        "words": hit.found.words,
        "line": hit.found.line,
        "text": one_line(hit.found.text),
    }


def _render(hit: Hit) -> str:
    place = style(f"{hit.topic}/{hit.subject.name}", fg="cyan")
    return f"{place}:{hit.found.line}: {shorten(visible_line(hit.found.text), LONGEST_LINE)}"
