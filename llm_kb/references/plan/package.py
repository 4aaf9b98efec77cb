"""Plan the documentation of a package: its repository, the tag of its version, its documents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import cast

from llm_kb.files.fields import Fields
from llm_kb.references.errors import FetchError, SourceError
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.installed import Package, find_installed
from llm_kb.references.sources.local import list_local
from llm_kb.references.sources.packages import ask_index, find_package
from llm_kb.references.sources.records import (
    ArchiveSource,
    GitSource,
    PackageSource,
    parse_package,
    read_source,
)
from llm_kb.references.sources.rules import check_git_url, check_ref, require_approved

_TAGS = ("v{version}", "{version}", "{name}-{version}", "{name}-v{version}", "{name}@{version}")
"""The usual names of the tag of a version."""

_DOCUMENTS = re.compile(
    r"(?i)docs?|documentation|guides?|manual|book|examples?|website|"
    r"(?:readme|changelog|changes|history|upgrading|migration)(?:\.\w+)?"
)
"""Names of top-level entries of a repository that are documentation."""


def resolve_package(source: PackageSource, remotes: Remotes) -> GitSource | ArchiveSource:
    """Return the repository of a package at its version's tag, else its source distribution.

    Raises FetchError if there is neither.
    """
    package = find_package(source, remotes.workspace, remotes.policy)
    source = replace(source, version=package.version or None)
    problem = FetchError(
        source.url, "its metadata names no repository; give it with type git and its ref"
    )
    if package.repository:
        url = check_git_url(package.repository, source.url, remotes.policy.allow_protocols)
        require_approved(url, remotes.policy.hosts)
        try:
            git = _find_tag(GitSource(url=url, role=source.role), source, remotes, package)
            return replace(
                git, paths=choose_documents(f.path for f in remotes.list_files(git).files)
            )
        except FetchError as error:
            problem = error
    found = package.archive
    if not found and source.ecosystem != "go":
        with suppress(FetchError):  # the problem of the repository is more informative
            found = ask_index(source, source.version, remotes.policy).archive
    if not found:
        raise problem
    return _make_archive(found, source, remotes)


def _make_archive(
    found: tuple[str, str], package: PackageSource, remotes: Remotes
) -> ArchiveSource:
    """Return the source distribution that an index names, limited to its documents."""
    table = {"type": "archive", "url": found[0], "hash": found[1], "package": str(package)}
    fields = Fields(table)
    archive = read_source(fields, allow_local=True)
    fields.raise_problems(lambda problems: FetchError(package.url, "; ".join(problems)))
    archive = replace(cast("ArchiveSource", archive), role=package.role)  # or it had a problem
    files = list_local(remotes.locate(archive), remotes.policy.max_bytes).files
    return replace(archive, paths=choose_documents(file.path for file in files))


def follow_archive(source: ArchiveSource, remotes: Remotes) -> ArchiveSource:
    """Return the source distribution of the version that the workspace has now."""
    wanted = _find_wanted(source, remotes)
    if wanted is None:
        return source
    found = ask_index(wanted, wanted.version, remotes.policy).archive
    if found is None:
        raise FetchError(wanted.url, f"version {wanted.version} has no source distribution")
    return _make_archive(found, replace(wanted, role=source.role), remotes)


def _find_wanted(source: GitSource | ArchiveSource, remotes: Remotes) -> PackageSource | None:
    """Return the package at the workspace's version; None if the source has it already."""
    if source.package is None:
        return None
    package = parse_package(source.package)
    installed = find_installed(package.ecosystem, package.name, remotes.workspace)
    if installed is None or installed.version == package.version:
        return None
    return replace(package, version=installed.version)


def follow_package(source: GitSource, remotes: Remotes) -> GitSource:
    """Return the repository of a package at the version that the workspace has now."""
    wanted = _find_wanted(source, remotes)
    if wanted is None:
        return source
    # A Go version without a tag is a commit that the proxy knows.
    is_go = wanted.ecosystem == "go"
    found = find_package(wanted, remotes.workspace, remotes.policy) if is_go else None
    # In the repository that was approved: the workspace's metadata may name any other.
    return _find_tag(source, wanted, remotes, found)


def _find_tag(
    git: GitSource, package: PackageSource, remotes: Remotes, found: Package | None = None
) -> GitSource:
    """Return a repository at the tag of a package's version; raise FetchError without one.

    `found` may have the revision, and the Go module of the repository.
    """
    name = (found.module if found else None) or package.name
    ref = found.ref if found else None
    if package.ecosystem == "go":
        # The tag of a module in a directory of its repository begins with that directory.
        inner = re.sub(r"/v\d+$", "", "/".join(name.split("/")[3:]))
        version = (package.version or "").partition("+")[0]
        tags = [version, f"{inner}/{version}"]
    else:
        short = package.name.rpartition("/")[2]
        tags = [pattern.format(name=short, version=package.version) for pattern in _TAGS]
    for tag in [ref, *tags] if ref else tags:
        try:
            check_ref(tag, package.url)
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
