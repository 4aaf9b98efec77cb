"""Every file below a directory; nothing is ignored, and no link is followed.

For directories that are not a topic, or whose files are compared with a record.
The subjects of a topic are found by `walk`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path


def iter_files(
    root: Path, enters: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, os.DirEntry[str] | OSError]]:
    """Yield path and entry of everything that is not a directory, in no order.

    Paths are relative and `/`-separated; `enters` is given those of directories, which end in
    `/`, and tells whether to enter them. For a directory that cannot be read, the error stands
    in place of the entry; the path of the root is then `./`.
    """
    pending = [""]
    while pending:
        below = pending.pop()
        try:
            with os.scandir(root / below) as entries:
                found = list(entries)
        except OSError as error:
            yield below or "./", error
            continue
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                yield f"{below}{entry.name}", entry
            elif enters(f"{below}{entry.name}/"):
                pending.append(f"{below}{entry.name}/")
