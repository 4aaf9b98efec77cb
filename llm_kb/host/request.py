"""The current request of the host, as the hooks and loaders see it.

A request adds to the host's own tools and fragments, so that logging, templates and
`--save` work as usual:

    kb:@                 the section of this request
    kb:@@                the memory of this request
    kb:@@pictures        the pictures of the section
    kb:@TOPIC/PATTERN    pre-load these subjects into the section (a saved `-k`)
    kb:@TOPIC            offer `learn`, with a section about this topic alone

and as a template:

    kb:@NUMBER           a template of this request, which is loaded already

No topic's id begins with `@`, so these never meet `kb:TOPIC/PATTERN`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from llm_kb.knowledge_base.api import KnowledgeBase
    from llm_kb.rendering.presentation import Picture

PREFIX = "kb:"
SEARCH = "kb-search:"
OURS = (PREFIX, SEARCH)
"""The prefixes of our fragments."""
SECTION = "kb:@"
"""The fragment with the section of a request."""
MEMORY = "kb:@@"
"""The fragment with the memory of a request; the host does not send it."""
PICTURES = "kb:@@pictures"
"""The fragment that loads the pictures of a request as attachments."""


def name_tools(*, others: bool = True) -> frozenset[str]:
    """Return the names of our tools that `-T` takes; with those of add-ons of `others`."""
    from llm_kb.addons import CORE_TOOLS, find_tools  # noqa: PLC0415 - most requests have no tool

    return CORE_TOOLS | find_tools(others=others).keys()


@dataclass
class Request:
    """One request of `prompt` or `chat`."""

    kb: KnowledgeBase | None = None
    tools: AbstractSet[str] = frozenset()
    """Our tools that it uses."""
    texts: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """The texts of SECTION and MEMORY, each with its source."""
    lists_tools: bool = False
    """Whether it names a tool of anybody, so that the host may list all of them in an error."""
    is_muted: bool = False
    """Whether `--no-kb` turns this plugin off."""
    model: str | None = None
    """The name of its model; None for the default one."""
    templates: Sequence[Any] = ()
    """The loaded templates of the request."""
    pictures: Sequence[Picture] = ()
    """The pictures of its section."""
    takes_picture: Callable[[str], bool] = lambda _: False
    """Tells whether its model takes pictures of a media type."""


class Memory(NamedTuple):
    """The record of one turn."""

    workspace: str
    """The directory of the workspace; empty if there was none."""
    only: tuple[str, ...]
    """The topics it was restricted to; empty for no restriction."""
    excluded: tuple[str, ...]
    """The assignments that repeat what `--kb-cfg` excluded."""
    sent: tuple[tuple[str, str, str], ...]
    """Topic id, root of the topic and name of each subject that it sent; of the guides, too."""


def render_memory(memory: Memory) -> tuple[str, str]:
    """Return the blank text and the source of the fragment that records a memory."""
    source = SECTION + json.dumps(memory._asdict())
    digest = blake2b(source.encode(), digest_size=16).digest()
    bits = "".join(f"{byte:08b}" for byte in digest)
    return bits.replace("0", " ").replace("1", "\t"), source


_current: ContextVar[Request | None] = ContextVar("llm_kb_request", default=None)


def current_request() -> Request | None:
    """Return the current request of the host; None outside of one."""
    return _current.get()


@contextmanager
def running(request: Request) -> Iterator[None]:
    """Make a request the current one."""
    token = _current.set(request)
    try:
        yield
    finally:
        _current.reset(token)


def require_no_files(names: Iterable[str]) -> None:
    """Raise ClickException if a file has the name of one of our fragments or templates.

    The host looks for a file before it asks a plugin, and runs the functions of a template that
    it read from one. A repository can have files of any name. Names of others are not examined.
    """
    for name in names:
        if name.startswith(OURS) and os.path.lexists(name):
            raise shadowed(name)


def require_no_files_here() -> None:
    """Raise ClickException if a name that begins like ours is in the current directory.

    The lines of a chat can name any fragment (`!fragment`), and the host resolves them alone.
    """
    with suppress(OSError), os.scandir() as entries:
        # Some file systems ignore case.
        found = next((each.name for each in entries if each.name.lower().startswith(OURS)), None)
        if found is not None:
            raise shadowed(found)


def shadowed(name: str) -> click.ClickException:
    """Return the error for a file that the host would use where knowledge is meant."""
    return click.ClickException(
        f"a file named {name!r} in this directory would be used in place of knowledge:"
        " rename it, or run llm elsewhere"
    )
