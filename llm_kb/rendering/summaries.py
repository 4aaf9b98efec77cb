"""The one line that says what a subject is about, found in its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from llm_kb.rendering.front_matter import read_front_matter
from llm_kb.rendering.plain_text import one_line, shorten
from llm_kb.rendering.presentation import PASS_THROUGH

LONGEST_SUMMARY = 100
"""A summary has at most this many characters."""

KEYS = ("description", "summary")
"""The keys of front matter that hold a summary, the better one first."""

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE_COMMENT = re.compile(r"""\s*(?:#+|//[/!]*|/\*+!?|--\[*|;+|%+|<!--|\(\*|"{3}|'{3})\s*""")
_CODE_COMMENT_END = re.compile(r"""(?:\*/|-->|\*\)|"{3}|'{3})$""")

_RST = frozenset({"rst", "rest"})
_RST_RULE = re.compile(r"([^\w\s])\1+[ \t]*$")
_RST_MARKUP = re.compile(r"\.\.(?:[ \t]|$)|:[^:]+:(?:[ \t]|$)|__[ \t]")
"""Comments, labels and directives; fields such as `:orphan:`; nameless targets."""
_RST_ROLE = re.compile(r":[\w.+-]+:`[!~]?([^`]*)`")


def summarize(data: bytes, extension: str = "") -> str:
    """Return what front matter says, else the first heading, else the first line.

    `data` is the start of a file and may end anywhere. In a file that is no
    prose, by its extension, only the first line counts; reStructuredText is prose.
    Empty for a binary file and where nothing is said.
    """
    if b"\0" in data:
        return ""
    text = data.decode("utf-8-sig", "replace")
    if extension in _RST:
        return shorten(_first_rst_words(text), LONGEST_SUMMARY)
    if extension not in PASS_THROUGH:
        return shorten(_first_code_line(text), LONGEST_SUMMARY)
    found, rest = read_front_matter(text)
    summaries = (one_line(found[key]) for key in KEYS if key in found)
    return shorten(next(filter(None, summaries), "") or _first_words(rest), LONGEST_SUMMARY)


def _first_words(text: str) -> str:
    """Return the first heading of a Markdown text, else its first line with words."""
    lines = list(_unfenced(_COMMENT.sub("", text).splitlines()))
    headings = filter(None, map(one_line, _headings(lines)))
    return next(headings, "") or next(map(one_line, filter(_has_words, lines)), "")


def _headings(lines: Sequence[str]) -> Iterator[str]:
    """Yield the text of each heading, underlined ones included."""
    above = ""
    for line in lines:
        heading = _HEADING.match(line)
        if heading:
            yield _CLOSING_HASHES.sub("", heading[1])
        elif _UNDERLINE.match(line) and _has_words(above):
            yield above
        above = line


def _unfenced(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines outside fenced code."""
    fence = ""
    for line in lines:
        opening = _FENCE.match(line)
        if not fence and opening:
            fence = opening[1]
        elif fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        else:
            yield line


def _first_rst_words(text: str) -> str:
    """Return the first title of a reStructuredText, else its first line with words.

    A title is underlined, and may be overlined. Labels, comments and directives begin
    with two dots, and what belongs to them is indented.
    """
    first = above = ""
    for line in text.splitlines():
        if _RST_RULE.match(line) and _has_words(above):
            return _plain_rst(above)
        # Only between two rules may a title be indented, and there its words are met too.
        above = "" if _RST_MARKUP.match(line) else line
        first = first or (above if _has_words(above) and not above[0].isspace() else "")
    return _plain_rst(first)


def _plain_rst(line: str) -> str:
    return one_line(_RST_ROLE.sub(r"\1", line[: 4 * LONGEST_SUMMARY]))


def _first_code_line(text: str) -> str:
    """Return the first line with words, without the marks of a comment around it."""
    for line in text.splitlines():
        if _has_words(line) and not line.startswith("#!"):
            mark = _CODE_COMMENT.match(line)
            bare = line[mark.end() if mark else 0 :].rstrip()
            return one_line(_CODE_COMMENT_END.sub("", bare))
    return ""


def _has_words(line: str) -> bool:
    return any(map(str.isalnum, line))
