"""Finding definitions in source code with tree-sitter, if `llm-kb[code]` is installed.

More exact than `code_lines`: a definition has an end, and strings are not code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from llm_kb.search.chunking.documents import Mark, Outline

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

GRAMMARS = {
    # extension: (module, the function in it that returns the grammar)
    **dict.fromkeys((".py", ".pyi"), ("tree_sitter_python", "language")),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), ("tree_sitter_javascript", "language")),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("tree_sitter_typescript", "language_typescript")),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".rs": ("tree_sitter_rust", "language"),
    ".go": ("tree_sitter_go", "language"),
    ".java": ("tree_sitter_java", "language"),
    **dict.fromkeys((".c", ".h"), ("tree_sitter_c", "language")),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp"), ("tree_sitter_cpp", "language")),
    ".rb": ("tree_sitter_ruby", "language"),
    ".cs": ("tree_sitter_c_sharp", "language"),
}

MAX_DEPTH = 200
"""Deepest nesting that is searched; deeper code is generated or hostile."""

_DEFINITION = re.compile(
    r"(?:function|method|class|struct|enum|trait|impl|interface|mod|module|namespace|union|macro"
    r"|constructor|record|type|type_alias|abstract_class|generator_function|singleton_method"
    r"|internal_module|property|protocol)_(?:definition|declaration|item|specifier|spec)"
    r"|class|module|method|impl_item|variable_declarator"
)
_WRAPPER = re.compile(
    r"decorated_definition|export_statement|template_declaration|ambient_declaration"
    r"|lexical_declaration|variable_declaration"
)
_COMMENT = re.compile(r"comment|line_comment|block_comment|attribute_item|decorator")
_NAME_FIELDS = ("name", "declarator", "type")
_FUNCTION_VALUE = re.compile(r"arrow_function|function|function_expression|class")


@cache
def find_parser(suffix: str) -> Parser | None:
    """Return the parser for an extension; None if its grammar is not installed."""
    module, function = GRAMMARS[suffix]
    try:
        # An extra, so imported when code is first indexed.
        tree_sitter = import_module("tree_sitter")
        grammar = import_module(module)
        language = tree_sitter.Language(getattr(grammar, function)())
    except (ImportError, AttributeError, ValueError, TypeError):
        # ValueError: a grammar of a version that this tree-sitter cannot read.
        return None
    parser: Parser = tree_sitter.Parser(language)
    return parser


def outline_syntax(suffix: str, text: str) -> Outline | None:
    """Return the definitions of a text; None if no parser for it is installed."""
    parser = find_parser(suffix) if suffix in GRAMMARS else None
    if parser is None:
        return None
    source = text.encode("utf-8", "replace")
    spans = list(_definitions(parser.parse(source).root_node, source))
    characters = _count_characters(source, {offset for span in spans for offset in span[:2]})
    marks: list[Mark] = []
    for start, end, depth, label in spans:
        marks.append(Mark(characters[start], depth, label))
        if end:
            marks.append(Mark(characters[end], depth, ""))
    # Ends come before beginnings; inner ends and outer beginnings come first.
    marks.sort(
        key=lambda mark: (mark.offset, bool(mark.label), mark.depth * (1 if mark.label else -1))
    )
    return Outline(marks=marks, separator=".")


def _definitions(root: Node, source: bytes) -> Iterator[tuple[int, int, int, str]]:
    """Yield (start, end, depth, name) of each definition, in order of the text.

    Starts and ends are byte offsets of lines; an end is 0 if no line follows.
    """
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        inner = depth
        if _DEFINITION.fullmatch(node.type) and (name := _name(node)):
            outer = node
            while outer.parent is not None and _WRAPPER.fullmatch(outer.parent.type):
                outer = outer.parent
            start = source.rfind(b"\n", 0, _first_attached(outer).start_byte) + 1
            yield start, source.find(b"\n", outer.end_byte) + 1, depth, name
            inner = depth + 1
        if inner < MAX_DEPTH:
            # Code on a single line is too small to be a section.
            pending += [
                (child, inner)
                for child in reversed(node.named_children)
                if source.find(b"\n", child.start_byte, child.end_byte) != -1
            ]


def _count_characters(source: bytes, offsets: Iterable[int]) -> dict[int, int]:
    """Return the number of characters before each byte offset."""
    counts: dict[int, int] = {}
    position = count = 0
    for offset in sorted(offsets):
        count += len(source[position:offset].decode())
        position = offset
        counts[offset] = count
    return counts


def _name(node: Node) -> str:
    """Return the name of a definition; empty for a node that only looks like one."""
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        if value is None or not _FUNCTION_VALUE.fullmatch(value.type):
            return ""
    for field in _NAME_FIELDS:
        found = node.child_by_field_name(field)
        while found is not None and (deeper := found.child_by_field_name("declarator")) is not None:
            found = deeper
        if found is not None and found.text:
            name = " ".join(found.text.decode("utf-8", "replace").split())[:100]
            return f"{owner}.{name}" if (owner := _owner(node)) else name
    return ""


def _owner(node: Node) -> str:
    """Return the type in the receiver of a Go method; empty for other nodes."""
    receiver = node.child_by_field_name("receiver")
    text = receiver.text if receiver is not None else None
    words: list[bytes] = re.findall(rb"\w+", (text or b"").partition(b"[")[0])
    return words[-1].decode() if words else ""


def _first_attached(node: Node) -> Node:
    """Return the first comment or attribute right above a definition, or the definition."""
    first = node
    above = node.prev_named_sibling
    while above is not None and _COMMENT.fullmatch(above.type):
        row = first.start_point.row
        # A Rust doc comment ends at the start of the next line.
        if above.end_point.row < row - 1 or above.start_point.row >= row:
            break
        first = above
        above = above.prev_named_sibling
    return first
