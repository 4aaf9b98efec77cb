"""`References` as a toolbox of llm, and the approval of its plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import llm

from llm_kb.errors import join_names, quote
from llm_kb.knowledge_base.tool_text import ToolText, read_arguments
from llm_kb.references.calls import (
    ALL,
    CREATE,
    TOPIC_UPDATE,
    create,
    current_library,
    open_plans,
    read,
)
from llm_kb.references.library import Library
from llm_kb.references.lookup import find_topic, topic_entry
from llm_kb.references.topic.topic_file import parse_changes
from llm_kb.terminal.screen import can_ask, confirm, say
from llm_kb.texts.safe import visible_line

if TYPE_CHECKING:
    from llm_kb.references.plan import Plan

Approve: TypeAlias = "Callable[[Plan], bool]"


class References(llm.Toolbox):
    """Fetch, keep and search reference material.

    Gives a model five tools: reference_topic_create, reference_topic_search,
    reference_topic_list, reference_topic_update and reference_search. Nothing is
    fetched before the operator has approved it.
    """

    # Public methods would be listed as tools, and the arguments of the constructor are
    # logged as JSON, so `make_references` sets these callbacks of the Python API.
    _approve: Approve | None = None
    _pauses = False

    # Shown by `llm tools`: the annotations of this module are strings.
    __signature__ = Signature(
        [
            Parameter("ghost", Parameter.POSITIONAL_OR_KEYWORD, annotation=str, default="llm"),
            Parameter(
                "model", Parameter.POSITIONAL_OR_KEYWORD, annotation=str | None, default=None
            ),
        ]
    )

    def __init__(self, ghost: str = "llm", model: str | None = None, **unknown: object) -> None:
        """Set `ghost` and `model`, which new topics record as `created_by`."""
        if unknown:
            raise click.ClickException(
                f"References: unknown argument {join_names(list(map(quote, unknown)))};"
                ' allowed: ghost, model, as in References(ghost="reviewer")'
            )
        self._created_by = {"ghost": ghost} | ({"model": model} if model else {})
        self._denied: set[str] = set()
        """The requests that were denied, which are not asked about again."""

    def tools(self) -> Iterable[llm.Tool]:
        """Yield the five tools."""
        for text in ALL:
            # Not a bound method: the host would log the part of the tool's name before the
            # first `_` as its toolbox, and could not continue the conversation.
            answer = partial(self._answer, text)
            yield llm.Tool(**text.bind(answer), plugin=getattr(self, "plugin", None))

    def _answer(self, tool: ToolText, /, **arguments: Any) -> Any:
        given = read_arguments(tool, arguments)
        if tool is CREATE:
            return self._create(given)
        return _update(**given) if tool is TOPIC_UPDATE else read(current_library(), tool, given)

    def _create(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        library = current_library()
        answer = create(library, arguments, self._created_by, partial(self._ask, library))
        for warning in answer.get("warnings", ()):
            say(warning)
        return answer

    def _ask(self, library: Library, plan: Plan) -> bool:
        """Ask the operator to approve a plan; without a terminal, store it for later."""
        if self._approve is not None:
            return self._approve(plan)
        if not self._pauses and can_ask():
            if plan.request.digest in self._denied or not ask_on_terminal(plan):
                self._denied.add(plan.request.digest)
                return False
            return True
        needed = open_plans(library).ask_later(plan)
        if self._pauses:
            raise llm.PauseChain(needed)
        say(str(needed))
        raise needed


def _update(topic_id: str, **changes: Any) -> dict[str, Any]:
    library = current_library()
    keys, body = parse_changes(changes)
    topic = library.update(find_topic(library, topic_id, obsolete=True).id, keys, body)
    changed = ", ".join([*keys, *(["body"] if body is not None else [])])
    say(f"the model changed {changed} of {topic.id}; see llm kb references show {topic.id}")
    return topic_entry(topic, library.clock())


def make_references(
    *, approve: Approve | None = None, pause: bool = False, **created_by: str
) -> References:
    """Return the toolbox for Python code, which answers for the operator.

    `approve` is called with every plan, and returns whether to carry it out. With
    `pause` a plan is stored and `llm.PauseChain` raised, whose first argument is an
    ApprovalNeededError; after `approve_plan(error.plan_id)` run the chain again.
    """
    toolbox = References(**created_by)
    toolbox._approve = approve  # noqa: SLF001 - our own class, see there
    toolbox._pauses = pause  # noqa: SLF001
    return toolbox


def approve_plan(plan_id: str) -> None:
    """Approve a stored plan, which may then be carried out once if nothing has changed."""
    open_plans(current_library()).approve(plan_id)


def ask_on_terminal(plan: Plan) -> bool:
    """Show a plan to the operator and ask for approval; the end of input denies it.

    Ctrl-C ends the program: llm would report click's own exception to the model as an
    error of the tool, and go on.
    """
    from llm_kb.references.plan import describe_plan, summarize_plan  # noqa: PLC0415

    title = visible_line(plan.request.title)
    click.echo(f"Create reference topic '{title}'?", err=True)
    click.echo(f"Sources: {summarize_plan(plan)}", err=True)
    click.echo(describe_plan(plan), err=True)
    try:
        return confirm("Approve")
    except click.Abort as error:
        raise KeyboardInterrupt from error
