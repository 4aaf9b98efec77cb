"""The current request of the host, as the hooks and loaders see it.

A request adds to the host's own tools and fragments, so that logging, templates and
`--save` work as usual:

    kb:@                 the section of this request
    kb:@@                the memory of this request
    kb:@TOPIC/PATTERN    pre-load these subjects into the section (a saved `-k`)
    kb:@TOPIC            offer `learn`, with a section about this topic alone

    kb-search:@NUMBER    a long search of this request

and as a template:

    kb:@NUMBER           a template of this request, which is loaded already

No topic's id begins with `@`, so these never meet `kb:TOPIC/PATTERN`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm_kb.api import KnowledgeBase
    from llm_kb.subjects.selection import Selection

OUR_TOOLS = frozenset({"learn", "search_knowledge", "References", "emit_knowledge"})

_OF_REFERENCES = "reference_"
"""The prefix of the tools of `References`, under which a conversation is logged."""

PREFIX = "kb:"
SEARCH = "kb-search:"
OURS = (PREFIX, SEARCH)
"""The prefixes of our fragments."""
SECTION = "kb:@"
"""The fragment with the section of a request."""
MEMORY = "kb:@@"
"""The fragment with the memory of a request; the host does not send it."""


class Request:
    """One request of `prompt` or `chat`."""

    def __init__(  # noqa: PLR0913 - a dataclass would cost a millisecond on every prompt
        self,
        kb: KnowledgeBase | None = None,
        tools: Iterable[str] = (),
        texts: Iterable[tuple[str, str]] = (),
        *,
        memory: Iterable[tuple[str, str]] = (),
        specs: Iterable[str] = (),
        is_muted: bool = False,
    ) -> None:
        self.kb = kb
        self.tools = frozenset(tools)
        """Our tools that it uses."""
        self.specs = frozenset(specs)
        """The texts after `kb:@` in the fragments that the section includes."""
        self.is_muted = is_muted
        """Whether `--no-kb` turns this plugin off."""
        self.templates: Sequence[Any] = ()
        """The loaded templates of the request."""
        self.searches: Mapping[str, str] = {}
        """The searches that are too long for the host, by the names it was given."""
        self.given: dict[str, Selection] = {}
        """The subjects loaded as fragments, by topic id."""
        self._texts = {SECTION: tuple(texts), MEMORY: tuple(memory)}

    def has_texts(self, fragment: str = SECTION) -> bool:
        """Tell whether one of our fragments has a text."""
        return bool(self._texts[fragment])

    def take_texts(self, fragment: str) -> tuple[tuple[str, str], ...]:
        """Return (text, source) of each text of a fragment, and nothing at a second call."""
        texts, self._texts[fragment] = self._texts[fragment], ()
        return texts


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


def tool_name(spec: str) -> str:
    """Return the name in a value of `-T`, which may have arguments: `Name(…)`.

    The name of a tool of the toolbox, as in a continued conversation, becomes `References`.
    """
    name = spec.partition("(")[0].strip()
    return "References" if name.startswith(_OF_REFERENCES) else name
