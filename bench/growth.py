"""How the cost of each command grows with the files of a topic, and on one very large real tree.

    python bench/growth.py [FILES... | TREE]    TREE is measured, too; Linux in RESULTS.md
    python scripts/plot_growth.py               draws docs/growth.svg from the table in RESULTS.md

Trees of 1, 1,000, 10,000, 20,000 and 50,000 files, or of so many, are made of paragraphs of
Django's documentation, 1,500 characters a file; then there is one of up to 20,000 with a link to
one of its directories. Every figure is the processor time of a whole command, children included, in
seconds, the median of runs, and after a semicolon its peak memory in MB. "cold" is the search in a
new process, as a person runs it; "warm" is one in a process that lives on, as an MCP server does.

Beside them are a bare SQLite FTS5 with one row a paragraph, filled in one transaction and asked
with OR, and `rg` with one pattern of the question's words, if it is installed. The last lines are
the ratios that have a budget.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from harness import BIN, CACHE, Cost, make_tree, median, report, run, use_new_user

QUESTION = "how long is a session cookie kept by the browser"
QUESTIONS = (QUESTION, "session cookie age", "which lock protects the list of devices")
SIZES = (1, 1_000, 10_000, 20_000, 50_000)
RUNS = 5

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


def llm_kb(root: Path, *arguments: str, runs: int = RUNS) -> Cost:
    """Return the cost of `llm kb`."""
    return median([run([BIN / "llm", "kb", *arguments], root) for _ in range(runs)])


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
        run([BIN / "llm", "kb", "search", QUESTION], root)


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
    costs["warm search"] = Cost(0, float(found.stdout))
    for files in (1, 1_000):
        change(root, files)
        costs[f"after {files:,}"] = llm_kb(root, "search", QUESTION, runs=1)
    settle(root)
    costs["list"] = llm_kb(root, "list", "docs")
    costs["learn"] = llm_kb(root, "show", "--as-model", "docs")
    costs["prompt"] = llm_kb(root, "prompt")
    costs["check"] = llm_kb(root, "check", runs=1)
    database = CACHE / "growth" / "bare.sqlite3"
    database.unlink(missing_ok=True)
    place = find_place(root).name
    command = [sys.executable, "-c", FTS, place, database, QUESTION]
    bare = [run(command, root) for _ in range(3)]
    costs["FTS5: index"] = bare[0]
    costs["FTS5: search"] = median(bare[1:])
    if shutil.which("rg"):
        words = "|".join(QUESTION.split())
        costs["rg"] = median([run(["rg", "-c", words, place], root) for _ in range(3)])
    return costs


COLUMNS = (
    *("first index", "cold search", "warm search", "after 1", "after 1,000", "list", "learn"),
    *("prompt", "check", "FTS5: index", "FTS5: search", "rg"),
)


def print_row(name: str, costs: dict[str, Cost]) -> None:
    """Print a row of the table in RESULTS.md."""
    cells = []
    for column in COLUMNS:
        if not (cost := costs.get(column)):
            cells.append("-")
            continue
        text = f"{1000 * cost.seconds:.0f} ms" if column == "warm search" else f"{cost.seconds:.2f}"
        cells.append(
            f"{text}; {cost.megabytes:.0f}" if column in {"first index", "check"} else text
        )
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def print_ratios(costs: dict[str, dict[str, Cost]], version: float) -> None:
    """Print the ratios that have a budget."""

    def divide(what: str, upper: Cost, lower: float, most: float) -> None:
        report(what, upper.seconds / lower, most)

    small, *_, (middle, half), (most_files, large), (_, linked) = costs.items()
    for what, most in {"cold search": 1.6, "list": 2.0, "learn": 2.5, "prompt": 1.5}.items():
        divide(f"{middle} files / {small[0]}, {what}", half[what], small[1][what].seconds, most)
    cold = half["cold search"].seconds
    divide("search beside a link / without", linked["cold search"], cold, 1.3)
    for name, found in ((middle, half), (most_files, large)):
        divide(f"check / first index, {name}", found["check"], found["first index"].seconds, 1.2)
        bare = found["FTS5: index"].seconds
        divide(f"first index / bare FTS5, {name}", found["first index"], bare, 2.5)
    whole = large["cold search"]
    divide(f"cold search of {most_files} files / `llm --version`", whole, version, 1.6)


def main(*arguments: str) -> None:
    """Print the table and the ratios."""
    use_new_user("growth")
    trees = CACHE / "growth"
    sizes = [int(each) for each in arguments if each.isdigit()] or SIZES
    roots = {f"{files:,}": make_tree(trees / str(files), files) for files in sizes}
    files = sizes[-2]
    roots[f"{files:,}, a link"] = linked = make_tree(trees / f"{files}-linked", files)
    if not (link := linked / "docs/latest").is_symlink():
        link.symlink_to("area0")
    if not shutil.which("rg"):
        print("left out: rg, which is not installed")
    print(f"| files | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}", flush=True)
    costs = {}
    for name, root in roots.items():
        costs[name] = measure(root)
        print_row(name, costs[name])
    version = median([run([BIN / "llm", "--version"]) for _ in range(RUNS)]).seconds
    print_ratios(costs, version)
    for tree in (Path(each) for each in arguments if not each.isdigit()):
        print_row(tree.name, measure(open_tree(tree)))


if __name__ == "__main__":
    main(*sys.argv[1:])
