"""Real questions: asked by users of projects, each searched as `llm kb init` leaves it.

`questions/asked/` has a file for each project in the format of `llm kb test`, with all places in
the documentation that answer. Choices were made with the questions of `tune`, each written anew
from a thread; those of `report` were written when the ranking was almost done. Those of `unseen`
were made after that by somebody who had not seen it, each from a thread and before any search, and
choices were made with them as well. Those of `last` and `newer` were made in the same way, with the
gold completed from plain full-text search, and so were those of `kept`, which were measured once,
after the last choice. Those of `manual` are no real ones: a language model that had read the manual
of an organisation's engineers imitates people who have not.

`questions/calls.toml` has, for some of these questions, what a language model asked the tool: it
had the question, the name of the project and the description of the tool's argument, and had not
looked into the documentation.
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
from llm_kb.files.toml import decode_toml
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
    "newer": {
        "eslint": Source("eslint/eslint", "c27bc926e496985eb7911c09eb60914b2e4b5d0f", ""),
        "hugo": Source("gohugoio/hugoDocs", "1c613349f4220ae84070df25979d720c43e5cfa6", ""),
        "poetry": Source("python-poetry/poetry", "f46702336862f30050d5c641d5ed6f7568ded793", ""),
        "tox": Source("tox-dev/tox", "ccb12fc2e1bb9df0da860be4af175e9b97949fbc", ""),
        "pnpm": Source("pnpm/pnpm.io", "4096ad35b19c7d7e0c2c64c704c57daf5bb91668", ""),
        "flask": Source("pallets/flask", "2ac89889f4cc330eabd50f295dcef02828522c69", ""),
        "vue": Source("vuejs/docs", "01e098a967951ea92d09b100b8e7d82c7a3369a2", ""),
        "ansible": Source(
            "ansible/ansible-documentation", "ef72400cc2f70f974ffbb30b63098b31dbd36b07", ""
        ),
        "deno": Source("denoland/docs", "eb8f78e90dbc72f3b3ab7dcd85609622379b5bca", ""),
        "polars": Source("pola-rs/polars", "4db92c12c08c390f95b517a00ae0afe818e1abf6", ""),
        "restic": Source("restic/restic", "a80be1478a4c537f8396e0db2b05120aa78f11e0", ""),
        "sphinx": Source("sphinx-doc/sphinx", "e44a40eb2f810558ccd9da1425421270ccb81351", ""),
    },
    "kept": {
        "traefik": Source("traefik/traefik", "fd5a576df2e8aeb0bfc8a96b6ef6e60a61f7ec0a", ""),
        "ruff-docs": Source("astral-sh/ruff", "fca5c7cf2cd2f8338f18b9485f936b8e9f07bd0b", ""),
        "pydantic": Source("pydantic/pydantic", "2151025aa51263f3016502b00010b78e4481eaa1", ""),
        "argo-cd": Source("argoproj/argo-cd", "37ee0097cf851bc2dd7665fc081bbce61a7e836e", ""),
        "esphome-docs": Source(
            "esphome/esphome-docs", "bac5e2ab8268293ebe4972a5be562414e0556a96", ""
        ),
        "vim": Source("vim/vim", "b3526a91b82779c2d9e2f3ca330039143cc36862", ""),
    },
    "manual": {
        "govuk": Source(
            "alphagov/govuk-developer-docs", "972d1b4410ffd165f2f3e889eda30bcf7d1cc6b3", ""
        ),
    },
}
"""The projects by split: a repository, or a release in the package index."""


CALLS = decode_toml((QUESTIONS / "calls.toml").read_text(encoding="utf-8"))
"""By question, what a model asked the tool."""


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

    @property
    def calls(self) -> list[Asked]:
        """The questions in the words of a model, as far as one was asked for them."""
        return [Asked(CALLS[text], places) for text, places in self.questions if text in CALLS]


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
