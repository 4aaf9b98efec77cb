"""`propose_subject`, and which files may be proposed."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_kb.errors import KbError, quote
from llm_kb.files.atomic import read_below
from llm_kb.files.containment import resolve_links
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import find_skill, place_subject
from llm_kb.hookspecs import Answer, Report
from llm_kb.knowledge_base.kinds import find_user_dir
from llm_kb.knowledge_base.tool_text import ToolText, object_schema, read_arguments, string
from llm_kb.proposals.edits import Edit, apply_edits, find_flaw
from llm_kb.proposals.inbox import Inbox, Proposal, digest
from llm_kb.subjects.links import is_guide
from llm_kb.subjects.topics import Layout, find_exact
from llm_kb.terminal.screen import say
from llm_kb.texts.formats import find_stem

if TYPE_CHECKING:
    from llm_kb.knowledge_base.api import KnowledgeBase

PROPOSE = ToolText(
    "propose_subject",
    "Propose a new subject, or an exact change of one. The user sees it later as a difference, and"
    " keeps or rejects it; until then nothing changes. Learn the subject before, change rather"
    " than add, and propose only what the user would want to find here next time.",
    object_schema(
        ["topic", "subject", "reason"],
        topic=string("The topic ID."),
        subject=string("The subject, or SUBJECT#PART to add to or change that part."),
        reason=string("What it rests on, for the user: who said so, which file shows it."),
        new=string(
            "The text. Of a new subject all of it; with `old` what takes its place; else it is"
            " added at the end. Omit to remove `old`."
        ),
        old=string("A passage to replace, to the letter, which occurs exactly once."),
    ),
    is_read_only=False,
)

PROSE = (".md", ".markdown", ".rst", ".adoc", ".asciidoc", ".org")
"""The endings of files that no program runs, whoever reads them."""

MOST_BYTES = 200_000
"""The most bytes of a subject that is changed: each edit of a part reads all of it."""


def open_tool(kb: KnowledgeBase) -> Sequence[tuple[ToolText, Answer]]:
    """Return the tool over the topics that take proposals."""

    def answer(arguments: Mapping[str, Any], report: Report) -> str:  # noqa: ARG001 - of others
        proposal = propose(kb, arguments)
        say(f"{proposal.label} was proposed: llm kb review")
        return render_answer(proposal)

    return [(PROPOSE, answer)]


def open_inbox(kb: KnowledgeBase) -> Inbox:
    """Return the proposals for the workspace of a knowledge base."""
    workspace = digest(str(kb.config.workspace or ""))[:16]
    return Inbox(find_user_dir() / "kb" / "proposals" / workspace)


def find_topic(kb: KnowledgeBase, name: str) -> DirectoryTopic:
    """Return a topic that takes proposals, by its id or title. Raises KbError."""
    allowed = [
        topic.id
        for topic in kb.config.topics
        if kb.value(f"kb.topic.{topic.id}.proposals") and topic.layout is Layout.FILES
    ]
    topic = kb.find_topic(name).topic
    if topic.config.id in allowed and isinstance(topic, DirectoryTopic):
        return topic
    raise KbError(
        f"topic {quote(name)} takes no proposals; topics that do: {', '.join(allowed) or 'none'}"
    )


def propose(kb: KnowledgeBase, arguments: Mapping[str, Any]) -> Proposal:
    """Check a call of `propose_subject`, and let it wait for a person. Raises KbError."""
    allowed = ", ".join(PROPOSE.schema["properties"])
    if unknown := arguments.keys() - PROPOSE.schema["properties"].keys():
        # It could change what is meant.
        raise KbError(f"{PROPOSE.name}: unknown argument {min(unknown)!r}; allowed: {allowed}")
    given = read_arguments(PROPOSE, arguments)
    texts = {name: given.get(name, "") for name in ("reason", "new", "old")}
    for name, text in texts.items():
        if flaw := find_flaw(text):
            raise KbError(f"{PROPOSE.name}: `{name}` {flaw}")
    topic = find_topic(kb, given["topic"])
    name, path, part = find_place(topic, given["subject"].strip())
    before = read_place(topic, path)
    new = Proposal(
        topic=topic.config.id,
        root=str(topic.config.root),
        path=path,
        name=name,
        base=None if before is None else digest(before),
        edits=(Edit(**texts, part=part),),
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
    return (
        f"proposed {proposal.id}: {proposal.label}. It waits for the user, who decides with"
        " `llm kb review`; nothing is changed yet."
    )


def find_place(topic: DirectoryTopic, asked: str) -> tuple[str, str, str]:
    """Return the name, the path and the part of a subject that is named, there or not.

    The topic's id may be before the name. Raises KbError.
    """
    config = topic.config
    if not (config.root / config.id).is_dir():
        asked = asked.removeprefix(f"{config.id}/")
    found, part = find_exact(topic, asked)
    if len(found) > 1:
        raise KbError(f"{quote(asked)} names several subjects; add the extension")
    if found:
        return found[0].name, found[0].path, part or ""
    name, _, part = asked.partition("#")
    return name, place_subject(name, config.layout), part


def read_place(topic: DirectoryTopic, path: str) -> str | None:
    """Return the text of a file as it is; None if it does not exist.

    Raises KbError for a file that may not be written now.
    """
    root = topic.config.root
    subject = next((each for each in topic.list(path).subjects if each.path == path), None)
    if problem := _find_problem(topic, path, is_there=subject is not None):
        raise KbError(f"{quote(path)} of topic {topic.config.id!r} cannot be proposed: {problem}")
    return read_below(root, path, MOST_BYTES) if subject else None


def _find_problem(topic: DirectoryTopic, path: str, *, is_there: bool) -> str:
    """Return why a file may not be written; empty if it may."""
    root, file = topic.config.root, topic.config.root / path
    stem = unicodedata.normalize("NFKC", find_stem(path)).casefold()
    directory = "".join(path.rpartition("/")[:2])
    if not path.casefold().endswith(PROSE):
        return "its format is not one of prose, such as Markdown in .md"
    if is_guide(stem) or stem == "skill" or find_skill(root, directory, directory):
        return "programs obey such files, so people write them"
    if any(name.startswith(".") for name in path.split("/")):
        return "it is hidden"
    if topic.excludes(path):
        return "the topic ignores or disables it"
    if resolve_links(file) != file:
        return "a link leads to it"
    above = next(each for each in file.parents if each.exists())
    is_free = above.is_dir() and not file.exists()
    return "" if is_there or is_free else "a file is there, or in the way of its directory"
