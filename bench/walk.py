"""Listing, matching and finding in large topics, beside a bare walk of the same directory.

Builds trees of empty files in a temporary directory: 100,000 files in 31 subtrees, four
levels deep, a hundredth of them hidden; then one of 1,000 and one of 1,000,000. The
bare walk is an iterative `os.scandir` that keeps the paths it sees. Each ratio is of the
least processor time of several rounds in turn, since others share the machine; peak
memory is measured in a process of its own. Prints a line a row: what, ratio, budget.
Run with `python bench/walk.py`, with `--million` for the two rows that need a million
files (some minutes to build).
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Topic, Visibility, slugify

ROUNDS = 9
SUBTREES = 31
WORDS = (
    *("alpha", "beta", "gamma", "delta", "review", "style", "guide", "index", "notes", "model"),
    *("cache", "error", "config", "plugin", "shell", "prompt", "token", "schema", "query"),
)
EXTENSIONS = (".md", ".md", ".md", ".md", ".txt", ".py", ".toml", "")


def build(root: Path, files: int, *, a_directory: int = 50) -> None:
    """Make a tree of empty files, the same one each time."""
    rng = random.Random(files)
    for subtree in range(SUBTREES):
        left = files // SUBTREES + (subtree < files % SUBTREES)
        while left:
            levels = [rng.choice(WORDS) for _ in range(rng.randint(0, 3))]
            directory = root / f"{subtree:02}" / "/".join(levels) / f"{left}"
            directory.mkdir(parents=True)
            for _ in range(min(left, a_directory)):
                dot = "." if rng.random() < 0.01 else ""
                name = f"{dot}{'-'.join(rng.choices(WORDS, k=2))}-{left}{rng.choice(EXTENSIONS)}"
                os.close(os.open(directory / name, os.O_CREAT | os.O_WRONLY))
                left -= 1


def walk(root: Path) -> list[str]:
    """Walk a directory as fast as Python can, with the relative path of every file."""
    paths: list[str] = []
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(f"{root}/{prefix}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{prefix}{entry.name}/")
                else:
                    paths.append(prefix + entry.name)
    return paths


def measure(cases: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the least processor seconds of each case, measured in turn."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, case in cases.items():
            start = time.process_time()
            result = case()
            best[name] = min(best[name], time.process_time() - start)
            del result
    return best


def report(what: str, ratio: float, budget: float) -> None:
    """Print one row."""
    print(f"{what:<58} {ratio:8.4f}  at most {budget:<6} {'ok' if ratio <= budget else 'OVER'}")


def open_topic(root: Path) -> DirectoryCatalog:
    """Open a topic over a directory."""
    return DirectoryCatalog(Topic(id="bench", root=root))


def compare_listing(root: Path) -> None:
    """Compare a listing with the bare walk."""
    catalog = open_topic(root)
    subjects = catalog.list_subjects().subjects
    assert [s.slug for s in subjects] == sorted(map(slugify, walk(root)))
    del subjects
    best = measure(
        {
            "bare": lambda: walk(root),
            "listed": catalog.list_subjects,
        }
    )
    report(
        "every slug and flag, sorted, 100,000 files / bare walk",
        best["listed"] / best["bare"],
        2.0,
    )


def compare_guided(root: Path) -> None:
    """Compare guided walks with walking everything and filtering."""
    catalog = open_topic(root)
    listed = [s.slug for s in catalog.list_subjects().subjects if s.visibility is Visibility.LISTED]

    def filter_all(text: str) -> Callable[[], object]:
        matches = parse_pattern(text).matches
        return lambda: [s for s in catalog.list_subjects().subjects if matches(s.slug)]

    for text, budget in (("*", 0.005), ("17/**", 0.05), ("**", 1.15), ("**/*review*", 1.15)):
        pattern = parse_pattern(text)
        expected = list(filter(pattern.matches, listed))
        assert [subject.slug for subject in catalog.match(pattern)] == expected
        best = measure(
            {"guided": partial(catalog.match, pattern), "all": filter_all(text)}, rounds=5
        )
        report(f"matching {text} / full walk and filter", best["guided"] / best["all"], budget)


def compare_exact(small: Path, large: Path, what: str) -> None:
    """Compare finding one slug in a small topic and in a large one."""
    catalogs = {"small": open_topic(small), "large": open_topic(large)}
    slugs = {
        name: max(
            (s.slug for s in catalog.match(parse_pattern("00/**"))), key=lambda s: (len(s), s)
        )
        for name, catalog in catalogs.items()
    }

    def find(name: str) -> Callable[[], object]:
        return lambda: [catalogs[name].find(slugs[name]) for _ in range(50)]

    best = measure({name: find(name) for name in catalogs}, rounds=15)
    report(f"exact slug, {what}", best["large"] / best["small"], 1.2)


def peak_kilobytes(code: str, root: Path) -> int:
    """Return the peak memory of a process that runs a line."""
    ran = subprocess.run(
        [sys.executable, __file__, "--peak", code, str(root)],
        capture_output=True,
        check=True,
        text=True,
    )
    return int(ran.stdout)


def main() -> None:
    """Build the trees and print every row."""
    with tempfile.TemporaryDirectory(prefix="llm-kb-bench-") as directory:
        trees = {"small": 1_000, "large": 100_000}
        if "--million" in sys.argv:
            trees["huge"] = 1_000_000
        roots = {name: Path(directory) / name for name in trees}
        for name, files in trees.items():
            build(roots[name], files)
        compare_listing(roots["large"])
        compare_guided(roots["large"])
        compare_exact(roots["small"], roots["large"], "100,000 files / 1,000")
        idle = peak_kilobytes("nothing", roots["large"])
        grown = (peak_kilobytes("list", roots["large"]) - idle) / 1024
        report("peak memory of a list, 100,000 files, MB", grown, 60)
        if "huge" in roots:
            compare_exact(roots["small"], roots["huge"], "1,000,000 files / 1,000")
            times = measure(
                {name: open_topic(roots[name]).list_subjects for name in ("large", "huge")}, 3
            )
            report("a file of 1,000,000 / one of 100,000", times["huge"] / times["large"] / 10, 1.3)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        if sys.argv[2] == "list":
            listing = open_topic(Path(sys.argv[3])).list_subjects()
        # Not `ru_maxrss`, which a process inherits from the one that started it.
        status = Path("/proc/self/status").read_text()
        print(re.findall(r"VmHWM:\s+(\d+)", status)[0])
    else:
        main()
