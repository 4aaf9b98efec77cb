"""The arguments of a `prompt` or `chat`, with what its templates and conversation add.

The host resolves templates, conversation and tools step by step while it runs; we
must know before, so this looks at them the way the host is about to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import llm

from llm_kb.host.request import OUR_TOOLS, SECTION, read_source, tool_name

FRAGMENT_KEYS = ("system_fragments", "fragments")


class Arguments:
    """The keyword arguments the host's callback will be given; changed in place."""

    def __init__(self, command: str, kwargs: MutableMapping[str, Any]) -> None:
        self.command = command
        self.kwargs = kwargs
        named = kwargs.get("template") or ()
        names = [named] if isinstance(named, str) else list(named)
        self.templates = _load_templates([name for name in names if _is_at_hand(name)])
        self.has_unseen_templates = not all(map(_is_at_hand, names))
        """Whether a template has yet to be fetched, so that what it asks for is unknown."""
        self.conversation = _load_conversation(kwargs)
        self.restored = _restored_tools(self.conversation, kwargs.get("tools"))
        """The tools the host restores for a continued conversation: those of its start."""

    @property
    def is_saving(self) -> bool:
        """Whether `--save` makes this a template rather than a request."""
        return bool(self.kwargs.get("save"))

    @property
    def template_tools(self) -> set[str]:
        """The names of the tools that templates bring."""
        return {tool_name(tool) for template in self.templates for tool in template.tools or ()}

    @property
    def asked_tools(self) -> set[str]:
        """Which of our tools are asked for: by `-T`, a template or the conversation."""
        named = {tool_name(tool) for tool in self.kwargs.get("tools") or self.restored}
        return (named | self.template_tools) & OUR_TOOLS

    @cached_property
    def specs(self) -> list[str]:
        """What follows `kb:@` in the fragments of templates and command line, as given."""
        return [
            fragment.removeprefix(SECTION)
            for fragment in self._fragments()
            if fragment.startswith(SECTION) and fragment != SECTION
        ]

    def earlier_knowledge(self) -> list[str]:
        """Return what the turns of a continued conversation pre-loaded, as values of `-k`."""
        if self.conversation is None:
            return []
        sources = [
            getattr(fragment, "source", None)
            for response in self.conversation.responses
            for fragment in (*response.prompt.system_fragments, *response.prompt.fragments)
        ]
        sources += _logged_sources(self.conversation.id, self.kwargs.get("database"))
        return [spec for source in sources for spec in read_source(source)]

    def earlier_text(self) -> str:
        """Return all that a continued conversation has sent so far."""
        return "\n".join(_iter_texts(self.conversation))

    def supports_tools(self) -> bool:
        """Tell whether the model can call tools; False when the host cannot find it."""
        try:
            get = llm.get_async_model if self.kwargs.get("async_") else llm.get_model
            return bool(get(self._model_id()).supports_tools)
        except (KeyError, ValueError):
            return False

    def add_tool(self, name: str) -> None:
        """Offer one more tool, beside those a continued conversation would restore."""
        tools = tuple(self.kwargs.get("tools") or self.restored)
        if name not in tools:
            self.kwargs["tools"] = (*tools, name)

    def drop_tools(self, names: Iterable[str]) -> None:
        """Take tools off the command line's and off those the host would restore."""
        given = tuple(self.kwargs.get("tools") or ())
        kept = tuple(tool for tool in given or self.restored if tool_name(tool) not in names)
        if given or len(kept) != len(self.restored):
            self.kwargs["tools"] = kept if kept or not self.restored else _NoTools()

    def add_fragments(self, key: str, *, before: Sequence[str], after: Sequence[str]) -> None:
        """Put fragments around those of the command line."""
        self.kwargs[key] = [*before, *(self.kwargs.get(key) or ()), *after]

    def iter_ours(self) -> Iterator[str]:
        """Yield what the command line itself names of ours, as it is typed."""
        tools = map(tool_name, self.kwargs.get("tools") or ())
        yield from (f"-T {name}" for name in tools if name in OUR_TOOLS)
        for key, option in zip(FRAGMENT_KEYS, ("--sf", "-f"), strict=True):
            given = self.kwargs.get(key) or ()
            yield from (f"{option} {name}" for name in given if name.startswith("kb:"))

    def drop_fragments(self) -> None:
        """Take every `kb:` fragment off the command line's."""
        for key in FRAGMENT_KEYS:
            if given := self.kwargs.get(key):
                self.kwargs[key] = [f for f in given if not f.startswith("kb:")]

    def _fragments(self) -> Iterator[str]:
        for key in FRAGMENT_KEYS:
            for template in self.templates:
                yield from getattr(template, key) or ()
            yield from self.kwargs.get(key) or ()

    def _model_id(self) -> str | None:
        """Return the model as the host picks it; None for the default one."""
        queries = self.kwargs.get("queries")
        candidates = [self.kwargs.get("model_id")]
        if queries and not candidates[0]:
            matching = [m for m in llm.get_models_with_aliases() if all(map(m.matches, queries))]
            candidates.append(min((m.model.model_id for m in matching), key=len))
        candidates += [template.model for template in self.templates]
        if self.conversation is not None:
            candidates.append(self.conversation.model.model_id)
        return next((model_id for model_id in candidates if model_id), None)


class _NoTools(tuple[str, ...]):
    """No tools, and true: the host restores a conversation's tools only for false ones."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


def _load_templates(names: Sequence[str]) -> list[Any]:
    if not names:
        return []
    from llm.cli import load_template  # noqa: PLC0415 - half-made while plugins load, whole now

    try:
        return [load_template(name) for name in names]
    except Exception:  # noqa: BLE001 - whatever is wrong, the host meets it next and reports it
        return []


def _is_at_hand(template: str) -> bool:
    """Tell whether a template is a file or ours: others may be fetched, and only once."""
    return ":" not in template or template.startswith("kb:") or Path(template).exists()


def _load_conversation(kwargs: MutableMapping[str, Any]) -> Any:
    if not (kwargs.get("_continue") or kwargs.get("conversation_id")):
        return None
    from llm.cli import load_conversation  # noqa: PLC0415 - as above

    try:
        return load_conversation(
            kwargs.get("conversation_id"),
            async_=bool(kwargs.get("async_")),
            database=kwargs.get("database"),
        )
    except Exception:  # noqa: BLE001 - as above
        return None


def _logged_sources(conversation_id: str, database: str | None) -> list[str]:
    """Return the sources of our fragments in the turns of a conversation, oldest first.

    A conversation loaded from the log holds the text that was sent, not where it came
    from. Logs of another shape have nothing to tell.
    """
    from llm.cli import logs_db_path  # noqa: PLC0415 - as above

    query = """
        select fragments.source from turns
        join turn_fragments on turn_fragments.turn_id = turns.id
        join fragments on fragments.id = turn_fragments.fragment_id
        where turns.thread_id = ? and fragments.source like ? order by turns.id
    """
    try:
        with closing(sqlite3.connect(database or logs_db_path())) as log:
            return [row[0] for row in log.execute(query, (conversation_id, f"{SECTION}%"))]
    except sqlite3.Error:
        return []


def _restored_tools(conversation: Any, tools: Sequence[str] | None) -> tuple[str, ...]:
    if conversation is None or tools:
        return ()
    if conversation.responses:
        first = conversation.responses[0].prompt.tools or ()
        return tuple(tool.name for tool in first if tool.plugin)
    return tuple(getattr(conversation, "loaded_tools", None) or ())


def _iter_texts(conversation: Any) -> Iterator[str]:
    if conversation is None:
        return
    for message in getattr(conversation, "loaded_messages", None) or ():
        for part in message.parts:
            yield getattr(part, "text", None) or ""
    for response in conversation.responses:
        yield response.prompt.system or ""
        yield response.prompt.prompt or ""
