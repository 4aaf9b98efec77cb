"""`propose_subject` as a tool of llm, and the line about what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_kb.host.log import find_conversation
from llm_kb.knowledge_base.proposing import open_inbox, propose, render_answer
from llm_kb.knowledge_base.tool_text import PROPOSE
from llm_kb.rendering.plain_text import count
from llm_kb.terminal.screen import say

if TYPE_CHECKING:
    from llm import Tool

    from llm_kb.knowledge_base.api import KnowledgeBase
    from llm_kb.knowledge_base.proposals import Inbox


def make_propose_tool(kb: KnowledgeBase, conversation: str) -> Tool:
    """Return the tool, whose calls in a conversation amend each other."""
    from llm import Tool  # noqa: PLC0415 - the MCP server does without the host

    def propose_subject(**arguments: object) -> str:
        proposal = propose(kb, arguments, conversation)
        say(f"{proposal.label} was proposed: llm kb review")
        return render_answer(proposal)

    return Tool(**PROPOSE.bind(propose_subject))


def find_token(kb: KnowledgeBase, conversation: str) -> str:
    """Return what the calls of a continued conversation share: what its earlier ones did, if any.

    While its first turn runs, nobody knows the id of a conversation.
    """
    waiting = open_inbox(kb).read_all()
    earlier = (each.conversation for each in waiting if find_conversation(each.id) == conversation)
    return next(earlier, conversation)


def say_waiting(kb: KnowledgeBase) -> None:
    """Print a line if proposals wait."""
    inbox = open_inbox(kb)
    say_expired(inbox)
    if waiting := inbox.read_all():
        say(f"{count(len(waiting), 'proposal waits', 'proposals wait')} for you: llm kb review")


def say_expired(inbox: Inbox) -> None:
    """Delete the proposals that have waited too long, with a line for each."""
    for expired in inbox.drop_expired():
        say(f"the proposal {expired.id} about {expired.subject} has expired")
