"""How the cost of each command grows with the files of a topic, and on one very large real tree.

    python bench/growth.py [TREE]      TREE is added to the trees that are made; Linux in RESULTS.md
    python bench/growth.py --draw      draws bench/growth.svg from the table in RESULTS.md

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
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import NamedTuple

from sdists import CACHE, fetch

BIN = Path(sys.executable).parent
PROJECT = Path(__file__).resolve().parent.parent
PLOT = PROJECT / "bench" / "growth.svg"
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
    kb.find_passages(question, max_age=2.0)
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
    if not (root / "docs").exists():
        shutil.copytree(tree, root / "docs", symlinks=True)
    (root / "llm-kb.toml").write_text('[kb.topic.docs]\ntitle = "Docs"\nsubjects = "docs"\n')
    return root


def change(root: Path, files: int) -> None:
    """Write a line to the first files of a topic, as an editor does that replaces them."""
    pages = [path for path in sorted((root / "docs").rglob("*")) if path.is_file()]
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
    bare = [run(root, sys.executable, "-c", FTS, "docs", str(database), QUESTION) for _ in range(4)]
    costs["FTS5: index"] = bare[0]
    costs["FTS5: search"] = median(bare[1:])
    words = "|".join(QUESTION.split())
    costs["rg"] = median([run(root, "rg", "-c", words, "docs") for _ in range(3)])
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


# The plot

LINES = {"first index": "index", "check": "check", "list": "list", "cold search": "search"}
LEFT, TOP, WIDTH, HEIGHT = 70, 64, 560, 260
FILES, SECONDS = (800, 100_000), (0.1, 1000)

STYLE = """\
text{font:13px system-ui,sans-serif;fill:#444}.title{font-size:16px;font-weight:600;fill:#111}
.grid{stroke:#ddd}.index{stroke:#b0612b;fill:#b0612b}.check{stroke:#8a4fb0;fill:#8a4fb0}
.list{stroke:#3a8a4d;fill:#3a8a4d}.search{stroke:#2f6fc4;fill:#2f6fc4}.bare{stroke:#888;fill:#888}
polyline{fill:none!important;stroke-width:2.5}.end{text-anchor:end}.middle{text-anchor:middle}
text.index,text.check,text.list,text.search,text.bare{stroke:none;font-weight:600}rect{fill:#fff}
@media(prefers-color-scheme:dark){rect{fill:#14181f}text{fill:#b9c0cb}.title{fill:#eef1f5}
.grid{stroke:#333a45}.index{stroke:#e0925a;fill:#e0925a}.check{stroke:#c08ae0;fill:#c08ae0}
.list{stroke:#6cc082;fill:#6cc082}.search{stroke:#6ea8f5;fill:#6ea8f5}.bare{stroke:#999;fill:#999}}"""


def read_table(text: str) -> list[dict[str, float]]:
    """Return the rows of the table in RESULTS.md: seconds by column, and `files`."""
    rows = []
    for line in re.findall(r"^\| (?:Linux 6\.1: )?[\d,]+ \|.*;.*\|$", text, re.MULTILINE):
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) == len(COLUMNS):
            values = [float(cell.partition(";")[0].removesuffix(" ms")) for cell in cells]
            files = float(name.rpartition(" ")[2].replace(",", ""))
            rows.append({"files": files, **dict(zip(COLUMNS, values, strict=True))})
    return [row for row in rows if row["files"] > 1]


def draw(rows: list[dict[str, float]]) -> str:
    """Return the seconds of each command over the number of files, both axes logarithmic."""
    bottom = TOP + HEIGHT
    parts = [
        *(
            f'<path class="grid" d="M{LEFT} {_y(s):.0f}H{LEFT + WIDTH}"/>'
            for s in (0.1, 1, 10, 100)
        ),
        *(
            f'<text class="end" x="{LEFT - 8}" y="{_y(s) + 4:.0f}">{s:g} s</text>'
            for s in (0.1, 1, 10, 100)
        ),
        *(
            f'<text class="middle" x="{_x(n):.0f}" y="{bottom + 18}">{n:,}</text>'
            for n in (1_000, 10_000, 50_000)
        ),
    ]
    for column, name in {"FTS5: index": "bare", **LINES}.items():
        places = [(_x(row["files"]), _y(row[column])) for row in rows]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="{name}" points="{path}"/>')
        x, y = places[0]
        label = "index of bare FTS5" if name == "bare" else column
        parts.append(f'<text class="{name}" x="{x + 4:.0f}" y="{y - 8:.0f}">{label}</text>')
    lines = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 380" role="img">
<title>Processor time of commands, against the files in the topic</title>
<style>{STYLE}</style>
<rect width="660" height="380" rx="8"/>
<text class="title" x="24" y="34">Processor time of commands, by the files of a topic</text>
{lines}
<text class="middle" x="340" y="{bottom + 40}">files (the last is Linux 6.1)</text>
</svg>
"""


def _x(files: float) -> float:
    return LEFT + WIDTH * log10(files / FILES[0]) / log10(FILES[1] / FILES[0])


def _y(seconds: float) -> float:
    share = log10(max(seconds, SECONDS[0]) / SECONDS[0]) / log10(SECONDS[1] / SECONDS[0])
    return TOP + HEIGHT * (1 - share)


def main(tree: str | None = None) -> None:
    """Print the table and the ratios."""
    if tree == "--draw":
        rows = read_table((PROJECT / "bench" / "RESULTS.md").read_text(encoding="utf-8"))
        PLOT.write_text(draw(rows), encoding="utf-8")
        return
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
