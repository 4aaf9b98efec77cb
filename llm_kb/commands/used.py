"""`llm kb used`: report what models have read, from the host's log."""

from __future__ import annotations

from shutil import get_terminal_size

import click

from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_json
from llm_kb.host.log import read_turns
from llm_kb.host.terminal import style
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.upkeep.usage import count_uses, render_usage


@click.command()
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@kb_cfg_option
def used(json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Show what models read here, according to llm's log

    For each subject, this shows how often models read it with learn, how often their
    searches found it, and in how many conversations -k, kb: or kb-search: sent it. It also
    lists subjects that were never read, names that failed, and searches that found nothing.
    Names are resolved against today's files. Only requests of 'llm prompt' and 'llm chat' in
    this workspace count, and only logged ones.

    \b
        llm kb used
        llm kb used --json
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    usage = count_uses(kb, read_turns())
    if json_:
        show_json(usage)
    else:
        for line in render_usage(usage, get_terminal_size().columns):
            show(line if line.startswith(" ") else style(line, bold=True))
    if not usage["conversations"]:
        say("llm-kb: the log has no request with knowledge of this workspace")
