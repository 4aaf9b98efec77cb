"""Answers calls of `propose_subject`, and finds the topics that proposals are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_kb.errors import KbError, quote
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.kinds import Topic
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.proposals.edits import Edit, apply_edits, find_flaw
from llm_kb.knowledge_base.proposals.inbox import Inbox, Proposal, digest
from llm_kb.knowledge_base.proposals.places import find_place, read_place
from llm_kb.knowledge_base.tool_text import PROPOSE, read_proposal
from llm_kb.knowledge_base.user_dir import find_user_dir
from llm_kb.subjects.topics import CONFIGURED


def open_inbox(kb: OpenTopics) -> Inbox:
    """Return the proposals for the workspace of a knowledge base."""
    workspace = digest(str(kb.config.workspace or ""))[:16]
    return Inbox(directory=find_user_dir() / "kb" / "proposals" / workspace)


def list_proposable(kb: OpenTopics) -> list[str]:
    """Return the ids of the topics that models may propose to change."""
    return [each.config.id for each in kb.offered if _find_proposable(kb, each.topic)]


def offers_proposals(kb: OpenTopics) -> bool:
    """Tell whether `propose_subject` comes with `learn`, as configured."""
    return kb.config.propose_offer and bool(list_proposable(kb))


def find_topic(kb: OpenTopics, name: str) -> DirectoryTopic:
    """Return a topic that may be changed, by its id or title. Raises KbError."""
    topic = _find_proposable(kb, kb.find_topic(name).topic)
    if topic is None:
        allowed = ", ".join(list_proposable(kb)) or "none"
        raise KbError(f"topic {quote(name)} is not written here; topics that are: {allowed}")
    return topic


def _find_proposable(kb: OpenTopics, topic: Topic) -> DirectoryTopic | None:
    """Return a topic of ours whose files models may propose to change; None for another.

    What is in a hidden directory, such as `.claude`, programs obey.
    """
    if topic.config.kind != CONFIGURED or not isinstance(topic, DirectoryTopic):
        return None
    root = topic.config.root
    bases = [
        each for each in (kb.config.workspace, find_user_dir()) if each and each in root.parents
    ]
    inside = root.relative_to(max(bases, key=lambda each: len(each.parts), default=root.anchor))
    return None if any(name.startswith(".") for name in inside.parts) else topic


def propose(kb: OpenTopics, arguments: Mapping[str, Any], conversation: str) -> Proposal:
    """Check a call of `propose_subject`, and let it wait for a person. Raises KbError."""
    given = read_proposal(arguments)
    texts = {name: given.get(name, "") for name in ("reason", "new", "old")}
    for name, text in texts.items():
        if flaw := find_flaw(text):
            raise KbError(f"{PROPOSE.name}: `{name}` {flaw}")
    topic = find_topic(kb, given["topic"])
    place = find_place(topic, given["subject"].strip())
    before = read_place(topic, place.path)
    new = Proposal(
        topic=topic.config.id,
        root=str(topic.config.root),
        path=place.path,
        name=place.name,
        base=None if before is None else digest(before),
        edits=(Edit(**texts, part=place.part),),
        conversation=conversation,
    )
    return open_inbox(kb).amend(new, lambda each: check_edits(each, before))


def check_edits(proposal: Proposal, before: str | None) -> str:
    """Return the text of a file with the edits of a proposal. Raises KbError."""
    if proposal.base is None and before is not None:
        raise KbError("somebody has written the subject meanwhile")
    if proposal.base is not None and before is None:
        raise KbError("the subject is gone")
    return apply_edits(proposal.path, before, proposal.edits)


def render_answer(proposal: Proposal) -> str:
    """Return the answer of a call, for the model."""
    number = f", {len(proposal.edits)} edits so far" if len(proposal.edits) > 1 else ""
    return (
        f"proposed {proposal.id}: {proposal.label}{number}. It waits for the user, who decides with"
        " `llm kb review`; nothing is changed yet."
    )
