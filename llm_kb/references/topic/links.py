"""Links between the pages of a topic: relative paths in place of addresses."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from llm_kb.files.containment import read_regular
from llm_kb.references.sources.file_names import page_key
from llm_kb.references.topic.provenance import FileRecord
from llm_kb.search.chunking.markdown import mark_fenced
from llm_kb.search.chunking.outline import find_outline

_CODE_OR_LINK = re.compile(
    r"(?<!`)(`+)(?!`)[^`\n]{0,1000}\1(?!`)|\]\((https?://[^\s<>()#]*(?:\([^\s<>()#]*\)[^\s<>()#]*)*)(?:#([^\s()]*))?\)"
)


class PageLinks:
    """The pages of a directory of fetched files, by the addresses they were fetched from.

    Files of repositories are not pages: they have a commit or a revision.
    """

    def __init__(self, root: Path, files: Mapping[str, FileRecord]) -> None:
        self.pages = {
            path: record
            for path, record in files.items()
            if not (record.commit or record.revision) and record.url.startswith("http")
        }
        self._root = root
        self._places = {page_key(record.url): path for path, record in self.pages.items()}
        self._anchors: Callable[[str], frozenset[str]] = lru_cache(maxsize=None)(self._find_anchors)

    def localize(self, path: str, text: str) -> str:
        """Return a page with its links to the others relative, as files; code stays as it is.

        The `#part` of a link is kept if the other page has a heading of that name.
        """

        def replace(found: re.Match[str]) -> str:
            key = page_key(found[2]) if found[2] else ""
            place = self._places.get(key) or self._places.get(f"{key}/")
            if not place:
                return found[0]
            has_part = found[3] and found[3].casefold() in self._anchors(place)
            part = f"#{found[3]}" if has_part else ""
            if place == path and part:
                return f"]({part})"
            return f"]({posixpath.relpath(place, posixpath.dirname(path))}{part})"

        return "".join(
            line if is_code else _CODE_OR_LINK.sub(replace, line)
            for is_code, line in mark_fenced(text.splitlines(keepends=True))
        )

    def _find_anchors(self, path: str) -> frozenset[str]:
        text = read_regular(self._root / path).decode("utf-8", "replace")
        return frozenset(part.anchor.casefold() for part in find_outline(path, text).sections)
