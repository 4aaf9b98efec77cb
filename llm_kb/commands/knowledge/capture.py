"""`llm kb knowledge capture`: the agent loop over commits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import click
import llm
import sqlite_utils
from llm.migrations import migrate
from llm.models import ChainResponse

from llm_kb.capture.commits.journal import Journal
from llm_kb.capture.commits.ranges import read_briefing, read_subject, resolve_commits
from llm_kb.capture.store import require_repository
from llm_kb.commands._errors import kb_errors
from llm_kb.commands.knowledge._shared import find_here
from llm_kb.host.capture_agent import Captured, capture_commits
from llm_kb.rendering.menu import estimate_tokens
from llm_kb.rendering.plain_text import count, one_line, shorten


@click.command()
@click.argument("revisions", nargs=-1, metavar="[REV-RANGE]...")
@click.option("model_id", "-m", "--model", metavar="MODEL", help="Model that looks at the commits")
@click.option("--again", is_flag=True, help="Also look at commits that were looked at before")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; call no model")
@click.option("-n", "--no-log", is_flag=True, help="Don't log to llm's database")
@kb_errors
def capture(
    revisions: tuple[str, ...], model_id: str | None, again: bool, dry_run: bool, no_log: bool
) -> None:
    """
    Let a model look for knowledge in commits

    REV-RANGE is a commit or a range as git takes it, by default HEAD. The model is
    shown one commit at a time, its message and its diff without binary and
    generated files, and may record entries from it. Most commits yield none.

    What is sent and answered goes to `llm logs`, unless these are off.

    A commit is looked at once: run the command again to go on after an interruption.

    \b
        llm kb knowledge capture
        llm kb knowledge capture main..HEAD -m gpt-4o-mini
        llm kb knowledge capture HEAD~20..HEAD --dry-run
    """
    repository = require_repository(find_here())
    journal = Journal(repository)
    found = resolve_commits(repository.root, revisions or ("HEAD",))
    seen = frozenset() if again else journal.read()
    commits = [commit for commit in found.commits if commit not in seen]
    _echo_skipped(found.merges, len(found.commits) - len(commits))
    if dry_run:
        _echo_plan(repository.root, commits)
    elif commits:
        model = _load_model(model_id)
        with nullcontext(_log_nothing) if no_log else _open_log() as log:
            _run(capture_commits(model, repository.root, commits, journal, log), len(commits))


def _load_model(model_id: str | None) -> llm.Model:
    try:
        model = llm.get_model(model_id)
    except llm.UnknownModelError as error:
        raise click.ClickException(f"unknown model {error.args[0]}") from error
    if not model.supports_tools:
        raise click.ClickException(
            f"{model.model_id} does not support tools; `llm models --tools` lists those that do"
        )
    return model


@contextmanager
def _open_log() -> Iterator[Callable[[ChainResponse], None]]:
    """Yield what logs a chain as `llm prompt` would, if it would."""
    # Half initialised where plugins are imported.
    from llm.cli import logs_db_path, logs_on  # noqa: PLC0415

    if not logs_on():
        yield _log_nothing
        return
    try:
        db = sqlite_utils.Database(logs_db_path())
        migrate(db)
    except Exception as error:
        raise click.ClickException(
            f"llm's log, {str(logs_db_path())!r}, cannot be used: {error}; --no-log goes without"
        ) from error

    def log(chain: ChainResponse) -> None:
        try:
            chain.log_to_db(db)
        except Exception as error:  # noqa: BLE001 - what was captured must not be lost for it
            click.echo(f"Warning: not logged: {error}", err=True)

    with closing(db):
        yield log


def _log_nothing(_chain: ChainResponse) -> None:
    pass


def _run(captured: Iterator[Captured], count: int) -> None:
    done: list[Captured] = []
    try:
        with click.progressbar(
            captured,
            length=count,
            label="Looking at commits",
            show_pos=True,
            file=sys.stderr,
        ) as progress:
            done.extend(progress)
    finally:
        # Also after a failure or Ctrl-C: what is recorded is recorded.
        _echo_summary(done)


def _echo_skipped(merges: int, seen: int) -> None:
    if merges:
        click.echo(f"{count(merges, 'merge')} left out.", err=True)
    if seen:
        known = count(seen, "commit was", "commits were")
        click.echo(f"{known} looked at before; --again looks again.", err=True)


def _echo_plan(directory: Path, commits: Sequence[str]) -> None:
    total = 0
    for commit in commits:
        briefing = read_briefing(directory, commit)
        tokens = estimate_tokens(briefing.text)
        total += tokens
        subject = shorten(one_line(read_subject(directory, commit)), 50)
        click.echo(f"{commit[:12]}  {tokens:>7,} tokens  {subject}")
        for notice in briefing.left_out:
            click.echo(f"              left out: {notice}")
    click.echo(
        f"{count(len(commits), 'commit')}, about {count(total, 'token')}; no model was called.",
        err=True,
    )


def _echo_summary(done: Sequence[Captured]) -> None:
    if not done:
        return
    click.echo(f"{'commit':<12}  {'written':>7}  {'duplicates':>10}  subject")
    for captured in done:
        click.echo(
            f"{captured.commit[:12]}  {len(captured.written):>7}  {captured.duplicates:>10}  "
            f"{shorten(one_line(captured.subject), 50)}"
        )
        if captured.written:
            click.echo(f"              {', '.join(captured.written)}")
        for notice in captured.left_out:
            click.echo(f"              left out: {notice}")
    written = sum(len(captured.written) for captured in done)
    duplicates = sum(captured.duplicates for captured in done)
    click.echo(f"{'total':<12}  {written:>7}  {duplicates:>10}")
