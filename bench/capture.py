"""What capturing costs: one emit, and a listing of 5,000 entries.

An emit must read the note and write it back, at the least `git notes show` and
`git notes add`. The first ratio is that of a whole `emit_knowledge`, which also
resolves the commit it comes from and compares before it swaps, to these two
commands, in a repository with a store of 100 entries.

A listing must read the note and parse its JSON, at the least `git cat-file` and
`json.loads`. The second ratio is that of reading, checking and filtering the store.
What follows is for information: with the text for people of all the entries, with
JSON, and with what history says of them, which is four git processes more. Last the
whole command, beside `llm --version`. Best rounds; run with `python bench/capture.py`.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from llm_kb.capture.emission import parse_emission
from llm_kb.capture.facts import gather_facts
from llm_kb.capture.filtering import filter_by_file
from llm_kb.capture.listing import Facts, render_entries
from llm_kb.capture.notes import EMPTY_TREES, KNOWLEDGE_REF
from llm_kb.capture.store import add_to_store, load_store
from llm_kb.capture.store_format import dump_store, parse_store
from llm_kb.git import run_git

ROUNDS = 40
ENTRIES = 5000
TARGET = EMPTY_TREES[40]


def measure(*functions: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Return the seconds of the best round of each function: others share the machine."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


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
    data = dump_store(parse_store(json.dumps(raw).encode()))
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

    _, emit_best, bare_best = measure(reset, emit, bare)
    report("emit / git notes show + git notes add", emit_best, bare_best, "<= 3")


def bench_list(directory: Path) -> None:
    make_store(directory, ENTRIES)

    def bare() -> object:
        note = run_git("cat-file", "blob", f"{KNOWLEDGE_REF}:{TARGET}", cwd=directory)
        return json.loads(note)

    def read() -> object:
        return filter_by_file(load_store(directory), "src1/file1.py")

    def text() -> None:
        entries = load_store(directory).entries
        print(render_entries(entries, [Facts()] * len(entries), 0), file=io.StringIO())

    def as_json() -> None:
        print(dump_store(load_store(directory)).decode(), file=io.StringIO())

    def with_facts() -> None:
        entries = load_store(directory).entries
        facts = gather_facts(directory, entries)
        print(render_entries(entries, facts, int(time.time())), file=io.StringIO())

    best, *others = measure(bare, read, text, as_json, with_facts, rounds=25)
    names = (
        f"{ENTRIES:,} entries read, checked, filtered / cat-file + json.loads",
        "… and written for people, all of them",
        "… and written as JSON, all of them",
        "… with ages, scopes and commits since",
    )
    for name, ours, limit in zip(names, others, ("< 2", "", "", ""), strict=True):
        report(name, ours, best, limit)

    def command(*args: str) -> Callable[[], object]:
        full = [str(Path(sys.executable).with_name("llm")), *args]
        return lambda: subprocess.run(full, cwd=directory, capture_output=True, check=True)

    whole = measure(command("--version"), command("kb", "knowledge", "list"), rounds=5)
    report("the whole command / llm --version", whole[1], whole[0], "")


def report(what: str, ours: float, theirs: float, limit: str) -> None:
    """Print one line: the times, their ratio, the budget."""
    times = f"{ours * 1e3:8.1f} ms /{theirs * 1e3:8.1f} ms"
    print(f"{what:<66} {times} = {ours / theirs:5.2f}  {limit}")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        make_repository(directory)
        bench_emit(directory)
        bench_list(directory)


if __name__ == "__main__":
    main()
