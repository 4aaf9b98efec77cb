"""Finding definitions in source code by the shape of lines, without a parser."""

from __future__ import annotations

import re

from llm_kb.texts.document import Document, Mark, make_document

_MODIFIER = (
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|final|async|unsafe"
    r"|extern|const|inline|override|virtual|sealed|partial|data|open|suspend|readonly|declare"
    r"|fileprivate|lateinit|native|synchronized|pub(?:\([^)\n]*\))?"
    r"|extern\s\"[^\"\n]*\")[ \t]+){0,12}"
)
_NAME = r"(?P<{}>[A-Za-z_$](?:[\w$]|[.:]+(?=[\w$])){{0,300}}[?!]?)"
_CALLABLE = r"[\w$<>,.?&*:\[\]~ \t]*?[ \t*&]"

# For speed, every pattern begins with the previous line end, a fixed character that the regex
# engine can skip to, and takes the indentation as a whole, which prevents backtracking.
_INDENT = r"(?=(?P<indent>[ \t]*))(?P=indent)"

_PYTHON = re.compile(
    rf"\n(?:{_INDENT}(?:async[ \t]+)?(?:def|class)[ \t]+{_NAME.format('a')}"
    r"|(?P<end>[^\s#@)\]}'\"]))",
    re.MULTILINE,
)
_KEYWORD = re.compile(
    rf"\n(?:{_INDENT}{_MODIFIER}(?:"
    r"(?:def|fn|func|fun|function\*?|class|struct|enum|trait|interface|mod|module|namespace|union"
    r"|protocol|extension|object|record|type|macro_rules!|defmodule|defp|defmacro|sub|proc)"
    # A Go receiver, which names the method's type.
    r"[ \t]+(?:\((?:[^)\n]{0,200}?[ \t*])?(?P<owner>\w+)(?:\[[^)\n]{0,200})?\)[ \t]*)?"
    rf"{_NAME.format('a')}"
    rf"|impl(?:<[^\n]*?>)?[ \t]+(?P<b>[^\n{{]+)"
    r"|(?:const|let|var)[ \t]+(?P<c>[A-Za-z_$][\w$]{0,300})[ \t]*(?::[^=\n]+)?=[ \t]*"
    r"(?:async[ \t]*)?(?:function\b|\([^)\n]*\)[^=\n]*=>|[\w$]+[ \t]*=>)"
    r")|(?P<end>[^\s#@)\]{}/*'\"<>]))",
    re.MULTILINE,
)
_BRACES = re.compile(
    rf"\n(?:{_INDENT}{_MODIFIER}(?:"
    rf"(?:class|struct|enum|union|interface|namespace|record|@interface)[ \t]+{_NAME.format('a')}"
    # A return type, a name and an open parenthesis, and no semicolon.
    rf"|(?!(?:return|else|new|throw|case|goto|if|for|while|switch|using|typedef|delete)\b)"
    rf"[A-Za-z_]{_CALLABLE}{_NAME.format('c')}[ \t]*\((?=[^;\n]*$)"
    rf")|(?P<end>[^\s#@)\]{{}}/*'\"]))",
    re.MULTILINE,
)
_SCRIPT = re.compile(
    rf"{_KEYWORD.pattern.rpartition('|(?P<end>')[0]}"
    # A method: a name, parentheses and a brace; parameters may have lines of their own. An
    # arrow at the end makes it a callback without a name.
    r"|(?=(?P<inner>[ \t]+))(?P=inner)"
    r"(?:(?:async|static|get|set|public|private|protected|readonly|override)[ \t]+){0,12}"
    r"(?!(?:if|for|while|switch|catch|return|function)\b)(?P<d>[#$A-Za-z_][\w$]*)"
    r"(?:<[^\n(]*>)?[ \t]*\((?![^\n]*=>[ \t]*\{?[ \t]*\r?$)(?:[^;\n]*\{[ \t]*\r?$"
    r"|[ \t]*\r?\n(?:(?P=inner)[ \t][^\n]*\n){1,20}(?P=inner)\)(?![^\n]*=>)[^;\n]*\{[ \t]*\r?$)"
    r"|(?P<end>[^\s#@)\]{}/*'\"<>]))",
    re.MULTILINE,
)

PATTERNS = {"python": _PYTHON, "script": _SCRIPT, "keywords": _KEYWORD, "braces": _BRACES}
"""Patterns of definitions, by the kind of language."""

_ATTACHED = ("#", "@", "//", "/*", "*", "--", "[")
"""Starts of lines that belong to the definition below them: comments, decorators."""


def outline_code(kind: str, text: str) -> Document:
    """Return the functions, classes and similar definitions of a text, nested by indentation.

    A line at the left margin that is not a definition ends the definitions above it.
    """
    marks: list[Mark] = []
    inside = False
    # The added line end makes each match begin at the offset of its line in the text.
    for match in PATTERNS[kind].finditer(f"\n{text}"):
        # The last group of an alternative is the name, or `end`.
        group = match.lastgroup
        if group == "end" or group is None:
            if inside:
                marks.append(Mark(match.start(), 0, ""))
                inside = False
            continue
        indent = match["inner"] if group == "d" else match["indent"]
        depth = len(indent.expandtabs())
        start = _attached_start(text, match.start(), marks)
        owner = match["owner"] if group == "a" and "owner" in match.re.groupindex else None
        name = match[group].strip()
        marks.append(Mark(start, depth, f"{owner}.{name}" if owner else name))
        inside = True
    return make_document(text, marks, is_code=True)


def _attached_start(text: str, offset: int, marks: list[Mark]) -> int:
    """Return where the comments and decorators right above a definition begin."""
    floor = marks[-1].offset if marks else 0
    while offset > floor:
        previous = text.rfind("\n", 0, offset - 1) + 1
        if previous <= floor or not text[previous:offset].lstrip().startswith(_ATTACHED):
            break
        offset = previous
    return offset
