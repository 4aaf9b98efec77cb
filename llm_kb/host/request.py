"""What the hooks and loaders know of the request that the host is running.

What a request adds goes through the host's own tools and fragments, so that
logging, templates and `--save` treat it as they treat everything else:

    kb:@                 the section of this request
    kb:@@                what this request's conversation remembers of it
    kb:@TOPIC/PATTERN    pre-load these subjects into the section (a saved `-k`)
    kb:@TOPIC            offer `learn`, and let the section speak of this topic alone

and as a template:

    kb:@NUMBER           a template of this request, which is loaded already

No topic's id begins with `@`, so these never meet `kb:TOPIC/PATTERN`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm_kb.api import KnowledgeBase
    from llm_kb.subjects.selection import Selection

OUR_TOOLS = frozenset({"learn", "search_knowledge", "References", "emit_knowledge"})

_OF_REFERENCES = "reference_"
"""How the names of the tools of `References` begin: a conversation is logged with these."""

PREFIX = "kb:"
SEARCH = "kb-search:"
OURS = (PREFIX, SEARCH)
"""How the names of our fragments begin."""
SECTION = "kb:@"
"""The fragment that stands for the whole section of a request."""
MEMORY = "kb:@@"
"""The fragment that stands for what the conversation remembers; it sends nothing."""


class Rounds(int):
    """The host's limit of answers in a row, which knows how many there were.

    The host compares their number with the limit after each one, and gives tools no other
    sign of it: `count >= limit` asks the limit first, as its type is the more special one.
    """

    passed = 0

    def __le__(self, count: int) -> bool:
        """Take note of the number, and compare."""
        self.passed = count
        return int(self) <= count

    def is_last(self) -> bool:
        """Tell whether the calls being answered are the last that will be."""
        return self.passed == self - 1


class Request:
    """One request of `prompt` or `chat`, from our side."""

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
        """Which of our tools it uses, wherever it asked for them."""
        self.specs = frozenset(specs)
        """What follows `kb:@` in fragments that the section has taken up."""
        self.is_muted = is_muted
        """Whether `--no-kb` leaves everything of ours out."""
        self.rounds = Rounds(0)
        self.question = ""
        """What the user typed as the prompt."""
        self.templates: Sequence[Any] = ()
        """The templates of the request, loaded."""
        self.given: dict[str, Selection] = {}
        """What was loaded as fragments, by topic id."""
        self._texts = {SECTION: tuple(texts), MEMORY: tuple(memory)}

    def has_texts(self, fragment: str = SECTION) -> bool:
        """Tell whether one of our fragments stands for anything."""
        return bool(self._texts[fragment])

    def take_texts(self, fragment: str) -> tuple[tuple[str, str], ...]:
        """Return (text, source) of what a fragment stands for; nothing at a second call."""
        texts, self._texts[fragment] = self._texts[fragment], ()
        return texts


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
