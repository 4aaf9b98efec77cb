"""Real questions: asked by users of projects, each searched as `llm kb init` leaves it.

`questions/asked.jsonl` has those that choices were made with, each written anew from a thread;
`questions/asked-unseen.jsonl` has questions in users' words on other projects, written when the
ranking was almost done. Both have all the places in the documentation that answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

from known_items import QUESTIONS
from sources import CACHE, Source, clone

from llm_kb.api import KnowledgeBase

SETS = {"tune": "asked.jsonl", "report": "asked-unseen.jsonl"}


class Asked(NamedTuple):
    """A question and the places that answer it: path from the project's root, and lines."""

    text: str
    places: tuple[tuple[str, int, int], ...]

    def is_answered_by(self, path: str, first_line: int, last_line: int) -> bool:
        """Tell whether some lines are of a place that answers."""
        return any(
            path == where and first_line <= last and last_line >= first
            for where, first, last in self.places
        )


class Project(NamedTuple):
    """A project as `llm kb init` leaves it."""

    directory: Path
    kb: KnowledgeBase
    questions: list[Asked]


def read_projects(split: str) -> Iterator[Project]:
    """Yield the projects of a split with their questions."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in (QUESTIONS / SETS[split]).read_text("utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row["project"], []).append(row)
    os.environ["LLM_USER_PATH"] = str(CACHE / "asked-user")
    for name, asked in rows.items():
        directory = CACHE / "projects" / name
        if not directory.exists():
            _check_out(directory, asked[0])
        (directory / "llm-kb.toml").unlink(missing_ok=True)
        command = [Path(sys.executable).with_name("llm-kb"), "init"]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
        with chdir(directory):
            kb = KnowledgeBase.discover()
        questions = [_read(row) for row in asked if row["gold"]]
        yield Project(directory, kb, questions)


def _read(row: Mapping[str, Any]) -> Asked:
    places = [
        (os.path.normpath(f"{row['root']}/{gold['file']}"), gold["first_line"], gold["last_line"])
        for gold in row["gold"]
    ]
    return Asked(row["question"], tuple(places))


def _check_out(directory: Path, row: Mapping[str, Any]) -> None:
    """Make a work tree of a project at the commit of its questions, or of a release."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    if "release" in row:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:"]
        subprocess.run([*command, row["release"], "-d", directory.parent], check=True)
        (archive,) = directory.parent.glob(f"{row['release'].replace('==', '-')}*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(directory.parent, filter="data")
        archive.with_suffix("").with_suffix("").rename(directory)
        return
    repository = clone(Source(row["repo"], row["commit"], ""))
    command = ["git", "-C", repository, "worktree", "add", "-q", "--detach", directory]
    subprocess.run([*command, row["commit"]], check=True)
