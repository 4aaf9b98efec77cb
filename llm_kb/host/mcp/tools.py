"""The tools of the MCP server, the functions that answer their calls, and the limits of answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, cast

from llm_kb import addons
from llm_kb.config.load import read_layer, user_source
from llm_kb.config.settings import Layer
from llm_kb.errors import KbError, quote
from llm_kb.hookspecs import Answer
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import find_user_dir
from llm_kb.knowledge_base.learning import Loaded, PictureRules
from llm_kb.knowledge_base.tool_text import (
    LEARN,
    SEARCH_KNOWLEDGE,
    ToolText,
)
from llm_kb.rendering.plain_text import count, estimate_tokens
from llm_kb.rendering.section import describe_topics, render_instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client takes whole."""

    answer: int = 20_000
    """Bytes of an answer: clients cut or hide longer ones, some from the middle."""
    menu: int = 400
    """Tokens of the menu."""
    instructions: int = 2_048
    """Characters of the instructions: Claude Code cuts them there."""
    first_line: int = 240
    """Characters of their first line, which is all that Codex shows of tools that it defers."""

    def cut(self, text: str) -> str:
        """Return an answer that is no longer, with a notice if its end is missing."""
        data = text.encode("utf-8", "replace")
        if not self.answer or len(data) <= self.answer:
            return text
        start = data[: max(0, self.answer - 150)].decode("utf-8", "ignore")
        start = start[: start.rfind("\n") + 1] or start
        missing = len(data) - len(start.encode("utf-8", "replace"))
        return f"{start}\n(note: cut here; {missing:,} bytes are not shown; ask for less at once)"


CODEX = Limits(answer=11_000)
"""For models that Codex does not know, it cuts answers at 12,000 bytes, from the middle."""

Report: TypeAlias = "Callable[..., None]"
"""Called whenever work was done; raises an error if nobody waits for the answer any more."""

Arguments: TypeAlias = "Mapping[str, Any]"


def find_limits(client: object) -> Limits:
    """Return what a client takes that gives this information about itself."""
    name = client.get("name") if isinstance(client, dict) else None
    return CODEX if isinstance(name, str) and "codex" in name.casefold() else Limits()


def fit_client(kb: KnowledgeBase, limits: Limits) -> KnowledgeBase:
    """Set the limits to what a client takes, unless the user configured others.

    Pre-loaded subjects can be learned too, since clients need not show the instructions.
    """
    kb.repeat_preloaded()
    most = _find_most(kb, limits)
    kb.config = replace(
        kb.config, max_result_chars=most, counts_bytes=True, menu_budget=limits.menu
    )
    return kb


def _find_most(kb: KnowledgeBase, limits: Limits) -> int:
    """Return the bytes of an answer: the client's or the user's, which a workspace may lower.

    A config fragment may do no more: it can be a file of the workspace.
    """
    config, key = kb.config, "kb.max_result_chars"
    if key not in config.settings:
        return limits.answer
    asked, layer = config.max_result_chars, config.settings[key].origins[-1].layer
    if layer not in {Layer.WORKSPACE, Layer.FRAGMENT}:
        return asked
    own = read_layer(user_source(find_user_dir())).get(key)
    allowed = int(cast(int, own.value)) if own else limits.answer
    return min(asked or allowed, allowed or asked)


def write_instructions(kb: KnowledgeBase, limits: Limits) -> str | None:
    """Return the menu and the pre-loaded subjects that clients show; None without any.

    The line above them says what they are about, for clients that show only that.
    """
    topics = {topic.id: topic for topic in (each.config for each in kb.left)}
    topics |= {topic.id: topic for topic, subjects in kb.preloaded if subjects}
    line = describe_topics(list(topics.values()), limits.first_line)
    room = limits.instructions - len(line) - len("\n\n")
    section = render_instructions(kb.preloaded, kb.menu(), room, search=kb.offers_search())
    return f"{line}\n\n{section}" if section else None


def render_tools(kb: KnowledgeBase) -> list[dict[str, Any]]:
    """Return the tools that are served in this directory."""
    return [
        render_tool(tool, kb.describe_learn() if tool is LEARN else tool.description)
        for tool in find_tools(kb)
    ]


def describe_cost(kb: KnowledgeBase) -> str:
    """Return a line on what a client sends to its model with every session."""
    kb = fit_client(kb, Limits())
    listed = render_tools(kb)
    sent = dump(listed) + (write_instructions(kb, Limits()) or "")
    tools, tokens = count(len(listed), "tool"), estimate_tokens(sent)
    return f"{tools} and the menu, about {tokens:,} tokens in every session"


def render_tool(tool: ToolText, description: str) -> dict[str, Any]:
    """Return a tool as clients list it."""
    return {
        "name": tool.name,
        "description": description,
        # Some clients check a call by it, and would refuse names that we understand.
        "inputSchema": {k: v for k, v in tool.schema.items() if k != "additionalProperties"},
        "annotations": {
            "readOnlyHint": tool.is_read_only,
            "destructiveHint": False,
            "openWorldHint": tool.reaches_out,
        },
    }


def find_tools(kb: KnowledgeBase) -> Iterator[ToolText]:
    """Yield the tools that are served in this directory."""
    yield LEARN
    if kb.offers_search():
        yield SEARCH_KNOWLEDGE
    yield from (text for text, _ in _open_added(kb))


def _open_added(kb: KnowledgeBase) -> Iterator[tuple[ToolText, Answer]]:
    """Yield the tools of add-ons that are offered or asked for, and of use here."""
    for each in addons.find_tools().values():
        if each.name in kb.tools and not each.find_problem(kb):
            yield from each.open(kb)


def answer_call(kb: KnowledgeBase, name: str, arguments: Arguments, report: Report) -> Loaded:
    """Check a call and answer it. Raises KbError."""
    names = [tool.name for tool in find_tools(kb)]
    if name not in {*names, SEARCH_KNOWLEDGE.name}:  # a rule in AGENTS.md may name it
        raise KbError(f"unknown tool {quote(name)}; tools: {', '.join(names)}")
    limits = Limits(answer=kb.config.max_result_chars)
    others = {text.name: answer for text, answer in _open_added(kb)}
    answer = (others.get(name) or partial(ANSWERS[name], kb))(arguments, report)
    if isinstance(answer, Loaded):
        return Loaded(limits.cut(answer.text), answer.pictures)
    return Loaded(limits.cut(answer if isinstance(answer, str) else dump(answer)))


def _learn(kb: KnowledgeBase, arguments: Arguments, _: Report) -> Loaded:
    # The client decides what its model gets.
    kb.pictures = PictureRules(takes=bool, verb="sent to the client")
    return kb.answer_call(**arguments)


def _search(kb: KnowledgeBase, arguments: Arguments, report: Report) -> str:
    if not kb.menu_ids:
        raise KbError(f"{kb.directory}: {kb.explain_nothing()}")
    return kb.answer_search(arguments, report)


def dump(value: object) -> str:
    """Return a value as the JSON that models read."""
    return json.dumps(value, ensure_ascii=False)


TOOLS: Sequence[tuple[ToolText, Callable[[KnowledgeBase, Arguments, Report], Any]]] = (
    (LEARN, _learn),
    (SEARCH_KNOWLEDGE, _search),
)
"""Each tool, and the function that answers its calls: with text, perhaps with pictures, or with
what becomes JSON."""

ANSWERS = {tool.name: answer for tool, answer in TOOLS}
