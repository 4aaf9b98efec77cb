"""What the hooks and loaders know of the request that the host is running.

What a request adds goes through the host's own tools and fragments, so that
logging, templates and `--save` treat it as they treat everything else:

    kb:@                 the section of this request
    kb:@TOPIC/PATTERN    pre-load these subjects into the section (a saved `-k`)
    kb:@TOPIC            offer `learn`, and let the section speak of this topic alone

No topic's id begins with `@`, so these never meet `kb:TOPIC/PATTERN`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_kb.api import KnowledgeBase

OUR_TOOLS = frozenset({"learn", "search_knowledge", "References", "emit_knowledge"})

_OF_REFERENCES = "reference_"
"""How the names of the tools of `References` begin: a conversation is logged with these."""

SECTION = "kb:@"
"""The fragment that stands for the whole section of a request."""


class Request:
    """One request of `prompt` or `chat`, from our side."""

    def __init__(  # noqa: PLR0913 - a dataclass would cost a millisecond on every prompt
        self,
        kb: KnowledgeBase | None = None,
        tools: Iterable[str] = (),
        texts: Iterable[tuple[str, str]] = (),
        *,
        specs: Iterable[str] = (),
        is_blind: bool = False,
        is_muted: bool = False,
    ) -> None:
        self.kb = kb
        self.tools = frozenset(tools)
        """Which of our tools it uses, wherever it asked for them."""
        self.specs = frozenset(specs)
        """What follows `kb:@` in fragments that the section has taken up."""
        self.is_blind = is_blind
        """Whether it may ask for more than is known, through a template yet to be fetched."""
        self.is_muted = is_muted
        """Whether `--no-kb` leaves everything of ours out."""
        self._texts = tuple(texts)
        self._loads_template = False

    @property
    def has_texts(self) -> bool:
        """Whether there is a section, or anything else, to send."""
        return bool(self._texts)

    def take_texts(self) -> tuple[tuple[str, str], ...]:
        """Return (text, source) of what `kb:@` stands for; nothing at a second call."""
        texts, self._texts = self._texts, ()
        return texts

    def is_first_template(self) -> bool:
        """Tell whether this is the first `kb:TOPIC` template the host loads."""
        first, self._loads_template = not self._loads_template, True
        return first


_current: ContextVar[Request | None] = ContextVar("llm_kb_request", default=None)


def current_request() -> Request | None:
    """Return the request the host is running, None outside one."""
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
    """Return the name in a value of `-T`, which may carry arguments: `Name(…)`.

    A tool of the toolbox `References`, as a continued conversation names it, is that.
    """
    name = spec.partition("(")[0].strip()
    return "References" if name.startswith(_OF_REFERENCES) else name


def name_source(knowledge: Iterable[tuple[str, str]]) -> str:
    """Return the source of a section: what it pre-loaded, for `read_source`."""
    return SECTION + " @".join(f"{topic}/{pattern}" for topic, pattern in knowledge)


def read_source(source: str | None) -> list[str]:
    """Return the values of `-k` that a section's source records."""
    if not source or not source.startswith(SECTION):
        return []
    return [spec for spec in source.removeprefix(SECTION).split(" @") if "/" in spec]
