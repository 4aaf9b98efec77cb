"""A block of ours in a file of others, between two lines that mark it. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from llm_kb.errors import KbError


class Marks(NamedTuple):
    """The first and the last line of a block; the text around it stays as it is."""

    begin: str
    end: str

    def has_any(self, text: str | None) -> bool:
        """Tell whether a file's text holds a block, or part of one."""
        return bool(text and any(self._find_lines(text)))

    def find(self, text: str, place: str) -> tuple[int, int] | None:
        """Return start and end of the block, marks included; None without marks.

        `place` names the file. Raises KbError for marks that do not enclose one block.
        """
        begins, ends = self._find_lines(text)
        if not begins and not ends:
            return None
        if len(begins) != 1 or len(ends) != 1 or begins[0].start() > ends[0].start():
            raise KbError(
                f"{place!r} must have one line {self.begin!r} and below it one line {self.end!r},"
                " or neither"
            )
        return begins[0].start(), ends[0].end()

    def replace(self, text: str, block: str, place: str) -> str:
        """Return a text with the block in it, at the end if it had none. Raises KbError.

        Its lines end as those of the text do.
        """
        found = self.find(text, place)
        end = "\r\n" if "\r\n" in text else "\n"
        block = block.replace("\n", end)
        if found is None:
            return f"{text.rstrip()}{end}{end}{block}" if text.strip() else block
        return text[: found[0]] + block + text[found[1] :].removeprefix("\n")

    def _find_lines(self, text: str) -> tuple[list[re.Match[str]], list[re.Match[str]]]:
        """Return the lines that are a mark as a whole, since the text may quote one."""
        begins, ends = (
            [*re.finditer(rf"^{re.escape(mark)}\r?$", text, re.MULTILINE)] for mark in self
        )
        return begins, ends
