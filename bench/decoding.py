"""Reading 10,000 small files and telling what they are, beside `Path.read_text`.

Ours opens each file, sees that it is a regular one and lies in the topic, reads it,
looks for a NUL and decodes it. Least processor time of several rounds in turn, since
others share the machine. Prints ratio and budget; run with `python bench/decoding.py`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.rendering.presentation import Presented, present
from llm_kb.search.index.documents import MAX_FILE_BYTES
from llm_kb.subjects.topics import SNIFFED_BYTES, Topic

FILES = 10_000
ROUNDS = 7
TEXT = "# A subject\n\n" + "Reviews look at behaviour first, and at names last.\n" * 20


def measure(cases: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the least processor seconds of each case, measured in turn."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, case in cases.items():
            start = time.process_time()
            case()
            best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> None:
    """Make the files and print every row."""
    with tempfile.TemporaryDirectory(prefix="llm-kb-bench-") as directory:
        root = Path(directory)
        for number in range(FILES):
            path = root / f"area-{number % 31:02}" / f"subject-{number:05}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(TEXT)
        catalog = DirectoryCatalog(Topic(id="bench", root=root))
        subjects = list(catalog.list().subjects)
        paths = [root / subject.path for subject in subjects]

        def decode(limit: int | None = None) -> list[str]:
            texts = []
            for subject in subjects:
                data = catalog.read(subject, limit).data
                assert data.find(0, 0, SNIFFED_BYTES) < 0
                texts.append(data.decode())
            return texts

        def present_all() -> list[Presented]:
            return [present(subject, catalog.read(subject)) for subject in subjects]

        def read_plainly() -> list[bytes]:
            return [read_bytes(str(path)) for path in paths]

        assert decode() == [path.read_text() for path in paths]
        best = measure(
            {
                "ours": decode,
                "limited": lambda: decode(MAX_FILE_BYTES),
                "pathlib": lambda: [path.read_text() for path in paths],
                "presented": present_all,
                "plain": read_plainly,
            }
        )
        ratio = best["ours"] / best["pathlib"]
        verdict = "ok" if ratio <= 0.5 else "OVER"
        print(f"read, sniff, decode / Path.read_text       {ratio:.3f}  at most 0.5  {verdict}")
        print(f"… at most 8 MB of each, as a search does   {best['limited'] / best['pathlib']:.3f}")
        print(
            f"… presented as a model sees it             {best['presented'] / best['pathlib']:.3f}"
        )
        print(f"open, read, close and no more              {best['plain'] / best['pathlib']:.3f}")


def read_bytes(path: str) -> bytes:
    """Read a file with three calls of the system."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 1 << 12)
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
