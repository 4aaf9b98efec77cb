"""Answers calls of `propose_subject`, and finds the topics and files that may be proposed."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from posixpath import normpath
from typing import Any

from llm_kb.errors import KbError, quote
from llm_kb.files.atomic import read_below
from llm_kb.files.containment import Containment, resolve_links
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import find_skill, place_subject
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
from llm_kb.subjects.links import find_imports, is_guide
from llm_kb.subjects.selection import compose, find_exact
from llm_kb.subjects.topics import CONFIGURED, Layout, Subject
from llm_kb.texts.formats import find_format, find_stem


def open_inbox(kb: OpenTopics) -> Inbox:
    """Return the proposals for the workspace of a knowledge base."""
    workspace = digest(str(kb.config.workspace or ""))[:16]
    return Inbox(directory=find_user_dir() / "kb" / "proposals" / workspace)


def find_proposable(kb: OpenTopics) -> dict[str, DirectoryTopic]:
    """Return the topics that models may propose to change, by id.

    What is in a hidden directory, such as `.claude`, programs obey.
    """
    found: dict[str, DirectoryTopic] = {}
    for topic in (each.topic for each in kb.offered):
        if topic.config.kind == CONFIGURED and isinstance(topic, DirectoryTopic):
            inside = topic.config.root.relative_to(_find_base(kb, topic))
            if not any(name.startswith(".") for name in inside.parts):
                found[topic.config.id] = topic
    return found


def _find_base(kb: OpenTopics, topic: DirectoryTopic) -> Path:
    """Return the directory in which names and guides say what of a topic programs obey."""
    root = topic.config.root
    bases = [each for each in (find_user_dir(), kb.config.workspace) if each]
    return next((each for each in bases if root.is_relative_to(each)), Path(root.anchor))


def offers_proposals(kb: OpenTopics) -> bool:
    """Tell whether `propose_subject` comes with `learn`, as configured."""
    return kb.config.propose_offer and bool(find_proposable(kb))


def find_topic(kb: OpenTopics, name: str) -> DirectoryTopic:
    """Return a topic that may be changed, by its id or title. Raises KbError."""
    topics, id_ = find_proposable(kb), kb.find_topic(name).config.id
    if id_ not in topics:
        allowed = ", ".join(topics) or "none"
        raise KbError(f"topic {quote(name)} is not written here; topics that are: {allowed}")
    return topics[id_]


def propose(kb: OpenTopics, arguments: Mapping[str, Any], conversation: str) -> Proposal:
    """Check a call of `propose_subject`, and let it wait for a person. Raises KbError."""
    given = read_proposal(arguments)
    texts = {name: given.get(name, "") for name in ("reason", "new", "old")}
    for name, text in texts.items():
        if flaw := find_flaw(text):
            raise KbError(f"{PROPOSE.name}: `{name}` {flaw}")
    topic = find_topic(kb, given["topic"])
    name, path, part = find_place(topic, given["subject"].strip())
    before = read_place(kb, topic, path)
    new = Proposal(
        topic=topic.config.id,
        root=str(topic.config.root),
        path=path,
        name=name,
        base=None if before is None else digest(before),
        edits=(Edit(**texts, part=part),),
        conversation=conversation,
    )
    return open_inbox(kb).amend(new, lambda each: make_edits(each, before))


def make_edits(proposal: Proposal, before: str | None) -> str:
    """Return the text of a file with the edits of a proposal. Raises KbError."""
    if (proposal.base is None) != (before is None):
        what = "the subject is gone" if before is None else "the subject has been written meanwhile"
        raise KbError(what)
    return apply_edits(proposal.path, before, proposal.edits)


def render_answer(proposal: Proposal) -> str:
    """Return the answer of a call, for the model."""
    number = f", {len(proposal.edits)} edits so far" if len(proposal.edits) > 1 else ""
    return (
        f"proposed {proposal.id}: {proposal.label}{number}. It waits for the user, who decides with"
        " `llm kb review`; nothing is changed yet."
    )


# Which files may be written

MOST_BYTES = 2_000_000
"""The most bytes of a subject that is changed."""

_OBEYED = re.compile(
    r"skills?|replit|iflow|codebuddy|copilot|.*rules|(?:.*\.)?(?:instructions|prompt|chatmode|agent|local|override)"
)
"""Names, without extension, of other files than guides that programs obey."""


_GUIDE_BYTES = 200_000
"""The most bytes of a guide, and of what it imports, in which imports are looked for."""


def find_place(topic: DirectoryTopic, asked: str) -> tuple[str, str, str]:
    """Return the name, the path and the part of a subject that is named, there or not.

    The topic's id may be before the name. Raises KbError.
    """
    config = topic.config
    if config.layout is not Layout.FILES:
        raise KbError(f"topic {config.id!r} has skills, which only people write")
    if not (config.root / config.id).is_dir():
        asked = asked.removeprefix(f"{config.id}/")
    found, part = find_exact(topic, asked)
    if len(found) > 1:
        several = ", ".join(subject.name for subject in found)
        raise KbError(f"{quote(asked)} names several subjects: {several}")
    if found:
        return found[0].name, found[0].path, part or ""
    name, _, part = asked.partition("#")
    return name, place_subject(name, config.layout), part


def read_place(kb: OpenTopics, topic: DirectoryTopic, path: str) -> str | None:
    """Return the text of a file as it is; None if it does not exist.

    Raises KbError for a file that may not be written now.
    """
    root, base = topic.config.root, _find_base(kb, topic)
    subject = next((each for each in topic.list(path).subjects if each.path == path), None)
    problem = _find_problem(topic, path, subject)
    if importer := "" if problem else _find_importer(base, (root / path).relative_to(base)):
        problem = f"{importer} imports it, and programs obey that, so people write it"
    if problem:
        raise KbError(f"{quote(path)} of topic {topic.config.id!r} cannot be proposed: {problem}")
    return read_below(root, path, MOST_BYTES) if subject else None


def _find_problem(topic: DirectoryTopic, path: str, subject: Subject | None) -> str:
    """Return why a file may not be written; empty if it may."""
    known, root, file = find_format(path), topic.config.root, topic.config.root / path
    stem = unicodedata.normalize("NFKC", find_stem(path)).casefold()
    if known is None or not known.proposable:
        return "its format is not one of prose, such as Markdown in .md"
    directory = "".join(path.rpartition("/")[:2])
    if is_guide(stem) or _OBEYED.fullmatch(stem) or find_skill(root, directory, directory):
        return "programs obey such files, so people write them"
    if any(name.startswith(".") for name in path.split("/")) or (subject and subject.hidden):
        return "it is hidden"
    if topic.excludes(path):
        return "the topic ignores or disables it"
    if resolve_links(file) != file:
        return "a link leads to it"
    nearest = next(each for each in (file, *file.parents) if os.path.lexists(each))
    is_free = nearest != file and nearest.is_dir()
    return "" if subject or is_free else "a file is there, or in the way of its directory"


def _find_importer(base: Path, path: Path, *, most: int = 50) -> str:
    """Return the file that imports another and is a guide above it, or imported by one.

    All paths are below `base`; empty if there is none.
    """
    containment, wanted = Containment(base), compose(path.as_posix()).casefold()
    pages: list[str] = []
    for above in path.parents:
        for directory in (f"{above}", f"{above}/.claude"):
            with suppress(OSError):
                names = containment.list_directory(directory)[2]
                pages += [normpath(f"{directory}/{name}") for name in names if is_guide(name)]
    for page in pages:
        with suppress(OSError):
            text = containment.read_file(page, _GUIDE_BYTES)[0].decode("utf-8", "replace")
            for each in find_imports(page, text):
                if each.path.casefold() == wanted:
                    return page
                if each.path not in pages and len(pages) < most:
                    pages.append(each.path)
    return ""
