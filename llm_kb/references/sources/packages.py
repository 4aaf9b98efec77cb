"""The documentation of a package: what its index says, its repository, the tag of its version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from llm_kb.references.errors import FetchError, SourceError
from llm_kb.references.sources.git import Remotes
from llm_kb.references.sources.installed import (
    Package,
    choose_repository,
    find_installed,
    get_table,
    node_repository,
)
from llm_kb.references.sources.records import (
    GitSource,
    PackageSource,
    parse_package,
)
from llm_kb.references.sources.rules import (
    Policy,
    check_git_url,
    check_ref,
    require_approved,
)
from llm_kb.references.sources.web import request
from llm_kb.search.roles import DOCS_DIRECTORY

_TAGS = ("v{version}", "{version}", "{name}-{version}", "{name}-v{version}", "{name}@{version}")
"""The usual names of the tag of a version."""

_DOCUMENTS = re.compile(
    rf"(?i){DOCS_DIRECTORY}|examples?|"
    r"(?:readme|changelog|changes|history|upgrading|migration)(?:\.\w+)?"
)
"""Names of top-level entries of a repository that are documentation."""


def resolve_package(source: PackageSource, remotes: Remotes) -> GitSource:
    """Return the repository of a package at the tag of its version; raise FetchError."""
    package = find_package(source, remotes.workspace, remotes.policy)
    source = replace(source, version=package.version or None)
    if not package.repository:
        raise FetchError(
            source.url, "its metadata names no repository; give it with type git and its ref"
        )
    url = check_git_url(package.repository, remotes.policy.allow_protocols)
    require_approved(url, remotes.policy.hosts)
    git = _find_tag(GitSource(url=url, role=source.role), source, remotes)
    files, _ = remotes.open(git).list_files(git)
    return replace(git, paths=choose_documents(file.path for file in files))


def follow_package(source: GitSource, remotes: Remotes) -> GitSource:
    """Return the repository of a package at the version that the workspace has now."""
    if source.package is None:
        return source
    package = parse_package(source.package)
    installed = find_installed(package.ecosystem, package.name, remotes.workspace)
    if installed is None or installed.version == package.version:
        return source
    wanted = replace(package, version=installed.version)
    # In the repository that was approved: the workspace's metadata may name any other.
    return _find_tag(source, wanted, remotes)


def _find_tag(git: GitSource, package: PackageSource, remotes: Remotes) -> GitSource:
    """Return a repository at the tag of a package's version; raise FetchError without one."""
    name = package.name.rpartition("/")[2]
    for pattern in _TAGS:
        tag = pattern.format(name=name, version=package.version)
        try:
            check_ref(tag)
            commit = remotes.find_commit(replace(git, ref=tag))
        except (FetchError, SourceError):
            continue
        return replace(git, ref=tag, commit=commit, package=str(package))
    raise FetchError(
        package.url,
        f"{git.url} has no tag for version {package.version}; give it with type git and its ref",
    )


def choose_documents(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the top-level entries that are documentation; empty, for all files, without any."""
    tops = {
        top + ("/" if rest else "")
        for top, rest in ((path.partition("/")[0], "/" in path) for path in paths)
        if _DOCUMENTS.fullmatch(top)
    }
    has_directory = any(top.endswith("/") for top in tops)
    return tuple(sorted(tops)) if has_directory else ()


INDEXES = {
    "pypi": "https://pypi.org/pypi",
    "npm": "https://registry.npmjs.org",
    "crate": "https://crates.io/api/v1/crates",
}
"""The address of the public index of each ecosystem."""


def find_package(source: PackageSource, workspace: Path | None, policy: Policy) -> Package:
    """Return the package at the version asked for, else installed, else newest.

    The metadata of an installed package names its repository; for others, the public index is
    asked. Raises FetchError.
    """
    installed = find_installed(source.ecosystem, source.name, workspace)
    version = source.version or (installed.version if installed else None)
    if installed and installed.repository and installed.version == version:
        return installed
    return ask_index(source, version, policy)


def ask_index(source: PackageSource, version: str | None, policy: Policy) -> Package:
    """Return a package as its index describes it; raise FetchError."""
    name, index = quote(source.name, safe="@"), INDEXES[source.ecosystem]
    if source.ecosystem == "pypi":
        place = f"{index}/{name}{f'/{version}' if version else ''}/json"
        info = get_table(_get_json(place, policy), "info")
        urls = {
            str(label).strip().lower(): url
            for label, url in get_table(info, "project_urls").items()
            if isinstance(url, str)
        }
        urls.setdefault("homepage", str(info.get("home_page") or ""))
        return Package(version=str(info.get("version", "")), repository=choose_repository(urls))
    if source.ecosystem == "npm":
        table = _get_json(f"{index}/{name.replace('/', '%2F')}/{version or 'latest'}", policy)
        return Package(version=str(table.get("version", "")), repository=node_repository(table))
    crate = get_table(_get_json(f"{index}/{name}", policy), "crate")
    newest = str(crate.get("max_stable_version") or crate.get("max_version") or "")
    return Package(version=version or newest, repository=node_repository(crate))


def _get_json(url: str, policy: Policy) -> dict[str, Any]:
    answer = request(url, policy, headers={"Accept": "application/json"})
    if answer.status != 200:
        raise FetchError(url, f"the index answered {answer.status}")
    try:
        table = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise FetchError(url, "the index answered with what is not JSON") from error
    return table if isinstance(table, dict) else {}
