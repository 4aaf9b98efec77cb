"""What capture brings: entries in git notes as a topic, the tool that adds one, and commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.files.repository import Repository, find_repository, may_have_ref
from llm_kb.hookspecs import Answer, Find, Group, ToolSet, Waiting, hookimpl

if TYPE_CHECKING:
    from llm_kb.capture.captured import CapturedTopic
    from llm_kb.config.layers import Key
    from llm_kb.config.settings import Config
    from llm_kb.knowledge_base.api import KnowledgeBase
    from llm_kb.knowledge_base.tool_text import ToolText
    from llm_kb.subjects.topics import Kind
    from llm_kb.upkeep.check import Finding

REFS = ("refs/notes/chronicle-knowledge", "refs/notes/chronicle")
"""The refs of entries and of annotations."""

EMIT = "emit_knowledge"
OFFER = "kb.capture.offer"


@hookimpl
def kinds() -> list[tuple[Kind, Find]]:
    """Return the kind of what was captured in a repository."""
    from llm_kb.subjects.topics import Kind

    kind = Kind(ids="repo-knowledge", advice="'llm kb knowledge add' adds an entry")
    return [(kind, partial(_find, kind))]


def _find(kind: Kind, config: Config, cwd: Path | None, user_dir: Path) -> Iterator[CapturedTopic]:
    """Yield the topic of what was captured in the repository of a directory, if there is any."""
    if repository := find_knowledge(cwd):
        from llm_kb.capture.captured import CapturedTopic
        from llm_kb.files.topic_documents import find_index

        yield CapturedTopic(kind, repository, index=partial(find_index, user_dir, config.workspace))


def find_knowledge(directory: Path | None) -> Repository | None:
    """Return the repository of a directory if something may be captured in it.

    No process is started.
    """
    repository = find_repository(directory)
    is_used = repository and any(may_have_ref(repository, ref) for ref in REFS)
    return repository if is_used else None


@hookimpl
def tools() -> list[ToolSet]:
    """Return the tool that records an entry."""
    return [ToolSet(name=EMIT, open=_open_tool, is_offered=_is_offered, find_problem=_find_problem)]


def _open_tool(kb: KnowledgeBase) -> Sequence[tuple[ToolText, Answer]]:
    from llm_kb.capture.tools import open_tool

    return open_tool(kb)


def _is_offered(kb: KnowledgeBase) -> bool:
    return bool(kb.value(OFFER)) and not _find_problem(kb)


def _find_problem(kb: KnowledgeBase) -> str:
    if find_repository(kb.directory):
        return ""
    return f"{EMIT} keeps entries in a git repository, and there is none here"


@hookimpl
def texts(tools: frozenset[str]) -> Iterator[str]:
    """Yield when to record something."""
    if EMIT in tools:
        from llm_kb.capture.emission import EMIT_GUIDELINES

        yield EMIT_GUIDELINES.rstrip()


@hookimpl
def commands() -> list[Group]:
    """Return `llm kb knowledge`."""
    room = "llm_kb.capture.commands"
    return [
        Group(
            "knowledge",
            "Keep conventions, boundaries and anti-patterns in git notes",
            {
                f"{room}.look": ("capture",),
                f"{room}.knowledge": (
                    *("add", "annotate", "edit", "export", "list"),
                    *("remove", "schema", "sync"),
                ),
            },
            hidden=("annotate", "schema"),
            section="Fetch and capture",
        )
    ]


@hookimpl
def settings() -> list[tuple[str, Key]]:
    """Return the key that offers the tool."""
    from llm_kb.config.layers import Key
    from llm_kb.files.fields import read_flag

    acts = "offer emit_knowledge beside learn, which writes to the notes of git here"
    return [(OFFER, Key(read_flag, default=False, acts=acts))]


@hookimpl
def skills() -> list[Path]:
    """Return the pages on when and how to record."""
    return sorted(Path(__file__).parent.glob("skills/*.md"))


@hookimpl
def checks(kb: KnowledgeBase) -> Iterator[Finding]:
    """Yield why the store cannot be read, and what may overwrite it."""
    from llm_kb.capture.notes import KEPT_REF, find_overwriting_refspec

    repository = find_repository(kb.directory)
    if repository and may_have_ref(repository, KEPT_REF):
        from llm_kb.upkeep.check import LEVELS, Finding, Rule

        if warning := find_overwriting_refspec(repository.root):
            rule = Rule("refspec", LEVELS[1], "`llm kb knowledge sync` needs none.")
            yield Finding(rule, ".git/config", warning)
    if topic := kb.topics.get("repo-knowledge"):
        from llm_kb.upkeep.check import SKIPPED, Finding

        for skipped in topic.listing.skipped:
            yield Finding(SKIPPED, skipped.path, skipped.reason)


@hookimpl
def reviews(kb: KnowledgeBase) -> Sequence[Waiting]:
    """Return the entries that nobody has looked at, or that may be out of date."""
    if repository := find_knowledge(kb.directory):
        from llm_kb.capture.commands.review import list_waiting

        return list_waiting(repository.root)
    return ()
