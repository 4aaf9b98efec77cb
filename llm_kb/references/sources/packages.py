"""The documentation of a package: what its index says, its repository, the tag of its version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from llm_kb.references.errors import FetchError
from llm_kb.references.sources import installed, rules
from llm_kb.references.sources.git import Remotes, find_tags
from llm_kb.references.sources.installed import Package
from llm_kb.references.sources.records import GitSource, PackageSource, parse_package
from llm_kb.references.sources.web import request
from llm_kb.search.roles import DOCS_DIRECTORY

_OWN_TAGS = (
    "{name}@{version}", "{name}@v{version}", "{name}-v{version}", "{name}-{version}",
    "{name}/v{version}", "{name}/{version}", "{name}_v{version}", "{name}_{version}",
    "{name}v{version}", "{name}=={version}", "{name}-v/{version}",
)  # fmt: skip
"""The tags of a version of one package of a repository: of changesets and lerna, of release-please
and cargo-release, of Go's modules, and others."""

_TAGS = ("v{version}", "{version}", "V{version}", "release-{version}", "release-v{version}",
    "release/{version}", "release/v{version}", "releases/{version}", "rel-{version}",
    "version-{version}", "ver-{version}", "r{version}", "v/{version}",
)  # fmt: skip
"""The tags of a version of a whole repository."""

_PRE_RELEASE = re.compile(r"(\d[\d.]*)[-_.]?(a|alpha|b|beta|c|rc|pre|preview)[-_.]?(\d{1,9})")
_PHASES = {"a": "alpha", "b": "beta", "c": "rc", "pre": "rc", "preview": "rc"}

_MANIFESTS = ("Cargo.toml", "package.json", "pyproject.toml", "setup.py")

_DOCUMENTS = re.compile(
    rf"(?i){DOCS_DIRECTORY}|docs?[-_]\w+|(?:example|sample|demo|snippet|notebook|cookbook)s?|"
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
    directory = package.directory or find_directory(files, source.name)
    return replace(git, paths=choose_documents(files, directory))


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
    """Return a repository at the tag of a package's version; raise FetchError without one.

    The package's own tags come first: in a repository of several, another one is another's.
    """
    found = find_tags(git, remotes.policy)
    for tag in list_tags(package.name, package.version or ""):
        if tag in found:
            return replace(git, ref=tag, commit=found[tag], package=str(package))
    raise FetchError(
        package.url,
        f"{git.url} has no tag for version {package.version}; give it with type git and its ref",
    )


def list_tags(name: str, version: str) -> list[str]:
    """Return the tags that a package's version may have, those with its name first."""
    short = name.rpartition("/")[2]
    spellings = (name, short, short.replace("_", "-"), short.replace("-", "_"), short.lower())
    versions = list(dict.fromkeys(_spell_version(version)))
    own = [
        tag.format(name=spelling, version=each)
        for spelling in dict.fromkeys(spellings)
        for each in versions
        for tag in _OWN_TAGS
    ]
    return [tag for tag in (*own, *_list_whole(version)) if rules.is_ref(tag)]


def _list_whole(version: str) -> list[str]:
    """Return the tags of a version of a whole repository."""
    return [tag.format(version=each) for each in _spell_version(version) for tag in _TAGS]


def _spell_version(version: str) -> Iterator[str]:
    """Yield a version as it may be written: `1.2.0rc1` of Python is `1.2.0-rc.1` in semver."""
    yield version
    if found := _PRE_RELEASE.fullmatch(version.lower()):
        release, phase, number = found.groups()
        phase = _PHASES.get(phase, phase)
        short = {"alpha": "a", "beta": "b"}.get(phase, phase)
        yield f"{release}{short}{number}"
        for named in (f"-{phase}.", f"-{phase}", f".{phase}", f"-{short}", phase):
            yield f"{release}{named}{number}"


def explain_tag(source: GitSource) -> str:
    """Return the package of a repository with the reason for its tag; empty without a package."""
    if not source.package:
        return ""
    package, tag = parse_package(source.package), source.ref or ""
    is_whole = tag in _list_whole(package.version or "")
    why = "no tag names the package" if is_whole else "it names the package"
    return f"{package}: tag {tag} ({why})"


def find_directory(paths: Iterable[str], name: str) -> str:
    """Return the directory of a repository that has a package's name and its manifest."""
    short = name.rpartition("/")[2]
    ends = tuple(f"/{short}/{manifest}" for manifest in _MANIFESTS)
    found = (path for path in paths if f"/{path}".endswith(ends))
    return min(found, key=len, default="").rpartition("/")[0]


def choose_documents(paths: Iterable[str], directory: str = "") -> tuple[str, ...]:
    """Return what is documentation among the entries of a repository and of a package's directory.

    Without a directory of documents it is the package's own directory; empty, for all files, if
    that is the repository.
    """
    inside = f"{directory}/" if directory else ""
    chosen: set[str] = set()
    has_own = False
    for path in paths:
        is_own = path.startswith(inside)
        has_own = has_own or is_own
        for above in dict.fromkeys(("", inside if is_own else "")):
            name, slash, _ = path[len(above) :].partition("/")
            if _DOCUMENTS.fullmatch(name):
                chosen.add(f"{above}{name}{slash}")
    if any(path.endswith("/") for path in chosen):
        return tuple(sorted(chosen))
    return (inside,) if inside and has_own else ()


REGISTRIES = {
    "pypi": "https://pypi.org/pypi/{}/json",
    "npm": "https://registry.npmjs.org/{}/latest",
    "crate": "https://crates.io/api/v1/crates/{}",
}
"""Where the public index of each ecosystem describes the newest version of a package."""


def get_json(url: str, policy: rules.Policy) -> dict[str, Any]:
    """Return the table of JSON at an address; raise FetchError."""
    answer = request(url, policy, headers={"Accept": "application/json"})
    if answer.status != 200:
        raise FetchError(url, f"the server answered {answer.status}")
    return installed.parse_table(answer.body)


def index_url(source: PackageSource) -> str:
    """Return the address that is asked about a package."""
    return REGISTRIES[source.ecosystem].format(quote(source.name, safe="@"))


def ask_index(source: PackageSource, version: str | None, policy: rules.Policy) -> Package:
    """Return a package at a version, by default the newest; raise FetchError.

    Its repository is that of the newest version.
    """
    table = get_json(index_url(source), policy)
    if source.ecosystem == "pypi":
        table = installed.get_table(table, "info")
        urls = [
            ("homepage", table.get("home_page")),
            *installed.get_table(table, "project_urls").items(),
        ]
        package = installed.choose_repository(urls)
    else:
        table = installed.get_table(table, "crate") if source.ecosystem == "crate" else table
        package = installed.node_repository(table)
    newest = table.get("version") or table.get("max_stable_version") or table.get("max_version")
    return replace(package, version=version or str(newest or ""))
