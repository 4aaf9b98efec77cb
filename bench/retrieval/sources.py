"""Where the known items come from: public repositories at fixed commits, none of them kept here.

They are cloned once into a cache outside of the repository (`LLM_KB_BENCH_CACHE`, else the
temporary directory). What weights are fitted on and what tables report are different projects.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

CACHE = Path(os.environ.get("LLM_KB_BENCH_CACHE") or Path(tempfile.gettempdir(), "llm-kb-bench"))
MAX_BYTES = 500_000
"""Larger files are generated."""

_TESTS = re.compile(
    r"(^|/)(tests?|testdata|testing|test_?\w*|bench(es|marks)?)/|_test\.|\.test\.|^test_"
)


class Source(NamedTuple):
    """Files of a repository: those whose path the pattern matches, no tests."""

    repository: str
    commit: str
    pattern: str


TUNE = {
    "mkdocs": Source(
        "mkdocs/mkdocs", "2862536793b3c67d9d83c33e0dd6d50a791928f8", r"docs/.*\.md"
    ),
    "fastapi": Source(
        "fastapi/fastapi",
        "c3f316b7e814667e8ee81e03a7330d00ee61e45c",
        r"docs/en/docs/(?!release-notes).*\.md",
    ),
    "scrapy-docs": Source(
        "scrapy/scrapy", "11079cb1c85b9e75a39a7269943c69d1a975d485", r"docs/(?!news).*\.rst"
    ),
    "celery-docs": Source(
        "celery/celery", "5dc781f0bd5f36186bfcc74e0a4f9f654452c69b",
        r"docs/(?!history|changelog).*\.rst",
    ),
    "go-html": Source(
        "golang/website", "b02076ae6df08ee9d495fe4b283f88ac18e51012", r"_content/(doc|ref).*\.html"
    ),
    "git-html": Source(
        "gitster/git-htmldocs", "1702bf03119068e8f1458bc1136dae1475d20ea6",
        r"(?:git-[a-c]|git(?:attributes|cli|everyday|faq|glossary|hooks|ignore|modules|tutorial"
        r"|workflows)).*\.html",
    ),
    "scrapy": Source(
        "scrapy/scrapy", "11079cb1c85b9e75a39a7269943c69d1a975d485", r"scrapy/.*\.py"
    ),
    "typeorm": Source(
        "typeorm/typeorm", "281bfba42a5813b106bcf5ba79bc7f7251bd1e73",
        r"src/(?:query-builder|repository|schema-builder|metadata|find-options"
        r"|data-source|entity-manager|util|persistence|migration|driver/postgres)/.*\.ts"
    ),
    "gin": Source("gin-gonic/gin", "dcaa4296d111981ffb31ac3eba90bb63e1eb5ab9", r".*\.go"),
    "cobra": Source("spf13/cobra", "adbc8813901bba65827259daa8e22ff94ec1f30e", r".*\.go"),
    "clap": Source(
        "clap-rs/clap", "6982fb1c98c7247e38a6d4f04191b94e30497e7b", r".*/src/.*\.rs"
    ),
    "axum": Source(
        "tokio-rs/axum", "3d78036dcac289d6c1d54934708acb6a5bd73686", r".*/src/.*\.rs"
    ),
    "vue-zh": Source(
        "vuejs-translations/docs-zh-cn", "c2715ff75bae5376bc5bf212280ae76e30089fbd", r"src/.*\.md"
    ),
}  # fmt: skip
REPORT = {
    "uv": Source("astral-sh/uv", "26a9dd4b2125bc271b47855e1fa0c49af3365db5", r"docs/.*\.md"),
    "hatch": Source("pypa/hatch", "ed8e30bebf98f2fe4d70c18a32a50a8160c391cb", r"docs/.*\.md"),
    "vitepress": Source(
        "vuejs/vitepress", "ed2bfb266ef788e86d1a73fe3cd7708a4cd5e260", r"docs/en/.*\.md"
    ),
    "pytest-docs": Source(
        "pytest-dev/pytest", "df87db7b0462fb764ef73fa00561adf8ad047572",
        r"doc/en/(?!announce|changelog).*\.rst",
    ),
    "sphinx-docs": Source(
        "sphinx-doc/sphinx", "e44a40eb2f810558ccd9da1425421270ccb81351",
        r"doc/(?!changes).*\.rst",
    ),
    "apache": Source(
        "apache/httpd", "0cb680442ecaa6118cc610b5ecc6e824330bf61a",
        r"docs/manual/(?:mod/mod_[a-d]|howto/|ssl/|rewrite/).*\.html\.en\.utf8",
    ),
    "tornado": Source(
        "tornadoweb/tornado", "e530031405e2154654dedc4c84d5656b557ea310", r"tornado/.*\.py"
    ),
    "pytest": Source(
        "pytest-dev/pytest", "df87db7b0462fb764ef73fa00561adf8ad047572", r"src/.*\.py"
    ),
    "hono": Source("honojs/hono", "28a9c128912de19f3fb28b00ae289c9b93f6f392", r"src/.*\.tsx?"),
    "deno-std": Source(
        "denoland/std", "ca58f9427152c946ce1c1bc287d290efde1fbab7",
        r"(?:async|assert|bytes|cli|collections|csv|datetime|encoding|fs|http|io|path/posix|streams"
        r"|text|toml|yaml)/.*\.ts",
    ),
    "caddy": Source("caddyserver/caddy", "0cf03d32f7d99cf160d5375e8a40fbe3d910d515", r".*\.go"),
    "ripgrep": Source(
        "BurntSushi/ripgrep", "3fce3b5bb0236da2df6d99672afb8a719642eca7", r"crates/.*\.rs"
    ),
    "reqwest": Source(
        "seanmonstar/reqwest", "065a5ae5209d27d4f4e3c4409725672c49a8aa39", r"src/.*\.rs"
    ),
    "react-zh": Source(
        "reactjs/zh-hans.react.dev", "f6cda05526ceff44b24588e9e0c2e2106d4588d4",
        r"src/content/(?:learn|community)/.*\.md",
    ),
    "react-ja": Source(
        "reactjs/ja.react.dev", "7f38231d9d5dddaae6ac51da7d0f173d697f835c",
        r"src/content/(?:learn|community)/.*\.md",
    ),
}  # fmt: skip
BESIDE = {
    "mkdocs-code": TUNE["mkdocs"]._replace(pattern=r"mkdocs/.*\.py"),
    "celery": TUNE["celery-docs"]._replace(pattern=r"celery/.*\.py"),
    "fastapi-code": TUNE["fastapi"]._replace(pattern=r"fastapi/.*\.py"),
    "typeorm-docs": TUNE["typeorm"]._replace(pattern=r"docs/.*\.md"),
}
"""The other half of tune sources, for an index of documentation and code."""

SPLITS = {"tune": TUNE, "report": REPORT, "beside": BESIDE}
SOURCES = {**TUNE, **REPORT, **BESIDE}
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
