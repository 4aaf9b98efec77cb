"""A block of ours in a file of others, between two lines that mark it. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from llm_kb.errors import KbError
from llm_kb.texts.markup import mark_fenced


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
        if len(begins) != 1 or len(ends) != 1 or begins > ends:
            raise KbError(
                f"{place!r} must have one line {self.begin!r} and below it one line {self.end!r},"
                " or neither"
            )
        return begins[0], ends[0] + len(self.end)

    def replace(self, text: str | None, block: str, place: str) -> str:
        """Return a text with the block in it, at the end if it had none. Raises KbError.

        Its lines end as those of the text do.
        """
        found = self.find(text or "", place)
        if text is None or found is None:
            appended = append_block(text, block)
            if not self.find(appended, place):
                raise KbError(f"{place!r} ends in a fence that is not closed; close it")
            return appended
        return text[: found[0]] + _end_as(text, block.rstrip("\n")) + text[found[1] :]

    def _find_lines(self, text: str) -> tuple[list[int], list[int]]:
        """Return where the lines begin that are a mark as a whole, but for those in a fence."""
        found: tuple[list[int], list[int]] = ([], [])
        at = 0
        for is_fenced, line in mark_fenced(text.splitlines(keepends=True)):
            mark = line.rstrip("\r\n")
            if mark in self and not is_fenced:
                found[self.index(mark)].append(at)
            at += len(line)
        return found


def append_block(text: str | None, block: str) -> str:
    """Return a text with a block below all else, so that `cut_block` can take it out again."""
    if text is None:
        return block
    if not text or text.endswith("\n"):
        return text + _end_as(text, f"\n{block}")
    return text + _end_as(text, "\n\n" + block.rstrip("\n"))


def cut_block(text: str, start: int, end: int) -> str | None:
    """Return a text without a block and the blank line above it; None if there is nothing else."""
    above, below = text[:start], text[end:]
    if not (above or below.strip()):
        return None
    above = re.sub(r"(\A|(?<=\n))\r?\n\Z", "", above)
    if not below:  # the text had no line end there
        return re.sub(r"\r?\n\Z", "", above)
    return above + re.sub(r"\A\r?\n", "", below)


def _end_as(text: str, block: str) -> str:
    return block.replace("\n", "\r\n") if "\r\n" in text else block
