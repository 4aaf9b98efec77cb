"""The longest answer that a reader takes, and how it is counted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit of one answer; 0 sets none."""

    most: int = 0
    in_bytes: bool = False
    """Whether it counts the bytes, in UTF-8, of the whole answer; else the characters of subjects,
    without notices."""
    notices: int = 1_500
    """The part of such bytes that is kept for lists of what is left out or not found."""

    @property
    def texts(self) -> int:
        """What subjects may take of the limit."""
        return self.most - min(self.notices, self.most // 4) if self.in_bytes else self.most

    @property
    def unit(self) -> str:
        """What is counted."""
        return "bytes" if self.in_bytes else "characters"

    def measure(self, text: str) -> int:
        """Return the length of a text as this limit counts it."""
        return len(text.encode("utf-8", "replace")) if self.in_bytes else len(text)

    def fit(self, text: str, size: int) -> int:
        """Return the number of first characters of a text that measure at most `size`."""
        if not self.in_bytes or size <= 0:
            return max(0, size)
        return len(text[:size].encode("utf-8", "replace")[:size].decode("utf-8", "ignore"))

    def share(self, number: int, used: int) -> Limit:
        """Return the limit of each of a number of texts in one answer, beside what is used."""
        if not self.most:
            return self
        left = self.most - used if self.in_bytes else self.most
        return replace(self, most=max(1, left // number))

    def keep(self, lines: Sequence[str], room: int) -> list[str]:
        """Return the first lines that fit into the room as a list, and the number of the others.

        Only bytes are counted.
        """
        if not self.in_bytes or not self.most:
            return list(lines)
        kept: list[str] = []
        room -= len("- and 1,000,000 more\n")
        for line in lines:
            room -= self.measure(line) + len("- \n")
            if room < 0:
                return [*kept, f"and {len(lines) - len(kept):,} more"]
            kept.append(line)
        return kept


NO_LIMIT = Limit()
