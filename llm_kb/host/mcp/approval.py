"""Asks the person at the client to approve plans of reference topics, if the client can ask.

The plan is stored first, and carried out by its id, which is a digest of all of it. Without an
answer it waits for `llm kb references approve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from llm_kb.api import KnowledgeBase
from llm_kb.host.mcp.calls import work
from llm_kb.host.mcp.tools import answer_call, carry_out_approved, open_references, read_plan
from llm_kb.host.reference_calls import CREATE, PlanWaitsError
from llm_kb.references.errors import ApprovalNeededError, DeniedError
from llm_kb.references.plan.pending import open_pending
from llm_kb.references.plan.plan_text import render_plan, summarize_plan

Context = ServerRequestContext[Any, Any]

ANSWER_WITHIN = 600.0
"""Seconds a person has to answer before the plan is left waiting."""

MOST_QUESTIONS = 3
"""The most plans of one call: a new one is made if the sources change while the person reads."""

QUESTION = "approval"
"""The name of the question in the protocol version that repeats a call with the answer."""

FORM = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Fetch this",
            "description": "Fetch these sources and keep them for all later conversations",
            "default": False,
        }
    },
    "required": ["approve"],
}


async def answer_asking(
    ctx: Context, kb: KnowledgeBase, params: types.CallToolRequestParams, *, can_write: bool
) -> str | types.InputRequiredResult:
    """Answer a call, and ask the person about a plan that it makes. Raises KbError."""
    name, arguments = params.name, params.arguments or {}
    answer = (params.input_responses or {}).get(QUESTION)
    is_answer = name == CREATE.name and can_write and isinstance(answer, types.ElicitResult)
    plan_id = (params.request_state or None) if is_answer else None
    for _ in range(MOST_QUESTIONS):
        try:
            if plan_id is None:
                call = partial(answer_call, kb, name, arguments, can_write=can_write)
            else:
                _require_yes(kb, plan_id, arguments, answer)
                call = partial(carry_out_approved, kb, plan_id, arguments)
            return await work(ctx, call)
        except ApprovalNeededError as error:
            needed = error
        if not _can_ask(ctx):
            break
        plan_id = needed.plan_id
        plan = render_plan(read_plan(kb, plan_id, arguments))
        message = f"A model wants to fetch reference material.\n{plan}"
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            form = types.ElicitRequestFormParams(message=message, requested_schema=FORM)
            question = types.ElicitRequest(params=form)
            return types.InputRequiredResult(
                input_requests={QUESTION: question}, request_state=plan_id
            )
        answer = await _ask(ctx, message)
    raise PlanWaitsError(needed)


def _can_ask(ctx: Context) -> bool:
    """Tell whether the client can show a form; one that lists no mode can."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def _ask(ctx: Context, message: str) -> types.ElicitResult | None:
    """Return the answer of the person; None without one."""
    try:
        with anyio.fail_after(ANSWER_WITHIN):
            return await ctx.session.elicit_form(message, FORM, related_request_id=ctx.request_id)
    except (MCPError, TimeoutError, ValueError):
        return None  # the client failed, or its answer is invalid


def _require_yes(
    kb: KnowledgeBase,
    plan_id: str,
    arguments: Mapping[str, Any],
    answer: types.InputResponse | None,
) -> None:
    """Raise DeniedError if the person declined, PlanWaitsError if they did not answer."""
    plan = read_plan(kb, plan_id, arguments)
    pending = open_pending(open_references(kb))
    if not isinstance(answer, types.ElicitResult) or answer.action == "cancel":
        raise PlanWaitsError(pending.ask_later(plan))
    if answer.action != "accept" or (answer.content or {}).get("approve") is not True:
        pending.drop(plan_id)
        raise DeniedError(plan.request.title, summarize_plan(plan))
