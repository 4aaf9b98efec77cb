"""No regular expression of the package takes more than linear time, on inputs made from itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NamedTuple

import pytest

import llm_kb
from tests.growth import measure_growth

if sys.version_info >= (3, 11):
    from re import _constants as constants  # type: ignore[attr-defined] # has no types
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as constants
    import sre_parse as parser

MOST_ATOMS = 7
SOURCE = "\n".join(path.read_text() for path in Path(llm_kb.__file__).parent.rglob("*.py"))


METHODS = {
    **{method: method for method in ("match", "fullmatch", "search", "finditer", "sub")},
    "findall": "finditer",
    "split": "sub",
}


class Use(NamedTuple):
    """A pattern of a module, and how it is used."""

    place: str
    pattern: re.Pattern[Any]
    method: str


MATCHED = {"llm_kb.references.sources.records:_MODULE": "fullmatch"}
"""How a pattern is used that has another name where it is used."""


def find_patterns() -> Iterator[Use]:
    """Yield every compiled pattern of the package once for each way in which it is used."""
    seen: set[tuple[re.Pattern[Any], str]] = set()
    for info in sorted(walk_packages(llm_kb.__path__, "llm_kb."), key=lambda info: info.name):
        try:
            module = import_module(info.name)
        except ImportError:  # an extra that is not installed
            continue
        for name, value in vars(module).items():
            patterns = list(find_inside(value))
            if not patterns:
                continue
            methods = find_methods(name, str(module.__file__), value)
            if known := MATCHED.get(f"{info.name}:{name}"):
                methods = {known}
            for pattern, method in product(patterns, sorted(methods)):
                if (pattern, method) not in seen:
                    seen.add((pattern, method))
                    yield Use(f"{info.name}:{name}", pattern, method)


def find_methods(name: str, file: str, value: object) -> set[str]:
    """Return the methods that are called of a pattern; `finditer` if that is not seen."""
    source = Path(file).read_text() if name.startswith("_") else SOURCE
    found = re.findall(rf"\b{re.escape(name)}\.({'|'.join(METHODS)})\b", source)
    is_own = isinstance(value, re.Pattern)
    return {METHODS[method] for method in found if is_own} or {"finditer"}


def find_inside(value: object, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value: itself, or in containers, records and classes."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, Mapping):
        for inner in (*value, *value.values()):
            yield from find_inside(inner, depth - 1)
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for inner in value:
            yield from find_inside(inner, depth - 1)
    elif depth and getattr(type(value), "__module__", "").startswith("llm_kb"):
        for inner in getattr(value, "__dict__", {}).values():
            yield from find_inside(inner, depth - 1)
    elif depth and isinstance(value, type) and value.__module__.startswith("llm_kb"):
        for inner in vars(value).values():
            yield from find_inside(inner, depth - 1)


def find_atoms(pattern: re.Pattern[Any]) -> list[str]:
    """Return the literals of a pattern, and a character of each of its classes."""
    source = (
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    )
    flags = pattern.flags & ~re.DEBUG
    if isinstance(pattern.pattern, bytes):
        flags &= ~re.UNICODE
    found: dict[str, None] = {}
    collect(parser.parse(source, flags), found)
    return list(found)[:MOST_ATOMS]


CATEGORIES = {
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_DIGIT: "1",
    constants.CATEGORY_WORD: "a",
    constants.CATEGORY_NOT_SPACE: "!",
    constants.CATEGORY_NOT_DIGIT: "a",
    constants.CATEGORY_NOT_WORD: "!",
}


def collect(nodes: Iterable[Any], found: dict[str, None]) -> None:
    """Add the literals and classes of a parsed pattern, runs of literals as one."""
    run = ""
    for operator, argument in nodes:
        if operator is constants.LITERAL:
            run += chr(argument)
            continue
        if run:
            found[run] = None
            run = ""
        if operator is constants.IN:
            found[pick(argument)] = None
        elif operator is constants.ANY:
            found["x"] = None
        elif operator is constants.NOT_LITERAL:
            found["y"] = None
        elif operator is constants.BRANCH:
            for branch in argument[1]:
                collect(branch, found)
        else:
            collect_inner(argument, found)
    if run:
        found[run] = None


def collect_inner(argument: Any, found: dict[str, None]) -> None:
    """Add what the patterns within an argument hold."""
    if isinstance(argument, parser.SubPattern):
        collect(argument, found)
    elif isinstance(argument, tuple):
        for inner in argument:
            collect_inner(inner, found)


def pick(members: Iterable[Any]) -> str:
    """Return a character of a class."""
    positive = ""
    excluded = ""
    is_negated = False
    for operator, argument in members:
        if operator is constants.NEGATE:
            is_negated = True
        elif operator is constants.LITERAL:
            positive = positive or chr(argument)
            excluded += chr(argument)
        elif operator is constants.RANGE:
            positive = positive or chr(argument[0])
            excluded += "".join(
                map(chr, range(argument[0], min(argument[1] + 1, argument[0] + 128)))
            )
        elif operator is constants.CATEGORY:
            positive = positive or CATEGORIES.get(argument, "a")
    if not is_negated:
        return positive or "a"
    return next((c for c in "xa1 -_!\n" if c not in excluded), "\x01")


USES = [pytest.param(use, id=f"{use.place}.{use.method}") for use in find_patterns()]


@pytest.mark.parametrize("use", USES)
def test_a_pattern_takes_time_in_the_length_of_its_input(use: Use) -> None:
    atoms = find_atoms(use.pattern)
    require_linear(use, (("", atom, "\0") for atom in atoms))


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_so_it_does_with_two_of_its_pieces_in_turn(use: Use) -> None:
    atoms = find_atoms(use.pattern)
    pairs = [(one, other) for one, other in product(atoms, repeat=2) if one != other]
    require_linear(use, (("", atom, "\n\0") for atom in atoms))
    require_linear(use, (("", one + other, "\0") for one, other in pairs))
    require_linear(use, ((one, other, "\0") for one, other in pairs))


def require_linear(use: Use, inputs: Iterable[tuple[str, str, str]]) -> None:
    """Fail for the first beginning, repeated unit and end for which a pattern is not linear."""
    run = make_action(use)
    for start, unit, end in inputs:
        make = make_input(start, unit, end)
        found = measure_growth(run, make)
        assert not found, f"{use.place}, {use.method}: {start!r} + n * {unit!r} + {end!r}: {found}"


def make_input(start: str, unit: str, end: str) -> Callable[[int], str]:
    return lambda size: start + unit * (size // len(unit) + 1) + end


def make_action(use: Use) -> Callable[[str], object]:
    """Return the use of a pattern on a text."""
    is_bytes = isinstance(use.pattern.pattern, bytes)

    def run(text: str) -> None:
        given: Any = text.encode() if is_bytes else text
        if use.method == "finditer":
            for _ in use.pattern.finditer(given):
                pass
        elif use.method == "sub":
            use.pattern.sub(b"" if is_bytes else "", given)
        else:
            getattr(use.pattern, use.method)(given)

    return run
