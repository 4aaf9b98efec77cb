"""Find the directories that the components of a slug lead to, without a walk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence

from llm_kb.files.containment import Containment
from llm_kb.files.walk import MAX_LEVELS, Place, Walk, slugify_component


def find_places(walk: Walk, containment: Containment, components: Sequence[str]) -> list[Place]:
    """Return the directories whose slug these components make, whatever their dots."""
    if len(components) > MAX_LEVELS:
        return []
    places = {containment.prefix: Place()}
    """By the path without links, so that a directory reached in many ways is there once."""
    for component in components:
        found: dict[str, Place] = {}
        for real, place in places.items():
            for name, status in _find_entries(walk, containment, place, component):
                entered = _enter(walk, real, place, name, status)
                if entered is not None:
                    found.setdefault(*entered)
        places = found
    return list(places.values())


def _enter(
    walk: Walk, real: str, place: Place, name: str, status: os.stat_result
) -> tuple[str, Place] | None:
    """Return a directory in another one, with its path without links; None if it is not one."""
    if stat.S_ISLNK(status.st_mode):
        target = walk.resolve_link(place, name)
        if target is None or not os.path.isdir(target):
            return None
        return target.rstrip(os.sep) + os.sep, walk.enter(place, name, linked=True)
    if stat.S_ISDIR(status.st_mode) and walk.admits(place, name, "/"):
        return f"{real}{name}{os.sep}", walk.enter(place, name)
    return None


def _find_entries(
    walk: Walk, containment: Containment, place: Place, component: str
) -> list[tuple[str, os.stat_result]]:
    """Return the entries of a directory whose name becomes this component of a slug.

    Names are guessed where that is safe, as the directory may hold a million others.
    """
    if component.isascii():
        guesses = [dots + component for dots in ("", ".", "..")]
        found = _look_at_each(containment, place, guesses)
        if found and not any(_ignores_case(containment, place, *entry) for entry in found):
            return found
    # Another case, other dots, or another Unicode form: only a look at all names can tell.
    entries = walk.list_place(place)
    names = [*entries.directories, *entries.links] if entries else []
    named = [name for name in names if slugify_component(name) == component]
    return _look_at_each(containment, place, named)


def _look_at_each(
    containment: Containment, place: Place, names: Iterable[str]
) -> list[tuple[str, os.stat_result]]:
    looks = ((name, look_at(containment, place, name)) for name in names)
    return [(name, status) for name, status in looks if status is not None]


def _ignores_case(
    containment: Containment, place: Place, name: str, status: os.stat_result
) -> bool:
    """Tell whether the disk finds this entry under another case as well."""
    other = name.swapcase()
    there = look_at(containment, place, other) if other != name else None
    return there is not None and os.path.samestat(status, there)


def look_at(containment: Containment, place: Place, name: str) -> os.stat_result | None:
    """Return the status of a directory's entry, links not followed; None without one."""
    try:
        return os.lstat(containment.prefix + place.path + name)
    except OSError:
        return None
