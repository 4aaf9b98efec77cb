"""Parses and formats git's tree objects. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

TREE = b"40000"
BLOB = b"100644"


class TreeEntry(NamedTuple):
    """One entry of a tree object, with its id in binary form."""

    mode: bytes
    name: bytes
    id: bytes

    @property
    def sort_key(self) -> bytes:
        """The key by which git sorts: the name, with a slash at the end for a tree."""
        return self.name + b"/" if self.mode == TREE else self.name


def parse_tree(data: bytes, width: int) -> tuple[TreeEntry, ...]:
    """Return the entries of a tree whose ids have `width` bytes; raise ValueError."""
    line = re.compile(rb"([0-7]+) ([^\0]+)\0(.{%d})" % width, re.DOTALL)
    entries = []
    position = 0
    while position < len(data):
        found = line.match(data, position)
        if not found:
            raise ValueError(f"no tree: {data[position : position + 80]!r}")
        entries.append(TreeEntry._make(found.groups()))
        position = found.end()
    return tuple(entries)


def format_tree(entries: Iterable[TreeEntry]) -> bytes:
    """Return a tree object of these entries, in git's order."""
    ordered = sorted(entries, key=lambda entry: entry.sort_key)
    return b"".join(b"%b %b\0%b" % entry for entry in ordered)
