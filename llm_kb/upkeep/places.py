"""Tells by file names whether a directory holds texts, pages or the files of tools."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from llm_kb.subjects.names import DOCUMENTS, is_readable
from llm_kb.upkeep.check import PROSE

SPHINX_PARTS = ("_static/", "_templates/", "conf.py")
SPHINX_TOOLS = ("Makefile", "make.bat", "requirements.txt")
SITE_PARTS = (
    *("_config.yml", "_data/", "_includes/", "_layouts/", "_plugins/", "_sass/"),
    *("overrides/", "CNAME"),
)
"""What Jekyll, MkDocs and GitHub Pages keep beside the pages of a site."""

_MADE = {part.strip("/") for part in (*SPHINX_PARTS, *SITE_PARTS)} | {"_build", "_site"}
"""Names that tools give to what they keep or write beside the pages."""

_PAGES = (PROSE - {""}) | DOCUMENTS | {*"123456789"}
_PAGES |= {"htm", "html", "ipynb", "mkd", "pod", "qmd", "rmd", "tex", "textile", "typ", "wiki"}
"""Extensions of pages; the numbers are sections of the manual."""

_MOST_LOOKED_AT = 5000
"""Files of a directory that are looked at, more or less, so that a proposal comes at once."""


def has_text(directory: Path) -> bool:
    """Tell whether a directory holds a file that may be there to be read."""
    return any(is_text(n) for n in find_names(directory) if not n.startswith("."))


def has_pages(directory: Path) -> bool:
    """Tell whether a directory holds a page, and not code alone."""
    names = (n for n in find_names(directory) if not n.startswith("."))
    return any(Path(n).suffix[1:].lower() in _PAGES and is_text(n) for n in names)


def count_pages(directory: Path) -> int:
    """Return how many names of pages a directory holds, README aside; 0 if much else is there."""
    names = [n for n in find_names(directory) if not n.startswith(".") and is_text(n)]
    pages = [n for n in names if Path(n).suffix[1:].lower() in _PAGES]
    titled = [n for n in pages if Path(n).stem.lower() != "readme"]
    return len(titled) if len(names) - len(pages) <= len(titled) // 4 else 0


def is_text(name: str) -> bool:
    """Tell whether a file of this name may be a text."""
    suffix = Path(name).suffix or name
    return is_readable(f"a{suffix}") and suffix.lower() != ".css"


def find_names(directory: Path, besides: Collection[str] = ()) -> set[str]:
    """Return the names of the files below a directory, but for some of its directories.

    A hidden directory, and a link to one, counts as a file: it is not entered.
    """
    found: set[str] = set()
    for parent, directories, names in walk(directory):
        if parent == directory:
            directories[:] = [name for name in directories if name not in besides]
        closed = (n for n in directories if n.startswith(".") or (parent / n).is_symlink())
        found.update(names, closed)
    return found


def walk(directory: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk like `os.walk`, up to a bound, and only through directories that people made."""
    looked_at = 0
    for parent, directories, names in os.walk(directory):
        yield Path(parent), directories, names
        looked_at += len(names) + len(directories)
        if looked_at > _MOST_LOOKED_AT:
            return
        directories[:] = sorted(
            name for name in directories if not name.startswith((".", "__")) and name not in _MADE
        )


def leave_out_links(root: Path, places: Iterable[str]) -> Iterator[str]:
    """Yield places, without those that are links to an earlier one."""
    seen: set[str] = set()
    for place in places:
        real = os.path.realpath(root / place)
        if real not in seen:
            seen.add(real)
            yield place


def is_inside(root: Path, place: str) -> bool:
    """Tell whether a directory exists and, links resolved, lies inside the root."""
    path = root / place
    return path.is_dir() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def list_directories(directory: Path) -> list[Path]:
    """Return the directories in a directory, without hidden ones, sorted."""
    return sorted(path for path in directory.glob("[!.]*") if path.is_dir())
