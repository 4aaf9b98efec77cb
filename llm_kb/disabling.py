"""Which subjects of a topic are disabled, however they are spelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_kb.patterns import compile_any, parse_pattern
from llm_kb.spelling import spell


class Disabled:
    """The disabled entries of a topic; without case where its disk ignores case.

    Raises PatternError for an entry that cannot be a pattern.
    """

    def __init__(self, entries: Sequence[str], *, ignores_case: bool) -> None:
        self._ignores_case = ignores_case
        self._matches = compile_any([parse_pattern(self._fold(entry)) for entry in entries])

    def covers(self, slug: str, paths: Iterable[str]) -> bool:
        """Tell whether a subject is disabled; `paths` are all that lead to its file."""
        spellings = {slug}.union(*map(spell, paths))
        return any(self._matches(self._fold(spelling)) for spelling in spellings)

    def _fold(self, text: str) -> str:
        return text.casefold() if self._ignores_case else text
