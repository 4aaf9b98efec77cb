"""The documentation of a package: what its index says, its repository, the tag of its version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote

from llm_kb.references.errors import FetchError, SourceError
from llm_kb.references.sources import installed, rules
from llm_kb.references.sources.git import Remotes
from llm_kb.references.sources.installed import Package
from llm_kb.references.sources.records import GitSource, PackageSource, parse_package
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
    """Return the repository of a package at the tag of its version; raise FetchError.

    It is the version asked for, else the installed one, else the newest. The metadata of an
    installed package names its repository; for others, the public index is asked.
    """
    package = installed.find_installed(source.ecosystem, source.name, remotes.workspace)
    version = source.version or (package.version if package else None)
    if not package or not package.repository or package.version != version:
        package = ask_index(source, version, remotes.policy)
    source = replace(source, version=package.version or None)
    if not package.repository:
        raise FetchError(
            source.url, "its metadata names no repository; give it with type git and its ref"
        )
    url = rules.check_git_url(package.repository, remotes.policy.allow_protocols)
    rules.require_approved(url, remotes.policy)
    git = _find_tag(GitSource(url=url, role=source.role), source, remotes)
    files, _ = remotes.open(git).list_files(git)
    return replace(git, paths=choose_documents(file.path for file in files))


def follow_package(source: GitSource, remotes: Remotes) -> GitSource:
    """Return the repository of a package at the version that the workspace has now."""
    if source.package is None:
        return source
    package = parse_package(source.package)
    here = installed.find_installed(package.ecosystem, package.name, remotes.workspace)
    if here is None or here.version == package.version:
        return source
    wanted = replace(package, version=here.version)
    # In the repository that was approved: the workspace's metadata may name any other.
    return _find_tag(source, wanted, remotes)


def _find_tag(git: GitSource, package: PackageSource, remotes: Remotes) -> GitSource:
    """Return a repository at the tag of a package's version; raise FetchError without one."""
    name = package.name.rpartition("/")[2]
    for pattern in _TAGS:
        tag = pattern.format(name=name, version=package.version)
        try:
            rules.check_ref(tag)
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
    tops = {f"{path.partition('/')[0]}/" if "/" in path else path for path in paths}
    chosen = sorted(top for top in tops if _DOCUMENTS.fullmatch(top.removesuffix("/")))
    return tuple(chosen) if any(top.endswith("/") for top in chosen) else ()


INDEXES = {
    "pypi": "https://pypi.org/pypi/{}/json",
    "npm": "https://registry.npmjs.org/{}/latest",
    "crate": "https://crates.io/api/v1/crates/{}",
}
"""Where the public index of each ecosystem describes the newest version of a package."""


def ask_index(source: PackageSource, version: str | None, policy: rules.Policy) -> Package:
    """Return a package at a version, by default the newest; raise FetchError.

    Its repository is that of the newest version.
    """
    url = INDEXES[source.ecosystem].format(quote(source.name, safe="@"))
    answer = request(url, policy, headers={"Accept": "application/json"})
    if answer.status != 200:
        raise FetchError(url, f"the index answered {answer.status}")
    table = installed.parse_table(answer.body)
    if source.ecosystem == "pypi":
        table = installed.get_table(table, "info")
        urls = [
            ("homepage", table.get("home_page")),
            *installed.get_table(table, "project_urls").items(),
        ]
        repository = installed.choose_repository(urls)
    else:
        table = installed.get_table(table, "crate") if source.ecosystem == "crate" else table
        repository = installed.node_repository(table)
    newest = table.get("version") or table.get("max_stable_version") or table.get("max_version")
    return Package(version=version or str(newest or ""), repository=repository)
