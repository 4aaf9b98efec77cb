"""`llm kb used`: report what models have read, from the host's log."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from shutil import get_terminal_size

import click

from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_json
from llm_kb.host.log import list_missed, read_turns
from llm_kb.host.terminal import style
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.upkeep.usage import count_uses, render_usage

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def _read_since(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Return a time in UTC as text that sorts by time; empty for none."""
    if not value:
        return ""
    try:
        if unit := _UNITS.get(value[-1]):
            when = datetime.now(timezone.utc) - timedelta(**{unit: int(value[:-1])})
        else:
            # `fromisoformat` does not accept `Z` before Python 3.11.
            when = datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is neither a date such as 2026-11-01 nor a span such as 30d or 12h"
        ) from error
    return when.isoformat()


@click.command()
@click.option(
    "--since",
    callback=_read_since,
    default="",
    metavar="WHEN",
    help="Only since this time: 2026-11-01, 30d, 12h",
)
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@kb_cfg_option
def used(since: str, json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Show what models read here, according to llm's log

    For each subject, this shows how often models read it with learn, how often their
    searches found it, and in how many conversations -k, kb: or kb-search: sent it. It also
    lists subjects that were never read, names that failed, and searches that found nothing,
    yours with 'llm kb search' included. Names are resolved against today's files. Only
    requests of 'llm prompt' and 'llm chat' in this workspace count, and only logged ones.

    \b
        llm kb used
        llm kb used --since 30d --json
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    missed = list_missed(kb.config.workspace, since)
    usage = count_uses(kb, read_turns(since, required=not missed), missed)
    if json_:
        show_json(usage)
    else:
        for line in render_usage(usage, get_terminal_size().columns):
            show(line if line.startswith(" ") else style(line, bold=True))
    if not usage["conversations"]:
        say("llm-kb: the log has no request with knowledge of this workspace")
