"""`llm kb search`: find the passages that answer a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._options import (
    complete_topic,
    filter_options,
    kb_cfg_option,
    make_filters,
    query_argument,
)
from llm_kb.commands._output import say, show, show_json
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import join_names
from llm_kb.host.terminal import draw_progress, style
from llm_kb.knowledge_base.tools import DEFAULT_LIMIT
from llm_kb.rendering.passages import Passage, find_notes
from llm_kb.rendering.plain_text import MAX_NAMED, name_some, visible_line, visible_text
from llm_kb.subjects.topics import REFERENCE_PREFIX
from llm_kb.upkeep.subject_list import name_file


@click.command()
@query_argument
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
    "-n",
    "--count",
    default=DEFAULT_LIMIT,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of passages",
)
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@filter_options
@kb_cfg_option
def search(
    query: str,
    topics: tuple[str, ...],
    count: int,
    json_: bool,
    roles: tuple[str, ...],
    paths: tuple[str, ...],
    tags: tuple[str, ...],
    kb_cfg: tuple[str, ...],
) -> None:
    """
    Find the passages that answer QUERY

    Every topic in the menu is searched, by words and, if llm has a default embedding
    model, by meaning. In a workspace, fetched topics are not in the menu unless
    `[kb] references` puts them there; -t searches them. Hidden and disabled subjects are
    never found. Each passage is headed by its file and line, and by its address for
    `learn`. Finding nothing is not an error: it exits with 0.

    Without QUERY, or if it is '-', standard input is searched for; of a long log the
    beginning and the end count. A query such as --no-color follows '--'.

    \b
        llm kb search how do we review code
        llm kb search -t project -n 3 deadline
        make 2>&1 | llm kb search
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    found = kb.find_passages(
        query,
        topics,
        count,
        progress=draw_progress("Indexing"),
        **make_filters(roles, paths, tags),
    )
    if json_:
        show_json([_as_dict(passage) for passage in found.passages])
    else:
        show("\n".join(_render(kb, passage) for passage in found.passages), nl=False)
    if not found.passages:
        _explain_nothing(kb, topics, found.why_nothing)
    for note in find_notes(found):
        say(f"llm-kb: {note}")


def _explain_nothing(kb: KnowledgeBase, topics: Sequence[str], why: str) -> None:
    """Say why nothing was found, and which fetched topics were not searched."""
    if topics or kb.menu_ids:
        say(f"llm-kb: {visible_line(why) or 'no matches; try other words, or fewer'}")
    else:
        say(f"llm-kb: {kb.explain_nothing()}")
    aside = [id_ for id_ in kb.topics.ids() if id_.startswith(REFERENCE_PREFIX)]
    left = [id_ for id_ in aside if not topics and id_ not in kb.menu_ids]
    # With -t, too, an obsolete topic is not searched.
    if left := [id_ for id_ in left if id_ not in kb.topics or kb.topics[id_].topic.in_menu]:
        say(f"llm-kb: reference topics are searched only with -t: {name_some(left)}")


def _as_dict(passage: Passage) -> dict[str, object]:
    entry: dict[str, object] = {
        "topic": passage.topic,
        "slug": passage.name,
        "path": passage.path,
        "address": passage.address,
        "lines": f"{passage.first_line}-{passage.last_line}",
        "title": passage.title,
        "score": passage.score,
        "text": passage.text,
    }
    if passage.also_in:
        entry["also_in"] = list(passage.also_in)
    if passage.origin:
        entry["origin"] = passage.origin
    return entry | ({"preloaded": True} if passage.is_preloaded else {})


def _render(kb: KnowledgeBase, passage: Passage) -> str:
    """Return a passage for people: its heading, the places of its copies, its text."""
    file = name_file(kb.find_topic(passage.topic), passage.path, find_cwd() or Path("/"))
    heading = f"{file}:{passage.first_line}: {passage.topic}/{passage.address}"
    lines = [style(visible_line(heading), fg="cyan")]
    if passage.also_in:
        copies = join_names(passage.also_in, MAX_NAMED)
        lines.append(style(visible_line(f"also in {copies}"), dim=True))
    if passage.origin:
        lines.append(style(visible_line(passage.origin), dim=True))
    return "\n".join([*lines, visible_text(passage.text), ""])
