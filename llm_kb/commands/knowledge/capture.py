"""`llm kb knowledge capture`: let a model look at commits."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from llm_kb.capture.commits import (
    CommitRange,
    Journal,
    PlannedCommit,
    choose_commits,
    plan_commits,
    resolve_commits,
)
from llm_kb.capture.store import require_repository
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import confirm, say, show
from llm_kb.host.capture_agent import INTERRUPTED, Agent, Captured, RunStoppedError, capture_commits
from llm_kb.rendering.plain_text import count, one_line, shorten, visible_line, visible_text

if TYPE_CHECKING:
    import llm

_REVISION = "llm_kb.capture.revision"

_MANY = 20
"""Commits up to which a run does not ask."""


class InterruptedRunError(click.ClickException):
    """A run that Ctrl-C ended."""

    exit_code = 130  # what shells expect


def parse_again(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Handle `--again` before a revision, which click would take for its value."""
    if value not in {None, "all", "failed"}:
        ctx.meta[_REVISION] = value
        return "all"
    return value


@click.command()
@click.argument("revisions", nargs=-1, metavar="[REV-RANGE]...")
@click.option("model_id", "-m", "--model", metavar="MODEL", help="Model that looks at the commits")
@click.option(
    "options",
    "-o",
    "--option",
    type=(str, str),
    multiple=True,
    help="key/value options for the model",
)
@click.option("--key", metavar="KEY", help="API key to use, or the alias of a stored one")
@click.option(
    "--again",
    is_flag=False,
    flag_value="all",
    metavar="[failed]",
    callback=parse_again,
    help="Also look at commits that were looked at before; with 'failed', only at those "
    "on which the model failed",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Look at no more than N commits")
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Stop before more than N tokens were sent",
)
@click.option(
    "--keep-going/--stop-at-failure",
    default=True,
    help="Continue after a commit on which the model fails  [default]",
)
@click.option("-y", "--yes", is_flag=True, help="Don't ask before a run over many commits")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; call no model")
@click.option("-n", "--no-log", is_flag=True, help="Don't log to llm's database")
@click.pass_context
def capture(
    ctx: click.Context,
    revisions: tuple[str, ...],
    model_id: str | None,
    options: tuple[tuple[str, str], ...],
    key: str | None,
    again: str | None,
    limit: int | None,
    max_tokens: int | None,
    keep_going: bool,
    yes: bool,
    dry_run: bool,
    no_log: bool,
) -> None:
    """
    Let a model look for knowledge in commits

    REV-RANGE is a commit or a range in git's notation, by default HEAD. The model sees one
    commit at a time, with its message and its diff without binary and generated files, and
    may record entries. Most commits yield none. In a
    range, commits of bots, of new versions alone and without anything to see are skipped.

    Requests and answers are logged to `llm logs`, unless logging is off.

    Each commit is looked at only once, so the same command continues after an interruption.

    \b
        llm kb knowledge capture
        llm kb knowledge capture main..HEAD -m gpt-4o-mini
        llm kb knowledge capture HEAD~20..HEAD --dry-run
    """
    named = ctx.meta.get(_REVISION)
    revisions = (named, *revisions) if named else revisions
    repository = require_repository(require_cwd())
    journal = Journal(repository)
    revisions = revisions or ("HEAD",)
    found = resolve_commits(repository.root, revisions)
    records = journal.read()
    chosen, done, failed = choose_commits(found.commits, records, again)
    echo_choice(found, done, failed)
    if found.merges and not found.commits:
        say(visible_line(explain_merge(revisions)))
    with click.progressbar(
        length=len(chosen), label="Reading commits", file=sys.stderr, hidden=len(chosen) <= _MANY
    ) as progress:
        planned, skipped = plan_commits(repository.root, chosen, limit=limit, watch=progress.update)
    for reason, number in sorted(skipped.items()):
        say(f"{count(number, 'commit')} skipped: {reason}.")
    if dry_run:
        echo_plan(planned)
    if dry_run or not planned:
        return
    model = load_model(model_id)
    key = resolve_key(model, key)
    if len(planned) > _MANY:
        confirm(f"{describe_cost(planned)} Go on?", yes=yes)
    with nullcontext(lambda _response: None) if no_log else open_log() as log:
        agent = Agent(
            model=model,
            directory=repository.root,
            key=key,
            options=parse_options(model, options),
            log=log,
            say=lambda text: say(f"\n{text}"),
        )
        run(agent, planned, journal, keep_going=keep_going, max_tokens=max_tokens)


def explain_merge(revisions: Sequence[str]) -> str:
    """Return a line that suggests revisions in place of ones that are only merges."""
    if len(revisions) > 1 or ".." in revisions[0]:
        return "Nothing was looked at."
    merge = revisions[0]
    commits = shlex.quote(f"{merge}^1..{merge}")
    return (
        f"Nothing was looked at: {merge} is a merge, which has no change of its own; to look at"
        f" the commits that it brought: llm kb knowledge capture {commits}"
    )


def echo_choice(found: CommitRange, done: int, failed: int) -> None:
    """Print the commits that are skipped, with the reasons."""
    remarks = [
        (found.merges, "merge", "merges", "left out"),
        (found.cut_off, "commit", "commits", "left out: this clone ends there"),
        (done, "commit was", "commits were", "looked at before; --again looks again"),
        (failed, "commit", "commits", "failed before; --again failed tries again"),
    ]
    for number, one, many, what in remarks:
        if number:
            say(f"{count(number, one, many)} {what}.")
    if found.cut_off:
        say("`git fetch --deepen=50` gets more of the history.")


def describe_cost(planned: Sequence[PlannedCommit]) -> str:
    """Return a sentence about the cost of a run, which grows with what the model records."""
    tokens = count(sum(item.tokens for item in planned), "token")
    return f"{count(len(planned), 'commit')}, about {tokens} to send."


def echo_plan(planned: Sequence[PlannedCommit]) -> None:
    """Print what would be sent for each commit, and the total."""
    for item in planned:
        subject = shorten(one_line(item.info.subject), 50)
        show(f"{item.info.commit[:12]}  {item.tokens:>7,} tokens  {subject}")
        for notice in item.left_out:
            show(f"              left out: {notice}")
    say(f"{describe_cost(planned) if planned else 'Nothing to send.'} No model was called.")


def run(
    agent: Agent,
    planned: Sequence[PlannedCommit],
    journal: Journal,
    *,
    keep_going: bool,
    max_tokens: int | None,
) -> None:
    """Run the model on the commits, then print the summary, even after an interruption."""
    done: list[Captured] = []
    stop: RunStoppedError | None = None
    subjects = {item.info.commit: item.info.subject for item in planned}
    captured = capture_commits(agent, list(subjects), journal, keep_going=keep_going)
    try:
        with click.progressbar(
            captured,
            length=len(planned),
            label="Looking at commits",
            show_pos=True,
            file=sys.stderr,
        ) as progress:
            for result in progress:
                done.append(result)
                sent = sum(c.tokens_sent for c in done)
                following = planned[len(done)].tokens if len(done) < len(planned) else 0
                if max_tokens is not None and following and sent + following > max_tokens:
                    say(f"\n--max-tokens {max_tokens}: stopped before the next.")
                    break
    except KeyboardInterrupt:
        stop = RunStoppedError(INTERRUPTED)  # between two commits
    except RunStoppedError as error:
        stop = error
    finally:
        # Also after any other error: entries were recorded already.
        echo_summary(done, subjects)
    raise_problems(done, stop)


def raise_problems(done: Sequence[Captured], stop: RunStoppedError | None) -> None:
    """Raise an error with the reason a run stopped, its failures and how to continue."""
    problems = [str(stop)] if stop else []
    if failed := sum(captured.failed is not None for captured in done):
        problems.append(
            f"the model failed on {count(failed, 'commit')} of {len(done)}; "
            "`llm kb knowledge capture --again failed` with the same revisions tries again"
        )
    if problems:
        is_interrupted = stop is not None and stop.reason == INTERRUPTED
        error = InterruptedRunError if is_interrupted else click.ClickException
        raise error(visible_text("\n".join(problems)))


def echo_summary(done: Sequence[Captured], subjects: Mapping[str, str]) -> None:
    """Print the result of each commit, the totals, and the tokens that were used."""
    if not done:
        return
    show(f"{'commit':<12}  {'written':>7}  {'duplicates':>10}  subject")
    for captured in done:
        show(
            f"{captured.commit[:12]}  {len(captured.written):>7}  {captured.duplicates:>10}  "
            f"{shorten(one_line(subjects[captured.commit]), 50)}"
        )
        if captured.written:
            show(f"              {', '.join(captured.written)}")
        if captured.failed:
            show(f"              failed: {shorten(one_line(captured.failed), 200)}")
        if captured.stopped:
            show("              not finished; the next run looks at it again")
        for notice in captured.left_out:
            show(f"              left out: {notice}")
    written = sum(len(captured.written) for captured in done)
    duplicates = sum(captured.duplicates for captured in done)
    show(f"{'total':<12}  {written:>7}  {duplicates:>10}")
    sent = sum(captured.tokens_sent for captured in done)
    received = sum(captured.tokens_received for captured in done)
    say(f"{count(sent, 'token')} sent, {received:,} received.")


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


def resolve_key(model: llm.Model, key: str | None) -> str | None:
    """Return the API key, found as llm finds it; None for a model that needs none."""
    import llm  # noqa: PLC0415

    try:
        return model.get_key(key)
    except llm.NeedsKeyException as error:
        raise click.ClickException(str(error)) from error


def parse_options(model: llm.Model, options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the model's options, checked as `llm prompt` checks them."""
    import pydantic  # noqa: PLC0415

    try:
        given = model.Options(**dict(options))
    except pydantic.ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise click.UsageError(f"options of {model.model_id}: {'; '.join(problems)}") from error
    return {name: value for name, value in given if value is not None}


@contextmanager
def open_log() -> Iterator[Callable[[llm.Response], None]]:
    """Yield a function that logs a response if `llm prompt` would log it."""
    import sqlite_utils  # noqa: PLC0415
    from llm.cli import logs_db_path, logs_on  # noqa: PLC0415
    from llm.migrations import migrate  # noqa: PLC0415

    if not logs_on():
        yield _log_nothing
        return
    try:
        db = sqlite_utils.Database(logs_db_path())
        try:
            migrate(db)
        except Exception:
            db.close()
            raise
    except Exception as error:
        raise click.ClickException(
            f"llm's log, {str(logs_db_path())!r}, cannot be used: {error}; --no-log goes without"
        ) from error

    def log(response: llm.Response) -> None:
        try:
            response.log_to_db(db)
        except Exception as error:  # noqa: BLE001 - what was captured must not be lost for it
            click.echo(f"Warning: not logged: {error}", err=True)

    with closing(db):
        yield log


def _log_nothing(_response: llm.Response) -> None:
    pass
