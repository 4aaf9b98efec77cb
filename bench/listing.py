"""`llm kb list` on 10,000 subjects, beside the walk it stands on.

In one process, so that start-up is left out of both: the command, run as the real
`llm` runs it, against walking the topic and naming its subjects (`list_subjects`).
Prints ratios of best rounds; run with `python bench/listing.py`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import llm.cli
from click.testing import CliRunner

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.subjects.topics import Topic

FILES = 10_000
ROUNDS = 9


def make_topic(root: Path) -> None:
    """Write a workspace of one topic, its files in 217 directories."""
    for number in range(FILES):
        directory = root / "kb" / f"area-{number % 31}" / f"part-{number % 7}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"subject-{number:05}.md").write_text(f"# Subject {number}\n\nText.\n")
    (root / "llm-kb.toml").write_text('[kb.topic.big]\nsubjects = "kb"\n')


def measure(function: Callable[[], object]) -> float:
    """Return the seconds of processor time of the best round: others share the machine."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def compare(root: Path) -> None:
    """Print one line for each form of the list."""
    catalog = DirectoryCatalog(Topic(id="big", root=root / "kb"))
    walk = measure(lambda: list(catalog.list().subjects))
    print(f"{FILES:,} files; the walk takes {walk * 1e3:.1f} ms")
    for arguments in ([], ["big"], ["big", "--json"], ["big", "--tree"]):
        command = ["kb", "list", *arguments]
        assert run(command) == 0
        seconds = measure(partial(run, command))
        print(f"llm {' '.join(command):22} / walk {seconds / walk:6.2f}   ({seconds * 1e3:.1f} ms)")


def run(command: Sequence[str]) -> int:
    """Run `llm` in this process and return its exit code."""
    return CliRunner().invoke(llm.cli.cli, command).exit_code


def main() -> None:
    """Compare every form of the list with the walk."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ["LLM_USER_PATH"] = str(root / "user")
        make_topic(root)
        os.chdir(root)
        compare(root)
        os.chdir("/")


if __name__ == "__main__":
    main()
