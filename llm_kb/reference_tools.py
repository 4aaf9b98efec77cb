"""`References` as a toolbox of llm, and how its plans are approved."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import llm

from llm_kb.config_files import load_config
from llm_kb.plain_text import visible_line, visible_text
from llm_kb.references import tool_texts
from llm_kb.references.answers import created_answer, topic_entry, topic_hit_entry
from llm_kb.references.arguments import check_arguments
from llm_kb.references.asking import ask, find_topics
from llm_kb.references.errors import ApprovalNeededError
from llm_kb.references.library import Library, open_library
from llm_kb.references.plan import Plan
from llm_kb.references.requests import parse_changes, parse_request
from llm_kb.references.search import Embedder
from llm_kb.references.topic_file import Status, format_time
from llm_kb.references.vectors import EmbeddingError
from llm_kb.terminal import is_terminal
from llm_kb.workspace import find_cwd

Approve = Callable[[Plan], bool]


class References(llm.Toolbox):
    """Fetch, keep and search reference material.

    Gives a model five tools: reference_topic_create, reference_topic_search,
    reference_topic_list, reference_topic_update and reference_search. Nothing is
    fetched before the operator has approved it.
    """

    # Public methods would be listed as tools, and every argument of the constructor is
    # logged as JSON: the callbacks of the Python API are set by `make_references`.
    _approve: Approve | None = None
    _pauses = False

    def __init__(self, ghost: str = "llm", model: str | None = None) -> None:
        """Record `ghost` and `model` as `created_by` in the topics that are made."""
        self._created_by = {"ghost": ghost} | ({"model": model} if model else {})

    def tools(self) -> Iterable[llm.Tool]:
        """Yield the five tools, under their own names."""
        implementations: dict[str, Callable[..., Any]] = {
            "reference_topic_create": self._create,
            "reference_topic_search": self._topic_search,
            "reference_topic_list": self._topic_list,
            "reference_topic_update": self._topic_update,
            "reference_search": self._search,
        }
        for text in tool_texts.ALL:
            yield llm.Tool(
                name=text.name,
                description=text.description,
                input_schema=text.schema,
                # Not the bound method: the host would log its toolbox under the part of
                # the tool's name before the first `_`, and could not continue with that.
                implementation=partial(_call, text, implementations[text.name]),
                plugin=getattr(self, "plugin", None),
            )

    def _create(self, title: str, body: str, sources: list[Any], **more: Any) -> dict[str, Any]:
        library = current_library()
        request = parse_request(
            {"title": title, "body": body, "sources": sources, **more},
            created_by=self._created_by,
            protocols=library.settings.allow_protocols,
        )
        created = library.create(request, lambda plan: self._ask(library, plan), resumes=True)
        for warning in created.warnings:
            _say(warning)
        return created_answer(created)

    def _topic_search(self, query: str) -> list[dict[str, Any]]:
        library = current_library()
        return [topic_hit_entry(hit, library.clock()) for hit in find_topics(library, query)[:10]]

    def _topic_list(self, include_obsolete: bool = False) -> list[dict[str, Any]]:
        library = current_library()
        return [
            topic_entry(topic, library.clock())
            for topic in library.topics()[0]
            if include_obsolete or topic.status is not Status.OBSOLETE
        ]

    def _topic_update(self, topic_id: str, **changes: Any) -> dict[str, Any]:
        library = current_library()
        keys, body = parse_changes(changes)
        return topic_entry(library.update(topic_id, keys, body), library.clock())

    def _search(self, question: str, topic: str | None = None) -> dict[str, Any]:
        return ask(current_library(), question, topic)

    def _ask(self, library: Library, plan: Plan) -> bool:
        """Ask whoever can approve a plan; keep it for later where nobody is there."""
        if self._approve is not None:
            return self._approve(plan)
        if not self._pauses and is_terminal(sys.stdin) and is_terminal(sys.stderr):
            return ask_on_terminal(plan)
        library.pending.add(plan, format_time(library.clock()))
        needed = ApprovalNeededError(plan.id, plan.request.title, plan.summary)
        if self._pauses:
            raise llm.PauseChain(needed)
        _say(str(needed))
        raise needed


def make_references(
    *, approve: Approve | None = None, pause: bool = False, **created_by: str
) -> References:
    """Return the toolbox for Python code, which answers for the operator.

    `approve` is handed every plan and says whether it may be carried out. With
    `pause` a plan is stored and `llm.PauseChain` raised, whose first argument is an
    ApprovalNeededError; after `approve_plan(error.plan_id)` run the chain again.
    """
    toolbox = References(**created_by)
    toolbox._approve = approve  # noqa: SLF001 - our own class, see there
    toolbox._pauses = pause  # noqa: SLF001
    return toolbox


def approve_plan(plan_id: str) -> None:
    """Approve a stored plan: whoever made it may carry it out, once, if nothing changed."""
    current_library().pending.approve(plan_id)


def ask_on_terminal(plan: Plan) -> bool:
    """Show a plan to the operator and ask; the end of input denies it.

    Ctrl-C ends the program: click's own exception would be an ordinary error of the tool to
    llm, which tells the model of it and goes on.
    """
    click.echo(f"Create reference topic {plan.request.title!r}?", err=True)
    click.echo(f"Sources: {visible_line(plan.summary)}", err=True)
    click.echo(plan.describe(), err=True)
    try:
        return click.confirm("Approve", default=False, err=True)
    except click.Abort as error:
        click.echo(err=True)
        if isinstance(error.__context__, EOFError):
            return False
        raise KeyboardInterrupt from error


def current_library() -> Library:
    """Return the reference topics under the configuration in effect here."""
    user_dir = Path(llm.user_dir())
    config = load_config(find_cwd(), user_dir=user_dir, environ=os.environ)
    library = open_library(config, user_dir)
    name = config.references.embedding_model
    return replace(library, find_embedder=lambda: find_embedder(name))


def find_embedder(name: str | None) -> Embedder | None:
    """Return the embedding model of this name, else llm's default; None where there is none.

    Raises EmbeddingError for a name that no model has.
    """
    wanted = name or llm.get_default_embedding_model()
    if not wanted:
        return None
    try:
        model = llm.get_embedding_model(wanted)
    except llm.UnknownModelError as error:
        if name is None:
            return None  # the plugin of the default model was uninstalled
        raise EmbeddingError(name, "is unknown; see `llm embed-models`") from error

    def embed(texts: Sequence[str]) -> list[Sequence[float]]:
        try:
            return list(model.embed_multi(texts))
        except Exception as error:  # whatever a model's plugin may raise
            raise EmbeddingError(model.model_id, f"failed: {error}") from error

    return Embedder(model=model.model_id, embed=embed)


def _call(
    tool: tool_texts.ToolText, implementation: Callable[..., Any], /, **arguments: Any
) -> Any:
    check_arguments(tool, arguments)
    given = {name: value for name, value in arguments.items() if value is not None}
    return implementation(**given)


def _say(text: str) -> None:
    click.echo(f"llm-kb: {visible_text(text)}", err=True)
