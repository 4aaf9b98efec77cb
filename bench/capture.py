"""What capturing costs: one emit, and a listing of 5,000 entries.

An emit must read the note and write it back, at the least `git notes show` and
`git notes add`. The first ratio is that of a whole `emit_knowledge`, which also
resolves the commit it comes from and compares before it swaps, to these two
commands, in a repository with a store of 100 entries.

A listing must read the note and parse its JSON, at the least `git cat-file` and
`json.loads`. The other ratios are those of all that `llm kb knowledge list` does, from
the repository to the last byte written: with the ages and scopes of the
listing for people, as JSON, and with `--scope`. The times are those of a clock, since a git
process works beside us, on another core if the load leaves one; for information, those of the
processor too, and the whole command beside `llm --version`. Best rounds.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from harness import BIN, least, processor_time, report, run

from llm_kb.capture.commands.knowledge import list_
from llm_kb.capture.emission import parse_emission
from llm_kb.capture.entries import dump_store, parse_store
from llm_kb.capture.notes import EMPTY_TREES, KNOWLEDGE_REF, read_note
from llm_kb.capture.store import add_to_store, parse_note
from llm_kb.files.git import run_git

ROUNDS = 40
ENTRIES = 5000
TARGET = EMPTY_TREES[40]


def make_repository(directory: Path) -> None:
    run_git("init", "--quiet", cwd=directory)
    run_git("config", "user.name", "Bench", cwd=directory)
    run_git("config", "user.email", "bench@example.com", cwd=directory)
    for number in range(50):
        path = directory / f"src{number % 10}" / f"file{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
        run_git("add", "--all", cwd=directory)
        run_git("commit", "--quiet", "-m", f"commit {number}", cwd=directory)


def make_store(directory: Path, count: int) -> bytes:
    commits = run_git("rev-list", "HEAD", cwd=directory).decode().split()
    conventions = [
        {
            "id": f"conv-{number}",
            "scope": f"src{number % 12}/",
            "rule": f"Rule {number}: every module of this kind keeps its word number {number}",
            "decided_in": commits[number % len(commits)],
            "stability": "provisional",
        }
        for number in range(1, count + 1)
    ]
    raw = {"schema": "chronicle/knowledge-v1", "conventions": conventions}
    data = dump_store(parse_store(json.dumps(raw).encode(), ValueError))
    write_note(directory, data)
    return data


def write_note(directory: Path, data: bytes) -> None:
    run_git(
        *("notes", f"--ref={KNOWLEDGE_REF}", "add", "-f", "-F", "-", TARGET),
        cwd=directory,
        stdin=data,
    )


def bench_emit(directory: Path) -> None:
    store = make_store(directory, 100)
    counter = iter(range(1_000_000))

    def bare() -> None:
        run_git("notes", f"--ref={KNOWLEDGE_REF}", "show", TARGET, cwd=directory)
        # Another note each time, since git has less to do for one it knows.
        write_note(directory, store + b"%d" % next(counter))

    def emit() -> None:
        number = next(counter)
        fields = {"pattern": f"pattern {number} of {number}", "instead": "nothing"}
        add_to_store(directory, parse_emission({"entry_type": "anti_pattern", **fields}))

    def reset() -> None:
        write_note(directory, store)

    best = least({"reset": reset, "emit": emit, "bare": bare}, ROUNDS, time.perf_counter)
    compare("emit / git notes show + git notes add", best["emit"], best["bare"], 4)


def bench_list(directory: Path) -> None:
    make_store(directory, ENTRIES)
    os.chdir(directory)
    sink = Path(os.devnull).open("w")  # noqa: SIM115 - open for as long as we run

    def bare() -> object:
        note = run_git("cat-file", "blob", f"{KNOWLEDGE_REF}:{TARGET}", cwd=directory)
        return json.loads(note)

    def read() -> object:
        return parse_note(read_note(directory, KNOWLEDGE_REF)).narrow("src1/file1.py")

    def listing(**options: object) -> Callable[[], None]:
        def run() -> None:
            with redirect_stdout(sink), redirect_stderr(sink):
                list_.callback(**{"scope": None, "json_": False, **options})

        return run

    cases = {
        "bare": bare,
        f"{ENTRIES:,} entries read, checked, filtered / cat-file + json.loads": read,
        "… listed": listing(),
        "… listed --json": listing(json_=True),
        "… listed --scope FILE": listing(scope="src1/file1.py"),
        "… listed --scope FILE --json": listing(scope="src1/file1.py", json_=True),
    }
    for clock, about in ((time.perf_counter, ""), (processor_time, " (processor)")):
        best = least(cases, 20, clock)
        base = best.pop("bare")
        for name, ours in best.items():
            compare(f"{name}{about}", ours, base, None if about else 5)

    costs = (
        run([BIN / "llm", *each], directory).wall
        for each in (["kb", "knowledge", "list"], ["--version"])
    )
    compare("the whole command / llm --version", *costs)


def compare(what: str, ours: float, theirs: float, most: float | None = None) -> None:
    report(f"{what}, {ours * 1e3:.1f} / {theirs * 1e3:.1f} ms", ours / theirs, most)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        make_repository(directory)
        bench_emit(directory)
        bench_list(directory)


if __name__ == "__main__":
    main()
