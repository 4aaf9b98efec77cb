"""`llm kb prompt`: print the section of a request, or its costs."""

from __future__ import annotations

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._config import say_withheld
from llm_kb.commands._options import knowledge_options
from llm_kb.commands._output import say, show, show_content, show_json
from llm_kb.host.terminal import style
from llm_kb.upkeep.costs import count_costs, render_costs


@click.command()
@knowledge_options
@click.option("--preloaded", is_flag=True, help="Without the menu, as -k sends it without -T learn")
@click.option("--tokens", is_flag=True, help="Show what each part costs instead of the section")
@click.option("json_", "--json", is_flag=True, help="Output the costs as JSON")
def prompt(
    knowledge: tuple[str, ...], kb_cfg: tuple[str, ...], preloaded: bool, tokens: bool, json_: bool
) -> None:
    """
    Print the section that a request with -T learn carries

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
