"""Finding headings and blocks in AsciiDoc and Org, which mark them at the start of a line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_kb.search.chunking.sections import Mark, Outline, make_mark, make_outline

_ADOC_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
_ADOC_ANCHOR = re.compile(r"\[\[([\w.:-]{1,200})[^\]]*\]\]|\[#([\w.:-]{1,200})[^\]]*\]")
_ADOC_BLOCK = re.compile(r"([-.=*_+/])\1{3,}|--|```|[|,:!]===+")
_ADOC_ATTRIBUTE = re.compile(r"\[[^\[\]]*\]")
_UNDERLINES = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
"""The depth of an older form of title, by the signs under it."""

_ORG_HEADING = re.compile(r"(\*+)[ \t]+(\S.*)")
_ORG_TAGS = re.compile(r"[ \t]:[\w@#%:]{1,200}:$")
_ORG_BEGIN = re.compile(r"[ \t]*#\+begin_(\S+)", re.IGNORECASE)


def outline_adoc(text: str) -> Outline:
    """Return the titles of an AsciiDoc text outside of delimited blocks, and these blocks."""
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    block, began = "", 0
    above, above_at = "", 0
    anchor, anchor_at = "", 0
    for start, line in _iter_lines(text):
        if block:
            if line == block:
                wholes.append((began, start + len(line)))
                block = ""
            continue
        if heading := _ADOC_HEADING.fullmatch(line):
            mark = make_mark(start, len(heading[1]), heading[2])
            marks.append(mark._replace(offset=anchor_at, anchor=anchor) if anchor else mark)
        elif depth := _find_underlined(above, line):
            marks.append(make_mark(above_at, depth, above))
        elif _ADOC_BLOCK.fullmatch(line):
            block, began = line, start
        if found := _ADOC_ANCHOR.fullmatch(line):
            anchor, anchor_at = (found[1] or found[2]).lower(), start
        elif line and not _ADOC_ATTRIBUTE.fullmatch(line):
            anchor = ""
        above, above_at = line, start
    return make_outline(text, marks, wholes)


def _find_underlined(title: str, line: str) -> int:
    """Return the depth of a title by the line under it, which is as long; 0 if it is none."""
    is_title = title[:1].isalnum() and len(line) > 1 and abs(len(title) - len(line)) <= 1
    return _UNDERLINES.get(line[0], 0) if is_title and line == line[0] * len(line) else 0


def outline_org(text: str) -> Outline:
    """Return the headlines of an Org text outside of blocks, and these blocks."""
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    end, began = "", 0
    for start, line in _iter_lines(text):
        if end:
            if line.strip().lower() == end:
                wholes.append((began, start + len(line)))
                end = ""
        elif begin := _ORG_BEGIN.match(line):
            end, began = f"#+end_{begin[1]}".lower(), start
        elif heading := _ORG_HEADING.fullmatch(line):
            marks.append(make_mark(start, len(heading[1]), _ORG_TAGS.sub("", heading[2])))
    return make_outline(text, marks, wholes)


def _iter_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the offset of each line, and the line without white space at its end."""
    start = 0
    for line in text.split("\n"):
        yield start, line.rstrip()
        start += len(line) + 1
