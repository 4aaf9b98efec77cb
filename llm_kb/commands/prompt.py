"""`llm kb prompt`: print the section of a request, or its costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from llm_kb.commands._config import say_withheld
from llm_kb.commands._options import knowledge_options
from llm_kb.commands._output import say, show, show_content, show_json
from llm_kb.errors import UnreadableError
from llm_kb.host.terminal import style
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.rendering.menu import Menu
from llm_kb.rendering.plain_text import estimate_tokens
from llm_kb.rendering.presentation import present, present_unreadable
from llm_kb.rendering.section import render_section
from llm_kb.subjects.topics import SNIFFED_BYTES, Catalog, Subject


@click.command()
@knowledge_options
@click.option("--preloaded", is_flag=True, help="Without the menu, as -k sends it without -T learn")
@click.option("--tokens", is_flag=True, help="Show what each part costs instead of the section")
@click.option("json_", "--json", is_flag=True, help="Output the costs as JSON")
def prompt(
    knowledge: tuple[str, ...], kb_cfg: tuple[str, ...], preloaded: bool, tokens: bool, json_: bool
) -> None:
    """
    Print what llm -T learn adds to the system prompt

    If there is no section, the reason goes to standard error, as does a note if the menu
    was cut to fit its budget.

    \b
        llm kb prompt
        llm kb prompt -k 'project/maintainers/*' --preloaded
        llm kb prompt --tokens
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg, knowledge=knowledge)
    say_withheld(kb.config)
    if tokens or json_:
        costs = count_costs(kb, learn=not preloaded)
        if json_:
            show_json(costs)
        else:
            header, *rows = render_costs(costs).splitlines()
            show("\n".join([style(header, dim=True), *map(_style, rows)]))
        return
    section = kb.section(learn=not preloaded, search=not preloaded and kb.offers_search())
    if section is not None:
        show_content(section)
    else:
        say(f"llm-kb: {kb.explain_nothing(learn=not preloaded)}")
    cuts = () if preloaded else kb.menu().cuts
    if cuts:
        say(f"llm-kb: {'; '.join(cuts)}")


def _style(row: str) -> str:
    """Return the total bold, and other rows as they are."""
    return style(row, bold=True) if row.startswith("total ") else row


def count_costs(kb: OpenTopics, *, learn: bool) -> dict[str, Any]:
    """Return the estimated tokens of a request, as `llm kb prompt --json` prints them.

    These are those of the whole section, of its menu, of a section with every listed subject
    and no menu (`inlined`), and the same by topic. Of subjects not sent only the start is read.
    """
    menu = kb.menu() if learn else Menu()
    sent = {topic.id: subjects for topic, subjects in kb.preloaded}
    topics: list[dict[str, Any]] = []
    for opened in kb.active:
        id_ = opened.topic.id
        if opened.topic.in_menu or opened.learned.subjects:
            costs = {each.name: estimate_tokens(each.text) for each in sent.get(id_, ())}
            left = sum(_estimate_length(opened.catalog, subject) for subject in opened.left)
            topics.append(
                {
                    "id": id_,
                    "tokens": sum(costs.values()),
                    "inlined": sum(costs.values()) + estimate_tokens(left),
                    "subjects": [{"slug": slug, "tokens": n} for slug, n in costs.items()],
                }
            )
    section = estimate_tokens(render_section(kb.preloaded, menu) or "")
    inlined = section - menu.tokens + sum(each["inlined"] - each["tokens"] for each in topics)
    return {"section": section, "menu": menu.tokens, "inlined": inlined, "topics": topics}


def _estimate_length(catalog: Catalog, subject: Subject) -> int:
    """Return the estimated characters of a subject; exact for a short one.

    A longer one is assumed to have as many bytes per character as its start.
    """
    try:
        start = present(subject, catalog.read(subject, SNIFFED_BYTES))
    except UnreadableError as error:
        start = present_unreadable(subject, error)
    body = len(start.body) * start.size // max(start.shown, 1)
    return len(start.head) + body + len(start.tail)


def render_costs(costs: Mapping[str, Any]) -> str:
    """Return a table that fits 80 columns; all figures are estimates."""
    rows = list(_iter_rows(costs))
    width = max([len(name) for name, _, _ in rows] + [7])
    lines = [f"{'':{width}}  {'sent':>9}  {'all of it':>9}   (estimated tokens)"]
    for name, sent, inlined in rows:
        all_of_it = f"{inlined:>9,}" if inlined is not None else ""
        lines.append(f"{name:{width}}  {sent:>9,}  {all_of_it}".rstrip())
    if costs["menu"] and costs["inlined"] < costs["section"]:
        lines.append("All of it costs less than the menu of it: pre-load it with -k, or `learned`.")
    return "\n".join(lines)


def _iter_rows(costs: Mapping[str, Any]) -> Iterator[tuple[str, int, int | None]]:
    if costs["menu"]:
        yield "menu", costs["menu"], None
    for topic in costs["topics"]:
        yield topic["id"], topic["tokens"], topic["inlined"]
        yield from ((f"  {each['slug']}", each["tokens"], None) for each in topic["subjects"])
    around = costs["section"] - costs["menu"] - sum(topic["tokens"] for topic in costs["topics"])
    yield "tags", around, around
    yield "total", costs["section"], costs["inlined"]
