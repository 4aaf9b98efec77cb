"""Where the known items come from: public repositories at fixed commits, none of them kept here.

They are named in sources.toml, and cloned once into a cache outside of the repository.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

from llm_kb.files.fields import decode_toml

sys.path.append(str(Path(__file__).parent.parent))

from harness import CACHE, fetch, processor_time, report

__all__ = ["CACHE", "fetch", "processor_time", "report"]  # for the other scripts here, too

MAX_BYTES = 500_000
"""Larger files are generated."""

_TESTS = re.compile(
    r"(^|/)(tests?|testdata|testing|test_?\w*|bench(es|marks)?)/|_test\.|\.test\.|^test_"
)


class Source(NamedTuple):
    """Files of a repository: those whose path the pattern matches, no tests."""

    repository: str
    commit: str
    pattern: str = ""


TABLES: Any = decode_toml(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SPLITS: dict[str, dict[str, Source]] = {
    split: {name: Source(**fields) for name, fields in sources.items()}
    for split, sources in TABLES["items"].items()
}
SOURCES = {name: source for sources in SPLITS.values() for name, source in sources.items()}
EMBEDDED = frozenset(
    {
        *("mkdocs", "fastapi", "scrapy-docs", "scrapy", "gin", "cobra", "axum"),
        *("hatch", "vitepress", "uv", "pytest-docs", "tornado", "hono", "reqwest"),
    }
)
"""Sources that the dense leg is measured on: embedding more takes hours on a CPU."""


def read_source(name: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of every file of a source, in order."""
    source = SOURCES[name]
    repository = clone(source)
    listed = _git(repository, "ls-tree", "-r", "-z", "-l", source.commit).decode()
    for entry in listed.split("\0"):
        attributes, _, path = entry.partition("\t")
        if not re.fullmatch(source.pattern, path) or _TESTS.search(path):
            continue
        _, kind, blob, size = attributes.split()
        if kind == "blob" and int(size) <= MAX_BYTES:
            data = _git(repository, "cat-file", "blob", blob)
            text = data.decode("utf-8", "replace").replace("\r\n", "\n")
            yield path.removesuffix(".en.utf8"), text


def clone(source: Source) -> Path:
    """Return a clone that has the commit of a source, made once."""
    target = CACHE / "git" / source.repository.replace("/", "+")
    if not target.exists():
        staged = target.with_suffix(".part")
        rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        _git(staged, "init", "-q", "--bare")
        address = f"https://github.com/{source.repository}"
        _git(staged, "fetch", "-q", "--depth", "1", address, source.commit)
        staged.rename(target)
    return target


def _git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout
