"""Adds knowledge to a request, as requested by `-k`, `--kb-cfg`, `--no-kb` and `auto`.

The wrapper around the host's commands opens a request here before the host runs. A request
that does not use this plugin reads at most two small files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import llm

from llm_kb.config.workspace import find_cwd, find_workspace, mentions_auto
from llm_kb.errors import KbError
from llm_kb.host.arguments import Arguments, require_no_files
from llm_kb.host.request import (
    MEMORY,
    OUR_TOOLS,
    SECTION,
    Request,
    current_request,
    running,
    tool_name,
)
from llm_kb.host.terminal import leave_out, say

if TYPE_CHECKING:
    from llm_kb.api import KnowledgeBase


@contextmanager
def open_request(
    command: str,
    kwargs: MutableMapping[str, Any],
    *,
    knowledge: Sequence[str] = (),
    kb_cfg: Sequence[str] = (),
    no_kb: bool = False,
) -> Iterator[None]:
    """Add the knowledge for a request to the arguments of the host's callback.

    Changes `kwargs` in place. Raises ClickException before any model is called if the
    configuration is invalid, or if requested knowledge does not exist.
    """
    if current_request() is not None:
        yield  # wrapped twice: by us, around another plugin's wrapper of our wrapper
        return
    arguments = Arguments(command, kwargs)
    try:
        if no_kb:
            request = _mute(arguments, knowledge, kb_cfg)
        elif arguments.is_saving:
            request = _save(arguments, knowledge, kb_cfg)
        else:
            request = _prepare(arguments, knowledge, kb_cfg)
    except KbError as error:
        from llm_kb.rendering.plain_text import visible_text  # most requests do not need it

        raise click.ClickException(visible_text(str(error))) from error
    request.templates = arguments.templates
    arguments.hand_over_templates()
    if not arguments.is_saving:
        request.searches = arguments.hand_over_searches()
    if "learn" in request.tools:
        request.rounds = arguments.count_rounds()
        request.question = arguments.kwargs.get("prompt") or ""
    with running(request):
        try:
            yield
        except (click.ClickException, ValueError) as error:  # a chat does not catch the ValueError
            # The host makes errors whose message is an exception, which `str` refuses.
            text = str(getattr(error, "message", error))
            if not request.rounds or not text.startswith("Chain limit of "):
                raise
            advice = (
                f"--cl {2 * request.rounds} allows more rounds of tool calls, --cl 0 any number"
            )
            raise click.ClickException(f"{text} {advice}") from error


def _prepare(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Return the request, after adding its texts and tools to the arguments."""
    if arguments.command == "chat":
        arguments.take_chat_fragments()
    kb, asked = _open(arguments, knowledge, kb_cfg)
    is_asked = kb is not None
    if kb is None:
        if not arguments.references and not arguments.has_search():
            _set_tools(arguments, asked)
            return Request(tools=asked)
        kb = _discover(arguments, (), (), set())
    from llm_kb.host.contents import decide_tools, iter_texts, render_sent  # as `_discover`

    tools = decide_tools(arguments, kb, asked) if is_asked else asked
    _set_tools(arguments, tools)
    is_given = bool(knowledge or kb_cfg or arguments.preloads)
    # The other tools do not read it: recording a note does not justify the cost of `learned`.
    is_offered = "learn" in (asked | tools) - arguments.restored_tools
    texts: tuple[tuple[str, str], ...] = ()
    if is_asked:
        texts = tuple(iter_texts(arguments, kb, tools, is_given=is_given, is_offered=is_offered))
    request = Request(
        kb,
        tools,
        texts,
        memory=[render_sent(kb, preloaded=any(source == SECTION for _, source in texts))],
        specs=arguments.specs,
    )
    _place(arguments, request)
    return request


def _open(
    arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]
) -> tuple[KnowledgeBase | None, AbstractSet[str]]:
    """Return the knowledge base, or None if nothing asks for it, and our tools to offer."""
    asked = {*arguments.typed_tools, *arguments.brought_tools}
    if any("/" not in spec for spec in arguments.specs):
        asked.add("learn")
    restored = set(arguments.restored_tools - asked)
    for tools in (asked, restored):
        if "emit_knowledge" in tools and not _has_repository():
            leave_out(
                "emit_knowledge",
                "emit_knowledge keeps entries in a git repository, and there is none here",
                is_error="emit_knowledge" in arguments.typed_tools,
            )
            tools.discard("emit_knowledge")
    if asked or knowledge or kb_cfg or arguments.specs:
        kb = _discover(arguments, knowledge, kb_cfg, asked | restored)
        kept: AbstractSet[str] = asked | _keep_restored(arguments, kb, restored)
        return kb, kept
    if not restored:
        return _discover_automatic(arguments), set()
    try:
        kb = _discover(arguments, (), (), restored)
    except KbError as error:
        say(f"{' and '.join(sorted(restored))} left out: {str(error).splitlines()[0]}")
        return None, set()
    kept = _keep_restored(arguments, kb, restored)
    return (kb, kept) if kept else (_discover_automatic(arguments), set())


def _keep_restored(
    arguments: Arguments, kb: KnowledgeBase, restored: AbstractSet[str]
) -> AbstractSet[str]:
    """Return the tools of a conversation without those for another workspace."""
    memory, workspace = arguments.memory, str(kb.config.workspace or "")
    if "learn" not in restored or memory is None or memory.workspace == workspace:
        return restored
    here = f"here is {workspace}" if workspace else "there is no workspace here"
    say(
        f"learn is left out: this conversation learned from {memory.workspace or 'no workspace'},"
        f" {here}; -T learn offers what is here"
    )
    return restored - {"learn", "search_knowledge"}


def _has_repository() -> bool:
    from llm_kb.host.contents import has_repository  # few requests ask for it

    return has_repository()


def _discover_automatic(arguments: Arguments) -> KnowledgeBase | None:
    """Return the knowledge base if `auto` offers its `learn`, else None.

    Problems are reported, not raised: an invalid configuration must not break a command
    that did not ask for it.
    """
    where = find_cwd(), Path(llm.user_dir()), os.environ
    if not mentions_auto(*where):
        return None
    # Imported here: most requests have no `auto`.
    from llm_kb.config.report import render_skipped, render_withheld
    from llm_kb.config.trust import find_untrusted_auto

    if untrusted := find_untrusted_auto(*where):
        say(render_skipped(untrusted, ["kb.auto"]))
        return None
    try:
        kb = _discover(arguments, (), (), set())
    except KbError as error:
        say(f"auto is skipped: {str(error).splitlines()[0]}")
        return None
    if "kb.auto" in kb.config.withheld:
        say(render_withheld(kb.config))
    return kb if kb.config.auto and arguments.supports_tools() else None


def _discover(
    arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str], asked: AbstractSet[str]
) -> KnowledgeBase:
    from llm_kb.api import KnowledgeBase  # most requests need none of it

    memory = arguments.memory
    if memory is not None and memory.workspace != _find_here():
        memory = None
    kb = KnowledgeBase.discover(
        fragments=kb_cfg,
        excluded=memory.excluded if memory else (),
        knowledge=(*arguments.preloads, *knowledge),
        only=arguments.topics or (memory.only if memory else ()),
        given=arguments.references,
        builtin=bool(asked & {"References", "emit_knowledge"}),
        references="References" in asked,
    )
    # Some models get the system prompt with the first turn alone.
    if arguments.command == "chat" or arguments.conversation is not None:
        kb.repeat_preloaded()
    return kb


def _find_here() -> str:
    """Return the directory of the workspace; empty if there is none."""
    file = find_workspace(find_cwd(), os.environ, user_dir=Path(llm.user_dir()))
    return str(file.root) if file else ""


def _set_tools(arguments: Arguments, ours: Iterable[str]) -> None:
    """Make the host offer these tools, each once, with all others."""
    before = arguments.tools()
    kept: list[str] = []
    for spec in before:
        name = tool_name(spec)
        if "(" in spec and name in OUR_TOOLS - {"References"}:
            raise click.ClickException(
                f"{spec}: {name} takes nothing here; -T {name} offers it, and -t kb:TOPIC offers"
                " learn for one topic"
            )
        if name not in OUR_TOOLS or (name in ours and spec not in kept):
            kept.append(spec)
    offered = set(map(tool_name, kept))
    kept += [name for name in sorted(ours) if name not in offered]
    if kept != before:
        arguments.set_tools(kept)


def _place(arguments: Arguments, request: Request) -> None:
    """Put the section into the system prompt, or into the prompt of a continued conversation."""
    require_no_files([SECTION, MEMORY])
    if request.has_texts():
        key = "system_fragments"
        if arguments.conversation is not None:
            # Models that read the whole history use the system text of the first turn.
            say("a continued conversation keeps its system prompt: knowledge goes into this prompt")
            key = "fragments"
        arguments.add_fragments(key, SECTION)
    arguments.add_fragments("system_fragments", MEMORY)


def _save(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Let `--save` write `-k` as live references, after checking that they match something."""
    if kb_cfg:
        raise click.UsageError("--kb-cfg cannot be saved in a template; -k can")
    asked = set(arguments.typed_tools)
    if knowledge:
        kb = _discover(arguments, knowledge, (), asked)
        specs = [f"{SECTION}{topic}/{pattern}" for topic, pattern in kb.knowledge]
        arguments.add_fragments("system_fragments", *specs)
    return Request(tools=asked)


def _mute(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Remove our tools and fragments from a request with `--no-kb`."""
    asked = [f"-k {value}" for value in knowledge] + [f"--kb-cfg {value}" for value in kb_cfg]
    if asked := [*asked, *arguments.iter_ours()]:
        say(f"--no-kb leaves out {', '.join(asked)}")
    _set_tools(arguments, ())
    arguments.drop_fragments()
    return Request(is_muted=True)
