"""Groups long lists of slugs by patterns that narrow them down.

Ten thousand names are too many to read. They are partitioned into
groups, each of which is exactly what one pattern matches.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

_WILDCARDS = re.compile(r"([*?\[])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The names that one pattern matches, and no others.

    All begin with `stem`, and `rest` matches the remainder: `**` below a
    directory, `*` side by side, `*/**` in directories side by side, or nothing.
    """

    stem: str
    rest: str
    names: tuple[str, ...]

    @property
    def pattern(self) -> str:
        """The pattern that matches exactly these names."""
        return _WILDCARDS.sub(r"[\1]", self.stem) + self.rest


def narrow(names: Iterable[str], *, few: int, most: int) -> tuple[Group, ...]:
    """Partition names into at most `most` groups, of at most `few` names each if possible.

    The largest group is split first. Groups are sorted by their patterns.
    """
    whole = Group(stem="", rest="**", names=tuple(sorted(names)))
    # heapq pops the smallest, so counts are negative; the stem breaks ties.
    heap = [(-len(whole.names), whole.stem, whole.rest, whole)]
    done: list[Group] = []
    while heap:
        group = heapq.heappop(heap)[-1]
        room = most - len(heap) - len(done)
        parts = _split(group, room) if len(group.names) > few else ()
        for part in parts:
            heapq.heappush(heap, (-len(part.names), part.stem, part.rest, part))
        if not parts:
            done.append(group)
    return tuple(sorted(done, key=lambda group: group.pattern))


def _split(group: Group, room: int) -> tuple[Group, ...]:
    """Return at most `room` groups of the same names; none if that is impossible.

    A directory is split into its files and its directories. If those are too
    many, and among files side by side, the next character decides.
    """
    if group.rest == "**":
        parts = _divide(group, _by_component, len(group.stem))
        if len(parts) <= room:
            return parts
    start = _count_alike(group.names) if group.rest == "*" else len(group.stem)
    parts = _divide(group, _by_character, start)
    # Names that are all alike cannot be told apart any more.
    return parts if len(parts) <= room and parts != (group,) else ()


def _count_alike(names: Sequence[str]) -> int:
    """Return the length of the common start of sorted names."""
    first, last = names[0], names[-1]
    pairs = enumerate(zip(first, last, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(last)))


def _divide(
    group: Group, key: Callable[[str, int], tuple[str, str]], start: int
) -> tuple[Group, ...]:
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name in group.names:
        found[key(name, start)].append(name)
    return tuple(
        Group(stem=stem, rest=rest, names=tuple(names)) for (stem, rest), names in found.items()
    )


def _by_component(name: str, start: int) -> tuple[str, str]:
    """Separate the names below each directory from the other names."""
    end = name.find("/", start) + 1
    return (name[:end], "**") if end else (name[:start], "*")


def _by_character(name: str, start: int) -> tuple[str, str]:
    """Lengthen the stem by a character."""
    stem = name[: start + 1]
    if "/" in name[start:]:
        return stem, "**" if stem.endswith("/") else "*/**"
    return stem, "*" if len(name) > start else ""
