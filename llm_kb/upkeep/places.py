"""Classifies directories by file names: texts, pages, or files of tools to be ignored."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from llm_kb.files.toml import decode_toml
from llm_kb.subjects.editions import find_translations
from llm_kb.subjects.names import DOCUMENTS, UNUSABLE, is_readable
from llm_kb.upkeep.check import PROSE

_SPHINX_PARTS = ("_static/", "_templates/", "_themes/", "conf.py")
_SPHINX_TOOLS = ("Makefile", "make.bat", "requirements.txt")
_SITE_PARTS = (
    *("_config.yml", "_data/", "_includes/", "_layouts/", "_plugins/", "_sass/"),
    *("overrides/", "CNAME"),
)
"""Files that Jekyll, MkDocs and GitHub Pages keep next to the pages of a site."""

_MADE = {part.strip("/") for part in (*_SPHINX_PARTS, *_SITE_PARTS)} | {"_build", "_site"}
"""Names of files that tools keep or write next to the pages."""

_PAGES = (PROSE - {""}) | DOCUMENTS | {*"123456789"}
_PAGES |= {"htm", "html", "ipynb", "mkd", "pod", "qmd", "rmd", "tex", "textile", "typ", "wiki"}
"""Extensions of pages; the numbers are sections of the manual."""

_TOOL_FILES = frozenset(
    {
        *("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "tsconfig.json"),
        *("Gemfile", "Gemfile.lock", "go.sum", "uv.lock", "poetry.lock"),
    }
)
_SPECIAL = re.compile(
    r"(?P<code>\\(?:x[0-9a-f]{2}|[nrt]|(?P<long>u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})))"
    r"|[\\*?\[\]]|\s\Z"
)
"""Text that must be escaped in a pattern; the codes of `printable` come first."""
_CONTROL = "[! -~\u00a0-\u00ac\u00ae-\ud7ff\ue000-\U0010ffff]"
"""The pattern of a control character or an undecodable byte, which no subject's name has.

A line of a pattern cannot contain such a character itself.
"""

_MOST_LOOKED_AT = 5000
"""Approximate number of files of a directory that are examined, so that proposals are fast."""


def has_text(directory: Path) -> bool:
    """Tell whether a directory has a file that may be meant for readers."""
    return any(is_text(n) for n in find_names(directory) if not n.startswith("."))


def has_pages(directory: Path) -> bool:
    """Tell whether a directory has a page, and not only code."""
    names = (n for n in find_names(directory) if not n.startswith("."))
    return any(Path(n).suffix[1:].lower() in _PAGES and is_text(n) for n in names)


def count_pages(directory: Path) -> int:
    """Return the number of page names in a directory, without README; 0 among many other files."""
    names = [n for n in find_names(directory) if not n.startswith(".") and is_text(n)]
    pages = [n for n in names if Path(n).suffix[1:].lower() in _PAGES]
    titled = [n for n in pages if Path(n).stem.lower() != "readme"]
    return len(titled) if len(names) - len(pages) <= len(titled) // 4 else 0


def is_text(name: str) -> bool:
    """Tell whether a file of this name may be a text."""
    suffix = Path(name).suffix or name
    return is_readable(f"a{suffix}") and suffix.lower() != ".css"


def find_names(directory: Path, besides: Collection[str] = ()) -> set[str]:
    """Return the names of the files below a directory, except in some of its directories.

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
    """Walk like `os.walk`, up to a limit, and only through directories made by people."""
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
    """Yield places, except for links to an earlier one."""
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


def keep_only(paths: Iterable[PurePath]) -> tuple[str, ...]:
    """Return the patterns that ignore everything but some files."""
    lines = ["/*"]
    for path in paths:
        for directory in reversed(path.parents[:-1]):
            place = escape(directory.as_posix())
            lines += [f"!/{place}/", f"/{place}/*"]
        lines.append(f"!/{escape(path.as_posix())}")
    return tuple(dict.fromkeys(lines))


def escape(path: str) -> str:
    """Return the pattern of a path, which may have codes in place of unusual characters."""
    return _SPECIAL.sub(_escape, path)


def _escape(match: re.Match[str]) -> str:
    if match["long"]:
        char = match["code"].encode().decode("unicode_escape")
        # Some names have a backslash and digits of their own.
        return char if UNUSABLE.fullmatch(char) else f"\\{match[0]}"
    return _CONTROL if match["code"] else f"\\{match[0]}"


def find_ignored(directory: Path) -> Iterator[str]:
    """Yield patterns for the files that tools keep in a documentation."""
    for source, built in (("", "_build/"), ("source/", "build/")):
        if (directory / source / "conf.py").is_file():  # Sphinx
            yield f"/{built}"
            parts = (*(f"{source}{name}" for name in _SPHINX_PARTS), *_SPHINX_TOOLS)
            yield from (f"/{part}" for part in parts if (directory / part).exists())
            break
    yield from (f"/{part}" for part in _SITE_PARTS if (directory / part).exists())
    paths = (
        (parent / name).relative_to(directory).as_posix()
        for parent, _, names in walk(directory)
        for name in names
    )
    yield from (f"/{escape(place)}" for place in find_translations(paths))
    names = find_names(directory)
    yield from sorted(_TOOL_FILES & names)
    if any(name.startswith(".") for name in names):
        yield ".*"
    yield from ignore_suffixes(names)


def find_built(root: Path, place: str) -> str | None:
    """Return the directory that mdBook writes for the book of a directory, below the root.

    None without a book.toml and its source. mdBook deletes what else it finds in that directory.
    """
    path = root / place / "book.toml"
    try:
        table = decode_toml(path.read_text("utf-8")) if path.is_file() else None
    except (OSError, ValueError):
        return None  # unreadable, or not TOML
    if table is None:
        return None
    source = _find_setting(table, "book", "src", "src")
    built = _find_setting(table, "build", "build-dir", "book")
    source, built = (os.path.normpath(f"{place}/{each}") for each in (source, built))
    is_apart = not PurePath(source).is_relative_to(built)
    return PurePath(built).as_posix() if is_apart and (root / source).is_dir() else None


def _find_setting(table: Mapping[str, object], section: str, key: str, default: str) -> str:
    settings = table.get(section)
    value = settings.get(key) if isinstance(settings, dict) else None
    return value if isinstance(value, str) else default


def ignore_suffixes(names: Iterable[str]) -> list[str]:
    """Return a pattern for each kind of file that is not text."""
    suffixes = {Path(name).suffix for name in names if not name.startswith(".")}
    return [f"*{suffix}" for suffix in sorted(suffixes) if suffix and not is_text(suffix)]
