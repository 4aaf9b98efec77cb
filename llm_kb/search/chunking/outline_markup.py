"""Find the headings of Markdown and reStructuredText, and the fences of Markdown."""

from __future__ import annotations

import re

from llm_kb.search.chunking.documents import Mark, Outline

_FRONT_MATTER = re.compile(
    r"\A(?:\ufeff)?(---|\+\+\+)[ \t]*\r?\n(?:.*?\n)??\1[ \t]*(?:\r?\n|\Z)", re.DOTALL
)

_MARKDOWN_LINE = re.compile(
    # A fence, also as the first thing of a list item.
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|^[ ]{0,3}(?P<hashes>\#{1,6})(?P<title>[ \t][^\n]*|\r?)$"
    r"|^[ ]{0,3}(?P<under>=+|-+)[ \t]*\r?$"
    r"|^[ ]{0,3}(?P<html><!--|<(?:pre|script|style|textarea)\b)",
    re.MULTILINE | re.IGNORECASE,
)
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+$")
_NO_PARAGRAPH = re.compile(
    r"[ ]{0,3}(?:>|\#{1,6}(?:[ \t]|$)|(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)|[`~]{3}|<)|\t|[ ]{4}"
)

_RST_LINE = re.compile(
    # Each begins with the end of the line before, which a regex engine skips to by itself.
    # A title, its underline and perhaps its overline. Whether there is one is told first.
    r"\n(?:(?=[^\n]*\n[!-/:-@\[-`{-~]{2}|[!-/:-@\[-`{-~]{2})"
    r"(?:(?P<over>(?P<o>[!-/:-@\[-`{-~])(?P=o)+)[ \t]*\r?\n)?"
    r"(?P<title>[ \t]*[^\s][^\n]*)\n"
    r"(?P<under>(?P<u>[!-/:-@\[-`{-~])(?P=u)+)[ \t]*\r?$"
    # Or the description of a function, a setting, an option …
    r"|(?=(?P<indent>[ \t]*))(?P=indent)\.\.[ ](?:[a-z]+:)*"
    r"(?:(?:auto)?(?:function|class|method|attribute|data|exception|module|decorator|property)"
    r"|classmethod|staticmethod|macro|member|struct|type"
    r"|setting|confval|option|program|envvar|directive|role|rst:\w+|templatetag|templatefilter"
    r"|fieldlookup|django-admin|event|signal|describe|object|glossary)::[ \t]+(?P<name>[^\n]+)$)",
    re.MULTILINE,
)
_RST_TARGET = (
    r"\.\. (?:_[^\n]*:|index::[^\n]*(?:\n[ ]+[^\n]+)*|module::[^\n]*)[ \t]*\n(?:[ \t]*\n)*"
)
_LAST_RST_TARGET = re.compile(rf"{_RST_TARGET}\Z")
_RST_TARGETS = re.compile(rf"(?:^{_RST_TARGET})+\Z", re.MULTILINE)
_RST_DIRECTIVE_DEPTH = 100


def outline_markdown(text: str) -> Outline:
    """Find ATX and setext headings outside of fences and HTML, and the fences."""
    front = _FRONT_MATTER.match(text)
    position = front.end() if front else 0
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    while match := _MARKDOWN_LINE.search(text, position):
        position = match.end()
        if fence := match["fence"]:
            end = _fence_end(text, match, fence)
            if end is not None:
                wholes.append((match.start(), end))
                position = end
        elif hashes := match["hashes"]:
            label = _CLOSING_HASHES.sub("", match["title"].strip())
            marks.append(Mark(match.start(), len(hashes), label.strip() or "#"))
        elif under := match["under"]:
            start = _paragraph_start(text, match.start(), marks)
            if start is not None:
                label = " ".join(text[start : match.start()].split())
                marks.append(Mark(start, 1 if under[0] == "=" else 2, label))
        else:
            position = _html_end(text, match)
    return Outline(marks=marks, wholes=wholes)


def _fence_end(text: str, opener: re.Match[str], fence: str) -> int | None:
    """Return where the line after the closing fence begins.

    An unclosed fence runs to the end of the document; but where the opener is
    indented like code it is taken for text, and None is returned.
    """
    nested = opener["indent"].strip(" ") != "" or len(opener["indent"]) > 3
    indent = r"[ \t]*" if nested else r"[ ]{0,3}"
    closer = re.compile(
        rf"^{indent}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?(?:\n|\Z)", re.MULTILINE
    )
    line_end = text.find("\n", opener.end())
    found = closer.search(text, line_end + 1) if line_end != -1 else None
    if found:
        return found.end()
    return None if nested else len(text)


def _paragraph_start(text: str, underline: int, marks: list[Mark]) -> int | None:
    """Return where the paragraph above a setext underline begins; None without one."""
    floor = marks[-1].offset if marks else 0
    start = underline
    while start > floor:
        previous = text.rfind("\n", 0, start - 1) + 1
        line = text[previous : start - 1]
        if not line.strip() or (marks and previous <= floor and text[floor] == "#"):
            break
        if _NO_PARAGRAPH.match(line):
            # A list, a quotation or code: an underline of dashes is a rule there.
            return None
        start = previous
    return start if start < underline else None


def _html_end(text: str, opener: re.Match[str]) -> int:
    """Return where raw HTML ends: after the line with its closing tag."""
    name = opener["html"].lower()
    closing = "-->" if name == "<!--" else f"</{name[1:]}>"
    found = (
        text.lower().find(closing, opener.end())
        if closing != "-->"
        else text.find(closing, opener.end())
    )
    if found == -1:
        return len(text)
    line_end = text.find("\n", found)
    return len(text) if line_end == -1 else line_end + 1


def outline_rst(text: str) -> Outline:
    """Find the titles of sections and the descriptions of objects.

    As in reStructuredText itself, the depth of a title is the order in which its
    adornment first occurs.
    """
    adornments: dict[tuple[str, bool], int] = {}
    marks: list[Mark] = []
    for match in _RST_LINE.finditer(f"\n{text}"):
        if match["name"]:
            depth = _RST_DIRECTIVE_DEPTH + len(match["indent"].expandtabs())
            marks.append(Mark(match.start(), depth, match["name"].strip()))
            continue
        title = match["title"].rstrip()
        over = match["over"]
        if (
            len(match["under"]) < len(title)
            or (over and over != match["under"])
            or (not over and title[0] in " \t")
        ):
            continue
        key = (match["u"], bool(over))
        depth = adornments.setdefault(key, len(adornments) + 1)
        marks.append(Mark(_before_targets(text, match.start()), depth, title.strip()))
    return Outline(marks=marks)


def _before_targets(text: str, offset: int) -> int:
    """Return where the link targets and index entries above a title begin."""
    head = max(0, offset - 1000)
    last = max(head, text.rfind("\n.. ", head, offset) + 1)
    if not _LAST_RST_TARGET.match(text, last, offset):
        return offset
    found = _RST_TARGETS.search(text, head, offset)
    return found.start() if found else offset
