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
        request = _make_request(arguments, knowledge, kb_cfg, no_kb=no_kb)
    except KbError as error:
        from llm_kb.rendering.plain_text import visible_text  # most requests do not need it

        raise click.ClickException(visible_text(str(error))) from error
    request.templates = arguments.hand_over_templates()
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
