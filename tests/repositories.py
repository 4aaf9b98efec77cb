"""Repositories made with the real git."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_kb.capture.emission import parse_emission
from llm_kb.capture.store import add_to_store
from llm_kb.files.git import run_git
from tests.git_templates import copy_empty_repository, copy_made, copy_repository

SHA1_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
KNOWLEDGE_REF = "refs/notes/chronicle-knowledge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A repository on disk and what tests do to it."""

    path: Path

    def git(self, *args: str, stdin: str = "") -> str:
        """Run git here and return what it printed, without the last line's end."""
        done = run_git(*args, cwd=self.path, stdin=stdin.encode(), server=True)
        return done.decode().rstrip("\n")

    def commit(self, message: str = "change", **files: str | bytes) -> str:
        """Write files, commit everything, and return the commit's id.

        In a file's name `__` stands for `/` and `_` for `.`.
        """
        for name, content in files.items():
            path = self.path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head

    @property
    def head(self) -> str:
        """The id of HEAD's commit."""
        return self.git("rev-parse", "HEAD")

    def note(self, ref: str = KNOWLEDGE_REF, target: str = SHA1_EMPTY_TREE) -> str:
        """Return a note as git itself shows it."""
        return self.git("notes", f"--ref={ref}", "show", target)

    def note_json(self, ref: str = KNOWLEDGE_REF, target: str = SHA1_EMPTY_TREE) -> Any:
        """Return a note that is JSON."""
        return json.loads(self.note(ref, target))

    def record(self, rule: str = "", scope: str = "*", **fields: str) -> str:
        """Record a convention, without a rule the entry of other fields, and return its id."""
        given = {"entry_type": "convention", "scope": scope, "rule": rule} if rule else {}
        return add_to_store(self.path, parse_emission(given | fields)).entry.id

    def write_note(
        self, text: str, ref: str = KNOWLEDGE_REF, target: str = SHA1_EMPTY_TREE
    ) -> None:
        """Write a note as git-chronicle does, with `git notes add`."""
        self.git("notes", f"--ref={ref}", "add", "-f", "-F", "-", target, stdin=text)


def make_repo(path: Path, *options: str) -> Repo:
    """Return a new repository with one commit; `options` are those of `git init`."""
    if not options:
        copy_repository(path, {"README.md": "hello\n"})
        return Repo(path=path)
    repo = make_empty_repo(path, *options)
    repo.commit("first", README_md="hello\n")
    return repo


def make_clones(path: Path) -> tuple[Repo, Repo]:
    """Return two clones of one bare repository, all below `path`."""
    made = Path(copy_made(path, _make_clones))
    clones = (Repo(path=path / "one"), Repo(path=path / "two"))
    for clone in clones:
        config = clone.path / ".git" / "config"
        config.write_text(config.read_text().replace(str(made), str(path)))
    return clones


def _make_clones(path: Path) -> str:
    origin = make_repo(path / "origin")
    origin.git("clone", "--quiet", "--bare", ".", str(path / "shared.git"))
    for name in ("one", "two"):
        origin.git("clone", "--quiet", str(path / "shared.git"), str(path / name))
    return str(path)


def make_empty_repo(path: Path, *options: str) -> Repo:
    """Return a new repository without any commit; `options` are those of `git init`."""
    if options:
        run_git("init", "--quiet", *options, str(path))
    else:
        copy_empty_repository(path)
    return Repo(path=path)
