"""What the benchmarks share: a cache outside of the repository, source trees, and processor time.

The cache is `LLM_KB_BENCH_CACHE`, else a folder of the temporary directory.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("LLM_KB_BENCH_CACHE") or Path(tempfile.gettempdir(), "llm-kb-bench"))
BIN = Path(sys.executable).parent
SAMPLE = Path(__file__).parent.parent / "sample_kb"
A_DIRECTORY = 40
"""Files of each directory of a tree that is made."""


def fetch(requirement: str) -> Path:
    """Download and unpack a source distribution of the package index, once."""
    name, _, version = requirement.partition("==")
    target = CACHE / f"{name}-{version}"
    if not target.exists():
        archives = CACHE / "sdists"
        archives.mkdir(parents=True, exist_ok=True)
        pattern = f"{name.replace('-', '[-_]')}-{version}.tar.gz"
        if not list(archives.glob(pattern)):
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name,
                 "-d", archives, requirement],
                check=True,
            )  # fmt: skip
        with tarfile.open(next(archives.glob(pattern))) as archive:
            archive.extractall(CACHE, filter="data")
    return target


def make_tree(root: Path, files: int, characters: int = 1_500) -> Path:
    """Write a topic of so many files of paragraphs of Django's documentation, once."""
    if (root / "llm-kb.toml").exists():
        return root
    pages = sorted((fetch("django==5.2.19") / "docs").rglob("*.txt"))
    paragraphs = "\n\n".join(page.read_text() for page in pages).split("\n\n")
    chance = random.Random(files)
    for number in range(files):
        place = number // A_DIRECTORY
        file = root / f"docs/area{place // 25}/part{place}/page{number % A_DIRECTORY}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        start = chance.randrange(len(paragraphs) - 100)
        text = "\n\n".join(paragraphs[start : start + 100])[:characters]
        file.write_text(f"# Page {number}\n\n{text}\n")
    (root / "llm-kb.toml").write_text('[kb.topic.docs]\ntitle = "Docs"\nsubjects = "docs"\n')
    return root


def use_new_user(name: str) -> Path:
    """Let `llm` have a user directory that is empty."""
    user = CACHE / f"{name}-user"
    shutil.rmtree(user, ignore_errors=True)
    os.environ["LLM_USER_PATH"] = str(user)
    return user


class Cost(NamedTuple):
    """What a command cost: seconds that passed, and of the processor; megabytes at the peak."""

    wall: float
    seconds: float
    megabytes: float = 0


def run(command: Sequence[str | Path], directory: Path = SAMPLE) -> Cost:
    """Run a command and return its cost, children included."""
    nowhere, start = subprocess.DEVNULL, time.perf_counter()
    process = subprocess.Popen(command, cwd=directory, stdout=nowhere, stderr=nowhere)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median times and the highest peak."""
    wall, seconds, megabytes = zip(*costs, strict=True)
    return Cost(statistics.median(wall), statistics.median(seconds), max(megabytes))


def processor_time() -> float:
    """Return the seconds this process and its finished children have worked."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def timed(work: Callable[[], object], clock: Callable[[], float] = processor_time) -> float:
    """Return the seconds of some work."""
    start = clock()
    work()
    return clock() - start


def least(
    works: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = processor_time,
) -> dict[str, float]:
    """Return the seconds of the best round of each work; they take turns, on a shared machine."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            best[name] = min(best[name], timed(work, clock))
    return best


def compare(ours: Callable[[], Cost], theirs: Callable[[], Cost], pairs: int) -> Cost:
    """Return the medians of the ratios of pairs."""
    taken = [(ours(), theirs()) for _ in range(pairs)]
    return median([Cost(a.wall / b.wall, a.seconds / b.seconds) for a, b in taken])


def report(what: str, figure: float, most: float | None = None) -> None:
    """Print a figure, with its budget if it has one."""
    verdict = f"  at most {most:<4} {'ok' if figure <= most else 'OVER'}" if most else ""
    print(f"{what:<62} {figure:8.3f}{verdict}", flush=True)
