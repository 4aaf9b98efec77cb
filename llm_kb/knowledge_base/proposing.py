"""Answers calls of `propose_subject`, and finds the topics and files that may be proposed."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from posixpath import normpath
from typing import Any

from llm_kb.config.workspace import expand_home
from llm_kb.errors import KbError, quote
from llm_kb.files.atomic import read_below
from llm_kb.files.containment import read_regular, resolve_links
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import find_skill, place_subject
from llm_kb.knowledge_base.api import KnowledgeBase
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


def open_inbox(kb: KnowledgeBase) -> Inbox:
    """Return the proposals for the workspace of a knowledge base."""
    workspace = digest(str(kb.config.workspace or ""))[:16]
    return Inbox(directory=find_user_dir() / "kb" / "proposals" / workspace)


def find_proposable(kb: KnowledgeBase) -> dict[str, DirectoryTopic]:
    """Return the topics that models may propose to change, by id.

    What is in a hidden directory, such as `.claude`, programs obey. Where the user's directory
    is does not matter, nor where a workspace is; but the workspace's own name does.
    """
    found: dict[str, DirectoryTopic] = {}
    for topic in (each.topic for each in kb.offered):
        if topic.config.kind == CONFIGURED and isinstance(topic, DirectoryTopic):
            inside = topic.config.root.relative_to(_find_base(kb, topic.config.root))
            if not any(name.startswith(".") for name in inside.parts):
                found[topic.config.id] = topic
    return found


def _find_base(kb: KnowledgeBase, root: Path) -> Path:
    """Return the directory below which no name on the way to a topic may be hidden."""
    user, workspace = find_user_dir(), kb.config.workspace
    if user in root.parents:
        return user
    return workspace.parent if workspace and workspace in root.parents else Path(root.anchor)


def offers_proposals(kb: KnowledgeBase) -> bool:
    """Tell whether `propose_subject` comes with `learn`, as configured."""
    return kb.config.propose_offer and bool(find_proposable(kb))


def find_topic(kb: KnowledgeBase, name: str) -> DirectoryTopic:
    """Return a topic that may be changed, by its id or title. Raises KbError."""
    topics, id_ = find_proposable(kb), kb.find_topic(name).config.id
    if id_ not in topics:
        allowed = ", ".join(topics) or "none"
        raise KbError(f"topic {quote(name)} is not written here; topics that are: {allowed}")
    return topics[id_]


def propose(kb: KnowledgeBase, arguments: Mapping[str, Any], conversation: str) -> Proposal:
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
    r"skills?|soul|heartbeat|opencode|replit|iflow|codebuddy|copilot|.*rules|(?:.*\.)?(?:instructions|prompt|chatmode|agent|local|override)"
)
"""Names, without extension, of other files than guides that programs obey."""


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


def read_place(kb: KnowledgeBase, topic: DirectoryTopic, path: str) -> str | None:
    """Return the text of a file as it is; None if it does not exist.

    Raises KbError for a file that may not be written now.
    """
    root = topic.config.root
    subject = next((each for each in topic.list(path).subjects if each.path == path), None)
    problem = _find_problem(topic, path, subject)
    if leader := None if problem else _find_leader(root / path):
        name = os.path.relpath(leader, kb.config.workspace or root)
        problem = f"{name} leads to it, and programs obey that, so people write it"
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
    is_obeyed = is_guide(stem) or _OBEYED.fullmatch(stem) or any(map(_is_of_plugin, file.parents))
    if is_obeyed or find_skill(root, directory, directory):
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


def _is_of_plugin(directory: Path) -> bool:
    """Tell whether a directory has the prompts of a plugin or extension of a coding tool."""
    signs = (directory.parent / name for name in (".claude-plugin", "gemini-extension.json"))
    return directory.name.casefold() in {"agents", "commands"} and any(map(os.path.lexists, signs))


def _find_leader(file: Path, *, most: int = 1_000) -> Path | None:
    """Return the guide above a file, or page, that leads to it; None if there is none.

    At most so many links and imports are followed.
    """
    wanted = _fold(file)
    led = islice(_iter_led(file), most)
    return next((page for page, other in led if _fold(other) == wanted), None)


def _fold(path: Path) -> str:
    return compose(f"{path}").casefold()


def _iter_led(file: Path, *, most: int = 50, left: int = 400_000) -> Iterator[tuple[Path, Path]]:
    """Yield where the guides above a file lead: as links, by imports, or through other pages.

    Each with the guide or page that leads there, of which so many and `left` bytes are read.
    """
    pages: list[Path] = []
    for above, inside in product(file.parents, ("", ".claude", ".github")):
        with suppress(OSError):
            pages += (each for each in (above / inside).iterdir() if is_guide(each.name))
    yield from ((page, resolve_links(page)) for page in pages)
    seen: set[Path] = set()
    for page in islice(pages, most):  # which grow meanwhile
        text = b""
        with suppress(OSError):
            text = read_regular(page, follow_link=True, most=left)
        left -= len(text)
        named = [each for each in _list_imported(page, text) if each not in seen]
        seen.update(named)
        for led in map(resolve_links, named):
            yield page, led
            with suppress(OSError):  # of a name that is too long
                if len(pages) < most and led not in pages and led.is_file():
                    pages.append(led)


def _list_imported(page: Path, text: bytes, *, most: int = 1_000) -> list[Path]:
    """Return the files that a guide imports, as tools may understand it."""
    imports = find_imports(page.name, text.decode("utf-8", "replace"))
    written = dict.fromkeys(path for each in imports for path in (each.target, each.run))
    named = [
        place / expand_home(path)
        for path in islice(written, most)
        for place in {page.parent, resolve_links(page).parent}
    ]
    return [each for file in named for each in {file, Path(normpath(file))}]
