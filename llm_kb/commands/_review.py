"""The questions of a review: one thing after the other, a letter for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from llm_kb.commands._output import say
from llm_kb.errors import KbError
from llm_kb.host import terminal

T = TypeVar("T")

KEYS = {"k": "keep", "e": "edit", "r": "reject", "s": "skip", "q": "quit"}

_MENU = ", ".join(f"[{key}]{word[1:]}" for key, word in KEYS.items()) + "; a letter and Enter"


def review_each(
    waiting: Sequence[T],
    show_item: Callable[[str, T], object],
    act: Callable[[str, T], bool],
    others: str,
) -> None:
    """Show each thing, and ask what to do with it until `act` with the key says that it is done.

    `act` may raise KbError, which is printed. `others` are the ways without a terminal, for the
    error if there is none.
    """
    if not waiting:
        say("Nothing to review.")
    elif not terminal.has_terminal():
        raise click.ClickException(
            f"{len(waiting):,} to review, and no terminal to ask on; {others} do without"
        )
    for number, item in enumerate(waiting, 1):
        show_item(f"{number}/{len(waiting)}", item)
        if _ask(item, act) == "q":
            return


def _ask(item: T, act: Callable[[str, T], bool]) -> str:
    while True:
        terminal.drop_typed()
        key: str = click.prompt(_MENU, type=click.Choice(list(KEYS)), show_choices=False, err=True)
        try:
            if act(key, item):
                return key
        except KbError as error:
            say(f"Error: {error}")
