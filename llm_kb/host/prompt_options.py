"""`-k`, `--kb-cfg`, `--no-kb` and `auto`: what one request gets from the knowledge base.

The wrapper around the host's commands opens a request here before the host runs.
A request that asks for nothing of ours reads two small files at most.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import llm

from llm_kb.config.workspace import find_cwd, mentions_auto
from llm_kb.errors import KbError
from llm_kb.host.conversation import Arguments
from llm_kb.host.request import OUR_TOOLS, SECTION, Request, current_request, name_source, running

if TYPE_CHECKING:
    from llm_kb.api import KnowledgeBase
    from llm_kb.subjects.topics import Config


@contextmanager
def open_request(
    command: str,
    kwargs: MutableMapping[str, Any],
    *,
    knowledge: Sequence[str] = (),
    kb_cfg: Sequence[str] = (),
    no_kb: bool = False,
) -> Iterator[None]:
    """Decide what a request gets and add it to the arguments of the host's callback.

    Changes `kwargs` in place. Raises ClickException before any model is called when
    the configuration is broken, or when what was asked for does not exist.
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
        from llm_kb.rendering.plain_text import visible_text  # most requests have no need of it

        raise click.ClickException(visible_text(str(error))) from error
    with running(request):
        yield


def _prepare(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Return the request, with what it adds put into the arguments."""
    specs = arguments.specs
    asked = arguments.asked_tools
    if any("/" not in spec for spec in specs):
        asked.add("learn")
    if knowledge or kb_cfg or asked or specs:
        kb = _discover(arguments, knowledge, kb_cfg, asked)
    elif (automatic := _discover_automatic(arguments)) is not None:
        kb = automatic
    else:
        return Request(is_blind=arguments.has_unseen_templates)
    tools = _decide_tools(arguments, kb, asked)
    request = Request(
        kb,
        tools,
        _iter_texts(arguments, kb, tools),
        specs=specs,
        is_blind=arguments.has_unseen_templates,
    )
    _place(arguments, request)
    return request


def _discover_automatic(arguments: Arguments) -> KnowledgeBase | None:
    """Return the knowledge base whose `learn` `auto` offers; None where it does not.

    What is skipped is said, and why: a broken configuration is no reason to break a
    command that did not ask for it.
    """
    if not mentions_auto(find_cwd(), Path(llm.user_dir()), os.environ):
        return None
    try:
        kb = _discover(arguments, (), (), set())
    except KbError as error:
        _say(f"auto is skipped: {str(error).splitlines()[0]}")
        return None
    if "kb.auto" in kb.config.withheld:
        _say_withheld(kb.config)
    return kb if kb.config.auto and arguments.supports_tools() else None


def _discover(
    arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str], asked: set[str]
) -> KnowledgeBase:
    from llm_kb.api import KnowledgeBase  # most requests need none of it

    specs = arguments.specs
    saved = [spec for spec in specs if "/" in spec]
    return KnowledgeBase.discover(
        fragments=kb_cfg,
        knowledge=(*saved, *knowledge),
        remembered=arguments.earlier_knowledge(),
        only=[spec for spec in specs if "/" not in spec],
        builtin=bool(asked & {"References", "emit_knowledge"}),
        references="References" in asked,
    )


def _decide_tools(arguments: Arguments, kb: KnowledgeBase, asked: set[str]) -> set[str]:
    """Return which of our tools this request uses; offer or withdraw `learn`."""
    tools = set(asked)
    if "emit_knowledge" in asked:
        _require_repository()
    if kb.config.withheld:
        _say_withheld(kb.config)
    if "learn" not in asked and kb.config.auto and arguments.supports_tools():
        tools.add("learn")
        arguments.add_tool("learn")
    if "learn" in tools and not kb.has_left():
        if "learn" in asked and not kb.is_configured:
            raise click.ClickException(
                "there is no knowledge base here: neither this directory nor one above it has"
                " an llm-kb.toml or .llm/kb.toml. Run 'llm kb init' to write one."
            )
        if "learn" in asked:
            _say("nothing is left to learn, so the learn tool is left out")
        arguments.drop_tools({"learn"})
        # What a template asks for cannot be taken back from it: the tool then says so itself.
        tools -= {"learn"} - arguments.template_tools
    elif "learn" in arguments.template_tools:
        arguments.drop_tools({"learn"})  # the host would offer it twice
    return _add_search(arguments, kb, tools)


def _add_search(arguments: Arguments, kb: KnowledgeBase, tools: set[str]) -> set[str]:
    """Offer `search_knowledge` where `learn` is offered and there is much to search."""
    name = "search_knowledge"
    if "learn" in tools and (name in tools or kb.offers_search()):
        if name not in arguments.template_tools:
            arguments.add_tool(name)
        return tools | {name}
    arguments.drop_tools({name})  # alone it would find what nothing can read
    return tools - {name}


def _require_repository() -> None:
    """Raise ClickException where `emit_knowledge` has nowhere to write."""
    from llm_kb.host.capture_tools import make_emit_knowledge  # few requests ask for it

    if make_emit_knowledge() is None:
        raise click.ClickException(
            "emit_knowledge keeps what it is told in a git repository, and there is none here"
        )


def _say_withheld(config: Config) -> None:
    """Name what an untrusted workspace asks for and does not get."""
    from llm_kb.config.trust_report import render_withheld  # most requests need none of it

    _say(render_withheld(config))


def _iter_texts(
    arguments: Arguments, kb: KnowledgeBase, tools: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield what is to be sent and was not yet, each with its source."""
    from llm_kb.rendering.section import describe_large  # the knowledge base has imported it

    earlier = arguments.earlier_text()
    section = kb.section(learn="learn" in tools, search="search_knowledge" in tools)
    if section and section not in earlier:
        if large := describe_large(kb.preloaded):
            _say(large)
        yield section, name_source(kb.knowledge)
    if "References" in tools:
        from llm_kb.references.catalog import recent_references  # few requests ask for it

        recent = recent_references(kb.config, Path(llm.user_dir()))
        if recent and recent not in earlier:
            yield recent, f"{SECTION}references"


def _place(arguments: Arguments, request: Request) -> None:
    """Put the section where this request's model will read it."""
    before: list[str] = []
    if arguments.command == "chat":
        # The host's chat leaves the system fragments of templates out.
        before = [
            fragment
            for template in arguments.templates
            for fragment in template.system_fragments or ()
            if fragment.startswith("kb:") and not fragment.startswith(SECTION)
        ]
    after = [SECTION] if request.has_texts else []
    if not before and not after:
        return
    if Path(SECTION).exists():
        raise click.ClickException(
            f"a file named {SECTION!r} in this directory would be sent in place of the knowledge"
            " section: rename it, or run llm elsewhere"
        )
    key = "system_fragments"
    if arguments.conversation is not None:
        # Models that read the whole history take the system text of its first turn.
        key = "fragments"
        _say("a continued conversation keeps its system prompt: knowledge goes into this prompt")
    arguments.add_fragments(key, before=before, after=after)


def _save(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Let `--save` write `-k` as live references, after checking that they name something."""
    if kb_cfg:
        raise click.UsageError("--kb-cfg cannot be saved in a template; -k can")
    asked = arguments.asked_tools
    if knowledge:
        kb = _discover(arguments, knowledge, (), asked)
        specs = [f"{SECTION}{topic}/{pattern}" for topic, pattern in kb.knowledge]
        arguments.add_fragments("system_fragments", before=[], after=specs)
    return Request(tools=asked)


def _mute(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Leave everything of ours out, as `--no-kb` says, whatever else the command line asks for."""
    if ours := arguments.template_tools & OUR_TOOLS:
        raise click.ClickException(
            f"the template asks for the tool {min(ours)!r}, which --no-kb leaves out"
        )
    asked = [f"-k {value}" for value in knowledge] + [f"--kb-cfg {value}" for value in kb_cfg]
    if asked := [*asked, *arguments.iter_ours()]:
        _say(f"--no-kb leaves out {', '.join(asked)}")
    arguments.drop_tools(OUR_TOOLS)
    arguments.drop_fragments()
    return Request(is_muted=True)


def _say(text: str) -> None:
    from llm_kb.rendering.plain_text import visible_text  # most requests say nothing

    click.echo(f"llm-kb: {visible_text(text)}", err=True)
