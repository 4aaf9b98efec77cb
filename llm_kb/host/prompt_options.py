"""Adds knowledge to a request, as requested by `-k`, `--kb-cfg`, `--no-kb` and `auto`.

The wrapper around the host's commands opens a request here before the host runs. A request
that does not use this plugin reads at most two small files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import llm

from llm_kb.config.workspace import find_cwd, mentions_auto
from llm_kb.errors import KbError
from llm_kb.host.arguments import Arguments
from llm_kb.host.request import Request, current_request, running
from llm_kb.host.terminal import say


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
    if command == "chat" and not no_kb and not arguments.is_saving:
        arguments.take_chat_fragments()
    try:
        if no_kb:
            request = _mute(arguments, knowledge, kb_cfg)
        elif arguments.is_asking or knowledge or kb_cfg or _may_be_automatic(arguments):
            from llm_kb.host.prepare import prepare  # it imports the knowledge base

            request = prepare(arguments, knowledge, kb_cfg)
        else:
            request = Request()
    except KbError as error:
        from llm_kb.rendering.plain_text import visible_text  # most requests do not need it

        raise click.ClickException(visible_text(str(error))) from error
    request.templates = arguments.templates
    arguments.hand_over_templates()
    if not arguments.is_saving:
        request.searches = arguments.hand_over_searches()
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


def _may_be_automatic(arguments: Arguments) -> bool:
    where = find_cwd(), Path(llm.user_dir()), os.environ
    return not arguments.is_saving and mentions_auto(*where)


def _mute(arguments: Arguments, knowledge: Sequence[str], kb_cfg: Sequence[str]) -> Request:
    """Remove our tools and fragments from a request with `--no-kb`."""
    asked = [f"-k {value}" for value in knowledge] + [f"--kb-cfg {value}" for value in kb_cfg]
    if asked := [*asked, *arguments.iter_ours()]:
        say(f"--no-kb leaves out {', '.join(asked)}")
    arguments.offer(())
    arguments.drop_fragments()
    return Request(is_muted=True)
