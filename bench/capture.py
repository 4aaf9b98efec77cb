"""What capturing costs: one emit, and a listing of 5,000 entries.

An emit must read the note and write it back, at the least `git notes show` and
`git notes add`. The first ratio is that of a whole `emit_knowledge`, which also
resolves the commit it comes from and compares before it swaps, to these two
commands, in a repository with a store of 100 entries.

A listing must read the note and parse its JSON, at the least `git cat-file` and
`json.loads`. The other ratios are those of all that `llm kb knowledge list` does, from
the repository to the last byte written: with the ages and scopes of the
listing for people, as JSON, and with `--scope`. The times are those of a clock, since a git
process works beside us, on another core if the load leaves one. For information the
processor time of both sides, children included, and the whole command beside
`llm --version`. Best rounds; run with `python bench/capture.py`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from llm_kb.capture.emission import parse_emission
from llm_kb.capture.entries import dump_store, parse_store
from llm_kb.capture.notes import EMPTY_TREES, KNOWLEDGE_REF, read_note
from llm_kb.capture.store import add_to_store, parse_note
from llm_kb.commands.knowledge.group import list_
from llm_kb.files.git import run_git

ROUNDS = 40
ENTRIES = 5000
TARGET = EMPTY_TREES[40]


def measure(
    *functions: Callable[[], object],
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the seconds of the best round of each function: others share the machine."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, taken in zip(functions, times, strict=True):
            start = clock()
            function()
            taken.append(clock() - start)
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

    _, emit_best, bare_best = measure(reset, emit, bare)
    report("emit / git notes show + git notes add", emit_best, bare_best, "<= 4")


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
            with redirect_stdout(sink):
                list_.callback(**{"scope": None, "json_": False, **options})

        return run

    cases = {
        f"{ENTRIES:,} entries read, checked, filtered / cat-file + json.loads": read,
        "… listed": listing(),
        "… listed --json": listing(json_=True),
        "… listed --scope FILE": listing(scope="src1/file1.py"),
        "… listed --scope FILE --json": listing(scope="src1/file1.py", json_=True),
    }
    functions = (bare, *cases.values())
    for clock, limit in ((time.perf_counter, "<= 5"), (processor_time, "")):
        best, *others = measure(*functions, rounds=20, clock=clock)
        for name, ours in zip(cases, others, strict=True):
            report(name if limit else f"{name} (processor)", ours, best, limit)

    def command(*args: str) -> Callable[[], object]:
        full = [str(Path(sys.executable).with_name("llm")), *args]
        return lambda: subprocess.run(full, cwd=directory, capture_output=True, check=True)

    whole = measure(command("--version"), command("kb", "knowledge", "list"), rounds=5)
    report("the whole command / llm --version", whole[1], whole[0], "")


def processor_time() -> float:
    """Return the seconds this process and its finished children have worked."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


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
