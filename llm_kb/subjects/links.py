"""Links as wikis write them, `[[name#part|shown]]`, and imports of guides, `@docs/x.md`. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from llm_kb.subjects.topics import Subject, compose
from llm_kb.texts.formats import find_extension, find_format, find_stem
from llm_kb.texts.markup import hide_unread

WIKI_LINK = re.compile(
    r"(?<!\\)\[\[\s{0,8}(?P<name>[^\[\]|#\\\n\"$=<>{}*:]{1,300}?)\s{0,8}"
    r"(?P<part>#[^\[\]|\\\n]{0,300})?(?:\\?\|[^\[\]\n]{0,300})?\]\](?![(\[:])"
)
"""A link to a subject. In a table its `|` is escaped; before `(`, `[` or `:` it is another link."""

_SEPARATORS = re.compile(r"[\s_-]+")


class LinkTargets:
    """The subjects of a topic by the names with which links call them."""

    def __init__(self, subjects: Iterable[Subject]) -> None:
        self._slugs: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._ends: list[tuple[str, str]] = []
        """The names backwards, sorted: those that end alike are beside one another."""
        for subject in subjects:
            for name in {subject.slug, compose(subject.path)}:
                loose = f"/{_loosen(name)}"
                self._slugs[name][subject.slug] = None
                self._slugs[loose][subject.slug] = None
                self._ends += [] if subject.hidden else [(loose[::-1], subject.slug)]
        self._ends.sort()

    def find(self, name: str, most: int = 100) -> list[str]:
        """Return the slug that a name stands for: that slug itself, or the only one to end in it.

        Several, of many only some, if it may be any of them; none if no subject is called so.
        """
        name = compose(name)
        loose = f"/{_loosen(name)}"
        found = next((self._slugs[key] for key in (name, loose) if key in self._slugs), None)
        return sorted(islice(found or self._find_ends(loose[::-1], most), most))

    def _find_ends(self, end: str, most: int) -> dict[str, None]:
        """Return slugs of names that end in one, which is given backwards."""
        at = bisect_left(self._ends, (end, ""))
        # A subject has two names that may end so: its slug, and its path.
        near = self._ends[at : at + 2 * most]
        return dict.fromkeys(slug for each, slug in near if each.startswith(end))


def _loosen(name: str) -> str:
    """Return a name without case, and with one kind of separator, as wikis take it."""
    return _SEPARATORS.sub("-", name.casefold())


_GUIDE = re.compile(
    r"(?i)(?:agents?|claude|gemini|qwen|codex|crush|warp|copilot-instructions|[\w.-]{0,99}rules)"
    r"(?:\.local|\.override)?"
)
_IMPORT = re.compile(
    # In a run no other import begins, so that the time is linear.
    r"(?<![^\s(\[\"'*:,>])@(?=(?P<run>(?:\\ |[^\s\\@\0]|(?<![\s(\[\"'*:,>])@){1,400}))"
    r"(?P<target>[~./]{0,99}\w(?:\\ |[\w./+-]){0,300})"
)


class Import(NamedTuple):
    """An `@path` in a guide."""

    target: str
    """As it is written, without what ends a sentence around it."""
    run: str
    """All up to the next blank, as some tools take it."""
    span: tuple[int, int]

    @property
    def is_meant(self) -> bool:
        """Whether it is certainly a file of the project.

        `@team` and `@scope/package` may be something else, and not everybody has `x.local.md`.
        """
        is_own = find_stem(self.target).endswith(".local")
        return bool(find_extension(self.target) and find_format(self.target)) and not is_own


def is_guide(path: str) -> bool:
    """Tell whether a file is one that coding tools read first: they expand an `@path` in it."""
    return _GUIDE.fullmatch(find_stem(path)) is not None


def find_imports(text: str) -> Iterator[Import]:
    """Yield the imports in the text of a guide, outside code and comments."""
    if "@" not in text:
        return
    for match in _IMPORT.finditer(hide_unread(text)):
        run, target = (match[name].replace("\\ ", " ") for name in ("run", "target"))
        yield Import(target.rstrip("."), run, match.span())
