"""The add-ons of the package and of other packages, and the one way to call their hooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ParamSpec, TypeVar

from pluggy import PluginManager

from llm_kb import hookspecs
from llm_kb.errors import KbError, quote
from llm_kb.hookspecs import ToolSet

BUILT_IN = (
    "capture",
    "documents",
    "proposals",
    "references",
)  # fmt: skip
"""The add-ons of the package, in the order of menus; each is a room with an `addon.py`."""

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

left_out: set[str] = set()


def leave_out(name: str, reason: object) -> None:
    """Print once that an add-on, or a part of it, is left out."""
    line = f"llm-kb: left out of add-on {quote(name)}: {quote(str(reason), 300)}\n"
    if line not in left_out:
        left_out.add(line)
        sys.stderr.write(line)


@cache
def open_all(*, others: bool) -> PluginManager:
    """Return the add-ons of the package, perhaps with those of other packages."""
    manager = PluginManager("llm_kb")
    manager.add_hookspecs(hookspecs)
    for name in BUILT_IN:
        manager.register(import_module(f"llm_kb.{name}.addon"), name)
    for entry in entry_points(group="llm_kb") if others else ():
        try:
            _register(manager, entry)
        except Exception as error:  # noqa: BLE001 - another's code must not break a request
            leave_out(entry.name, error)
    return manager


def _register(manager: PluginManager, entry: EntryPoint) -> None:
    """Add an add-on of another package. Raises whatever is wrong with it."""
    plugin = entry.load()
    manager.register(plugin, entry.name)
    callers = manager.get_hookcallers(plugin) or []
    if unknown := [each.name for each in callers if not each.has_spec()]:
        manager.unregister(plugin)
        raise KbError(f"it is too new, and uses {', '.join(unknown)}; upgrade llm-kb")


def gather(
    spec: Callable[P, Iterable[T]], *args: P.args, **kwargs: P.kwargs
) -> Iterator[tuple[str, T]]:
    """Yield all that the add-ons return for a hook, each with the name of its add-on.

    An add-on of another package that fails is left out.
    """
    yield from _gather(open_all(others=True), spec, *args, **kwargs)


def _gather(
    manager: PluginManager, spec: Callable[P, Iterable[T]], *args: P.args, **kwargs: P.kwargs
) -> Iterator[tuple[str, T]]:
    """Yield that of the add-ons of a manager."""
    hook = getattr(manager.hook, spec.__name__)
    given = dict(zip(hook.spec.argnames, args, strict=False)) | kwargs
    for found in hook.get_hookimpls():
        add_on = found.plugin_name
        results = guard(add_on, partial(list_all, found.function), ())
        yield from ((add_on, e) for e in results(*(given[name] for name in found.argnames)))


def list_all(function: Callable[..., Iterable[T]], *args: object) -> list[T]:
    """Return all that a function returns or yields."""
    return list(function(*args))


def name_each(
    found: Iterable[tuple[str, T]],
    read: Callable[[str, T], tuple[str, U]],
    taken: Iterable[str] = (),
) -> Mapping[str, U]:
    """Return what add-ons brought by name; what cannot be read, or has a name that is taken, goes.

    `read` returns the name and the thing, from the add-on and what it brought.
    """
    kept: dict[str, U] = {}
    for add_on, each in found:
        name, thing = guard(add_on, read, (None, None))(add_on, each)
        if name in kept or name in taken:
            leave_out(add_on, f"the name {name} is taken")
        elif name is not None:
            kept[name] = thing
    return kept


def guard(add_on: str, function: Callable[..., Any], default: Any) -> Callable[..., Any]:
    """Return what an add-on gave to be called later; one of another package may fail then."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - another's code must not break a request
            leave_out(add_on, error)
            return default

    return function if add_on in BUILT_IN else call


CORE_TOOLS = frozenset({"learn", "search_knowledge"})


@cache
def find_tools(*, others: bool = True) -> Mapping[str, ToolSet]:
    """Return the tools of add-ons by the name that `-T` takes.

    Without `others`, only those of the package: so requests for tools of others stay as quick.
    """
    found = _gather(open_all(others=others), hookspecs.tools)
    return name_each(found, _guard_tools, CORE_TOOLS)


def _guard_tools(add_on: str, tools: ToolSet) -> tuple[str, ToolSet]:
    return tools.name, replace(
        tools,
        open=guard(add_on, tools.open, ()),
        is_offered=guard(add_on, tools.is_offered, False),
        find_problem=guard(add_on, tools.find_problem, f"{tools.name} failed"),
    )
