"""Plan the documentation of a package: its repository, the tag of its version, its documents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from llm_kb.references.errors import FetchError
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.packages import find_package
from llm_kb.references.sources.records import GitSource, PackageSource, parse_package
from llm_kb.references.sources.rules import check_git_url, require_approved

_TAGS = ("v{version}", "{version}", "{name}-{version}", "{name}-v{version}", "{name}@{version}")
"""How projects name the tag of a version."""

_DOCUMENTS = re.compile(
    r"(?i)docs?|documentation|guides?|manual|book|examples?|website|"
    r"(?:readme|changelog|changes|history|upgrading|migration)(?:\.\w+)?"
)
"""Names at the top of a repository that hold documentation."""


def resolve_package(source: PackageSource, remotes: Remotes) -> GitSource:
    """Return the repository of a package at its version's tag; raise FetchError."""
    package = find_package(source, remotes.workspace, remotes.http)
    if package.repository is None:
        raise FetchError(source.url, "its metadata names no repository; give it with type git")
    url = check_git_url(package.repository, source.url, remotes.settings.allow_protocols)
    require_approved(url, remotes.hosts)
    git = GitSource(url=url, role=source.role)
    tagged = _find_tag(git, replace(source, version=package.version), remotes)
    return replace(tagged, paths=choose_documents(remotes.list_paths(tagged)))


def follow_package(source: GitSource, remotes: Remotes) -> GitSource:
    """Return the repository of a package at the version that the workspace has now."""
    if source.package is None:
        return source
    package = parse_package(source.package)
    installed = find_installed(package.ecosystem, package.package, remotes.workspace)
    if installed is None or installed.version == package.version:
        return source
    # In the repository that was approved: the workspace's metadata may name any other.
    return _find_tag(source, replace(package, version=installed.version), remotes)


def _find_tag(git: GitSource, package: PackageSource, remotes: Remotes) -> GitSource:
    """Return a repository at the tag of a package's version; raise FetchError without one."""
    named = f"{package.ecosystem} {package.package} {package.version}"
    parse_package(named)
    short = package.package.rpartition("/")[2]
    for pattern in _TAGS:
        tag = pattern.format(name=short, version=package.version)
        try:
            commit = remotes.find_commit(replace(git, ref=tag))
        except FetchError:
            continue
        return replace(git, ref=tag, commit=commit, package=named)
    raise FetchError(
        package.url,
        f"{git.url} has no tag for version {package.version}; give it with type git and its ref",
    )


def choose_documents(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the top entries of a repository that document it; none, for all, without any."""
    tops = {
        top + ("/" if rest else "")
        for top, rest in ((path.partition("/")[0], "/" in path) for path in paths)
        if _DOCUMENTS.fullmatch(top)
    }
    has_directory = any(top.endswith("/") for top in tops)
    return tuple(sorted(tops)) if has_directory else ()
