"""`llm kb prompt`: print the section of a request, or its costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from llm_kb.commands import _config, _options, _output
from llm_kb.host.coding_agents import name_command
from llm_kb.host.terminal import style
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.rendering.menu import Menu
from llm_kb.rendering.plain_text import estimate_tokens
from llm_kb.rendering.section import render_section


@click.command()
@_options.knowledge_options
@click.option("--preloaded", is_flag=True, help="Without the menu, as -k sends it without -T learn")
@click.option("--shell", is_flag=True, help="For a model that runs commands and has no such tools")
@click.option("--tokens", is_flag=True, help="Show what each part costs instead of the section")
@click.option("json_", "--json", is_flag=True, help="Output the costs as JSON")
def prompt(
    knowledge: tuple[str, ...],
    kb_cfg: tuple[str, ...],
    preloaded: bool,
    shell: bool,
    tokens: bool,
    json_: bool,
) -> None:
    """
    Print what llm -T learn adds to the system prompt

    If there is no section, the reason goes to standard error, as does a note if the menu
    was cut to fit its budget. With --shell its last lines name commands in place of tools,
    for the system prompt of an agent with a shell.

    \b
        llm kb prompt
        llm kb prompt -k 'project/maintainers/*' --preloaded
        llm kb prompt --tokens
        llm code -s "$(llm kb prompt --shell)"
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg, knowledge=knowledge)
    _config.say_withheld(kb.config)
    command = name_command() if shell else ""
    if tokens or json_:
        costs = count_costs(kb, learn=not preloaded, shell=command)
        if json_:
            _output.show_json(costs)
        else:
            header, *rows = render_costs(costs).splitlines()
            rows = [style(row, bold=row.startswith("total ") or None) for row in rows]
            _output.show("\n".join([style(header, dim=True), *rows]))
        return
    search = not (preloaded or shell) and kb.offers_search()
    section = kb.section(learn=not preloaded, search=search, shell=command)
    if section is not None:
        _output.show_content(section)
    else:
        _output.say(f"llm-kb: {kb.explain_nothing(learn=not preloaded)}")
    cuts = () if preloaded else kb.menu(command).cuts
    for line in (*(["; ".join(cuts)] if cuts else []), *kb.lost_imports):
        _output.say(f"llm-kb: {line}")


def count_costs(kb: OpenTopics, *, learn: bool, shell: str = "") -> dict[str, Any]:
    """Return the estimated tokens of a request, as `llm kb prompt --json` prints them.

    These are those of the whole section, of its menu, of a section with every listed subject
    and no menu (`inlined`), and the same by topic. Subjects not sent count as in `llm kb list`.
    """
    menu = kb.menu(shell) if learn else Menu()
    sent = {topic.id: subjects for topic, subjects in kb.preloaded}
    left = {opened.config.id: opened.left for opened in kb.left}
    topics: list[dict[str, Any]] = []
    for opened in kb.active:
        if opened.config.id in left or opened.learned.subjects:
            costs = {s.name: estimate_tokens(s.text) for s in sent.get(opened.config.id, ())}
            subjects = [{"slug": slug, "tokens": tokens} for slug, tokens in costs.items()]
            tokens = sum(costs.values())
            sizes = [opened.find_size(each) for each in left.get(opened.config.id, ())]
            inlined = tokens + estimate_tokens(sum(filter(None, sizes)))
            topics.append(
                {"id": opened.config.id, "tokens": tokens, "inlined": inlined, "subjects": subjects}
            )
    section = estimate_tokens(render_section(kb.preloaded, menu) or "")
    inlined = section - menu.tokens + sum(each["inlined"] - each["tokens"] for each in topics)
    return {"section": section, "menu": menu.tokens, "inlined": inlined, "topics": topics}


def render_costs(costs: Mapping[str, Any]) -> str:
    """Return a table that fits 80 columns; all figures are estimates."""
    rows: list[tuple[str, int, int | None]] = []
    if costs["menu"]:
        rows.append(("menu", costs["menu"], None))
    for topic in costs["topics"]:
        rows.append((topic["id"], topic["tokens"], topic["inlined"]))
        rows += [(f"  {each['slug']}", each["tokens"], None) for each in topic["subjects"]]
    around = costs["section"] - costs["menu"] - sum(topic["tokens"] for topic in costs["topics"])
    rows += [("frame", around, around), ("total", costs["section"], costs["inlined"])]
    width = max([len(name) for name, _, _ in rows] + [7])
    lines = [f"{'':{width}}  {'sent':>9}  {'all of it':>9}   (estimated tokens)"]
    for name, tokens, inlined in rows:
        all_of_it = f"{inlined:>9,}" if inlined is not None else ""
        lines.append(f"{name:{width}}  {tokens:>9,}  {all_of_it}".rstrip())
    if costs["menu"] and costs["inlined"] < costs["section"]:
        lines.append("All of it costs less than the menu of it: pre-load it with -k, or `learned`.")
    return "\n".join(lines)
