"""Finding the directories a slug may lie in without walking the topic."""

from __future__ import annotations

import os
from collections.abc import Sequence

from llm_kb.containment import Containment
from llm_kb.walk import Place, Walk, slugify_component


def find_places(walk: Walk, containment: Containment, components: Sequence[str]) -> list[Place]:
    """Return the directories whose slug these components make, whatever their dots."""
    places = [Place()]
    for component in components:
        found: dict[str, Place] = {}
        for place in places:
            for name in _find_names(walk, containment, place, component):
                child = _enter(walk, containment, place, name)
                if child is None:
                    continue
                try:
                    real = os.path.realpath(containment.prefix + child.path, strict=True)
                except OSError:
                    continue  # it has gone, or has become something else, since it was looked at
                # A directory that links reach in many ways is looked into once.
                found.setdefault(real, child)
        places = list(found.values())
    return places


def _enter(walk: Walk, containment: Containment, place: Place, name: str) -> Place | None:
    full = containment.prefix + place.path + name
    if os.path.islink(full):
        real = walk.resolve_link(place, name)
        return walk.enter(place, name, linked=True) if real and os.path.isdir(real) else None
    if os.path.isdir(full) and walk.admits(place, name, "/"):
        return walk.enter(place, name)
    return None


def _find_names(
    walk: Walk, containment: Containment, place: Place, component: str
) -> Sequence[str]:
    """Return the names in a directory that become this component of a slug.

    They are guessed where that is safe, as the directory may hold a million others.
    """
    if component.isascii():
        guesses = [dots + component for dots in ("", ".", "..")]
        found = [name for name in guesses if _exists(containment, place, name)]
        if found and not any(_ignores_case(containment, place, name) for name in found):
            return found
    # Another case, other dots, or another Unicode form: only a look at all names can tell.
    entries = walk.list_place(place)
    names = [*entries.directories, *entries.links] if entries else []
    return [name for name in names if slugify_component(name) == component]


def _exists(containment: Containment, place: Place, name: str) -> bool:
    return look_at(containment, place, name) is not None


def _ignores_case(containment: Containment, place: Place, name: str) -> bool:
    """Tell whether the disk finds this entry under another case as well."""
    other = name.swapcase()
    if other == name:
        return False
    here, there = (look_at(containment, place, each) for each in (name, other))
    return here is not None and there is not None and os.path.samestat(here, there)


def look_at(containment: Containment, place: Place, name: str) -> os.stat_result | None:
    """Return what an entry of a directory is, links not followed; None without one."""
    try:
        return os.lstat(containment.prefix + place.path + name)
    except OSError:
        return None
