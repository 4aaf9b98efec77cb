"""What markups have in common. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

FRONT_MATTER = re.compile(
    r"\A\ufeff?(?P<fence>---|\+\+\+)[ \t]*\r?\n(?P<front>(?:.*?\n)??)"
    r"(?P=fence)[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
"""YAML or TOML at the start of a text, closed by the line that opens it."""

COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
"""A link or a picture of Markdown, whose text is its first group."""

CODE = re.compile(r"(?<!`)(`+)(?!`)[^`\n]{0,1000}\1(?!`)")
_INK = re.compile(r"[^\n]+")
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,20}(`{3,}(?=[^`]*$)|~{3,})")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_HOLDS = re.compile(r" {0,3}(?:[-*+:<@]|\d{1,9}[.)]|[!?]{3}|={3}|/{3}|\[\^)")
"""What has indented text below it that is not code: an item, a note, a tab, a tag."""


def mark_fenced(lines: Iterable[str]) -> Iterator[tuple[bool, str]]:
    """Yield the lines of Markdown, and whether each is in a fenced block, also of an item."""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        mark = found[1] if found else ""
        yield bool(fence or mark), line
        if not fence:
            fence = mark
        elif found and mark.startswith(fence) and not line[found.end() :].strip():
            fence = ""


@lru_cache(maxsize=1)
def find_code(text: str) -> Sequence[tuple[bool, tuple[int, int]]]:
    """Return the spans of code in Markdown, and whether each is a line of a block."""
    return [*_iter_code(text)]


def _iter_code(text: str) -> Iterator[tuple[bool, tuple[int, int]]]:
    at = 0
    for is_block, line in _mark_blocks(text.splitlines(keepends=True)):
        if is_block:
            yield True, (at, at + len(line))
        elif "`" in line:
            for start, end in map(re.Match.span, CODE.finditer(line)):
                yield False, (at + start, at + end)
        at += len(line)


def _mark_blocks(lines: Iterable[str]) -> Iterator[tuple[bool, str]]:
    """Yield the lines of Markdown, and whether each is in a block of code, also an indented one."""
    is_held, may_begin = False, True
    for is_fenced, line in mark_fenced(lines):
        is_indented = _INDENTED.match(line) is not None
        if line.strip() and not (is_fenced or is_indented):
            goes_on = is_held and (line[0] == " " or not may_begin)
            is_held = goes_on or _HOLDS.match(line) is not None
        is_code = is_fenced or (is_indented and may_begin and not is_held)
        may_begin = is_code or not line.strip()
        yield is_code, line


def hide_unread(text: str) -> str:
    """Return Markdown with blanks in place of code and comments; offsets and lines stay."""
    pieces: list[str] = []
    at = 0
    for _, (start, end) in find_code(text):
        pieces += [text[at:start], _blank(text[start:end])]
        at = end
    return COMMENT.sub(lambda comment: _blank(comment[0]), "".join([*pieces, text[at:]]))


def _blank(text: str) -> str:
    return _INK.sub(lambda line: " " * len(line[0]), text)
