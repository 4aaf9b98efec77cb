"""Finding sections in reStructuredText (described objects too) and AsciiDoc. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_kb.texts.document import Document, Mark, make_document, make_mark, shorten_title

_MARK = re.compile(
    # Each alternative begins with a line end, to which the regex engine can skip.
    # A title, its underline and perhaps its overline. The lookahead rejects other lines early.
    r"\n(?:(?=[^\n]*\n[!-/:-@\[-`{-~]{2}|[!-/:-@\[-`{-~]{2})"
    r"(?:(?P<over>(?P<o>[!-/:-@\[-`{-~])(?P=o){1,1000})[ \t]*\r?\n)?"
    r"(?P<title>[ \t]*[^\s][^\n]*)\n"
    r"(?P<under>(?P<u>[!-/:-@\[-`{-~])(?P=u){1,1000})[ \t]*\r?$"
    # Or the description of a function, a setting, an option …
    r"|(?=(?P<indent>[ \t]*))(?P=indent)\.\.[ ](?:[a-z]+:){0,9}(?P<kind>"
    r"(?:auto)?(?:function|class|method|attribute|data|exception|module|decorator|property)"
    r"|classmethod|staticmethod|macro|member|struct|type|django-admin-option|cmdoption"
    r"|setting|confval|option|program|envvar|directive|role|rst:\w+|templatetag|templatefilter"
    r"|fieldlookup|django-admin|event|signal|describe|object|glossary)::[ \t]+(?P<name>[^\n]+)$)",
    re.MULTILINE,
)
_BLOCK = re.compile(
    # A directive with its indented body, or a paragraph that announces a literal block.
    r"\n(?:\.\. [^\n]*::|(?![ \t\n])[^\n]*::[ \t\r]*\n(?=[ \t\r]*\n[ \t]))[^\n]*"
)
_BODY_END = re.compile(r"\n(?=[^ \t\r\n]|\Z)")
_TARGET = re.compile(r"\.\. (?:_.*:|index::.*|module::.*|currentmodule::.*)[ \t]*\r?\Z")
_NOTHING_BELOW = re.compile(
    # Options of a directive, targets, and entries of the index.
    r"(?:[ \t]*(?::[^\n]*)?\n|\.\. _[^\n]*:[ \t]*\n"
    r"|\.\. index::[^\n]*\n(?:[ \t]+[^\n]*\n){0,100}){0,1000}"
)
_LINE_START = re.compile(r"\n([ \t]*)(?=\S)")

_OBJECTS = 100
"""Depth of the first described object, which is below every title."""


def outline_rst(text: str) -> Document:
    """Return the titles of sections, the descriptions of objects, and blocks to keep whole.

    As in reStructuredText itself, the depth of a title is the order in which its
    adornment first occurs. A description with nothing under it belongs to the next title;
    any other ends where the text is no longer indented.
    """
    adornments: dict[tuple[str, bool], int] = {}
    marks: list[Mark] = []
    indents: list[int] = []
    end = 0
    for match in _MARK.finditer(f"\n{text}"):
        if match["name"]:
            marks += _ends(text, end, match.start(), indents)
            indent = len(match["indent"].expandtabs())
            depth = _depth(indent) - (match["kind"] == "program")
            marks.append(Mark(match.start(), depth, shorten_title(match["name"])))
            indents.append(indent)
        elif _is_title(match):
            key = (match["u"], bool(match["over"]))
            depth = adornments.setdefault(key, len(adornments) + 1)
            start = _take_in_description(text, match.start(), marks)
            if start == match.start():
                marks += _ends(text, end, start, indents)
            start = _before_targets(text, start, marks[-1].offset if marks else 0)
            marks.append(Mark(start, depth, shorten_title(match["title"])))
            indents.clear()
        else:
            continue
        end = match.end() - 1
    marks += _ends(text, end, len(text), indents)
    return make_document(text, marks, _find_blocks(text))


def _is_title(match: re.Match[str]) -> bool:
    """Tell whether a line is a title, by its adornment."""
    title, over = match["title"].rstrip(), match["over"]
    is_long_enough = len(match["under"]) >= len(title)
    return is_long_enough and (over == match["under"] if over else title[0] not in " \t")


def _depth(indent: int) -> int:
    """Return the depth of an object; the program of an option is one less deep."""
    return _OBJECTS + 2 * indent + 1


def _ends(text: str, start: int, end: int, indents: list[int]) -> Iterator[Mark]:
    """Yield the ends of described objects between two marks: the first less indented line."""
    if not indents:
        return
    for line in _LINE_START.finditer(text, start, end):
        indent = len(line[1].expandtabs())
        if indent <= indents[-1]:
            yield Mark(line.start() + 1, _depth(indent), "")
            while indents and indents[-1] >= indent:
                indents.pop()
            if not indents:
                return


def _take_in_description(text: str, title: int, marks: list[Mark]) -> int:
    """Return the start of a title; empty descriptions above it join it and lose their marks."""
    start = title
    while marks and marks[-1].depth >= _OBJECTS and marks[-1].title:
        line_end = text.find("\n", marks[-1].offset) + 1
        # Not `fullmatch`, which would backtrack through all readings of the lines.
        found = _NOTHING_BELOW.match(text, line_end, start)
        if not found or found.end() != start:
            break
        start = marks.pop().offset
    return start


def _before_targets(text: str, offset: int, floor: int) -> int:
    """Return the start of the link targets and index entries above a title."""
    start = end = offset
    while end > floor:
        above = text.rfind("\n", 0, end - 1) + 1
        line = text[above : end - 1]
        if _TARGET.match(line) and above >= floor:
            start = above
        elif line[:1].strip():
            break
        end = above
    return start


def _find_blocks(text: str) -> list[tuple[int, int]]:
    """Return the spans of directives with their bodies."""
    text = f"\n{text}"
    blocks: list[tuple[int, int]] = []
    position = 0
    while match := _BLOCK.search(text, position):
        after = _BODY_END.search(text, match.end())
        position = after.start() if after else len(text)
        if text[match.end() : position].strip():
            blocks.append((match.start(), position))
    return blocks


# AsciiDoc, whose headings may also have a line of signs below, and an anchor above

_ADOC_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
_ADOC_ANCHOR = re.compile(r"\[\[([\w.:-]{1,200})[^\]]*\]\]|\[#([\w.:-]{1,200})[^\]]*\]")
_ADOC_BLOCK = re.compile(r"([-.=*_+/])\1{3,}|--|```|[|,:!]===+")
_ADOC_ATTRIBUTE = re.compile(r"\[[^\[\]]*\]")
_UNDERLINES = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
"""The depth of an older form of title, by the signs under it."""


def outline_adoc(text: str) -> Document:
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
    return make_document(text, marks, wholes)


def _find_underlined(title: str, line: str) -> int:
    """Return the depth of a title by the line under it, which is as long; 0 if it is none."""
    is_title = title[:1].isalnum() and len(line) > 1 and abs(len(title) - len(line)) <= 1
    return _UNDERLINES.get(line[0], 0) if is_title and line == line[0] * len(line) else 0


def _iter_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the offset of each line, and the line without white space at its end."""
    start = 0
    for line in text.split("\n"):
        yield start, line.rstrip()
        start += len(line) + 1
