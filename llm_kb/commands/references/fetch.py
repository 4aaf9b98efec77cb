"""`llm kb references refresh`, `approve` and `pending`: fetch what is known already."""

from __future__ import annotations

from typing import Any

import click

from llm_kb.commands._output import ask, say, show_json
from llm_kb.commands.references._shared import (
    approve_plan,
    complete_reference,
    current_library,
    json_option,
    show_progress,
    yes_option,
)
from llm_kb.commands.references.create import tell_created
from llm_kb.errors import KbError
from llm_kb.host.terminal import can_ask, confirm
from llm_kb.references.errors import SaidNoError, UnknownPlanError
from llm_kb.references.fetch.create import carry_out, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.lookup import find_id
from llm_kb.references.plan import PendingPlans, pending_entry, render_plan
from llm_kb.references.topic.topic_file import Status, TopicFile, is_stale
from llm_kb.texts.safe import visible_line


@click.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_reference)
@click.option("--stale", is_flag=True, help="Refresh only stale topics")
@yes_option
@json_option
def refresh(topics: tuple[str, ...], stale: bool, yes: bool, json_: bool) -> None:
    """
    Fetch what has changed since a topic was fetched

    Without TOPIC, all topics are refreshed that are not obsolete. A page or repository that has
    not changed costs one request. You are asked only if a topic leads to a host that was not
    approved here, or has grown to more than twice its size.

    \b
        llm kb references refresh topic-dioxus-ui
        llm kb references refresh --stale
    """
    library = current_library()
    answers = []
    failed = False
    for wanted in dict.fromkeys(topics or library.ids()):
        try:
            topic = library.read(find_id(library, wanted))
            if _is_due(library, topic, by_name=bool(topics), stale=stale):
                answers.append(_refresh(library, topic.id, yes=yes))
        except KbError as error:
            failed = True
            say(f"Error: {wanted}: {error}")
    if not answers and not failed:
        say("Nothing to refresh: no topic is stale." if stale else "No topics to refresh.")
    if json_:
        show_json(answers)
    for answer in [] if json_ else answers:
        click.echo(f"{answer['topic_id']}: {_render_counts(answer)}")
    if failed:
        raise click.exceptions.Exit(1)


def _is_due(library: Library, topic: TopicFile, *, by_name: bool, stale: bool) -> bool:
    """Tell whether a topic is to be refreshed: a stale one, or any that is not obsolete."""
    if stale and not (is_stale(topic, library.clock()) or library.find_outdated(topic)):
        return False
    return by_name or topic.status is not Status.OBSOLETE


@click.command()
@click.argument("plan_id", metavar="ID")
@yes_option
@json_option
def approve(plan_id: str, yes: bool, json_: bool) -> None:
    """
    Show a waiting plan; make its topic, or delete the plan

    \b
        llm kb references pending
        llm kb references approve 3f2a9c01d4be5f6a7b8c9d0e1f2a3b4c
    """
    library = current_library()
    waiting = PendingPlans(library)
    plan = waiting.read(plan_id)
    say(render_plan(plan))
    if not ask("Keep this?" if plan.is_measured else "Contact these hosts?", yes=yes):
        waiting.drop(plan_id)
        raise SaidNoError(plan.request.title)
    with show_progress() as progress:
        created = carry_out(
            library, plan_id, lambda plan: approve_plan(library, plan, yes=yes), progress
        )
    tell_created(created, json_=json_)


@click.command()
@click.option("--drop", metavar="ID", help="Forget this plan instead")
@json_option
def pending(drop: str | None, json_: bool) -> None:
    """
    List the plans that wait for your approval

    \b
        llm kb references pending
        llm kb references pending --drop 3f2a9c01d4be5f6a7b8c9d0e1f2a3b4c
    """
    waiting_plans = PendingPlans(current_library())
    if drop:
        if not waiting_plans.drop(drop):
            raise UnknownPlanError(drop, "it was used or dropped already")
        say(f"Dropped {drop}")
        return
    plans, problems = waiting_plans.read_all()
    if json_:
        show_json([pending_entry(plan) for plan in plans])
    for waiting in [] if json_ else plans:
        click.echo(f"{waiting.id}: {render_plan(waiting)}")
    for problem in problems:
        say(f"Left out: {problem}; --drop forgets it")
    if not plans and not problems and not json_:
        say("No plans are waiting for approval.")


def _render_counts(answer: dict[str, Any]) -> str:
    if not answer["changed"]:
        return "unchanged"
    counts = "{added} added, {modified} modified, {removed} removed".format_map(answer)
    return counts + (f", {len(answer['own'])} of your own kept" if answer["own"] else "")


def _refresh(library: Library, topic_id: str, *, yes: bool) -> dict[str, Any]:
    def approve_changes(reason: str) -> bool:
        if yes:
            say(f"{topic_id}: {reason}")
            return True
        if not can_ask():
            raise KbError(
                f"{reason}; to fetch it all the same: llm kb references refresh {topic_id} -y"
            )
        return confirm(visible_line(f"{topic_id}: {reason}. Keep it?"))

    with show_progress() as progress:
        refreshed = refresh_topic(library, topic_id, approve_changes, progress)
    for warning in refreshed["warnings"]:
        say(f"Warning: {warning}")
    return refreshed
