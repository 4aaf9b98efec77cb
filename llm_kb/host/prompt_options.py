"""Adds knowledge to a request, as requested by `-k`, `--kb-cfg`, `--no-kb` and `auto`.

The wrapper around the host's commands opens a request here before the host runs. A request
that does not use this plugin reads at most two small files. The host resolves templates,
conversation and tools step by step while it runs, but the plugin must know them before. So
`Arguments` resolves them as the host will, and hands the host the templates that it loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import llm

from llm_kb.addons import find_tools
from llm_kb.config.workspace import find_cwd, mentions_auto
from llm_kb.errors import KbError
from llm_kb.host import llm_internals
from llm_kb.host import request as requests
from llm_kb.host.coding_agents import extend_system
from llm_kb.host.llm_internals import HostChangedError
from llm_kb.terminal.screen import say

FRAGMENT_KEYS = ("system_fragments", "fragments")

AGENT = "code"
"""The command of the plugin llm-coding-agent."""

OPTIONS = ("knowledge", "kb_cfg", "no_kb")
"""Our options, as click names their values."""

LONGEST_NAME = 255
"""The most bytes that a file's name can have."""


@contextmanager
def open_request(command: str, kwargs: MutableMapping[str, Any]) -> Iterator[None]:
    """Add the knowledge for a request to the arguments of the host's callback.

    Changes `kwargs` in place, and takes our options out. Raises ClickException before any model
    is called if the configuration is invalid, or if requested knowledge does not exist.
    """
    options = [kwargs.pop(name, None) or () for name in OPTIONS]
    if command == AGENT:
        if not options[-1]:
            extend_system(kwargs, *options[:-1])
        yield
        return
    if requests.current_request() is not None:
        yield  # wrapped twice: by us, around another plugin's wrapper of our wrapper
        return
    request = _open(command, kwargs, *options)
    if request is None:
        yield
        return
    with requests.running(request):
        try:
            yield
        except (click.ClickException, ValueError) as error:  # a chat does not catch the ValueError
            # The host makes errors whose message is an exception, which `str` refuses.
            text, limit = str(getattr(error, "message", error)), kwargs.get("chain_limit")
            if limit and "learn" in request.tools and text.startswith(llm_internals.CHAIN_LIMIT):
                text += f" --cl {2 * limit} allows more rounds of tool calls, --cl 0 any number"
            elif isinstance(error, click.ClickException) or not any(
                each.toolbox for each in find_tools().values() if each.name in request.tools
            ):
                raise
            raise click.ClickException(text) from error
        except TypeError as error:
            if (changed := llm_internals.explain_argument(error)) is None:
                raise
            raise click.ClickException(_explain(changed)) from error


def _open(
    command: str,
    kwargs: MutableMapping[str, Any],
    knowledge: Sequence[str],
    kb_cfg: Sequence[str],
    no_kb: Any,
) -> requests.Request | None:
    """Return the request; None if this `llm` lacks what only a template or `-c` may need.

    Raises ClickException.
    """
    given = dict(kwargs)
    try:
        arguments = Arguments(command, kwargs, knowledge, kb_cfg)
        request = _make_request(arguments, no_kb=bool(no_kb))
        request.lists_tools = arguments.has_tools
        request.model = arguments.name_model()
        request.templates = arguments.hand_over_templates()
        request.takes_picture = arguments.takes_picture
        return request
    except (HostChangedError, AttributeError, ImportError, TypeError) as error:
        if knowledge or kb_cfg or _names_ours(given):
            raise click.ClickException(_explain(error)) from error
        say(f"left out: {_explain(error)}")
        kwargs.update(given)
        return requests.Request(is_muted=True) if no_kb else None
    except KbError as error:
        raise click.ClickException(_explain(error)) from error


def _explain(error: Exception) -> str:
    """Return the message of an error of ours, or of what a changed host made of our code."""
    from llm_kb.texts.safe import visible_text  # most requests do not need it

    return visible_text(str(error if isinstance(error, KbError) else HostChangedError(str(error))))


def _names_ours(kwargs: MutableMapping[str, Any]) -> bool:
    """Tell whether a command line itself names a tool, a fragment or a template of ours."""
    template = kwargs.get("template") or ()
    names = [template] if isinstance(template, str) else [*template]
    names += [each for key in FRAGMENT_KEYS for each in kwargs.get(key) or ()]
    return any(each.startswith(requests.OURS) for each in names) or bool(
        _ours(kwargs.get("tools") or ())
    )


def _make_request(arguments: Arguments, *, no_kb: bool) -> requests.Request:
    if arguments.misfit is not None:
        raise arguments.misfit
    if no_kb:
        arguments.offer(())
        return requests.Request(is_muted=True)
    arguments.refuse_long_searches()
    if arguments.command == "chat":
        requests.require_no_files_here()
        arguments.take_chat_fragments()
    if arguments.is_asking or arguments.restored_tools or _may_be_automatic(arguments):
        from llm_kb.host.hooks import prepare  # it imports the knowledge base

        return prepare(arguments)
    return requests.Request()


def _may_be_automatic(arguments: Arguments) -> bool:
    where = find_cwd(), Path(llm.user_dir()), os.environ
    return not arguments.is_saving and mentions_auto(*where)


class Arguments:
    """The keyword arguments of the host's callback, which are changed in place, and our options."""

    def __init__(
        self,
        command: str,
        kwargs: MutableMapping[str, Any],
        knowledge: Sequence[str],
        kb_cfg: Sequence[str],
    ) -> None:
        self.command, self.kwargs = command, kwargs
        self.knowledge, self.kb_cfg = knowledge, kb_cfg
        self.is_saving = bool(kwargs.get("save"))
        """Whether `--save` writes a template instead of making a request."""
        self._templates: list[Any] = []
        self.conversation: Any = None
        self.misfit: HostChangedError | None = None
        """What this `llm` lacks of what the templates or the conversation need."""
        named = kwargs.get("template") or ()
        restored = self._load([named] if isinstance(named, str) else named)
        self._fragments = [*self._iter_fragments()]
        requests.require_no_files(self._fragments)
        sections = self._list_after(requests.SECTION)
        self.preloads = [each for each in sections if "/" in each]
        """The `TOPIC/PATTERN` that templates pre-load, as saved from `-k`."""
        self.topics = [each for each in sections if "/" not in each]
        """The topics of `-t kb:TOPIC`, to which the request is restricted."""
        typed = list(kwargs.get("tools") or ())
        brought = [tool for template in self._templates for tool in template.tools or ()]
        self._tools = [*brought, *typed] or restored
        """The tools of the request, in the order of the host."""
        if command == "chat":
            self._tools = [*brought, *(typed or restored)]
        self.has_tools = bool(self._tools)
        """Whether it has any tools, also of others."""
        self.typed_tools = _ours(typed)
        """Our tools that the command line names."""
        self.asked_tools = self.typed_tools | _ours(brought) | ({"learn"} if self.topics else set())
        """Our tools that the command line or templates name."""
        self.restored_tools = _ours(self._tools) - self.asked_tools
        """Our tools that only the conversation names."""
        ours = [each for each in self._fragments if each.startswith(requests.OURS)]
        self.is_asking = bool(self.asked_tools or knowledge or kb_cfg or ours)
        """Whether the request itself names anything of ours."""

    @property
    def references(self) -> list[str]:
        """The `TOPIC/PATTERN` of each `kb:` fragment of templates and command line."""
        return [each for each in self._list_after(requests.PREFIX) if not each.startswith("@")]

    def _list_after(self, prefix: str) -> list[str]:
        return [each.removeprefix(prefix) for each in self._fragments if each.startswith(prefix)]

    def _iter_fragments(self) -> Iterator[str]:
        for key in FRAGMENT_KEYS:
            for template in self._templates:
                yield from getattr(template, key) or ()
            yield from self.kwargs.get(key) or ()

    def offer(self, ours: Iterable[str]) -> None:
        """Make the host offer these of our tools, each once, with the tools of others."""
        kept: list[str] = []
        known = requests.name_tools() if ours else _ours(self._tools)
        boxes = {each.name for each in find_tools().values() if each.toolbox} if known else ()
        for spec in self._tools:
            name = tool_name(spec)
            if "(" in spec and name in known and name not in boxes:
                raise click.ClickException(
                    f"{spec}: {name} takes nothing here; -T {name} offers it, and -t kb:TOPIC"
                    " offers learn for one topic"
                )
            if name not in known or (name in ours and spec not in kept):
                kept.append(spec)
        kept += sorted(set(ours) - set(map(tool_name, kept)))
        if kept != self._tools:
            self._templates = list(map(llm_internals.drop_tools, self._templates))
            self.kwargs["tools"] = tuple(kept) or llm_internals.NoTools()

    def supports_tools(self) -> bool:
        """Tell whether the model can call tools; False for an unknown model."""
        return bool(getattr(self._find_model(), "supports_tools", False))

    def takes_picture(self, media_type: str) -> bool:
        """Tell whether the model takes attachments of a media type."""
        return media_type in (getattr(self._find_model(), "attachment_types", None) or ())

    def name_model(self) -> str | None:
        """Return the name of the request's model; None for the default one."""
        candidates = [self.kwargs.get("model_id"), *(each.model for each in self._templates)]
        if self.conversation is not None:
            candidates.append(self.conversation.model.model_id)
        return next(filter(None, candidates), None)

    def _find_model(self) -> Any:
        """Return the model of the request; None if it is unknown."""
        try:
            get = llm.get_async_model if self.kwargs.get("async_") else llm.get_model
            return get(self.name_model())
        except (KeyError, ValueError):
            return None

    def add_fragments(self, key: str, *fragments: str) -> None:
        """Add fragments after those of the command line."""
        self.kwargs[key] = [*(self.kwargs.get(key) or ()), *fragments]

    def take_chat_fragments(self) -> None:
        """Add our fragments of templates to those of a chat, for which the host ignores them."""
        for key in FRAGMENT_KEYS:
            for template in self._templates:
                fragments = [each for each in getattr(template, key) or () if _is_text(each)]
                self.add_fragments(key, *fragments)

    def hand_over_templates(self) -> Sequence[Any]:
        """Name the templates so that the host gets the loaded ones from us; return them."""
        if self._templates:
            names = [f"{requests.SECTION}{number}" for number in range(len(self._templates))]
            requests.require_no_files(names)
            is_one = isinstance(self.kwargs["template"], str)
            self.kwargs["template"] = names[0] if is_one else tuple(names)
        return self._templates

    def refuse_long_searches(self) -> None:
        """Raise KbError for a search so long that the host cannot look for a file of that name."""
        for fragment in self._fragments:
            if fragment.startswith(requests.SEARCH) and len(os.fsencode(fragment)) > LONGEST_NAME:
                raise KbError(
                    f"a {requests.SEARCH} fragment has at most {LONGEST_NAME} bytes; `llm kb"
                    " search` takes a text of any length, and its passages can be piped into llm"
                )

    def _load(self, names: Sequence[str]) -> Sequence[str]:
        """Load the templates and the conversation, as the host will; return the tools of that."""
        requests.require_no_files(names)
        for name in names:
            _require_saved(name)
        given = self.kwargs
        with suppress(Exception):  # the host reports the same error next
            try:
                if names:  # all or none: the host is to see the name that it cannot load
                    self._templates = llm_internals.load_templates(names)
                if given.get("_continue") or given.get("conversation_id"):
                    self.conversation = llm_internals.load_conversation(given)
                if self.conversation is not None:
                    typed = given.get("tools") or ()
                    return llm_internals.find_conversation_tools(self.conversation, typed)
            except HostChangedError as error:
                self.misfit = error
        return ()


def _require_saved(name: str) -> None:
    """Raise ClickException for a file that hides a saved template with knowledge.

    The host reads a file of the current directory before the template of that name.
    """
    if os.path.lexists(name) and (template := _load_saved(name)) is not None:
        fragments = [each for key in FRAGMENT_KEYS for each in getattr(template, key) or ()]
        if _ours(template.tools or ()) or any(each.startswith(requests.OURS) for each in fragments):
            raise requests.shadowed(name)


def _load_saved(name: str) -> Any:
    """Return a template of the user's directory; None if there is none, or it is invalid."""
    with suppress(Exception):  # the host does not look at it
        return llm_internals.load_saved_template(name)
    return None


def tool_name(spec: str) -> str:
    """Return the name in a value of `-T`, which may have arguments: `Name(…)`.

    The name of a tool of a toolbox, as in a continued conversation, becomes that of the toolbox.
    """
    name = spec.partition("(")[0].strip()
    boxes = (each for each in find_tools(others=False).values() if each.prefix)
    return next((each.name for each in boxes if name.startswith(each.prefix)), name)


def _is_text(fragment: str) -> bool:
    """Tell whether a fragment is one of ours that a user writes, not what `-k` saves."""
    return fragment.startswith(requests.OURS) and not fragment.startswith(requests.SECTION)


def _ours(tools: Iterable[str]) -> frozenset[str]:
    """Return those of our tools that are among some; add-ons of others come with one of ours."""
    if names := frozenset(map(tool_name, tools)):
        own = names & requests.name_tools(others=False)
        return own and names & requests.name_tools()
    return names
