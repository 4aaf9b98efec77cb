"""`llm kb review`: what waits for a person, to keep or reject."""

from __future__ import annotations

from collections.abc import Sequence

import click

from llm_kb import addons, hookspecs
from llm_kb.errors import KbError
from llm_kb.hookspecs import Waiting
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.terminal import screen
from llm_kb.terminal.output import say, show, show_json


@click.command()
@click.option("--yes", "kept", metavar="ID", multiple=True, help="Keep this")
@click.option("--no", "rejected", metavar="ID", multiple=True, help="Reject this")
@click.option("json_", "--json", is_flag=True, help="Output what waits as JSON")
def review(kept: Sequence[str], rejected: Sequence[str], json_: bool) -> None:
    """
    Look at what waits for you, one at a time

    These are pages and edits that models proposed, captured entries that nobody has looked at,
    and plans to fetch. Each is shown as it is now. Keep accepts it, edit lets you change it and
    shows it again, reject deletes it. An ID names exactly what was shown.

    \b
        llm kb review
        llm kb review --json
        llm kb review --yes fc20180c
    """
    if json_ and (kept or rejected):
        raise click.UsageError("--json lists what waits: without --yes and --no")
    kb = KnowledgeBase.discover()
    waiting = [each for _, each in addons.gather(hookspecs.reviews, kb)]
    if json_:
        show_json([dict(each.describe()) for each in waiting])
    for id_ in kept:
        each = _find(waiting, id_)
        show("\n".join(each.show()))
        show(each.keep())
    for id_ in rejected:
        say(_find(waiting, id_).reject())
    if not (kept or rejected or json_):
        _review_each(waiting)


KEYS = {"k": "keep", "e": "edit", "r": "reject", "s": "skip", "q": "quit"}

_MENU = ", ".join(f"[{key}]{word[1:]}" for key, word in KEYS.items()) + "; a letter and Enter"


def _review_each(waiting: Sequence[Waiting]) -> None:
    """Show each thing, and ask what to do with it until it is decided."""
    if not waiting:
        say("Nothing to review.")
    elif not screen.has_terminal():
        raise click.ClickException(
            f"{len(waiting):,} to review, and no terminal to ask on;"
            " --json, --yes ID and --no ID do without"
        )
    for number, each in enumerate(waiting, 1):
        show(f"\n{number}/{len(waiting)}")
        if not _decide(each):
            return


def _decide(waiting: Waiting) -> bool:
    """Show something until a person has decided; tell whether the next one is to be shown."""
    while True:
        show("\n".join(waiting.show()))
        screen.drop_typed()
        key: str = click.prompt(_MENU, type=click.Choice(list(KEYS)), show_choices=False, err=True)
        if key in {"s", "q"}:
            return key == "s"
        act = {"k": waiting.keep, "e": waiting.edit, "r": waiting.reject}[key]
        try:
            if line := act():
                say(line)
        except KbError as error:
            say(f"Error: {error}")
            continue
        if key != "e":
            return True


def _find(waiting: Sequence[Waiting], id_: str) -> Waiting:
    """Return what waits with an id. Raises KbError."""
    found = {each.id: each for each in waiting}
    if id_ not in found:
        raise KbError(
            f"nothing with the id {id_!r} waits; waiting: {', '.join(found) or 'nothing'}"
        )
    return found[id_]
