"""The size of the package by room, as `tests/test_architecture.py` bounds it.

`python -m tests.budget` lowers its table to what there is; it never raises a row.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parent.parent

PACKAGE = PROJECT / "llm_kb"

TABLE = PROJECT / "tests" / "test_architecture.py"

ADD_ONS = ("capture", "documents", "proposals", "references")
"""Rooms that are not the core's."""

_DOCUMENTED = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_ROW = re.compile(r'^    "([\w ]+)": ([\d_]+),$', re.MULTILINE)


@cache
def measure() -> Mapping[str, int]:
    """Return the code lines of each room, of the core and of all, and what else is counted.

    A code line is not blank, not a comment, and not of a docstring, that of an attribute
    included. Functions are those of classes and of functions too; records are dataclasses, named
    tuples and typed dictionaries; constants are numbers, or tuples of numbers, in module constants
    in capitals and in the defaults of fields.
    """
    found: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        lines = _count_lines(text, tree)
        found[room] += lines
        found["all"] += lines
        found["core"] += lines * (room not in ADD_ONS)
        found["files in all"] += 1
        nodes = list(ast.walk(tree))
        found["functions"] += sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes
        )
        found["records"] += sum(
            isinstance(node, ast.ClassDef) and _is_record(node) for node in nodes
        )
        found["constants"] += sum(map(_is_number, _iter_constants(tree)))
    return found


def _count_lines(text: str, tree: ast.Module) -> int:
    documented = {
        number
        for node in ast.walk(tree)
        if isinstance(node, _DOCUMENTED)
        for each in node.body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if isinstance(each.value.value, str)
        for number in range(each.lineno, (each.end_lineno or each.lineno) + 1)
    }
    return sum(
        1
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and number not in documented
    )


def _is_record(node: ast.ClassDef) -> bool:
    decorators = any("dataclass" in ast.unparse(each) for each in node.decorator_list)
    return decorators or any(
        ast.unparse(base) in {"NamedTuple", "TypedDict"} for base in node.bases
    )


def _iter_constants(tree: ast.Module) -> Iterator[ast.expr | None]:
    """Yield the value of each module constant in capitals, and the default of each field."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                for name in names:
                    if isinstance(name, ast.Name) and name.id.lstrip("_").isupper():
                        yield node.value
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef):
            yield from (field.value for field in each.body if isinstance(field, ast.AnnAssign))


def _is_number(value: ast.expr | None) -> bool:
    match value:
        case ast.UnaryOp():
            return _is_number(value.operand)
        case ast.BinOp():
            return _is_number(value.left) and _is_number(value.right)
        case ast.Tuple():
            return bool(value.elts) and all(map(_is_number, value.elts))
        case ast.Constant():
            return type(value.value) in {int, float}
        case _:
            return False


def lower() -> None:
    """Lower each row of the table to what there is, and drop rows of rooms that are gone."""
    sizes = measure()
    text = TABLE.read_text(encoding="utf-8")

    def write(match: re.Match[str]) -> str:
        name, most = match[1], int(match[2])
        return f'    "{name}": {min(most, sizes[name]):_},' if sizes[name] else ""

    head, start, rest = text.partition("BUDGET = {\n")
    table, end, tail = rest.partition("}\n")
    table = re.sub(r"\n\n+", "\n", _ROW.sub(write, table)).lstrip("\n")
    TABLE.write_text(f"{head}{start}{table}{end}{tail}", encoding="utf-8")


if __name__ == "__main__":
    lower()
