"""Library, progress and approval, for all `llm kb references` commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from llm_kb.commands._options import complete_quietly
from llm_kb.commands._output import say
from llm_kb.errors import KbError
from llm_kb.host import reference_calls
from llm_kb.host.terminal import can_ask, confirm, is_terminal
from llm_kb.references.errors import SaidNoError
from llm_kb.references.library import Library
from llm_kb.texts.safe import one_line, visible_line

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from llm_kb.references.fetch.sources import Progress
    from llm_kb.references.plan import Plan


json_option = click.option("json_", "--json", is_flag=True, help="Output as JSON")
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask")


def current_library() -> Library:
    """Return the reference topics, after cleaning up after killed processes."""
    library = reference_calls.current_library()
    library.clean()
    return library


def approve_plan(library: Library, plan: Plan, *, yes: bool) -> bool:
    """Show a plan and ask; without a terminal store it and say how to approve it."""
    # Imported here: these commands are loaded for a search as well.
    from llm_kb.references.plan import render_plan  # noqa: PLC0415

    say(render_plan(plan))
    if yes:
        return True
    if not can_ask():
        needed = reference_calls.open_plans(library).ask_later(plan)
        raise KbError(f"{needed}, or repeat this with -y")
    if not confirm("Keep this?" if plan.is_measured else "Contact these hosts?"):
        raise SaidNoError(plan.request.title)
    return True


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Draw progress bars on a terminal, one after the other; a label where nothing is counted."""
    label = ""
    bar: ProgressBar[int] | None = None

    def finish() -> None:
        nonlocal bar
        if bar is not None:
            bar.render_finish()
            bar = None

    def show(step: str, done: int, total: int) -> None:
        nonlocal bar, label
        if step != label or not total:
            finish()
            label = step
        shown = visible_line(step[:1].upper() + step[1:])
        if not total:
            if step:
                say(shown)
            return
        if bar is None:
            bar = click.progressbar(length=total, label=shown[:60], file=sys.stderr)
            bar.render_progress()
        bar.length = total  # a crawl finds more pages as it goes
        bar.update(done - bar.pos)

    try:
        yield show if is_terminal(sys.stderr) else lambda *_: None
    finally:
        finish()


@complete_quietly
def complete_reference(_ctx: click.Context, typed: str) -> list[CompletionItem]:
    """Complete the id of a reference topic."""
    topics, _ = reference_calls.current_library().topics()
    return [CompletionItem(t.id, help=one_line(t.title)) for t in topics if t.id.startswith(typed)]
