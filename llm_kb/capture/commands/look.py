"""`llm kb knowledge capture`: let a model look at commits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llm_kb.capture.commands.agent import MAX_ENTRIES, Captured, capture_commits
from llm_kb.capture.commits import Briefing, Journal, plan_commits, resolve_commits
from llm_kb.capture.store import require_repository
from llm_kb.rendering.plain_text import count, shorten
from llm_kb.terminal.configured import require_cwd
from llm_kb.terminal.output import confirm, say, show
from llm_kb.texts.safe import one_line

if TYPE_CHECKING:
    import llm

_MANY = 20
"""Commits up to which a run does not ask."""


@click.command()
@click.argument("revisions", nargs=-1, metavar="[REV-RANGE]...")
@click.option("model_id", "-m", "--model", metavar="MODEL", help="Model that looks at the commits")
@click.option("--again", is_flag=True, help="Also look at commits that were looked at before")
@click.option("-y", "--yes", is_flag=True, help="Don't ask before a run over many commits")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; call no model")
def capture(
    revisions: tuple[str, ...],
    model_id: str | None,
    again: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """
    Let a model look for knowledge in commits

    REV-RANGE is a commit or a range in git's notation, by default HEAD. The model sees one
    commit at a time, with its message and its diff without binary and generated files, and
    may record entries. Most commits yield none. Merges, and commits without anything to
    see, are skipped.

    Requests and answers are logged to `llm logs`, unless logging is off.

    Each commit is looked at only once, so the same command continues after an interruption.

    \b
        llm kb knowledge capture
        llm kb knowledge capture main..HEAD -m gpt-4o-mini
        llm kb knowledge capture HEAD~20..HEAD --dry-run
    """
    repository = require_repository(require_cwd())
    journal = Journal(repository)
    found = resolve_commits(repository.root, revisions or ("HEAD",))
    looked_at = journal.read()
    chosen = [commit for commit in found if again or commit not in looked_at]
    if not found:
        say("No commit to look at: merges and the end of a shallow clone are left out.")
    if done := len(found) - len(chosen):
        say(f"{count(done, 'commit was', 'commits were')} looked at before; --again looks again.")
    planned, empty = plan_commits(repository.root, chosen)
    if empty:
        say(f"{count(empty, 'commit')} skipped: nothing to see in them.")
    if dry_run:
        echo_plan(planned)
    if dry_run or not planned:
        return
    model = load_model(model_id)
    if len(planned) > _MANY:
        confirm(f"{describe_cost(planned)} Go on?", yes=yes)
    run(model, repository.root, planned, journal)


def describe_cost(planned: Sequence[Briefing]) -> str:
    """Return a sentence about the cost of a run, which grows with what the model records."""
    tokens = count(sum(item.tokens for item in planned), "token")
    return f"{count(len(planned), 'commit')}, about {tokens} to send."


def echo_plan(planned: Sequence[Briefing]) -> None:
    """Print what would be sent for each commit, and the total."""
    for item in planned:
        _show_commit(item, f"{item.tokens:>7,} tokens")
    say(f"{describe_cost(planned) if planned else 'Nothing to send.'} No model was called.")


def run(model: llm.Model, root: Path, planned: Sequence[Briefing], journal: Journal) -> None:
    """Run the model on the commits, then print the summary, even after an interruption."""
    done: list[Captured] = []
    commits = [item.commit for item in planned]
    captured = capture_commits(model, root, commits, journal, lambda text: say(f"\n{text}"))
    bar = click.progressbar(
        captured, len(planned), label="Looking at commits", show_pos=True, file=sys.stderr
    )
    try:
        with bar as progress:
            for result in progress:
                done.append(result)  # noqa: PERF402 - it counts, also if the next one raises
    finally:
        # Also after any other error: entries were recorded already.
        echo_summary(done)
    if failed := sum(result.failed is not None for result in done):
        raise click.ClickException(
            f"the model failed on {count(failed, 'commit')} of {len(done)}; "
            "the same command tries again"
        )


def echo_summary(done: Sequence[Captured]) -> None:
    """Print the result of each commit, the totals, and the tokens that were used."""
    if not done:
        return
    show(f"{'commit':<12}  {'written':>7}  {'duplicates':>10}  subject")
    written = known = 0
    for captured in done:
        ids = [addition.entry.id for addition in captured.additions if addition.is_new]
        duplicates = len(captured.additions) - len(ids)
        written, known = written + len(ids), known + duplicates
        notes = [", ".join(ids)] if ids else []
        if captured.failed:
            notes.append(f"failed: {shorten(one_line(captured.failed), 200)}")
        if captured.refused:
            notes.append(f"{captured.refused:,} more refused: at most {MAX_ENTRIES} of a commit")
        _show_commit(captured.briefing, f"{len(ids):>7}  {duplicates:>10}", notes)
    show(f"{'total':<12}  {written:>7}  {known:>10}")
    sent = sum(captured.tokens_sent for captured in done)
    received = sum(captured.tokens_received for captured in done)
    say(f"{count(sent, 'token')} sent, {received:,} received.")


def _show_commit(briefing: Briefing, numbers: str, notes: Sequence[str] = ()) -> None:
    show(f"{briefing.commit[:12]}  {numbers}  {shorten(one_line(briefing.subject), 50)}")
    left_out = briefing.left_out
    if left_out:
        more = f" and {count(len(left_out) - 1, 'other')}" if left_out[1:] else ""
        notes = [*notes, f"left out: {left_out[0]}{more}"]
    for note in notes:
        show(f"              {note}")


def load_model(model_id: str | None) -> llm.Model:
    """Return the model of an id or alias, which must support tools; by default llm's own."""
    import llm  # noqa: PLC0415 - `--help` and completion do without the host

    try:
        model = llm.get_model(model_id)
    except llm.UnknownModelError as error:
        # Its message is complete as it stands.
        raise click.ClickException(str(error.args[0])) from error
    if not model.supports_tools:
        raise click.ClickException(
            f"{model.model_id} does not support tools; `llm models --tools` lists those that do"
        )
    return model
