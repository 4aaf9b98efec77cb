"""What `llm kb knowledge capture` does on a real history, from the dry run to the export.

    python bench/capture_history.py [REPOSITORY...]     git directories, by default this one

Each repository is cloned, and a server on loopback that speaks OpenAI's protocol plays the
model: about one commit in seven holds an entry, one in 40 fails, in a way that its id decides
(a context that is too long, a server's error, a page of a proxy, an empty answer, and one in nine
of these a model that never stops). Printed is, for up to 500 commits with something to see:

- what was said beforehand, and what the server received, at four bytes to a token;
- seconds for each commit, and the memory of the largest process;
- that the run ends, is interrupted by Ctrl-C and goes on, and that failed commits are tried again;
- ten captures at once in one clone: every entry the model was told is recorded is there;
- review, edit and export on a terminal, a second export, and `export --check`.

Anything that does not hold ends the script with an error.
"""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.isolation import isolated_environment, make_home  # noqa: E402 - it is in no package
from tests.openai_server import Calls, OpenAIServer, Raw, Sent, serve_openai  # noqa: E402

COMMITS = int(os.environ.get("COMMITS", "500"))
FINDS = 7
FAILS = 40
WRITERS = 10
PATIENCE = 120.0

_DIRECTORY = re.compile(r"^\+\+\+ b/(?:([^/\n]+)/)?", re.MULTILINE)
_LONG = {"message": "This model's maximum context length is 8192 tokens", "type": "invalid"}
_FAULTS: dict[str, str | Raw] = {
    "too long": Raw(status=400, body=json.dumps({"error": _LONG})),
    "proxy": Raw(kind="text/html", body="<!doctype html><p>Please log in"),
    "empty": "",
    "error": Raw(status=500, body="{}", headers={"retry-after-ms": "10"}),
}


class Reviewer(OpenAIServer):
    """A model that looks at commits: what it answers is decided by the id of the commit."""

    def __init__(self, finds: int = FINDS, fails: int = 0) -> None:
        super().__init__()
        self.finds, self.fails = finds, fails
        self.faults: Counter[str] = Counter()
        self.told: set[str] = set()
        """The ids of the entries that it was told are recorded."""

    def answer(self, sent: Sent) -> str | Calls | Raw:
        """Fail, record an entry or two, or say that there is nothing."""
        commit = sent.prompt.split()[1]
        number = int(commit[:7], 16)
        outputs = sent.outputs
        if outputs:
            self.told |= set(re.findall(r"^recorded convention (\S+)", outputs[-1]))
        if self.fails and number % self.fails == 0:
            fault = [*_FAULTS, *_FAULTS, "loop"][number // self.fails % 9]
            self.faults[fault] += not outputs
            if fault != "loop":
                return _FAULTS[fault]
        elif number % self.finds or len(outputs) > number // self.finds % 3 // 2:
            return "Nothing more to record."
        found = _DIRECTORY.search(sent.prompt)
        scope = f"{found[1]}/" if found and found[1] else "*"
        rule = f"What {commit[:12]} changed as number {len(outputs)} stays so"
        return [("emit_knowledge", {"entry_type": "convention", "scope": scope, "rule": rule})]


class Clone:
    """A clone in which `llm` is run, in a home of its own."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self.path, self.environment = path, environment
        self.llm = str(Path(sys.executable).with_name("llm"))

    def git(self, *args: str) -> str:
        """Run git and return what it prints."""
        return subprocess.run(
            ["git", *args], cwd=self.path, env=self.environment, capture_output=True, text=True,
            check=True,
        ).stdout.strip()  # fmt: skip

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start `llm kb knowledge ARGS…`."""
        return subprocess.Popen(
            [self.llm, "kb", "knowledge", *args], cwd=self.path, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *args: str, code: int = 0) -> tuple[str, str]:
        """Run it; return what it prints and says. It must end with this code."""
        process = self.start(*args)
        out, messages = process.communicate()
        require(process.returncode == code, f"{args} ended with {process.returncode}: {messages}")
        return out, messages

    def entries(self) -> list[dict[str, str]]:
        """Return all entries of the store."""
        store = json.loads(self.run("list", "--json")[0])
        return [entry for kind in store.values() if isinstance(kind, list) for entry in kind]


class Terminal:
    """A command on a terminal of its own, with someone who waits for words before they type."""

    def __init__(self, clone: Clone, *args: str) -> None:
        self.clone, self.args, self.shown = clone, args, ""

    def talk(self, *turns: tuple[str, str]) -> str:
        """Type each text once its words are shown; return all that was shown when it ended."""
        outer, inner = pty.openpty()
        process = subprocess.Popen(
            [self.clone.llm, "kb", "knowledge", *self.args], cwd=self.clone.path,
            env={**self.clone.environment, "TERM": "xterm"}, start_new_session=True,
            stdin=inner, stdout=inner, stderr=inner,
        )  # fmt: skip
        os.close(inner)
        seen = 0
        for words, typed in turns:
            while words not in self.shown[seen:]:
                require(self._read(outer), f"no {words!r} in {self.shown[seen:]!r}")
            seen = len(self.shown)
            os.write(outer, typed.encode())
        while self._read(outer):
            pass
        os.close(outer)
        require(process.wait() == 0, f"{self.args} failed: {self.shown}")
        return self.shown

    def _read(self, outer: int) -> bool:
        require(bool(select.select([outer], [], [], PATIENCE)[0]), f"silence after {self.shown!r}")
        data = b""
        with suppress(OSError):  # what Linux says when the other side is closed
            data = os.read(outer, 65536)
        self.shown += data.decode(errors="replace")
        return bool(data)


def measure_work() -> float:
    """Return the seconds that the processes which have ended have worked."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def require(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"does not hold: {what}")


def main() -> None:
    for repository in [Path(path).resolve() for path in sys.argv[1:]] or [ROOT]:
        with tempfile.TemporaryDirectory() as place:
            home = Path(place, "home")
            make_home(home)
            environment = isolated_environment(home, os.environ)
            environment["PATH"] = os.environ["PATH"]
            environment["LLM_LOAD_PLUGINS"] = "llm-kb"
            environment["OPENAI_API_KEY"] = "none"
            path = Path(place, "clone")
            subprocess.run(["git", "clone", "--quiet", repository, path], check=True)
            print(
                f"\n## {repository.name if repository.name != 'repo' else repository.parent.name}"
            )
            bench(Clone(path, environment), home / "llm")


def bench(clone: Clone, user_dir: Path) -> None:
    # As many as give 500 with something to see, wherever bots and releases make up half of them.
    commits = clone.git("rev-list", "--no-merges", f"--max-count={2 * COMMITS}", "HEAD").split()
    revisions, model = f"{commits[-1]}..HEAD", ("-m", "wire", "-y")
    said = bench_dry_run(clone, (revisions, "--limit", str(COMMITS)))
    with serve_openai(user_dir, server := Reviewer(fails=FAILS)):
        seen = bench_interrupted(clone, server, (revisions, *model))
        bench_range(clone, server, (revisions, *model, "--limit", str(COMMITS - seen)), said)
        server.fails = 0
        bench_again(clone, server, (revisions, *model))
    with serve_openai(user_dir, server := Reviewer(finds=2)):
        bench_writers(clone, server, commits[:COMMITS], model)
    bench_review(clone)


def bench_dry_run(clone: Clone, chosen: Sequence[str]) -> tuple[int, int]:
    start, worked = time.perf_counter(), measure_work()
    _, messages = clone.run("capture", *chosen, "--dry-run")
    taken, worked = time.perf_counter() - start, measure_work() - worked
    found = re.search(r"([\d,]+) commits?, about ([\d,]+) tokens", messages)
    assert found
    number, tokens = (int(text.replace(",", "")) for text in found.groups())
    print(
        f"dry run: {number} commits, {tokens:,} tokens said, "
        f"{taken / number * 1e3:.0f} ms each, {worked / number * 1e3:.0f} ms of them processor time"
    )
    return number, tokens


def bench_interrupted(clone: Clone, server: Reviewer, arguments: Sequence[str]) -> int:
    process = clone.start("capture", *arguments)
    while len(server.sent) < COMMITS // 10:
        time.sleep(0.05)
        require(process.poll() is None, "it ended before Ctrl-C")
    process.send_signal(signal.SIGINT)
    start = time.perf_counter()
    out, messages = process.communicate()
    taken = time.perf_counter() - start
    require(process.returncode == 130, f"exit status {process.returncode} after Ctrl-C: {messages}")
    require("tokens sent" in messages and "the same command goes on" in messages, messages)
    rows = len(re.findall(r"^[0-9a-f]{12} ", out, re.MULTILINE))
    print(f"Ctrl-C: {rows} commits in its summary, exit status 130 after {taken:.1f} s")
    return rows - out.count("failed: ")


def bench_range(
    clone: Clone, server: Reviewer, arguments: Sequence[str], said: tuple[int, int]
) -> None:
    start, before = time.perf_counter(), len(server.sent)
    worked = measure_work()
    out, messages = clone.run("capture", *arguments, code=1)
    taken, worked = time.perf_counter() - start, measure_work() - worked
    rows = len(re.findall(r"^[0-9a-f]{12} ", out, re.MULTILINE))
    failed = len(re.findall(r"^ +failed: ", out, re.MULTILINE))
    require(f"the model failed on {failed} commit" in messages, messages)
    received = sum(sent.size for sent in server.sent) / 4
    reported = re.search(r"([\d,]+) tokens sent", messages)
    assert reported
    in_run = sum(sent.size for sent in server.sent[before:]) / 4
    print(
        f"range: {rows} more commits, {failed} failed ({dict(server.faults)}), "
        f"{taken / rows * 1e3:.0f} ms each, {worked / rows * 1e3:.0f} ms of them processor time\n"
        f"sent: {received:,.0f} tokens in {len(server.sent)} requests = "
        f"{received / said[1] - 1:+.1%} of what was said; {in_run:,.0f} in this run, which reports "
        f"{reported[1]}"
    )
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"memory of the largest process: {memory} MB")
    require(abs(int(reported[1].replace(",", "")) / in_run - 1) <= 0.1, "cost within 10 %")


def bench_again(clone: Clone, server: Reviewer, arguments: Sequence[str]) -> None:
    before = clone.entries()
    out, _ = clone.run("capture", *arguments)
    entries = clone.entries()
    rules = {entry["rule"] for entry in entries}
    ids = {entry["id"] for entry in entries}
    require(len(rules) == len(ids) == len(entries), "nothing is written twice")
    require(server.told <= ids, f"{server.told - ids} were recorded and are not there")
    most = max(Counter(entry["decided_in"] for entry in entries).values())
    require(most <= 10, "ten of a commit at most")
    rows = len(re.findall(r"^[0-9a-f]{12} ", out, re.MULTILINE))
    print(
        f"run again: {rows} commits, none failed; {len(entries) - len(before)} more entries, "
        f"{len(entries)} in all, {most} of one commit at most"
    )


def bench_writers(
    clone: Clone, server: Reviewer, commits: Sequence[str], model: Sequence[str]
) -> None:
    before, start = len(clone.entries()), time.perf_counter()
    share = len(commits) // WRITERS
    parts = [commits[start : start + share] for start in range(0, share * WRITERS, share)]
    # Each takes single commits, and all of them again: the first run has looked at them.
    writers = [clone.start("capture", "--again", *part, *model) for part in parts]
    for writer in writers:
        _, messages = writer.communicate()
        require(writer.returncode == 0, messages)
    entries = clone.entries()
    ids, rules = ({entry[name] for entry in entries} for name in ("id", "rule"))
    require(server.told <= ids, f"{server.told - ids} were recorded and are not there")
    require(len(ids) == len(rules) == len(entries), "each entry once, with an id of its own")
    taken = time.perf_counter() - start
    print(
        f"{WRITERS} writers: {len(server.told)} entries recorded, all there, "
        f"{len(entries) - before} in all, {taken:.0f} s"
    )


def bench_review(clone: Clone) -> None:
    before = {entry["id"]: entry for entry in clone.entries()}
    prompt = "[q]uit"
    Terminal(clone, "review").talk(
        *((prompt, "k\n"), (prompt, "e\n"), ("scope", "\n")),
        *(("rule", "Edited on a terminal\n"), ("stability", "experimental\n")),
        *((prompt, "r\n"), (prompt, "s\n"), (prompt, "q\n")),
    )
    after = {entry["id"]: entry for entry in clone.entries()}
    changed = [id_ for id_, entry in after.items() if entry != before[id_]]
    kept, edited = sorted(changed, key=lambda id_: after[id_]["rule"] == "Edited on a terminal")
    require(after[kept]["stability"] == "permanent", "kept")
    require(after[edited]["stability"] == "experimental", "edited")
    require(len(before) - len(after) == 1, "rejected")
    clone.run("edit", edited, "--rule", "Edited again")
    require(any(entry["rule"] == "Edited again" for entry in clone.entries()), "edit")

    Terminal(clone, "export", "--to", "KNOWLEDGE.md").talk()
    first = (clone.path / "KNOWLEDGE.md").read_bytes()
    require("up to date" in Terminal(clone, "export", "--to", "KNOWLEDGE.md").talk(), "again")
    require((clone.path / "KNOWLEDGE.md").read_bytes() == first, "the same every time")
    clone.run("export", "--to", "KNOWLEDGE.md", "--check")
    clone.run("remove", kept)
    clone.run("export", "--to", "KNOWLEDGE.md", "--check", code=1)
    print(
        f"terminal: kept, edited, rejected, skipped; {len(after)} entries exported in "
        f"{len(first):,} bytes, the second export changed none, --check saw a removed entry"
    )


if __name__ == "__main__":
    main()
