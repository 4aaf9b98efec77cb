"""Find the directories that the components of a slug lead to, without a walk."""

from __future__ import annotations

import os
from collections.abc import Sequence

from llm_kb.files.containment import Containment
from llm_kb.files.walk import Place, Walk, slugify_component


def find_places(walk: Walk, containment: Containment, components: Sequence[str]) -> list[Place]:
    """Return the directories whose slug these components make, whatever their dots."""
    places = {containment.prefix: Place()}
    """By the path without links, so that a directory reached in many ways is there once."""
    for component in components:
        found: dict[str, Place] = {}
        for real, place in places.items():
            for name in _find_names(walk, containment, place, component):
                entered = _enter(walk, containment, real, place, name)
                if entered is not None:
                    found.setdefault(*entered)
        places = found
    return list(places.values())


def _enter(
    walk: Walk, containment: Containment, real: str, place: Place, name: str
) -> tuple[str, Place] | None:
    """Return a directory in another one, with its path without links; None if it is not one."""
    full = containment.prefix + place.path + name
    if os.path.islink(full):
        target = walk.resolve_link(place, name)
        if target is None or not os.path.isdir(target):
            return None
        return target.rstrip(os.sep) + os.sep, walk.enter(place, name, linked=True)
    if os.path.isdir(full) and walk.admits(place, name, "/"):
        return f"{real}{name}{os.sep}", walk.enter(place, name)
    return None


def _find_names(
    walk: Walk, containment: Containment, place: Place, component: str
) -> Sequence[str]:
    """Return the names in a directory that become this component of a slug.

    They are guessed where that is safe, as the directory may hold a million others.
    """
    if component.isascii():
        guesses = [dots + component for dots in ("", ".", "..")]
        found = [name for name in guesses if look_at(containment, place, name) is not None]
        if found and not any(_ignores_case(containment, place, name) for name in found):
            return found
    # Another case, other dots, or another Unicode form: only a look at all names can tell.
    entries = walk.list_place(place)
    names = [*entries.directories, *entries.links] if entries else []
    return [name for name in names if slugify_component(name) == component]


def _ignores_case(containment: Containment, place: Place, name: str) -> bool:
    """Tell whether the disk finds this entry under another case as well."""
    other = name.swapcase()
    if other == name:
        return False
    here, there = (look_at(containment, place, each) for each in (name, other))
    return here is not None and there is not None and os.path.samestat(here, there)


def look_at(containment: Containment, place: Place, name: str) -> os.stat_result | None:
    """Return the status of a directory's entry, links not followed; None without one."""
    try:
        return os.lstat(containment.prefix + place.path + name)
    except OSError:
        return None
