"""The add-ons of the package and of other packages, and the one way to call their hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import ParamSpec, TypeVar

from pluggy import PluginManager

from llm_kb import hookspecs
from llm_kb.errors import KbError, cut
from llm_kb.hookspecs import ToolSet

BUILT_IN = (
    "capture",
    "proposals",
)  # fmt: skip
"""The add-ons of the package, in the order of menus; each is a room with an `addon.py`."""

P = ParamSpec("P")
T = TypeVar("T")

_problems: dict[str, None] = {}


def take_problems() -> list[str]:
    """Return a line for each add-on, or part of one, that was left out since the last call."""
    lines = list(_problems)
    _problems.clear()
    return lines


def leave_out(name: str, reason: object) -> None:
    """Note that an add-on, or a part of it, is left out."""
    _problems[f"add-on {name}: left out: {cut(str(reason), 300)}"] = None


@cache
def _open(*, others: bool) -> PluginManager:
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
    yield from _gather(_open(others=True), spec, *args, **kwargs)


def _gather(
    manager: PluginManager, spec: Callable[P, Iterable[T]], *args: P.args, **kwargs: P.kwargs
) -> Iterator[tuple[str, T]]:
    """Yield that of the add-ons of a manager."""
    hook = getattr(manager.hook, spec.__name__)
    given = dict(zip(hook.spec.argnames, args, strict=False)) | kwargs
    for found in hook.get_hookimpls():
        try:
            results = list(found.function(*(given[name] for name in found.argnames)))
        except Exception as error:
            if found.plugin_name in BUILT_IN:
                raise
            leave_out(found.plugin_name, error)
            continue
        yield from ((found.plugin_name, each) for each in results)


def name_each(found: Iterable[tuple[str, str, T]], taken: Iterable[str]) -> Mapping[str, T]:
    """Return things by name, from add-on, name and thing; a name that is taken is left out."""
    kept: dict[str, T] = {}
    for add_on, name, each in found:
        if name in kept or name in taken:
            leave_out(add_on, f"the name {name!r} is taken")
        else:
            kept[name] = each
    return kept


CORE_TOOLS = frozenset({"learn", "search_knowledge"})


@cache
def find_tools(*, others: bool = True) -> Mapping[str, ToolSet]:
    """Return the tools of add-ons by the name that `-T` takes.

    Without `others`, only those of the package: so requests for tools of others stay as quick.
    """
    found = _gather(_open(others=others), hookspecs.tools)
    return name_each(((add_on, each.name, each) for add_on, each in found), CORE_TOOLS)
