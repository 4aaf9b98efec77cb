"""What searching and reading parts cost, as whole commands and in a process that lives on.

    python bench/searching.py [FILES [CHARACTERS]]     49,000 of up to 2,000 unless told

Printed are ratios of processor time, medians of pairs that are measured in turn:

command: `llm kb search` in a topic of so many files whose index is up to date / `llm --version`.
part: `llm kb learn` of one part of Django's largest pages / of the whole page; then the same of
`learn` in a process that lives on, and there the milliseconds of the first part.
And the processor time of the first index of Django's documentation, 8 MB, in a process of its own.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from reading import write_workspace
from sdists import CACHE

from llm_kb.knowledge_base.api import KnowledgeBase

LLM = Path(sys.executable).parent / "llm"
DJANGO = CACHE / "reading" / "django"
PAGES = {
    "ref/settings": "session_cookie_age",
    "ref/models/querysets": "select_for_update",
    "ref/contrib/admin/index": "modeladmin-options",
}
PER_DIRECTORY = 98
PAIRS = 7


def make_tree(files: int, characters: int) -> Path:
    """Write a topic of so many files, each a piece of Django's documentation, once."""
    root = CACHE / "files" / f"{files}-{characters}"
    if (root / "llm-kb.toml").exists():
        return root
    texts = (path.read_text() for path in sorted((DJANGO / "docs").rglob("*.txt")))
    paragraphs = "\n\n".join(texts).split("\n\n")
    chance = random.Random(1)
    for number in range(files):
        directory = number // PER_DIRECTORY
        file = root / f"docs/area{directory // 25}/part{directory}/page{number % PER_DIRECTORY}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        start = chance.randrange(len(paragraphs) - characters // 100)
        file.write_text(
            f"# Page {number}\n\n"
            + "\n\n".join(paragraphs[start : start + characters // 100])[:characters]
            + "\n"
        )
    (root / "llm-kb.toml").write_text('[kb.topic.docs]\nsubjects = "docs"\n')
    return root


def run(root: Path, *arguments: str) -> float:
    """Return the processor time of a command of `llm`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([LLM, *arguments], cwd=root, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def compare(ours: Callable[[], float], theirs: Callable[[], float]) -> float:
    """Return the median ratio of pairs."""
    return statistics.median(ours() / theirs() for _ in range(PAIRS))


def main(files: int = 49_000, characters: int = 2_000) -> None:
    user = CACHE / "searching-user"
    shutil.rmtree(user, ignore_errors=True)
    os.environ["LLM_USER_PATH"] = str(user)
    write_workspace(DJANGO, "django==5.2.19", "docs")
    root = make_tree(files, characters)
    for _ in range(2):  # the index, and after its files' last change the note on their directories
        run(root, "kb", "search", "walrus")
        time.sleep(0.1)
    for question in ("session cookie age", "how long is a session cookie kept by the browser"):
        ratio = compare(
            lambda q=question: run(root, "kb", "search", *q.split()),  # type: ignore[misc]
            lambda: run(root, "--version"),
        )
        print(f"command, {files:,} files, {question!r}: {ratio:.2f}")
    kb = KnowledgeBase.discover(DJANGO, fragments=["kb.max_result_chars=0"])
    for page, part in PAGES.items():
        addresses = f"{page}#{part}", f"{page}#*"
        ratio = compare(
            *(lambda a=each: run(DJANGO, "kb", "learn", "docs", a) for each in addresses)
        )
        parts, pages = (
            [timed(lambda a=each: kb.learn("docs", a)) for _ in range(10 * PAIRS)]
            for each in addresses
        )
        again = min(parts) / min(pages)
        print(f"part of {page}: {ratio:.2f}, {again:.2f}; first {1000 * parts[0]:.1f} ms")
    without = statistics.median(run(root, "--version") for _ in range(PAIRS))
    print(f"first index: {run(DJANGO, 'kb', 'search', 'session') - without:.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
