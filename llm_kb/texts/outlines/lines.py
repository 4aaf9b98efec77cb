"""Finding headings in markup that marks them at the start of a line. Pure.

Such markups differ in patterns alone: that of a heading, and those of the blocks in which nothing
is a heading, such as code and comments.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llm_kb.texts.outlines.sections import Mark, Outline, make_mark, make_outline

LONGEST_TITLE = 500
"""The most characters of a heading that are read."""

_FLAGS = re.MULTILINE | re.IGNORECASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """The patterns of one markup, for `re.MULTILINE` and any case.

    A heading has the groups `mark` and `title`, and perhaps `anchor`. What opens a block and what
    closes it have the same text in their last group.
    """

    heading: str
    depths: Mapping[str, int] | None = None
    """Depth of each mark in lower case; without it the length of the mark is its depth."""
    opens: str = "(?!)"
    closes: str = "(?!)"
    clean: Callable[[str], str] = str
    """Returns a title without its markup."""


def outline_lines(markup: Markup, text: str) -> Outline:
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
    return make_outline(text, marks, wholes)


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
    title = markup.clean(found["title"][:LONGEST_TITLE]).strip()
    if not (depth and title):
        return None
    mark = make_mark(found.start(), depth, title)
    anchor = found.groupdict().get("anchor")
    return mark._replace(anchor=anchor.lower()) if anchor else mark


# Titles

_COMMAND = re.compile(
    r"\\(?:label|index|footnote|thanks)\{[^{}]*\}|\\[A-Za-z]+\*?[ \t]*|[{}~]|(?<!\\)\$"
)
_TEXORPDF = re.compile(r"\\texorpdfstring\{(?:[^{}]|\{[^{}]{0,200}\}){0,200}\}")


def _clean_latex(text: str) -> str:
    """Return the words of an argument that begins here: up to the brace that closes it."""
    depth = 1
    for brace in re.finditer("[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            words = _COMMAND.sub(" ", _TEXORPDF.sub("", text[: brace.start()]))
            return " ".join(words.replace("\\", "").split())
    return ""


def _clean_pod(text: str) -> str:
    """Return a title without its codes: `C<x>` and `L<x|y>` become `x`."""
    for _ in range(3):
        text = re.sub(r"[A-Z]<([^<>|]*)(?:\|[^<>]*)?>", r"\1", text)
    return text


def _clean_wiki(text: str) -> str:
    """Return a title of a wiki: without closing signs, links and tags."""
    text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|<[^<>]*>", r"\1", text.rstrip().rstrip("="))
    return text.replace("'''", "").replace("''", "")


def _clean_closed(text: str) -> str:
    """Return a title that has to end with the sign that it begins with; else nothing."""
    return _clean_wiki(text) if text.rstrip().endswith("=") else ""


def _clean_roff(text: str) -> str:
    """Return a title without quotes and escapes, which may be on the next line."""
    text = re.sub(r"\\f(?:\[[^\[\]]*\]|\(..|.)|\\&|\\s[-+]?\d", "", text.strip())
    return re.sub(r"\\\(..|\\(.)", r"\1", text.strip('"').replace('" "', " "))


def _clean_braces(text: str) -> str:
    """Return a title of Texinfo: `@code{x}` becomes `x`."""
    return re.sub(r"@\w+\{([^{}]*)\}", r"\1", text)


_TAGS = "pre|nowiki|source|syntaxhighlight|notextile|code|math"
_OPENS_TAG = rf"<({_TAGS})\b(?:[^<>\n]*[^<>\n/])?>|<!(--)"
_CLOSES_TAG = rf"</({_TAGS})\s*>|(--)>"
_NUMBERS = {str(depth): depth for depth in range(1, 7)}
_TITLE = r"(?P<title>[^\n]*)$"

MARKUPS = {
    "org": Markup(
        heading=rf"^(?P<mark>\*+)[ \t]+{_TITLE}",
        opens=r"^[ \t]*#\+begin_(\S+)",
        closes=r"^[ \t]*#\+end_(\S+)[ \t]*\r?$",
        clean=lambda title: re.sub(r"[ \t]:[\w@#%:]{1,200}:[ \t]*\r?\Z", "", title),
    ),
    "pod": Markup(
        heading=rf"^=head(?P<mark>[1-6])[ \t]+{_TITLE}",
        depths=_NUMBERS,
        opens=r"^=begin[ \t]+(\S+)[^\n]*$",
        closes=r"^=end[ \t]+(\S+)[^\n]*$",
        clean=_clean_pod,
    ),
    "latex": Markup(
        heading=r"^[ \t]*(?:\\(?:clear|new|cleardouble)page[ \t]*)?\\(?P<mark>part|chapter|section"
        r"|(?:sub){1,2}section|(?:sub)?paragraph)\*?[ \t]*(?:\[[^\[\]\n]{0,300}\][ \t]*)?\{"
        r"(?=(?P<title>[\s\S]{0,500}))",
        depths={
            "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5,
            "paragraph": 6, "subparagraph": 7,
        },
        opens=r"^[^%\n\\]{0,200}\\begin\{((?:verbatim|lstlisting|minted|comment|filecontents|code)\*?)\}",
        closes=r"\\end\{((?:verbatim|lstlisting|minted|comment|filecontents|code)\*?)\}",
        clean=_clean_latex,
    ),
    "mediawiki": Markup(
        heading=rf"^(?P<mark>={{1,6}})(?=[^=\n]){_TITLE}",
        opens=_OPENS_TAG,
        closes=_CLOSES_TAG,
        clean=_clean_closed,
    ),
    "creole": Markup(
        heading=rf"^[ \t]*(?P<mark>={{1,6}})(?=[^=\n]){_TITLE}",
        opens=r"^\{\{\{()[ \t]*\r?$",
        closes=r"^\}\}\}()[ \t]*\r?$",
        clean=_clean_wiki,
    ),
    "typst": Markup(
        heading=r"^[ \t]*(?P<mark>={1,6})[ \t]+(?P<title>[^\n<]*)"
        r"(?:<(?P<anchor>[\w.:-]{1,200})>)?[^\n]*$",
        opens=r"(`{3,})|/(\*)",
        closes=r"(`{3,})|(\*)/",
    ),
    "textile": Markup(
        heading=r"^h(?P<mark>[1-6])(?:[^\s.#]{0,80}#(?P<anchor>[\w:-]{1,80})\))?[^\n.]{0,80}\."
        rf"[ \t]+{_TITLE}",
        depths=_NUMBERS,
        # A block of one dot ends with a blank line, that of two before the next with a kind.
        opens=_OPENS_TAG + r"|^(?:bc|pre|notextile)[^\s.]{0,80}\.(\.?)[ \t]",
        closes=_CLOSES_TAG
        + r"|\n[ \t\r]*\n()|^(?=(?:p|h[1-6]|bq|table|fn\d+)[^\s.]{0,80}(\.)[ \t])",
    ),
    "man": Markup(
        heading=r"^[.'][ \t]*(?P<mark>(?-i:S[HhSs]))(?:[ \t]+|[ \t]*\r?\n)" + _TITLE,
        depths={"sh": 1, "ss": 2},
        opens=r"^[.'][ \t]*(?:ig|dei?1?)\b()",
        closes=r"^\.\.()[ \t]*\r?$",
        clean=_clean_roff,
    ),
    "wordpress": Markup(
        heading=rf"^(?P<mark>={{1,3}}|\#{{1,6}})(?=[^=\#\n]){_TITLE}",
        depths={
            "===": 1, "==": 2, "=": 3,
            "#": 1, "##": 3, "###": 4, "####": 5, "#####": 6, "######": 7,
        },
        opens="^[ ]{0,3}(`{3,})|" + _OPENS_TAG,
        closes="^[ ]{0,3}(`{3,})|" + _CLOSES_TAG,
        clean=lambda title: _clean_wiki(title.rstrip().rstrip("#")),
    ),
    "rdoc": Markup(
        heading=rf"^(?P<mark>={{1,6}})(?=[^=\n]){_TITLE}",
        opens=r"^--()[ \t]*\r?$",
        closes=r"^\+\+()[ \t]*\r?$",
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
        clean=_clean_braces,
    ),
}  # fmt: skip
"""The markups of which a pattern says where the headings are."""

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
    found = _NAME.search(text) if markup in {"man", "pod", "perl"} else None
    if not found:
        return ""
    line = "".join(_DASH.split(found["name"], maxsplit=1)[1:])
    return MARKUPS["man" if markup == "man" else "pod"].clean(line)
