"""The tree of a commit or a directory: its regular files, and which of them are wanted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llm_kb.references.file_names import is_safe_path
from llm_kb.references.sources import GitSource, LocalSource


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFile:
    """A regular file; of a commit it has a `blob`, and no size until that was fetched."""

    path: str
    blob: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The files that a source wants, and what was left out of them."""

    files: tuple[GitFile, ...]
    notes: tuple[str, ...] = ()


def select_files(source: GitSource | LocalSource, entries: Sequence[tuple[str, GitFile]]) -> Tree:
    """Keep the regular files that a source's `paths` cover, by the modes of tree entries.

    Links are not kept, submodules neither, nor what git has no mode for (`special`), nor
    names that are not safe to write.
    """
    wanted = [(mode, file) for mode, file in entries if source.wants(file.path)]
    regular = [file for mode, file in wanted if mode.startswith("100")]
    files = sorted((f for f in regular if is_safe_path(f.path)), key=lambda file: file.path)
    left_out = (
        ("link", "", sum(mode == "120000" for mode, _ in wanted)),
        ("submodule", "", sum(mode == "160000" for mode, _ in wanted)),
        ("special file", "", sum(mode == "special" for mode, _ in wanted)),
        ("file", " with an unsafe name", len(regular) - len(files)),
    )
    notes = [
        f"left out: {count:,} {what}{'' if count == 1 else 's'}{more}"
        for what, more, count in left_out
        if count
    ]
    notes += [
        f"no file matches the path {path!r}"
        for path in source.paths
        if not any(GitSource(url="", paths=(path,)).wants(file.path) for file in files)
    ]
    return Tree(files=tuple(files), notes=tuple(notes))
