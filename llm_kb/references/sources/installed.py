"""Versions and repositories of the packages that a workspace has installed or locked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llm_kb.files.containment import read_regular
from llm_kb.texts.html.addresses import ascii_url

MAX_FILE = 20_000_000
"""Most bytes read from a lock file or metadata."""

MAX_URL = 2000
"""Longest address of a repository, in characters."""

_FORGES = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org"})
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

    version: str
    repository: str | None = None


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
                return Package(
                    version=version[1].strip() if version else "",
                    repository=choose_repository([*home, *urls]),
                )
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
    return Package(version=version, repository=node_repository(table))


def choose_repository(urls: Iterable[tuple[str, object]]) -> str | None:
    """Return the repository among a project's labelled URLs; None if none looks like one."""
    labelled = {label.strip().lower(): url.strip() for label, url in urls if isinstance(url, str)}
    for label in (*_LABELS, *sorted(set(labelled) - set(_LABELS))):
        url = as_git_url(labelled.get(label, ""))
        if url and (label in _LABELS[:5] or urlsplit(url).hostname in _FORGES):
            return url
    return None


def node_repository(table: Mapping[str, Any]) -> str | None:
    """Return the repository that a `package.json` names."""
    repository = table.get("repository")
    url = repository.get("url") if isinstance(repository, dict) else repository
    return as_git_url(url) if isinstance(url, str) else None


def as_git_url(text: str) -> str | None:
    """Return the fetchable URL of a repository that metadata names; None if it is not one."""
    text = text.strip().removeprefix("git+")
    if len(text) > MAX_URL:
        return None
    text = re.sub(r"^(?:github:)?([\w.-]+/[\w.-]+)$", r"https://github.com/\1", text)
    text = re.sub(r"^(?:(?:git|ssh)://(?:git@)?|git@)github\.com[/:]", "https://github.com/", text)
    try:
        text = ascii_url(text.partition("#")[0].partition("?")[0])
    except ValueError:
        return None
    split = urlsplit(text)
    if split.scheme not in {"https", "http", "file"} or not split.path.strip("/"):
        return None
    if split.hostname in _FORGES:
        owner_and_name = "/".join(split.path.strip("/").split("/")[:2]).removesuffix(".git")
        if "/" not in owner_and_name or owner_and_name.startswith("sponsors/"):
            return None
        return f"https://{split.hostname}/{owner_and_name}"
    return text


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
