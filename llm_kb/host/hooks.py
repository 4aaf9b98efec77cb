"""What this plugin adds to a request: its tools, texts, fragments and templates.

`prepare` decides before the host runs; the hooks of the plugin then ask for what it decided.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import llm

from llm_kb import addons, hookspecs
from llm_kb.config.load import list_exclusions
from llm_kb.config.trust import render_skipped, render_withheld
from llm_kb.config.workspace import find_cwd, find_workspace
from llm_kb.errors import KbError, UnknownTopicError
from llm_kb.host import request as requests
from llm_kb.host.log import GUIDE, read_memory
from llm_kb.host.request import Memory, render_memory
from llm_kb.host.rewriting import search_rewritten
from llm_kb.knowledge_base.api import KnowledgeBase, attach
from llm_kb.knowledge_base.learning import PictureRules
from llm_kb.rendering.passages import explain_nothing, render_passages
from llm_kb.rendering.presentation import Picture, list_pictures
from llm_kb.rendering.section import describe_large
from llm_kb.subjects.patterns import split_knowledge
from llm_kb.terminal.screen import draw_progress, say

if TYPE_CHECKING:
    from llm_kb.host.prompt_options import Arguments  # it imports the commands of the host

_OF_WORKSPACE = {"learn", "search_knowledge"}
"""The tools that are about the topics of one workspace."""


def prepare(arguments: Arguments) -> requests.Request:
    """Return the request, after adding its texts and tools to the arguments. Raises KbError."""
    preparation = _Preparation(arguments)
    return preparation.save() if arguments.is_saving else preparation.run()


class _Preparation:
    """What a request asks for, and the memory of the conversation that it continues."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._memory: Memory | None = None
        self._unread: KbError | None = None
        """Why it is not known what the conversation excluded."""
        if arguments.conversation is not None:
            database = arguments.kwargs.get("database")
            try:
                self._memory = read_memory(arguments.conversation.id, database)
            except KbError as error:
                self._unread = error

    def save(self) -> requests.Request:
        """Let `--save` write `-k` as live references, after checking that they match something."""
        arguments = self._arguments
        if arguments.kb_cfg:
            raise click.UsageError("--kb-cfg cannot be saved in a template; -k can")
        if arguments.knowledge:
            pairs = self._discover().knowledge
            specs = [f"{requests.SECTION}{topic}/{pattern}" for topic, pattern in pairs]
            arguments.add_fragments("system_fragments", *specs)
        return requests.Request(tools=arguments.typed_tools)

    def run(self) -> requests.Request:
        """Return the request, after adding its texts and tools to the arguments."""
        arguments = self._arguments
        kb = self._open()
        tools = self._decide_tools(kb) if kb else set[str]()
        arguments.offer(tools)
        if kb is None or not (tools or arguments.is_asking or self._sends_unasked(kb)):
            return requests.Request()
        texts = list(self._iter_texts(kb, tools))
        has_section = any(source == requests.SECTION for _, source in texts)
        sent = [*kb.iter_sent(preloaded=has_section)]
        if has_section and self._has_guides(kb, tools):
            sent += ((GUIDE, str(kb.config.workspace), guide.name) for guide in kb.guides)
        memory = Memory(
            workspace=str(kb.config.workspace or ""),
            only=kb.only,
            excluded=tuple(list_exclusions(kb.config)),
            sent=tuple(sent),
        )
        pictures: list[Picture] = []
        if has_section:
            pictures = [each for _, shown in kb.preloaded for each in list_pictures(shown)]
        self._place(texts, pictures)
        given = {requests.SECTION: texts, requests.MEMORY: [render_memory(memory)]}
        return requests.Request(kb, tools, given, pictures=pictures)

    def _open(self) -> KnowledgeBase | None:
        """Return the knowledge base; None if there is a problem with it that nobody asked for.

        A conversation and `auto` do not ask: their problems are reported, not raised.
        """
        if self._arguments.is_asking:
            return self._discover()
        restored = self._arguments.restored_tools
        try:
            kb = self._discover()
        except KbError as error:
            reason = str(error).splitlines()[0]
            say(f"{' and '.join(sorted(restored)) or 'auto'} left out: {reason}")
            return None
        if "kb.auto" in kb.config.withheld and not restored:
            say(render_skipped(kb.config.workspace_file, kb.config.withheld))
        return kb

    def _discover(self) -> KnowledgeBase:
        arguments, memory = self._arguments, self._memory
        if memory is not None and memory.workspace != _find_here():
            memory = None
        tools = arguments.asked_tools | arguments.restored_tools
        kb = KnowledgeBase.discover(
            fragments=arguments.kb_cfg,
            excluded=memory.excluded if memory else (),
            knowledge=(*arguments.preloads, *arguments.knowledge),
            only=arguments.topics or (memory.only if memory else ()),
            given=arguments.references,
            tools=tools,
        )
        kb.pictures = PictureRules(takes=arguments.takes_picture)
        # Some models get the system prompt with the first turn alone.
        if arguments.command == "chat" or arguments.conversation is not None:
            kb.repeat_preloaded()
        return kb

    def _decide_tools(self, kb: KnowledgeBase) -> set[str]:
        """Return our tools that are useful in this request.

        A useless tool on the command line is an error; one of a template or conversation is
        left out with a message.
        """
        arguments = self._arguments
        tools = {*arguments.asked_tools, *self._keep_restored(kb)}
        if kb.config.auto and kb.offers_learn() and arguments.supports_tools():
            tools.add("learn")
        is_used = tools or arguments.knowledge or arguments.kb_cfg
        if is_used and (skipped := render_withheld(kb.config, answers=bool(tools))):
            say(skipped)
        for name in tools & addons.find_tools().keys():
            if reason := addons.find_tools()[name].find_problem(kb):
                _leave_out(tools, name, reason, is_error=name in arguments.typed_tools)
                kb.tools -= {name}
        if "learn" in tools and not kb.offers_learn():
            if not (kb.has_preloaded() or kb.guides):
                is_named = "learn" in arguments.typed_tools or bool(arguments.topics)
                _leave_out(tools, "learn", kb.explain_nothing(), is_error=is_named)
            tools.discard("learn")  # all of it is in the prompt
        if "learn" in tools and kb.offers_search():
            tools.add("search_knowledge")
        elif "search_knowledge" in tools and "learn" not in tools:
            # Without `learn`, the model could not read the subjects that it finds.
            _leave_out(tools, "search_knowledge", "it needs learn; add -T learn", is_error=False)
        if "learn" in tools:
            tools |= kb.tools & addons.find_tools().keys()
        return tools

    def _keep_restored(self, kb: KnowledgeBase) -> AbstractSet[str]:
        """Return the tools of a conversation without those for another workspace."""
        restored, memory = self._arguments.restored_tools, self._memory
        if self._unread:
            say(
                f"{self._unread}: what --kb-cfg excluded earlier in this conversation is"
                " forgotten; give it again"
            )
            return restored - _OF_WORKSPACE
        workspace = str(kb.config.workspace or "")
        if "learn" not in restored or memory is None or memory.workspace == workspace:
            return restored
        here = f"you are now in {workspace}" if workspace else "you are now in none"
        say(
            "learn is left out: this conversation used"
            f" {memory.workspace or 'no workspace'}, {here}; -T learn offers what is here"
        )
        return restored - _OF_WORKSPACE

    def _iter_texts(self, kb: KnowledgeBase, tools: AbstractSet[str]) -> Iterator[tuple[str, str]]:
        """Yield the texts of a request, each with its source.

        The section goes with what the request pre-loads, and with a `learn` that the conversation
        did not offer before.
        """
        arguments = self._arguments
        added = (tools | arguments.asked_tools) - arguments.restored_tools
        asked = arguments.knowledge or arguments.kb_cfg or arguments.preloads
        if asked or "learn" in added or self._sends_unasked(kb):
            has_menu = "learn" in added & tools
            search = "search_knowledge" in tools
            section = kb.section(learn=has_menu, search=search, guides=self._has_guides(kb, tools))
            if section:
                if large := describe_large(kb.preloaded):
                    say(large)
                yield section, requests.SECTION
        for name, text in addons.gather(hookspecs.texts, kb, frozenset(added & tools)):
            yield text, f"{requests.SECTION}{name}"

    def _sends_unasked(self, kb: KnowledgeBase) -> bool:
        """Tell whether `auto` sends a section with nothing left to learn, in a first request."""
        return kb.config.auto and self._memory is None and bool(kb.has_preloaded() or kb.guides)

    def _has_guides(self, kb: KnowledgeBase, tools: AbstractSet[str]) -> bool:
        """Tell whether the section has the guides: once in a conversation, if it may learn."""
        is_sent = self._memory is not None and any(each[0] == GUIDE for each in self._memory.sent)
        is_wanted = "learn" in tools | self._arguments.asked_tools or self._sends_unasked(kb)
        return is_wanted and not is_sent

    def _place(self, texts: Sequence[tuple[str, str]], pictures: Sequence[Picture]) -> None:
        """Put the section into the system prompt, or into the prompt of a continued conversation.

        Models that read the whole history use the system text of the first turn. Pictures go with
        the prompt, as a system prompt has none.
        """
        requests.require_no_files([requests.SECTION, requests.MEMORY, requests.PICTURES])
        if pictures:
            self._arguments.add_fragments("fragments", requests.PICTURES)
        if texts and self._arguments.conversation is not None:
            say("a continued conversation keeps its system prompt: knowledge goes into this prompt")
            self._arguments.add_fragments("fragments", requests.SECTION)
        elif texts:
            self._arguments.add_fragments("system_fragments", requests.SECTION)
        self._arguments.add_fragments("system_fragments", requests.MEMORY)


def _leave_out(tools: set[str], tool: str, reason: str, *, is_error: bool) -> None:
    """Remove a tool, and report why. Raises ClickException if that is an error."""
    if is_error:
        raise click.ClickException(reason)
    tools.discard(tool)
    say(f"{tool} is left out: {reason}")


def _find_here() -> str:
    """Return the directory of the workspace; empty if there is none."""
    file = find_workspace(find_cwd(), os.environ, user_dir=Path(llm.user_dir()))
    return str(file.parent) if file else ""


def make_tools() -> Iterator[llm.Tool | type[llm.Toolbox]]:
    """Yield the tools to register: those of the request, or outside of one all that are useful."""
    current = requests.current_request()
    request = current or _find_useful()
    if "learn" in request.tools and request.kb is not None:
        yield request.kb.learn_tool()
    if "search_knowledge" in request.tools and request.kb is not None:
        yield request.kb.search_tool(draw_progress("Indexing"))
    for each in request.kb.added_tools(request.tools) if request.kb is not None else ():
        yield each
        if current is not None and isinstance(each, type):
            # A continued conversation asks for the tools of a toolbox one by one.
            yield from each().tools()


def _find_useful() -> requests.Request:
    """Return a request for every tool that is useful here, for `llm tools` and the Python API."""
    tools, kb = set[str](), None
    with suppress(KbError):  # a broken configuration must not break commands that do not use it
        kb = KnowledgeBase.discover()
        kb.repeat_preloaded()  # nothing that is pre-loaded was sent
        tools |= {"learn"} if kb.left else set()
        tools |= {"search_knowledge"} if kb.offers_search() else set()
        added = addons.find_tools().values()
        tools |= {each.name for each in added if not each.find_problem(kb)}
    return requests.Request(kb, tools)


def load_fragments(reference: str) -> list[llm.Fragment | llm.Attachment]:
    """Return one fragment for each subject, with the source `kb:topic/slug`; pictures as such."""
    request = requests.current_request()
    if request is not None and request.is_muted:
        return []
    if reference.startswith("@"):
        # A `kb:@TOPIC` is part of the section of the request.
        source = f"{requests.PREFIX}{reference}"
        if request is not None and source == requests.PICTURES:
            return list(map(attach, request.pictures))
        texts = _make_section(source) if request is None else request.texts.get(source, ())
        return [llm.Fragment(text, source) for text, source in texts]
    kb = _open(request)
    topic, pattern = split_knowledge(reference)
    found = kb.require(topic, pattern)
    opened = kb.find_topic(topic)
    topic = opened.config.id
    subjects = kb.present(opened, found)
    if large := describe_large([(opened.config, subjects)]):
        say(large)
    return [
        attach(presented.picture)
        if presented.picture
        else llm.Fragment(presented.text, f"{requests.PREFIX}{topic}/{presented.name}")
        for presented in subjects
    ]


def _make_section(fragment: str) -> Sequence[tuple[str, str]]:
    """Return the section that a saved template asks for, outside of a request of ours.

    Commands of other plugins resolve fragments by themselves, such as `llm openai endpoint`.
    """
    name = fragment.removeprefix(requests.SECTION)
    pattern = [name] if "/" in name else []
    kb = KnowledgeBase.discover(knowledge=pattern, only=[] if pattern else [name])
    section = kb.section(learn=not pattern and bool(kb.left))
    return [(section, fragment)] if section else ()


def load_passages(reference: str) -> llm.Fragment | list[llm.Fragment]:
    """Return the passages of `TOPIC:QUESTION`, or `QUESTION` for all topics, as a fragment."""
    request = requests.current_request()
    if request is not None and request.is_muted:
        return []
    kb = _open(request)
    topics, question = _split_search(kb, reference)
    if not topics and not kb.menu_ids:
        raise ValueError(kb.explain_nothing())
    # A model without tools cannot load the rest of a passage.
    find = partial(kb.find_passages, topics=topics, whole=True)
    if kb.config.rewrite:
        found, note = search_rewritten(kb, question, request.model if request else None, find)
        found = replace(found, notices=(note, *found.notices))
        say(note)
    else:
        found = find(question)
    if not found.passages:
        raise ValueError(explain_nothing(found))
    return llm.Fragment(render_passages(found), f"{requests.SEARCH}{reference}")


def _split_search(kb: KnowledgeBase, reference: str) -> tuple[list[str], str]:
    """Return the topics, one or none for all, and the question.

    A colon may also be part of the question, as in a pasted error message.
    """
    topic, colon, question = reference.partition(":")
    if not colon or not topic:
        return [], question or topic
    try:
        return [kb.find_topic(topic).config.id], question
    except UnknownTopicError:
        return [], reference


def load_template(reference: str) -> llm.Template:
    """Return a template with `learn` and the section of one topic."""
    request = requests.current_request()
    if request is not None and reference.startswith("@"):
        template: llm.Template = request.templates[int(reference[1:])]
        return template
    topic = KnowledgeBase.discover().find_topic(reference).config
    return llm.Template(
        name=f"{requests.PREFIX}{reference}",
        tools=["learn"],
        system_fragments=[f"{requests.SECTION}{topic.id}"],
    )


def _open(request: requests.Request | None) -> KnowledgeBase:
    """Return the knowledge base of a request with all topics, or that of this directory."""
    if request is not None and request.kb is not None:
        return request.kb.unrestricted()
    kb = KnowledgeBase.discover()
    if request is not None:
        kb.pictures = PictureRules(takes=request.takes_picture)
    return kb
