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
from llm_kb.config.trust import find_untrusted_auto, render_notices, render_skipped
from llm_kb.config.workspace import find_cwd, find_workspace
from llm_kb.errors import KbError
from llm_kb.host.arguments import Arguments, require_no_files
from llm_kb.host.capture_tools import find_root
from llm_kb.host.log import Memory, read_memory, render_memory
from llm_kb.host.request import MEMORY, SECTION, Request
from llm_kb.host.terminal import say
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
        self._asked = set(arguments.asked_tools)
        self._restored = set(arguments.restored_tools)
        self._is_asked = bool(self._asked or knowledge or kb_cfg or arguments.has_fragments)
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
            specs = [f"{SECTION}{topic}/{pattern}" for topic, pattern in self._discover().knowledge]
            arguments.add_fragments("system_fragments", *specs)
        return Request(tools=arguments.typed_tools)

    def run(self) -> Request:
        """Return the request, after adding its texts and tools to the arguments."""
        arguments = self._arguments
        self._require_repository()
        kb = self._open()
        tools = self._decide_tools(kb) if kb else set[str]()
        arguments.offer(tools)
        if kb is None or not (tools or self._is_asked):
            return Request()
        texts = list(self._iter_texts(kb, tools))
        memory = Memory(
            workspace=str(kb.config.workspace or ""),
            only=kb.only,
            excluded=tuple(list_exclusions(kb.config)),
            sent=tuple(kb.iter_sent(preloaded=any(source == SECTION for _, source in texts))),
        )
        self._place(texts)
        return Request(kb, tools, {SECTION: texts, MEMORY: [render_memory(memory)]})

    def _require_repository(self) -> None:
        if "emit_knowledge" in self._asked | self._restored and not _has_repository():
            self._asked.discard("emit_knowledge")
            self._restored.discard("emit_knowledge")
            reason = "emit_knowledge keeps entries in a git repository, and there is none here"
            is_error = "emit_knowledge" in self._arguments.typed_tools
            _leave_out("emit_knowledge", reason, is_error=is_error)

    def _open(self) -> KnowledgeBase | None:
        """Return the knowledge base; None if there is a problem with it that nobody asked for.

        A conversation and `auto` do not ask: their problems are reported, not raised.
        """
        if self._is_asked:
            return self._discover()
        where = find_cwd(), Path(llm.user_dir()), os.environ
        if not self._restored and (untrusted := find_untrusted_auto(*where)):
            say(render_skipped(untrusted, ["kb.auto"]))
            return None
        try:
            kb = self._discover()
        except KbError as error:
            say(f"{' and '.join(sorted(self._restored)) or 'auto'} left out: {_first_line(error)}")
            return None
        if "kb.auto" in kb.config.withheld and not self._restored:
            say(render_skipped(kb.config.workspace_file, kb.config.withheld))
        return kb

    def _discover(self) -> KnowledgeBase:
        arguments, memory = self._arguments, self._memory
        if memory is not None and memory.workspace != _find_here():
            memory = None
        tools = self._asked | self._restored
        kb = KnowledgeBase.discover(
            fragments=self._kb_cfg,
            excluded=memory.excluded if memory else (),
            knowledge=(*arguments.preloads, *self._knowledge),
            only=arguments.topics or (memory.only if memory else ()),
            given=arguments.references,
            builtin=bool(tools & {"References", "emit_knowledge"}),
            references="References" in tools,
        )
        # Some models get the system prompt with the first turn alone.
        if arguments.command == "chat" or arguments.conversation is not None:
            kb.repeat_preloaded()
        return kb

    def _decide_tools(self, kb: KnowledgeBase) -> AbstractSet[str]:
        """Return our tools that are useful in this request.

        A useless tool on the command line is an error; one of a template or conversation is
        left out with a message.
        """
        arguments, asked = self._arguments, self._asked | self._keep_restored(kb)
        tools = set(asked)
        if kb.config.auto and arguments.supports_tools():
            tools.add("learn")
        if tools or self._knowledge or self._kb_cfg:
            for notice in render_notices(kb.config):
                say(notice)
        if "learn" in tools and not kb.has_left():
            tools.discard("learn")
            if "learn" in asked:
                is_named = "learn" in arguments.typed_tools or bool(arguments.topics)
                is_error = is_named and not kb.has_preloaded()
                _leave_out("learn", kb.explain_nothing(), is_error=is_error)
        if "learn" in tools and kb.offers_search():
            tools.add("search_knowledge")
        elif "search_knowledge" in tools and "learn" not in tools:
            # Without `learn`, the model could not read the subjects that it finds.
            tools.discard("search_knowledge")
            _leave_out("search_knowledge", "it needs learn; add -T learn", is_error=False)
        if "learn" in tools and kb.config.capture.offer and _has_repository():
            tools.add("emit_knowledge")
        return tools

    def _keep_restored(self, kb: KnowledgeBase) -> AbstractSet[str]:
        """Return the tools of a conversation without those for another workspace."""
        memory, workspace = self._memory, str(kb.config.workspace or "")
        if "learn" not in self._restored or memory is None or memory.workspace == workspace:
            return self._restored
        here = f"you are now in {workspace}" if workspace else "you are now in none"
        say(
            "learn is left out: this conversation used"
            f" {memory.workspace or 'no workspace'}, {here}; -T learn offers what is here"
        )
        return self._restored - {"learn", "search_knowledge"}

    def _iter_texts(self, kb: KnowledgeBase, tools: AbstractSet[str]) -> Iterator[tuple[str, str]]:
        """Yield the texts of a request, each with its source.

        The section goes with what the request pre-loads, and with a `learn` that the conversation
        did not offer before.
        """
        added = (tools | self._asked) - self._restored
        if self._knowledge or self._kb_cfg or self._arguments.preloads or "learn" in added:
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

    def _place(self, texts: Sequence[tuple[str, str]]) -> None:
        """Put the section into the system prompt, or into the prompt of a continued conversation.

        Models that read the whole history use the system text of the first turn.
        """
        require_no_files([SECTION, MEMORY])
        if texts and self._arguments.conversation is not None:
            say("a continued conversation keeps its system prompt: knowledge goes into this prompt")
            self._arguments.add_fragments("fragments", SECTION)
        elif texts:
            self._arguments.add_fragments("system_fragments", SECTION)
        self._arguments.add_fragments("system_fragments", MEMORY)


def _leave_out(tool: str, reason: str, *, is_error: bool) -> None:
    """Report why a tool is left out. Raises ClickException if that is an error."""
    if is_error:
        raise click.ClickException(reason)
    say(f"{tool} is left out: {reason}")


def _has_repository() -> bool:
    return find_root(find_cwd()) is not None


def _first_line(error: KbError) -> str:
    return str(error).splitlines()[0]


def _find_here() -> str:
    """Return the directory of the workspace; empty if there is none."""
    file = find_workspace(find_cwd(), os.environ, user_dir=Path(llm.user_dir()))
    return str(file.root) if file else ""
