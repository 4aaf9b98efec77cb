"""The tools and texts of a request that uses the knowledge base, and its memory of them."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import llm

from llm_kb.api import KnowledgeBase
from llm_kb.config.load import list_exclusions
from llm_kb.config.report import render_notices
from llm_kb.config.workspace import find_cwd
from llm_kb.host.arguments import Arguments
from llm_kb.host.capture_tools import find_root
from llm_kb.host.log import Memory, render_memory
from llm_kb.host.request import SECTION
from llm_kb.host.terminal import leave_out, say
from llm_kb.rendering.tokens import describe_large


def decide_tools(
    arguments: Arguments, kb: KnowledgeBase, asked: AbstractSet[str]
) -> AbstractSet[str]:
    """Return our tools that are useful in this request.

    A useless tool on the command line is an error; one of a template or conversation is left
    out with a message.
    """
    tools = set(asked)
    for notice in render_notices(kb.config):
        say(notice)
    if "learn" not in asked and kb.config.auto and arguments.supports_tools():
        tools.add("learn")
    if "learn" in tools and not kb.has_left():
        if "learn" in asked:
            reason = kb.explain_nothing()
            is_named = "learn" in arguments.typed_tools or bool(arguments.topics)
            is_error = is_named and not kb.has_preloaded()
            leave_out("learn", reason, is_error=is_error)
        tools.discard("learn")
    if "learn" in tools and kb.offers_search():
        tools.add("search_knowledge")
    elif "search_knowledge" in asked and "learn" not in tools:
        # Without `learn`, the model could not read the subjects that it finds.
        tools.discard("search_knowledge")
        leave_out("search_knowledge", "it comes with learn", is_error=False)
    if "learn" in tools and kb.config.capture.offer and has_repository():
        tools.add("emit_knowledge")
    return tools


def has_repository() -> bool:
    """Tell whether the current directory is in a git repository."""
    return find_root(find_cwd()) is not None


def iter_texts(
    arguments: Arguments,
    kb: KnowledgeBase,
    tools: AbstractSet[str],
    *,
    is_given: bool,
    is_offered: bool,
) -> Iterator[tuple[str, str]]:
    """Yield the texts of a request, each with its source.

    `is_given` tells whether the request pre-loads subjects, `is_offered` whether it offers `learn`
    anew. A continued conversation is sent the section again if its menu changed.
    """
    earlier = arguments.earlier_text()
    menu = kb.render_menu(search="search_knowledge" in tools) if "learn" in tools else ""
    has_menu = is_offered and menu not in earlier
    section = None
    if is_given or has_menu or (is_offered and not earlier):
        section = kb.section(learn=has_menu, search="search_knowledge" in tools)
    if section:
        if large := describe_large(kb.preloaded):
            say(large)
        yield section, SECTION
    if "References" in tools:
        from llm_kb.references.catalog import recent_references  # noqa: PLC0415 - few requests ask for it

        listed = kb.menu_ids if menu else ()
        recent = recent_references(kb.config, Path(llm.user_dir()), listed)
        if recent and recent not in earlier:
            yield recent, f"{SECTION}references"


def render_sent(kb: KnowledgeBase, *, preloaded: bool) -> tuple[str, str]:
    """Return the memory of this turn, as the text and the source of a fragment."""
    return render_memory(
        Memory(
            workspace=str(kb.config.workspace or ""),
            only=kb.only,
            excluded=tuple(list_exclusions(kb.config)),
            sent=tuple(kb.iter_sent(preloaded=preloaded)),
        )
    )
