"""Versions and repositories of the packages that a workspace has installed or locked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llm_kb.files.containment import read_regular
from llm_kb.references.errors import SourceError
from llm_kb.references.sources.rules import check_paths
from llm_kb.texts.html.addresses import ascii_url

MAX_FILE = 20_000_000
"""Most bytes read from a lock file or metadata."""

MAX_URL = 2000
"""Longest address of a repository, in characters."""

_SHORT = re.compile(r"(?:(github|gitlab|bitbucket|codeberg):)?([\w.-]+(?:/[\w.-]+){0,20})")
"""A repository as `package.json` may write it: `owner/name`, `gitlab:group/sub/name`."""

_SHORT_HOSTS = {
    "github": "github.com",
    "gitlab": "gitlab.com",
    "bitbucket": "bitbucket.org",
    "codeberg": "codeberg.org",
}
_FORGES = frozenset(_SHORT_HOSTS.values())
_REMOTE = re.compile(
    r"^(?:(?:git|ssh)://(?:git@)?|git@)"
    r"((?:www\.)?(?:github\.com|gitlab\.com|codeberg\.org|bitbucket\.org))[/:]"
)
_IN_TREE = re.compile(r"/(?:-/)?(?:tree|blob|src)/(?:branch/)?[^/]+/([^?#]+)")
_PAGES = frozenset({"tree", "blob", "raw", "issues", "merge_requests", "wikis", "tags"})
"""Pages of a repository, in the addresses of GitLab from before `/-/`."""

_LOCKED = re.compile(r'(?m)^\[\[package\]\]\r?\nname = "([^"\n]*)"\r?\nversion = "([^"\n]*)"')
# Within a line: a pattern over several lines would be tried from each of them.
_PINNED = re.compile(r"(?m)^([\w.-]+)(?:\[[^\]\n]*\])?[ \t]*==[ \t]*([\w.!+-]+)")
_LOCKS = {
    "pypi": ("uv.lock", "poetry.lock", "pdm.lock", "requirements.txt"),
    "crate": ("Cargo.lock",),
}
_LABELS = ("source", "source code", "repository", "code", "github", "homepage", "home")
"""Labels of project URLs that may be the repository, the likeliest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package at one version, and the repository that its metadata names."""

    version: str = ""
    repository: str | None = None
    directory: str = ""
    """Its directory in a repository of several packages."""


def find_installed(ecosystem: str, name: str, workspace: Path | None) -> Package | None:
    """Return a package as a workspace has it: installed, else locked; None without it."""
    if workspace is None:
        return None
    if ecosystem == "npm":
        return _find_node(name, workspace)
    installed = _find_python(name, workspace) if ecosystem == "pypi" else None
    return installed or _find_locked(_LOCKS.get(ecosystem, ()), name, workspace)


def _find_python(name: str, workspace: Path) -> Package | None:
    active = os.environ.get("VIRTUAL_ENV")
    environments = [workspace / ".venv", workspace / "venv"]
    for environment in [Path(active), *environments] if active else environments:
        for info in sorted(environment.glob("lib/python3*/site-packages/*.dist-info")):
            if _normalize(info.name.partition("-")[0]) == _normalize(name):
                head = _read_text(info / "METADATA").partition("\n\n")[0]
                version = re.search(r"(?m)^Version:(.*)$", head)
                home = re.findall(r"(?m)^(Home)-page:(.*)$", head)
                urls = re.findall(r"(?m)^Project-URL:([^,\n]*),(.*)$", head)
                place = choose_repository([*home, *urls])
                return replace(place, version=version[1].strip() if version else "")
    return None


def _find_locked(locks: Iterable[str], name: str, workspace: Path) -> Package | None:
    """Return a package as a lock file has it.

    Not decoded as TOML, since a stranger's file could make that take minutes.
    """
    for lock in locks:
        pattern = _PINNED if lock.endswith(".txt") else _LOCKED
        found = pattern.findall(_read_text(workspace / lock))
        versions = {_normalize(locked): version for locked, version in found}
        if version := versions.get(_normalize(name)):
            return Package(version=version)
    return None


def _find_node(name: str, workspace: Path) -> Package | None:
    table = parse_table(_read_text(workspace / "node_modules" / name / "package.json"))
    if not isinstance(table.get("version"), str):
        locked = parse_table(_read_text(workspace / "package-lock.json"))
        table = get_table(get_table(locked, "packages"), f"node_modules/{name}")
    version = table.get("version")
    if not isinstance(version, str):
        return None
    return replace(node_repository(table), version=version)


def choose_repository(urls: Iterable[tuple[str, object]]) -> Package:
    """Return a package with the repository among its labelled URLs, if one looks like one."""
    labelled = {label.strip().lower(): url.strip() for label, url in urls if isinstance(url, str)}
    for label in (*_LABELS, *sorted(set(labelled) - set(_LABELS))):
        text = labelled.get(label, "")
        url = as_git_url(text)
        if url and (label in _LABELS[:5] or urlsplit(url).hostname in _FORGES):
            return Package(repository=url, directory=_find_directory(text))
    return Package()


def node_repository(table: Mapping[str, Any]) -> Package:
    """Return a package with the repository that `package.json`, or the record of a crate, names."""
    repository = table.get("repository")
    url = repository.get("url") if isinstance(repository, dict) else repository
    if not isinstance(url, str):
        return Package()
    named = get_table(table, "repository").get("directory")
    directory = named if isinstance(named, str) else _find_directory(url)
    return Package(repository=as_git_url(url), directory=_check_directory(directory))


def _find_directory(url: str) -> str:
    """Return the directory that an address of a forge shows: `…/tree/main/packages/x`."""
    found = _IN_TREE.search(url[:MAX_URL])
    return _check_directory(found[1]) if found else ""


def _check_directory(text: str) -> str:
    try:
        return "".join(check_paths([text.removeprefix("./").rstrip("/")]))
    except SourceError:
        return ""


def as_git_url(text: str) -> str | None:
    """Return the fetchable URL of a repository that metadata names; None if it is not one."""
    text = text.strip().removeprefix("git+")
    if len(text) > MAX_URL:
        return None
    short = _SHORT.fullmatch(text)
    if short and (short[1] or short[2].count("/") == 1):
        text = f"https://{_SHORT_HOSTS[short[1] or 'github']}/{short[2]}"
    # As `ssh://git@host/path`, `git://host/path` and `git@host:path`.
    text = _REMOTE.sub(r"https://\1/", text)
    try:
        text = ascii_url(text.partition("#")[0].partition("?")[0])
    except ValueError:
        return None
    split = urlsplit(text)
    if split.scheme not in {"https", "http", "file"} or not split.path.strip("/"):
        return None
    host = (split.hostname or "").removeprefix("www.")
    return _forge_url(host, split.path) if host in _FORGES else text.partition("/-/")[0]


def _forge_url(host: str, path: str) -> str | None:
    """Return the URL of a repository on a forge, of a path that may lead into it."""
    # GitLab's pages of a repository, whose name has any number of levels, are below `/-/`.
    levels = path.partition("/-/")[0].strip("/").split("/")
    if len(levels) < 2 or levels[0] == "sponsors":
        return None
    levels = levels[: _find_end(levels) if host == "gitlab.com" else 2]
    return f"https://{host}/{'/'.join(levels).removesuffix('.git')}"


def _find_end(levels: list[str]) -> int:
    """Return how many levels of a path on GitLab name the repository."""
    return next((at for at, level in enumerate(levels) if at > 1 and level in _PAGES), len(levels))


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_table(text: str | bytes) -> dict[str, Any]:
    """Return the table that JSON consists of; an empty one if it does not."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def get_table(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a table inside a table; an empty one if there is none."""
    value = table.get(key)
    return value if isinstance(value, dict) else {}


def _read_text(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return read_regular(path, follow_link=True, most=MAX_FILE).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
