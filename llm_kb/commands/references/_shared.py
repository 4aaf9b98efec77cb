"""Library, progress and approval, for all `llm kb references` commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from llm_kb.commands._config import current_config
from llm_kb.commands._output import say
from llm_kb.errors import KbError
from llm_kb.host.terminal import confirm, is_terminal
from llm_kb.knowledge_base import user_dir
from llm_kb.references.library import Library, open_library
from llm_kb.rendering.plain_text import one_line, visible_line

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from llm_kb.references.fetch.sources import Progress
    from llm_kb.references.plan import Plan


json_option = click.option("json_", "--json", is_flag=True, help="Output as JSON")
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask")


def current_library() -> Library:
    """Return the reference topics, after cleaning up after killed processes."""
    library = user_dir.current_library()
    library.clean()
    return library


def approve_plan(library: Library, plan: Plan, *, yes: bool) -> bool:
    """Show a plan and ask; without a terminal store it and say how to approve it."""
    # Imported here: these commands are loaded for a search as well.
    from llm_kb.references.plan import PendingPlans, render_plan  # noqa: PLC0415

    say(render_plan(plan))
    if yes:
        return True
    if not is_terminal(sys.stdin):
        raise KbError(f"{PendingPlans(library).ask_later(plan)}, or repeat this with -y")
    if not confirm("Keep this?" if plan.is_measured else "Contact these hosts?"):
        raise KbError(f"you said no, so nothing is kept of {plan.request.title!r}")
    return True


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Draw progress bars on a terminal."""
    bars = _Bars()
    try:
        yield bars.show if is_terminal(sys.stderr) else lambda *_: None
    finally:
        bars.close()


def complete_reference(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the ids of the reference topics."""
    try:
        topics, _ = open_library(current_config(), user_dir.find_user_dir()).topics()
    except KbError:
        return []  # completion prints no errors
    return [
        CompletionItem(t.id, help=one_line(t.title)) for t in topics if t.id.startswith(incomplete)
    ]


class _Bars:
    """Progress bars on standard error, one after the other."""

    def __init__(self) -> None:
        self._label = ""
        self._done = 0
        self._bar: ProgressBar[int] | None = None

    def show(self, step: str, done: int, total: int) -> None:
        """Draw a bar, a new one for a new step; print only its label if nothing is counted."""
        label = step[0].upper() + step[1:]
        if not total:
            self.close()
            say(label)
            return
        if label != self._label or self._bar is None:
            self.close()
            self._label = label
            self._done = 0
            self._bar = click.progressbar(
                length=total,
                label=visible_line(label)[:60],
                file=sys.stderr,
                update_min_steps=max(1, total // 100),
            )
            self._bar.__enter__()
        self._bar.length = total  # a crawl finds more pages as it goes
        # Not from the bar's position: the bar holds back steps too small to draw.
        self._bar.update(done - self._done)
        self._done = done

    def close(self) -> None:
        """Finish the current bar."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
