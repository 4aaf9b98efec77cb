"""Finding headings in markup that marks them at the start of a line. Pure.

Such markups differ in patterns alone: that of a heading, and those of the blocks in which nothing
is a heading, such as code and comments.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from llm_kb.texts.document import LONGEST_HEADING, Document, Mark, make_document, make_mark

_FLAGS = re.MULTILINE | re.IGNORECASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """The patterns of one markup, for `re.MULTILINE` and any case.

    A heading has the groups `mark` and `title`. What opens a block and what closes it have the same
    text in their last group.
    """

    heading: str
    depths: Mapping[str, int] | None = None
    """Depth of each mark in lower case; without it the length of the mark is its depth."""
    opens: str = "(?!)"
    closes: str = "(?!)"
    noise: str = "(?!)"
    """What is no word of a title."""


def outline_lines(markup: Markup, text: str) -> Document:
    """Return the headings of a text outside of blocks, and the blocks that are closed."""
    scan = re.compile(f"{markup.heading}|{markup.opens}", _FLAGS)
    ends = _find_ends(markup, text)
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    position = 0
    while found := scan.search(text, position):
        position = max(found.end(), position + 1)
        if found["mark"] is None:
            closing = ends[found[found.lastindex or 0].lower()]
            after = bisect_left(closing, (found.end(), 0))
            if after < len(closing):
                position = closing[after][1]
                wholes.append((found.start(), position))
        elif mark := _make_mark(markup, found):
            marks.append(mark)
        else:
            position = found.end("mark")  # something in the line may open a block
    return make_document(text, marks, wholes)


def _find_ends(markup: Markup, text: str) -> Mapping[str, list[tuple[int, int]]]:
    """Return the spans of all that closes a block, by what it closes."""
    ends: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for found in re.finditer(markup.closes, text, _FLAGS):
        ends[found[found.lastindex or 0].lower()].append(found.span())
    return ends


def _make_mark(markup: Markup, found: re.Match[str]) -> Mark | None:
    """Return the mark of a heading; None if it is none after all."""
    sign = found["mark"]
    depth = len(sign) if markup.depths is None else markup.depths.get(sign.lower(), 0)
    title = re.sub(markup.noise, "", found["title"][:LONGEST_HEADING], flags=re.IGNORECASE).strip()
    return make_mark(found.start(), depth, title) if depth and title else None


_NUMBERS = {str(depth): depth for depth in range(1, 7)}
_TITLE = r"(?P<title>[^\n]*)$"
_VERBATIM = r"((?:verbatim|lstlisting|minted|comment|filecontents|code)\*?)"

MARKUPS = {
    "org": Markup(
        heading=rf"^(?P<mark>\*+)[ \t]+{_TITLE}",
        opens=r"^[ \t]*#\+begin_(\S+)",
        closes=r"^[ \t]*#\+end_(\S+)[ \t]*\r?$",
        noise=r"[ \t]:[\w@#%:]{1,200}:[ \t]*\r?\Z",
    ),
    "pod": Markup(
        heading=rf"^=head(?P<mark>[1-6])[ \t]+{_TITLE}",
        depths=_NUMBERS,
        opens=r"^=begin[ \t]+(\S+)[^\n]*$",
        closes=r"^=end[ \t]+(\S+)[^\n]*$",
        noise=r"[A-Z]<+|\|[^<>|]*(?=>)|(?<!-)>+",
    ),
    "latex": Markup(
        heading=r"^[ \t]*\\(?P<mark>part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?"
        r"(?:\[[^\[\]\n]{0,300}\])?\{(?P<title>[^\n]*)\}",
        depths={
            "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5,
            "paragraph": 6, "subparagraph": 7,
        },
        opens=rf"^[^%\n\\]{{0,200}}\\begin\{{{_VERBATIM}\}}",
        closes=rf"\\end\{{{_VERBATIM}\}}",
        noise=r"\\(?:label|index|footnote|thanks)\{[^{}]*|\\[A-Za-z]*\*?|[{}~$]",
    ),
    "rd": Markup(
        heading=r"^\\(?=(?P<mark>title|(?:sub)?section|description|usage|arguments|value|details"
        r"|examples|seealso|note|references)\{)(?:(?:title|(?:sub)?section)\{)?"
        r"(?P<title>[^\n{}]+)",
        depths={
            "title": 1, "section": 2, "subsection": 3, "description": 2, "usage": 2, "arguments": 2,
            "value": 2, "details": 2, "examples": 2, "seealso": 2, "note": 2, "references": 2,
        },
    ),
    "mediawiki": Markup(
        heading=r"^(?P<mark>={1,6})(?=[^=\n])(?P<title>[^\n]*[^=\s])[ \t]*=+[ \t]*\r?$",
        opens=r"<(pre|nowiki|source|syntaxhighlight|code|math)\b(?:[^<>\n]*[^<>\n/])?>|<!(--)",
        closes=r"</(pre|nowiki|source|syntaxhighlight|code|math)\s*>|(--)>",
        noise=r"\[\[(?:[^\[\]|]*\|)?|\]\]|<[^<>]*>|'{2,5}",
    ),
    "man": Markup(
        heading=r"^[.'][ \t]*(?P<mark>(?-i:S[HhSs]))(?:[ \t]+|[ \t]*\r?\n)" + _TITLE,
        depths={"sh": 1, "ss": 2},
        opens=r"^[.'][ \t]*(?:ig|dei?1?)\b()",
        closes=r"^\.\.()[ \t]*\r?$",
        noise=r"\\f(?:\[[^\[\]]*\]|\(..|.)|\\&|\\s[-+]?\d|\\\(..|[\\\"]",
    ),
    "texinfo": Markup(
        heading=r"^@(?P<mark>chapter|unnumbered|appendix|top|(?:sub){0,2}(?:section|heading)"
        rf"|unnumbered(?:sub){{0,2}}sec|appendix(?:sub){{0,2}}sec)[ \t]+{_TITLE}",
        depths={
            **dict.fromkeys(("top", "chapter", "unnumbered", "appendix"), 1),
            **dict.fromkeys(("section", "heading", "unnumberedsec", "appendixsec"), 2),
            **dict.fromkeys(("subsection", "subheading", "unnumberedsubsec", "appendixsubsec"), 3),
            **dict.fromkeys(("subsubsection", "subsubheading", "unnumberedsubsubsec"), 4),
        },
        opens=r"^@((?:small)?(?:example|lisp|verbatim|display)|ignore|tex|html)[ \t]*\r?$",
        closes=r"^@end[ \t]+(\w+)",
        noise=r"@\w+\{|\}",
    ),
}  # fmt: skip
"""The markups of which patterns say where the headings are."""

# Purpose

_NAME = re.compile(
    r"^(?:[.'][ \t]*SH[ \t]+\"?|=head1[ \t]+)NAME\b[^\n]*(?P<name>\n\s{0,9}"
    r"(?:(?!=|[.'][ \t]*(?:S[HS]\b|$))[^\n]+\n?){1,4})",
    re.MULTILINE | re.IGNORECASE,
)
"""The section of a manual page with its name, a dash or what `mdoc` has for it, and a sentence."""
_DASH = re.compile(r"\s(?:\\?-|\\(?:\(e[mn]|\[e[mn]\])|--+|[\u2013\u2014]|\.[ \t]*Nd)\s+")


def find_purpose(markup: str, text: str) -> str:
    """Return what a man page, or documentation of Perl, says after its name; empty without it."""
    found = _NAME.search(text) if markup in {"man", "pod"} else None
    line = "".join(_DASH.split(found["name"], maxsplit=1)[1:]) if found else ""
    return re.sub(MARKUPS[markup].noise, "", line) if line else ""
