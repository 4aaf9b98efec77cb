"""Adds knowledge to a request, as requested by `-k`, `--kb-cfg`, `--no-kb` and `auto`.

The wrapper around the host's commands opens a request here before the host runs. A request
that does not use this plugin reads at most two small files. The host resolves templates,
conversation and tools step by step while it runs, but the plugin must know them before. So
`Arguments` resolves them as the host will, and hands the host the templates that it loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import llm
from llm.cli import _get_conversation_tools, load_conversation, load_template

from llm_kb.config.workspace import find_cwd, mentions_auto
from llm_kb.errors import KbError, join_names, quote
from llm_kb.host.request import (
    MEMORY,
    OUR_TOOLS,
    OURS,
    SEARCH,
    SECTION,
    Request,
    current_request,
    require_no_files,
    running,
)

FRAGMENT_KEYS = ("system_fragments", "fragments")

LONGEST_NAME = 255
"""The most bytes that a file's name can have."""

_OF_REFERENCES = "reference_"
"""The prefix of the tools of `References`, under which a conversation is logged."""


@contextmanager
def open_request(command: str, kwargs: MutableMapping[str, Any]) -> Iterator[None]:
    """Add the knowledge for a request to the arguments of the host's callback.

    Changes `kwargs` in place, and takes our options out. Raises ClickException before any model
    is called if the configuration is invalid, or if requested knowledge does not exist.
    """
    knowledge, kb_cfg = kwargs.pop("knowledge", None) or (), kwargs.pop("kb_cfg", None) or ()
    no_kb = bool(kwargs.pop("no_kb", False))
    if current_request() is not None:
        yield  # wrapped twice: by us, around another plugin's wrapper of our wrapper
        return
    arguments = Arguments(command, kwargs)
    try:
        arguments.refuse_long_searches()
        request = _make_request(arguments, knowledge, kb_cfg, no_kb=no_kb)
    except KbError as error:
        from llm_kb.rendering.plain_text import visible_text  # most requests do not need it

        raise click.ClickException(visible_text(str(error))) from error
    request.templates = arguments.hand_over_templates()
    with running(request):
        try:
            yield
        except (click.ClickException, ValueError) as error:  # a chat does not catch the ValueError
            # The host makes errors whose message is an exception, which `str` refuses.
            text, limit = str(getattr(error, "message", error)), kwargs.get("chain_limit")
            if "learn" not in request.tools or not limit or not text.startswith("Chain limit of "):
                raise
            advice = f"--cl {2 * limit} allows more rounds of tool calls, --cl 0 any number"
            raise click.ClickException(f"{text} {advice}") from error


def _make_request(
    arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str], *, no_kb: bool
) -> Request:
    if no_kb:
        arguments.offer(())
        arguments.drop_fragments()
        return Request(is_muted=True)
    if arguments.command == "chat":
        arguments.take_chat_fragments()
    is_asking = arguments.is_asking or knowledge or kb_cfg
    if not is_asking and (
        arguments.is_saving or not mentions_auto(find_cwd(), Path(llm.user_dir()), os.environ)
    ):
        return Request()
    from llm_kb.host.hooks import prepare  # it imports the knowledge base

    return prepare(arguments, knowledge, kb_cfg)


class Arguments:
    """The keyword arguments of the host's callback, which are changed in place."""

    def __init__(self, command: str, kwargs: MutableMapping[str, Any]) -> None:
        self.command = command
        self.kwargs = kwargs
        self._templates = self._load_templates()
        self.conversation = self._load_conversation()
        self._restored = _get_conversation_tools(self.conversation, kwargs.get("tools")) or ()

    @property
    def is_saving(self) -> bool:
        """Whether `--save` writes a template instead of making a request."""
        return bool(self.kwargs.get("save"))

    @property
    def is_asking(self) -> bool:
        """Whether the request names any of our tools, fragments or templates."""
        return bool(_ours(self._list_tools())) or self.has_fragments

    @property
    def has_fragments(self) -> bool:
        """Whether the request has any of our fragments or templates."""
        return any(fragment.startswith(OURS) for fragment in self._fragments())

    @property
    def typed_tools(self) -> frozenset[str]:
        """Our tools that the command line names."""
        return _ours(self.kwargs.get("tools") or ())

    @property
    def asked_tools(self) -> frozenset[str]:
        """Our tools that the command line or templates name."""
        return self.typed_tools | _ours(self._brought()) | ({"learn"} if self.topics else set())

    @property
    def restored_tools(self) -> frozenset[str]:
        """Our tools that only the conversation names."""
        return _ours(self._list_tools()) - self.asked_tools

    def _brought(self) -> list[str]:
        return [tool for template in self._templates for tool in template.tools or ()]

    def _list_tools(self) -> list[str]:
        """Return the tools of the request, in the order of the host."""
        typed, brought = list(self.kwargs.get("tools") or ()), self._brought()
        if self.command == "chat":
            return [*brought, *(typed or self._restored)]
        return [*brought, *typed] or list(self._restored)

    def offer(self, ours: Iterable[str]) -> None:
        """Make the host offer these of our tools, each once, with the tools of others."""
        before = self._list_tools()
        kept: list[str] = []
        for spec in before:
            name = tool_name(spec)
            if "(" in spec and name in OUR_TOOLS - {"References"}:
                raise click.ClickException(
                    f"{spec}: {name} takes nothing here; -T {name} offers it, and -t kb:TOPIC"
                    " offers learn for one topic"
                )
            if "(" in spec and name == "References":
                _require_arguments(spec)
            if name not in OUR_TOOLS or (name in ours and spec not in kept):
                kept.append(spec)
        kept += sorted(set(ours) - set(map(tool_name, kept)))
        if kept != before:
            self._templates = [
                template.model_copy(update={"tools": None}) for template in self._templates
            ]
            self.kwargs["tools"] = tuple(kept) if kept or not self._restored else _NoTools()

    @property
    def preloads(self) -> list[str]:
        """The `TOPIC/PATTERN` that templates pre-load, as saved from `-k`."""
        return [spec for spec in self._list_after(SECTION) if "/" in spec]

    @property
    def topics(self) -> list[str]:
        """The topics of `-t kb:TOPIC`, to which the request is restricted."""
        return [spec for spec in self._list_after(SECTION) if "/" not in spec]

    @property
    def references(self) -> list[str]:
        """The `TOPIC/PATTERN` of each `kb:` fragment of templates and command line."""
        return [each for each in self._list_after("kb:") if not each.startswith("@")]

    def _list_after(self, prefix: str) -> list[str]:
        return [
            fragment.removeprefix(prefix)
            for fragment in self._fragments()
            if fragment.startswith(prefix) and fragment not in {SECTION, MEMORY}
        ]

    def _fragments(self) -> Iterator[str]:
        for key in FRAGMENT_KEYS:
            for template in self._templates:
                yield from getattr(template, key) or ()
            yield from self.kwargs.get(key) or ()

    def supports_tools(self) -> bool:
        """Tell whether the model can call tools; False for an unknown model."""
        candidates = [self.kwargs.get("model_id"), *(each.model for each in self._templates)]
        if self.conversation is not None:
            candidates.append(self.conversation.model.model_id)
        try:
            get = llm.get_async_model if self.kwargs.get("async_") else llm.get_model
            return bool(get(next(filter(None, candidates), None)).supports_tools)
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
                for template in self._templates
                for fragment in getattr(template, key) or ()
                if fragment.startswith(OURS) and not fragment.startswith(SECTION)
            ]
            self.kwargs[key] = [*ours, *(self.kwargs.get(key) or ())]

    def drop_fragments(self) -> None:
        """Remove our fragments from those of the command line."""
        for key in FRAGMENT_KEYS:
            if given := self.kwargs.get(key):
                self.kwargs[key] = [f for f in given if not f.startswith(OURS)]

    def hand_over_templates(self) -> Sequence[Any]:
        """Name the templates so that the host gets the loaded ones from us; return them."""
        if self._templates:
            names = [f"{SECTION}{number}" for number in range(len(self._templates))]
            require_no_files(names)
            is_one = isinstance(self.kwargs["template"], str)
            self.kwargs["template"] = names[0] if is_one else tuple(names)
        return self._templates

    def refuse_long_searches(self) -> None:
        """Raise KbError for a search so long that the host cannot look for a file of that name."""
        for fragment in self._fragments():
            if fragment.startswith(SEARCH) and len(os.fsencode(fragment)) > LONGEST_NAME:
                raise KbError(
                    f"a {SEARCH} fragment has at most {LONGEST_NAME} bytes; `llm kb search` takes a"
                    " text of any length, and its passages can be piped into llm"
                )

    def _load_templates(self) -> list[Any]:
        named = self.kwargs.get("template") or ()
        try:
            return [load_template(each) for each in ([named] if isinstance(named, str) else named)]
        except Exception:  # noqa: BLE001 - the host reports the same error next
            return []

    def _load_conversation(self) -> Any:
        given = self.kwargs
        if not (given.get("_continue") or given.get("conversation_id")):
            return None
        try:
            return load_conversation(
                given.get("conversation_id"),
                async_=bool(given.get("async_")),
                database=given.get("database"),
            )
        except Exception:  # noqa: BLE001 - as above
            return None


class _NoTools(tuple[str, ...]):
    """An empty tuple that is true, so that the host does not restore a conversation's tools."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


def tool_name(spec: str) -> str:
    """Return the name in a value of `-T`, which may have arguments: `Name(…)`.

    The name of a tool of the toolbox, as in a continued conversation, becomes `References`.
    """
    name = spec.partition("(")[0].strip()
    return "References" if name.startswith(_OF_REFERENCES) else name


def _require_arguments(spec: str) -> None:
    """Raise KbError for a `References(…)` of which the host cannot make the toolbox."""
    from inspect import signature  # few requests have arguments

    from llm.utils import instantiate_from_spec

    from llm_kb.host.reference_tools import References

    allowed = list(signature(References).parameters)
    unknown: list[str] = []

    def collect(*_values: object, **named: object) -> None:
        unknown.extend(name for name in named if name not in allowed)

    makers: dict[str, Any] = {"References": collect}
    problem = ""
    try:
        instantiate_from_spec(makers, spec)
    except ValueError as error:
        problem = str(error)
    if unknown:
        problem = f"unknown argument {join_names([quote(name) for name in unknown])}"
    if problem:
        example = f'References({allowed[0]}="reviewer")'
        raise KbError(f"{spec}: {problem}; allowed: {join_names(allowed)}, as in {example}")


def _ours(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(map(tool_name, tools)) & OUR_TOOLS
