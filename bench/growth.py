"""How the cost of each command grows with the files of a topic, and on one very large real tree.

    python bench/growth.py [TREE]    TREE is added to the trees that are made; Linux in RESULTS.md
    python scripts/plot_growth.py    draws docs/growth.svg from the table in RESULTS.md

Trees of 1, 1,000, 10,000, 20,000 and 50,000 files are made of paragraphs of Django's
documentation, 1,500 characters a file; then there is one of 20,000 with a link to one of its
directories. Every figure is the processor time of a whole command, children included, in seconds,
the median of runs, and after a semicolon its peak memory in MB. "cold" is the search in a new
process, as a person runs it; "warm" is one in a process that lives on, as an MCP server does.

Beside them are a bare SQLite FTS5 with one row a paragraph, filled in one transaction and asked
with OR, and `rg` with one pattern of the question's words. The last lines are the ratios that
have a budget.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sdists import CACHE, fetch

BIN = Path(sys.executable).parent
QUESTION = "how long is a session cookie kept by the browser"
QUESTIONS = (QUESTION, "session cookie age", "which lock protects the list of devices")
CHARACTERS = 1_500
SIZES = (1, 1_000, 10_000, 20_000, 50_000)
RUNS = 5
A_DIRECTORY = 40

FTS = """
import sqlite3, sys, time
from pathlib import Path
root, database, question = sys.argv[1:]
db = sqlite3.connect(database)
if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
    columns = "path UNINDEXED, text, tokenize='porter unicode61'"
    db.execute(f"CREATE VIRTUAL TABLE t USING fts5({columns})")
    with db:
        for path in sorted(Path(root).rglob("*")):
            if path.is_file() and not path.is_symlink():
                paragraphs = path.read_text(errors="replace").split("\\n\\n")
                rows = ((str(path), paragraph) for paragraph in paragraphs)
                db.executemany("INSERT INTO t VALUES (?, ?)", rows)
words = " OR ".join(f'"{word}"' for word in question.split())
query = "SELECT path FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10"
print(len(db.execute(query, (words,)).fetchall()))
"""

WARM = """
import sys, time
from pathlib import Path
from llm_kb import KnowledgeBase
kb = KnowledgeBase.discover(Path(sys.argv[1]))
times = []
for question in sys.argv[2:] * 5:
    started = time.process_time()
    kb.find_passages(question)
    times.append(time.process_time() - started)
print(sorted(times)[len(times) // 2])
"""


class Cost(NamedTuple):
    """Processor seconds and peak megabytes of a command."""

    seconds: float
    megabytes: float


def run(root: Path, *command: str | Path) -> Cost:
    """Run a command and return its cost."""
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=root, stdout=nowhere, stderr=nowhere)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median time and the highest peak."""
    seconds = statistics.median(cost.seconds for cost in costs)
    return Cost(seconds, max(cost.megabytes for cost in costs))


def llm_kb(root: Path, *arguments: str, runs: int = RUNS) -> Cost:
    """Return the cost of `llm kb`."""
    return median([run(root, BIN / "llm", "kb", *arguments) for _ in range(runs)])


def make_tree(files: int, *, linked: bool = False) -> Path:
    """Write a topic of so many files; `linked` adds a link to one of its directories."""
    root = CACHE / "growth" / f"{files}{'-linked' if linked else ''}"
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
        text = "\n\n".join(paragraphs[start : start + 100])[:CHARACTERS]
        file.write_text(f"# Page {number}\n\n{text}\n")
    if linked:
        (root / "docs/latest").symlink_to("area0")
    (root / "llm-kb.toml").write_text('[kb.topic.docs]\ntitle = "Docs"\nsubjects = "docs"\n')
    return root


def open_tree(tree: Path) -> Path:
    """Return a workspace for a tree that exists; nothing is written into the tree."""
    root = CACHE / "growth" / tree.name
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "tree").exists():
        shutil.copytree(tree, root / "tree", symlinks=True)
    (root / "llm-kb.toml").write_text('[kb.topic.docs]\ntitle = "Tree"\nsubjects = "tree"\n')
    return root


def find_place(root: Path) -> Path:
    """Return the directory of a workspace's topic; code below `docs/` would be examples."""
    return next(place for place in (root / "docs", root / "tree") if place.exists())


def change(root: Path, files: int) -> None:
    """Write a line to the first files of a topic, as an editor does that replaces them."""
    pages = [path for path in sorted(find_place(root).rglob("*")) if path.is_file()]
    for page in pages[:files]:
        new = page.with_suffix(".new")
        new.write_bytes(page.read_bytes() + b"\nOne line more.\n")
        new.replace(page)
    time.sleep(0.1)


def settle(root: Path) -> None:
    """Let the index note the state of directories that have just changed."""
    for _ in range(2):
        time.sleep(0.1)
        run(root, BIN / "llm", "kb", "search", QUESTION)


def measure(root: Path) -> dict[str, Cost]:
    """Return the costs of a tree by what was done."""
    index = Path(os.environ["LLM_USER_PATH"]) / "kb" / "index"
    shutil.rmtree(index, ignore_errors=True)
    costs = {"first index": llm_kb(root, "search", QUESTION, runs=1)}
    settle(root)
    costs["cold search"] = llm_kb(root, "search", QUESTION)
    found = subprocess.run(
        [sys.executable, "-c", WARM, str(root), *QUESTIONS],
        capture_output=True,
        text=True,
        check=True,
    )
    costs["warm search"] = Cost(float(found.stdout), 0)
    for files in (1, 1_000):
        change(root, files)
        costs[f"after {files:,}"] = llm_kb(root, "search", QUESTION, runs=1)
    settle(root)
    costs["list"] = llm_kb(root, "list", "docs")
    costs["learn"] = llm_kb(root, "learn", "docs")
    costs["prompt"] = llm_kb(root, "prompt")
    costs["check"] = llm_kb(root, "check", runs=1)
    database = CACHE / "growth" / "bare.sqlite3"
    database.unlink(missing_ok=True)
    place = find_place(root).name
    bare = [run(root, sys.executable, "-c", FTS, place, str(database), QUESTION) for _ in range(3)]
    costs["FTS5: index"] = bare[0]
    costs["FTS5: search"] = median(bare[1:])
    words = "|".join(QUESTION.split())
    costs["rg"] = median([run(root, "rg", "-c", words, place) for _ in range(3)])
    return costs


COLUMNS = (
    *("first index", "cold search", "warm search", "after 1", "after 1,000", "list", "learn"),
    *("prompt", "check", "FTS5: index", "FTS5: search", "rg"),
)


def print_row(name: str, costs: dict[str, Cost]) -> None:
    """Print a row of the table in RESULTS.md."""
    cells = []
    for column in COLUMNS:
        cost = costs[column]
        text = f"{1000 * cost.seconds:.0f} ms" if column == "warm search" else f"{cost.seconds:.2f}"
        cells.append(
            f"{text}; {cost.megabytes:.0f}" if column in {"first index", "check"} else text
        )
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def print_ratios(costs: dict[str, dict[str, Cost]], version: float) -> None:
    """Print the ratios that have a budget."""
    small, large = costs["1"], costs["20,000"]
    for what, most in {"cold search": 1.6, "list": 2.0, "learn": 2.5, "prompt": 1.5}.items():
        ratio = large[what].seconds / small[what].seconds
        print(f"- 20,000 files / one, {what}: {ratio:.2f} (at most {most})")
    linked = costs["20,000, a link"]["cold search"].seconds / large["cold search"].seconds
    print(f"- search beside a link to a directory / without: {linked:.2f} (at most 1.3)")
    for name in ("20,000", "50,000"):
        ratio = costs[name]["check"].seconds / costs[name]["first index"].seconds
        print(f"- check / first index, {name} files: {ratio:.2f} (at most 1.2)")
        bare = costs[name]["first index"].seconds / costs[name]["FTS5: index"].seconds
        print(f"- first index / bare FTS5, {name} files: {bare:.2f} (at most 2.5)")
    whole = costs["50,000"]["cold search"].seconds / version
    print(f"- cold search of 50,000 files / `llm --version`: {whole:.2f} (at most 1.6)")


def main(tree: str | None = None) -> None:
    """Print the table and the ratios."""
    user = CACHE / "growth-user"
    shutil.rmtree(user, ignore_errors=True)
    os.environ["LLM_USER_PATH"] = str(user)
    roots = {f"{files:,}": make_tree(files) for files in SIZES}
    roots["20,000, a link"] = make_tree(20_000, linked=True)
    if tree:
        roots[f"{Path(tree).name}"] = open_tree(Path(tree))
    print(f"| files | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    costs = {}
    for name, root in roots.items():
        costs[name] = measure(root)
        print_row(name, costs[name])
    version = median([run(CACHE, BIN / "llm", "--version") for _ in range(RUNS)]).seconds
    print_ratios(costs, version)
    (CACHE / "growth.json").write_text(json.dumps(costs))


if __name__ == "__main__":
    main(*sys.argv[1:])
