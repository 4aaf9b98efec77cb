"""Real questions: asked by users of projects, each searched as `llm kb init` leaves it.

`questions/asked/` has a file for each project in the format of `llm kb test`, with all places in
the documentation that answer. Choices were made with the questions of `tune`, each written anew
from a thread; those of `report` were written when the ranking was almost done. Those of `unseen`
were made after that by somebody who had not seen it, each from a thread and before any search, and
choices were made with them as well. Those of `last` were made in the same way, with the gold
completed from plain full-text search, and measured once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from known_items import QUESTIONS
from sources import CACHE, Source, clone

from llm_kb.commands.test import read_questions
from llm_kb.config.workspace import decode_bytes
from llm_kb.knowledge_base.api import KnowledgeBase

PROJECTS = {
    "tune": {
        "pytest": Source("pytest-dev/pytest", "df87db7b0462fb764ef73fa00561adf8ad047572", ""),
        "django": "Django==5.2.19",
        "prometheus": Source(
            "prometheus/prometheus", "d15adb9ad7e5d9fbde3a9a8f30200593a5a14d86", ""
        ),
        "cargo": Source("rust-lang/cargo", "af373f761aa4e42b093c2e453078fd73c8ce54dd", ""),
        "caddy": Source("caddyserver/website", "1a6bbd7d92ea03da4fc4864a096dbbb290ffc1fc", ""),
        "datasette": Source("simonw/datasette", "481df7ff6d78a8ccf919984d27f27201b081bd53", ""),
    },
    "report": {
        "uv": Source("astral-sh/uv", "26a9dd4b2125bc271b47855e1fa0c49af3365db5", ""),
        "vite": Source("vitejs/vite", "a98c8d95d552c6fa98ab66fb810f5b39ad5abf49", ""),
        "celery": Source("celery/celery", "5dc781f0bd5f36186bfcc74e0a4f9f654452c69b", ""),
        "scrapy": Source("scrapy/scrapy", "11079cb1c85b9e75a39a7269943c69d1a975d485", ""),
    },
    "unseen": {
        "mypy": Source("python/mypy", "8b3e7d8b9f63543374e53d1c389ea443dd65bc46", ""),
        "jekyll": Source("jekyll/jekyll", "202df571314ba1d18e9fccd81d12aaad4a703c38", ""),
        "git": Source("git/git", "1a3e64c6c4a623626ff0687008732a8e007e2a1c", ""),
        "borg": Source("borgbackup/borg", "fc74d5f643d17d5341e303cd5ed4ddeb425660f0", ""),
        "fastapi": Source("fastapi/fastapi", "c3f316b7e814667e8ee81e03a7330d00ee61e45c", ""),
        "svelte": Source("sveltejs/svelte", "15720b16a5ef33e3e1f4301c77b94ec375070e73", ""),
    },
    "last": {
        "pre-commit": Source(
            "pre-commit/pre-commit.com", "a3ced3d425a78113e4c0068641a75ca175ab26ed", ""
        ),
        "syncthing": Source("syncthing/docs", "766daa6e2b02f68dacc98eccbe49663b6168cbfd", ""),
        "zod": Source("colinhacks/zod", "e516c3baf22615e20934116abebfed6c000222c2", ""),
        "rclone": Source("rclone/rclone", "64ab1ac32260238eefca3c61327f5faf1c6e106f", ""),
        "helm": Source("helm/helm-www", "227f41447a683545325e87aedf10c67096d11004", ""),
        "nushell": Source(
            "nushell/nushell.github.io", "72e298f7d579c20cebede45c861d63cbb689838f", ""
        ),
    },
}
"""The projects by split: a repository, or a release in the package index."""


class Asked(NamedTuple):
    """A question and the places that answer it: topic, path and lines."""

    text: str
    places: tuple[tuple[str, str, tuple[int, int]], ...]

    def is_answered_by(self, path: str, first_line: int, last_line: int) -> bool:
        """Tell whether some lines are of a place that answers; the path is below its topic's id."""
        return any(
            path == f"{topic}/{where}" and first_line <= last and last_line >= first
            for topic, where, (first, last) in self.places
        )


class Project(NamedTuple):
    """A project as `llm kb init` leaves it."""

    directory: Path
    kb: KnowledgeBase
    questions: list[Asked]


def read_projects(split: str) -> Iterator[Project]:
    """Yield the projects of a split with their questions."""
    os.environ["LLM_USER_PATH"] = str(CACHE / "asked-user")
    for name, source in PROJECTS[split].items():
        directory = CACHE / "projects" / name
        if not directory.exists():
            _check_out(directory, source)
        (directory / "llm-kb.toml").unlink(missing_ok=True)
        command = [Path(sys.executable).with_name("llm-kb"), "init"]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
        with chdir(directory):
            kb = KnowledgeBase.discover()
        path = QUESTIONS / f"asked/{name}.toml"
        asked, _ = read_questions(kb, decode_bytes(path.read_bytes(), path), path)
        questions = [
            Asked(question.text, tuple(question.places)) for question in asked if question.answers
        ]
        yield Project(directory, kb, questions)


def _check_out(directory: Path, source: Source | str) -> None:
    """Make a work tree of a project at the commit of its questions, or of a release."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, Source):
        command = ["git", "-C", clone(source), "worktree", "add", "-f", "-q", "--detach", directory]
        subprocess.run([*command, source.commit], check=True)
        return
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:"]
    subprocess.run([*command, source, "-d", directory.parent], check=True)
    (archive,) = directory.parent.glob(f"{source.replace('==', '-')}*.tar.gz".lower())
    with tarfile.open(archive) as packed:
        packed.extractall(directory.parent, filter="data")
    archive.with_suffix("").with_suffix("").rename(directory)
