"""Answers calls of `propose_subject`, and finds the topics and files that may be proposed."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from llm_kb.errors import KbError, quote
from llm_kb.files.atomic import read_below
from llm_kb.files.containment import resolve_links
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import find_skill, place_subject
from llm_kb.knowledge_base.kinds import Topic
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.proposals import (
    Edit,
    Inbox,
    Proposal,
    apply_edits,
    digest,
    find_flaw,
)
from llm_kb.knowledge_base.tool_text import PROPOSE, read_proposal
from llm_kb.knowledge_base.user_dir import find_user_dir
from llm_kb.subjects.topics import CONFIGURED, Layout, Subject
from llm_kb.texts.formats import find_format


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


MOST_BYTES = 2_000_000
"""The most bytes of a subject that is changed."""

_OBEYED = re.compile(
    r"agents?|claude|gemini|skills?|qwen|warp|crush|replit|iflow|codebuddy|codex|copilot(?:-instructions)?|.*rules"
    r"|(?:.*\.)?(?:instructions|prompt|chatmode|agent|local|override)"
)
"""Names, without extension, of files that programs obey: only people write these."""


class Place(NamedTuple):
    """A file of a topic that may be written."""

    name: str
    """The name of its subject."""
    path: str
    """Its path below the root of the topic."""
    part: str
    """The anchor that was asked for; empty for the whole subject."""


def find_place(topic: DirectoryTopic, asked: str) -> Place:
    """Return the place of a subject, there or not, with or without a part. Raises KbError.

    The topic's id may be before the name.
    """
    config = topic.config
    if config.layout is not Layout.FILES:
        raise KbError(f"topic {config.id!r} has skills, which only people write")
    below = asked.removeprefix(f"{config.id}/")
    # A name may have a `#`; after the last one is else the part.
    for name, part in ((asked, ""), _split(asked), (below, ""), _split(below)):
        subjects = topic.list(name).subjects
        if len(subjects) > 1:
            several = ", ".join(subject.name for subject in subjects)
            raise KbError(f"{quote(name)} names several subjects: {several}")
        if subjects:
            return Place(subjects[0].name, subjects[0].path, part)
    name, part = _split(asked if (config.root / config.id).is_dir() else below)
    return Place(name, place_subject(name, config.layout), part)


def _split(name: str) -> tuple[str, str]:
    """Return the name of a subject, and of its part."""
    before, sign, after = name.rpartition("#")
    return (before, after) if sign else (name, "")


def _find_problem(topic: DirectoryTopic, path: str, subject: Subject | None) -> str:
    """Return why a file may not be written; empty if it may."""
    known, root = find_format(path), topic.config.root
    stem = unicodedata.normalize("NFKC", Path(path).stem).casefold()
    if known is None or not known.proposable:
        return "its format is not one of prose, such as Markdown in .md"
    directory = "".join(path.rpartition("/")[:2])
    if _OBEYED.fullmatch(stem) or find_skill(root, directory, directory) is not None:
        return "programs obey such files, so people write them"
    if any(name.startswith(".") for name in path.split("/")) or (subject and subject.hidden):
        return "it is hidden"
    if topic.excludes(path):
        return "the topic ignores or disables it"
    return _find_obstacle(root / path, is_there=subject is not None)


def _find_obstacle(file: Path, *, is_there: bool) -> str:
    """Return what is in the way of writing a file; empty for nothing."""
    if resolve_links(file) != file:
        return "a link leads to it"
    nearest = next(each for each in (file, *file.parents) if os.path.lexists(each))
    if is_there or (nearest != file and nearest.is_dir()):
        return ""
    return "a file is there, or in the way of its directory"


def read_place(topic: DirectoryTopic, path: str) -> str | None:
    """Return the text of a file as it is; None if it does not exist.

    Raises KbError for a file that may not be written now.
    """
    subjects = [each for each in topic.list(path).subjects if each.path == path]
    if problem := _find_problem(topic, path, subjects[0] if subjects else None):
        raise KbError(f"{quote(path)} of topic {topic.config.id!r} cannot be proposed: {problem}")
    return read_below(topic.config.root, path, MOST_BYTES) if subjects else None
