"""Prepares a request that uses the knowledge base: its tools, its texts and its memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import click
import llm

from llm_kb.api import KnowledgeBase
from llm_kb.config.load import list_exclusions
from llm_kb.config.report import render_notices, render_skipped, render_withheld
from llm_kb.config.trust import find_untrusted_auto
from llm_kb.config.workspace import find_cwd, find_workspace, mentions_auto
from llm_kb.errors import KbError
from llm_kb.host.arguments import Arguments, require_no_files
from llm_kb.host.capture_tools import find_root
from llm_kb.host.log import Memory, read_memory, render_memory
from llm_kb.host.request import MEMORY, SECTION, Request
from llm_kb.host.terminal import leave_out, say
from llm_kb.references.catalog import recent_references
from llm_kb.rendering.tokens import describe_large


def prepare(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Return the request, after adding its texts and tools to the arguments. Raises KbError."""
    preparation = _Preparation(arguments, knowledge, kb_cfg)
    return preparation.save() if arguments.is_saving else preparation.run()


class _Preparation:
    """What a request asks for, and the memory of the conversation that it continues."""

    def __init__(
        self, arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]
    ) -> None:
        self._arguments = arguments
        self._knowledge, self._kb_cfg = knowledge, kb_cfg
        self._memory: Memory | None = None
        if arguments.conversation is not None:
            database = arguments.kwargs.get("database")
            self._memory = read_memory(arguments.conversation.id, database)

    def save(self) -> Request:
        """Let `--save` write `-k` as live references, after checking that they match something."""
        arguments = self._arguments
        if self._kb_cfg:
            raise click.UsageError("--kb-cfg cannot be saved in a template; -k can")
        if self._knowledge:
            kb = self._discover(arguments.typed_tools)
            specs = [f"{SECTION}{topic}/{pattern}" for topic, pattern in kb.knowledge]
            arguments.add_fragments("system_fragments", *specs)
        return Request(tools=arguments.typed_tools)

    def run(self) -> Request:
        """Return the request, after adding its texts and tools to the arguments."""
        arguments = self._arguments
        kb, asked = self._open()
        tools, texts = asked, list[tuple[str, str]]()
        if kb is None and (arguments.references or arguments.has_search()):
            kb = self._discover(set())
        elif kb is None:
            arguments.offer(tools)
            return Request(tools=tools)
        else:
            tools = self._decide_tools(kb, asked)
            texts = list(self._iter_texts(kb, tools, (tools | asked) - arguments.restored_tools))
        arguments.offer(tools)
        is_preloaded = any(source == SECTION for _, source in texts)
        memory = render_memory(
            Memory(
                workspace=str(kb.config.workspace or ""),
                only=kb.only,
                excluded=tuple(list_exclusions(kb.config)),
                sent=tuple(kb.iter_sent(preloaded=is_preloaded)),
            )
        )
        request = Request(kb, tools, texts, memory=[memory], specs=arguments.specs)
        _place(arguments, request)
        return request

    def _open(self) -> tuple[KnowledgeBase | None, AbstractSet[str]]:
        """Return the knowledge base, or None if nothing asks for it, and our tools to offer."""
        arguments = self._arguments
        asked = {*arguments.typed_tools, *arguments.brought_tools}
        if arguments.topics:
            asked.add("learn")
        restored = set(arguments.restored_tools - asked)
        for tools in (asked, restored):
            if "emit_knowledge" in tools and not has_repository():
                leave_out(
                    "emit_knowledge",
                    "emit_knowledge keeps entries in a git repository, and there is none here",
                    is_error="emit_knowledge" in arguments.typed_tools,
                )
                tools.discard("emit_knowledge")
        if asked or self._knowledge or self._kb_cfg or arguments.specs:
            kb = self._discover(asked | restored)
            return kb, asked | self._keep_restored(kb, restored)
        if restored:
            try:
                kb = self._discover(restored)
            except KbError as error:
                say(f"{' and '.join(sorted(restored))} left out: {str(error).splitlines()[0]}")
                return None, set()
            if kept := self._keep_restored(kb, restored):
                return kb, kept
        return self._discover_automatic(), set()

    def _keep_restored(self, kb: KnowledgeBase, restored: AbstractSet[str]) -> AbstractSet[str]:
        """Return the tools of a conversation without those for another workspace."""
        memory, workspace = self._memory, str(kb.config.workspace or "")
        if "learn" not in restored or memory is None or memory.workspace == workspace:
            return restored
        here = f"you are now in {workspace}" if workspace else "you are now in none"
        say(
            "learn is left out: this conversation used"
            f" {memory.workspace or 'no workspace'}, {here}; -T learn offers what is here"
        )
        return restored - {"learn", "search_knowledge"}

    def _discover_automatic(self) -> KnowledgeBase | None:
        """Return the knowledge base if `auto` offers its `learn`, else None.

        Problems are reported, not raised: an invalid configuration must not break a command
        that did not ask for it.
        """
        where = find_cwd(), Path(llm.user_dir()), os.environ
        # Otherwise `auto` is why the request is prepared.
        if self._arguments.is_asking and not mentions_auto(*where):
            return None
        if untrusted := find_untrusted_auto(*where):
            say(render_skipped(untrusted, ["kb.auto"]))
            return None
        try:
            kb = self._discover(set())
        except KbError as error:
            say(f"auto is skipped: {str(error).splitlines()[0]}")
            return None
        if "kb.auto" in kb.config.withheld:
            say(render_withheld(kb.config))
        return kb if kb.config.auto and self._arguments.supports_tools() else None

    def _discover(self, asked: AbstractSet[str]) -> KnowledgeBase:
        arguments, memory = self._arguments, self._memory
        if memory is not None and memory.workspace != _find_here():
            memory = None
        kb = KnowledgeBase.discover(
            fragments=self._kb_cfg,
            excluded=memory.excluded if memory else (),
            knowledge=(*arguments.preloads, *self._knowledge),
            only=arguments.topics or (memory.only if memory else ()),
            given=arguments.references,
            builtin=bool(asked & {"References", "emit_knowledge"}),
            references="References" in asked,
        )
        # Some models get the system prompt with the first turn alone.
        if arguments.command == "chat" or arguments.conversation is not None:
            kb.repeat_preloaded()
        return kb

    def _decide_tools(self, kb: KnowledgeBase, asked: AbstractSet[str]) -> AbstractSet[str]:
        """Return our tools that are useful in this request.

        A useless tool on the command line is an error; one of a template or conversation is
        left out with a message.
        """
        arguments, tools = self._arguments, set(asked)
        for notice in render_notices(kb.config):
            say(notice)
        if "learn" not in asked and kb.config.auto and arguments.supports_tools():
            tools.add("learn")
        if "learn" in tools and not kb.has_left():
            if "learn" in asked:
                is_named = "learn" in arguments.typed_tools or bool(arguments.topics)
                is_error = is_named and not kb.has_preloaded()
                leave_out("learn", kb.explain_nothing(), is_error=is_error)
            tools.discard("learn")
        if "learn" in tools and kb.offers_search():
            tools.add("search_knowledge")
        elif "search_knowledge" in asked and "learn" not in tools:
            # Without `learn`, the model could not read the subjects that it finds.
            tools.discard("search_knowledge")
            leave_out("search_knowledge", "it needs learn; add -T learn", is_error=False)
        if "learn" in tools and kb.config.capture.offer and has_repository():
            tools.add("emit_knowledge")
        return tools

    def _iter_texts(
        self, kb: KnowledgeBase, tools: AbstractSet[str], added: AbstractSet[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield the texts of a request, each with its source.

        The section goes with what the request pre-loads, and with a `learn` that was `added`:
        that the conversation did not offer before.
        """
        arguments = self._arguments
        is_given = bool(self._knowledge or self._kb_cfg or arguments.preloads)
        if is_given or "learn" in added:
            has_menu = "learn" in added & tools
            section = kb.section(learn=has_menu, search="search_knowledge" in tools)
            if section:
                if large := describe_large(kb.preloaded):
                    say(large)
                yield section, SECTION
        if "References" in added:
            listed = kb.menu_ids if "learn" in tools else ()
            if recent := recent_references(kb.config, Path(llm.user_dir()), listed):
                yield recent, f"{SECTION}references"


def has_repository() -> bool:
    """Tell whether the current directory is in a git repository."""
    return find_root(find_cwd()) is not None


def _find_here() -> str:
    """Return the directory of the workspace; empty if there is none."""
    file = find_workspace(find_cwd(), os.environ, user_dir=Path(llm.user_dir()))
    return str(file.root) if file else ""


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
