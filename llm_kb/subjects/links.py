"""Links as wikis write them: `[[name]]`, `[[name#part]]`, `[[name|shown]]`. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from llm_kb.subjects.selection import compose
from llm_kb.subjects.topics import Subject

WIKI_LINK = re.compile(
    r"(?<!\\)\[\[\s{0,8}(?P<name>[^\[\]|#\\\n\"$=<>{}*:]{1,300}?)\s{0,8}"
    r"(?P<part>#[^\[\]|\\\n]{0,300})?(?:\\?\|[^\[\]\n]{0,300})?\]\](?![(\[:])"
)
"""A link to a subject. In a table its `|` is escaped; before `(`, `[` or `:` it is another link."""

_SEPARATORS = re.compile(r"[\s_-]+")


class LinkTargets:
    """The subjects of a topic by the names with which links call them."""

    def __init__(self, subjects: Iterable[Subject]) -> None:
        self._slugs: defaultdict[str, set[str]] = defaultdict(set)
        for subject in subjects:
            for name in {subject.slug, compose(subject.path)}:
                loose = _loosen(name)
                self._slugs[name].add(subject.slug)
                self._slugs[f"/{loose}"].add(subject.slug)
                ends = [] if subject.hidden else loose.split("/")[1:]
                for number in range(len(ends)):
                    self._slugs[f"*/{'/'.join(ends[number:])}"].add(subject.slug)

    def find(self, name: str) -> list[str]:
        """Return the slug that a name stands for: that slug itself, or the only one to end in it.

        Several if it may be any of them, none if no subject is called so.
        """
        name = compose(name)
        loose = _loosen(name)
        keys = (name, f"/{loose}", f"*/{loose}")
        return sorted(next((self._slugs[key] for key in keys if key in self._slugs), ()))


def _loosen(name: str) -> str:
    """Return a name without case, and with one kind of separator, as wikis take it."""
    return _SEPARATORS.sub("-", name.casefold())
