"""What is on disk in a topic's directory, to be compared with what was fetched."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from llm_kb.references.provenance import hash_content
from llm_kb.references.regular_file import read_regular


def hash_files(root: Path) -> dict[str, str | None]:
    """Return the hashes of the files below a directory, by path; no link is followed.

    What is no file has its kind for a hash, and so differs from whatever was fetched.
    None stands for what cannot be read; a directory that cannot has a `/` at its end,
    and the topmost is `./`.
    """
    hashes: dict[str, str | None] = {}
    pending = [""]
    while pending:
        below = pending.pop()
        try:
            with os.scandir(root / below) as entries:
                found = list(entries)
        except OSError:
            hashes[below or "./"] = None
            continue
        for entry in found:
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{path}/")
            else:
                with suppress(FileNotFoundError):
                    hashes[path] = _hash(entry)
    return hashes


def _hash(entry: os.DirEntry[str]) -> str | None:
    if entry.is_symlink():
        return "link"
    if not entry.is_file(follow_symlinks=False):
        return "no file"
    try:
        return hash_content(read_regular(Path(entry.path)))
    except FileNotFoundError:
        raise
    except OSError:
        return None
