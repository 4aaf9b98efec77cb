"""The arguments of a `prompt` or `chat`, with those of its templates and conversation.

The host resolves templates, conversation and tools step by step while it runs, but the
plugin must know them before. So this module resolves them as the host will, and hands the
host the templates that it loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import click
import llm
from llm.cli import load_conversation, load_template

from llm_kb.host.request import MEMORY, OUR_TOOLS, OURS, PREFIX, SEARCH, SECTION, tool_name

FRAGMENT_KEYS = ("system_fragments", "fragments")

LONGEST_NAME = 255
"""The most bytes that a file's name can have."""


class Arguments:
    """The keyword arguments of the host's callback, which are changed in place."""

    def __init__(self, command: str, kwargs: MutableMapping[str, Any]) -> None:
        self.command = command
        self.kwargs = kwargs
        self.templates: tuple[Any, ...] = self._load_templates()
        """The loaded templates; empty if one cannot be loaded."""
        self.conversation = _load_conversation(kwargs)
        self.restored = _restored_tools(self.conversation, kwargs.get("tools"))
        """The tools of the conversation's first turn, which the host restores."""

    @property
    def is_saving(self) -> bool:
        """Whether `--save` writes a template instead of making a request."""
        return bool(self.kwargs.get("save"))

    @property
    def is_asking(self) -> bool:
        """Whether the request names any of our tools, fragments or templates."""
        ours = self.typed_tools or self.brought_tools or self.restored_tools
        return bool(ours or self.specs or self.references) or self.has_search()

    @property
    def typed_tools(self) -> frozenset[str]:
        """Our tools that the command line names."""
        return _ours(self.kwargs.get("tools") or ())

    @property
    def brought_tools(self) -> frozenset[str]:
        """Our tools that templates name."""
        return _ours(self._brought())

    @property
    def restored_tools(self) -> frozenset[str]:
        """Our tools that only the conversation names."""
        return _ours(self.tools()) - self.typed_tools - self.brought_tools

    def tools(self) -> list[str]:
        """Return the tools of the request, in the order of the host."""
        typed, brought = list(self.kwargs.get("tools") or ()), self._brought()
        if self.command == "chat":
            return [*brought, *(typed or self.restored)]
        return [*brought, *typed] or list(self.restored)

    def offer(self, ours: Iterable[str]) -> None:
        """Make the host offer these of our tools, each once, with the tools of others."""
        before = self.tools()
        kept: list[str] = []
        for spec in before:
            name = tool_name(spec)
            if "(" in spec and name in OUR_TOOLS - {"References"}:
                raise click.ClickException(
                    f"{spec}: {name} takes nothing here; -T {name} offers it, and -t kb:TOPIC"
                    " offers learn for one topic"
                )
            if name not in OUR_TOOLS or (name in ours and spec not in kept):
                kept.append(spec)
        offered = set(map(tool_name, kept))
        kept += [name for name in sorted(ours) if name not in offered]
        if kept != before:
            self._replace_tools(kept)

    def _replace_tools(self, tools: Sequence[str]) -> None:
        self.templates = tuple(
            template.model_copy(update={"tools": None}) for template in self.templates
        )
        self.kwargs["tools"] = tuple(tools) if tools or not self.restored else _NoTools()

    @property
    def specs(self) -> list[str]:
        """The text after `kb:@` in the fragments of templates and command line."""
        return [
            fragment.removeprefix(SECTION)
            for fragment in self._fragments()
            if fragment.startswith(SECTION) and fragment not in {SECTION, MEMORY}
        ]

    @property
    def preloads(self) -> list[str]:
        """The `TOPIC/PATTERN` that templates pre-load, as saved from `-k`."""
        return [spec for spec in self.specs if "/" in spec]

    @property
    def topics(self) -> list[str]:
        """The topics of `-t kb:TOPIC`, to which the request is restricted."""
        return [spec for spec in self.specs if "/" not in spec]

    @property
    def references(self) -> list[str]:
        """The `TOPIC/PATTERN` of each `kb:` fragment of templates and command line."""
        return [
            fragment.removeprefix(PREFIX)
            for fragment in self._fragments()
            if fragment.startswith(PREFIX) and not fragment.startswith(SECTION)
        ]

    def has_search(self) -> bool:
        """Tell whether a fragment of the request is a search."""
        return any(fragment.startswith(SEARCH) for fragment in self._fragments())

    def supports_tools(self) -> bool:
        """Tell whether the model can call tools; False for an unknown model."""
        try:
            get = llm.get_async_model if self.kwargs.get("async_") else llm.get_model
            return bool(get(self._model_id()).supports_tools)
        except (KeyError, ValueError):
            return False

    def add_fragments(self, key: str, *fragments: str) -> None:
        """Add fragments after those of the command line."""
        self.kwargs[key] = [*(self.kwargs.get(key) or ()), *fragments]

    def take_chat_fragments(self) -> None:
        """Add our fragments of templates to those of a chat, for which the host ignores them."""
        for key in FRAGMENT_KEYS:
            ours = [
                fragment
                for template in self.templates
                for fragment in getattr(template, key) or ()
                if fragment.startswith(OURS) and not fragment.startswith(SECTION)
            ]
            self.kwargs[key] = [*ours, *(self.kwargs.get(key) or ())]

    def drop_fragments(self) -> None:
        """Remove our fragments from those of the command line."""
        for key in FRAGMENT_KEYS:
            if given := self.kwargs.get(key):
                self.kwargs[key] = [f for f in given if not f.startswith(OURS)]

    def hand_over_templates(self) -> None:
        """Name the templates so that the host gets the loaded ones from us."""
        if self.templates:
            names = [f"{SECTION}{number}" for number in range(len(self.templates))]
            require_no_files(names)
            is_one = isinstance(self.kwargs["template"], str)
            self.kwargs["template"] = names[0] if is_one else tuple(names)

    def hand_over_searches(self) -> dict[str, str]:
        """Name the long searches of the command and its templates by number; return them by name.

        The host looks for a file of that name first, which is an error if no name can be so long.
        """
        searches: dict[str, str] = {}

        def shorten(fragment: str) -> str:
            if not fragment.startswith(SEARCH) or len(os.fsencode(fragment)) <= LONGEST_NAME:
                return fragment
            name = f"@{len(searches)}"
            searches[name] = fragment.removeprefix(SEARCH)
            return f"{SEARCH}{name}"

        for key in FRAGMENT_KEYS:
            if given := self.kwargs.get(key):
                self.kwargs[key] = [*map(shorten, given)]
            for template in self.templates:
                if held := getattr(template, key):
                    setattr(template, key, [*map(shorten, held)])
        return searches

    def iter_ours(self) -> Iterator[str]:
        """Yield our tools and fragments on the command line, as they are typed."""
        tools = map(tool_name, self.kwargs.get("tools") or ())
        yield from (f"-T {name}" for name in tools if name in OUR_TOOLS)
        for key, option in zip(FRAGMENT_KEYS, ("--sf", "-f"), strict=True):
            given = self.kwargs.get(key) or ()
            yield from (f"{option} {name}" for name in given if name.startswith(OURS))

    def _brought(self) -> list[str]:
        return [tool for template in self.templates for tool in template.tools or ()]

    def _fragments(self) -> Iterator[str]:
        for key in FRAGMENT_KEYS:
            for template in self.templates:
                yield from getattr(template, key) or ()
            yield from self.kwargs.get(key) or ()

    def _load_templates(self) -> tuple[Any, ...]:
        named = self.kwargs.get("template") or ()
        names = [named] if isinstance(named, str) else list(named)
        if not names:
            return ()
        try:
            return tuple(load_template(name) for name in names)
        except Exception:  # noqa: BLE001 - the host reports the same error next
            return ()

    def _model_id(self) -> str | None:
        """Return the id of the model as the host selects it; None for the default one."""
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
    """An empty tuple that is true, so that the host does not restore a conversation's tools."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


def require_no_files(names: Iterable[str]) -> None:
    """Raise ClickException if a file has the name of one of our fragments or templates."""
    for name in names:
        if Path(name).exists():
            raise click.ClickException(
                f"a file named {name!r} in this directory would be sent in place of knowledge:"
                " rename it, or run llm elsewhere"
            )


def _ours(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(map(tool_name, tools)) & OUR_TOOLS


def _load_conversation(kwargs: MutableMapping[str, Any]) -> Any:
    if not (kwargs.get("_continue") or kwargs.get("conversation_id")):
        return None
    try:
        return load_conversation(
            kwargs.get("conversation_id"),
            async_=bool(kwargs.get("async_")),
            database=kwargs.get("database"),
        )
    except Exception:  # noqa: BLE001 - as above
        return None


def _restored_tools(conversation: Any, tools: Sequence[str] | None) -> tuple[str, ...]:
    if conversation is None or tools:
        return ()
    if conversation.responses:
        first = conversation.responses[0].prompt.tools or ()
        return tuple(tool.name for tool in first if tool.plugin)
    return tuple(getattr(conversation, "loaded_tools", None) or ())
