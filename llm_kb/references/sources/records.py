"""Where reference topics are fetched from: records, and the tables they are read from.

Sources come from models, from `topic.md` and from the command line. They are read here,
once, before anything is run or connected to. Nothing here does I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, ClassVar
from urllib.parse import urlsplit

from llm_kb.errors import PatternError
from llm_kb.files.fields import Fields
from llm_kb.files.values import BadValueError, describe, read_choice
from llm_kb.references.errors import SourceError
from llm_kb.references.sources.rules import (
    check_git_url,
    check_paths,
    check_ref,
    check_web_url,
    is_unsafe,
)
from llm_kb.search.roles import ROLES, Role
from llm_kb.subjects.patterns import Matcher, compile_any, parse_pattern

MAX_CRAWL_DEPTH = 5
MAX_CRAWL_PAGES = 500

_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")


def read_string(value: object) -> str:
    """Read a string, whatever is in it: its own rules say more than that it has control codes."""
    if not isinstance(value, str):
        raise BadValueError(describe(value), "a string")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A repository, or the files of it that `paths` names (`docs/`, `README.md`)."""

    type: ClassVar[str] = "git"
    url: str
    ref: str | None = None
    paths: tuple[str, ...] = ()
    commit: str | None = None
    role: Role | None = None
    package: str | None = None
    """The package and version whose repository it is: `pypi flask 3.0.1`."""

    @property
    def name(self) -> str:
        """The repository's last component, without `.git`."""
        path = urlsplit(self.url).path.rstrip("/")
        return PurePosixPath(path).name.removesuffix(".git") or "repository"

    def wants(self, path: str) -> bool:
        """Tell whether `paths` covers a file; all files without `paths`."""
        return not self.paths or any(
            path == wanted.rstrip("/") or path.startswith(wanted.rstrip("/") + "/")
            for wanted in self.paths
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource:
    """One page."""

    type: ClassVar[str] = "web"
    url: str
    role: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSource:
    """The pages of one host that a page leads to and that lie below its directory.

    `include` and `exclude` are patterns over paths below that directory: `guide/**`.
    """

    type: ClassVar[str] = "crawl"
    url: str
    depth: int = 2
    max_pages: int = 50
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    role: Role | None = None

    def wants(self, path: str) -> bool:
        """Tell whether the patterns cover a page, with or without the `/` at its end."""
        paths = {path, path.rstrip("/")}
        included = not self.include or any(map(_matcher(self.include), paths))
        return included and not any(map(_matcher(self.exclude), paths))


@lru_cache(maxsize=8)
def _matcher(patterns: tuple[str, ...]) -> Matcher:
    return compile_any([parse_pattern(pattern) for pattern in patterns])


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSource:
    """A directory of this machine: an operator's choice, never a model's."""

    type: ClassVar[str] = "local"
    url: str
    paths: tuple[str, ...] = ()
    role: Role | None = None

    @property
    def name(self) -> str:
        """The directory's own name."""
        return PurePosixPath(self.url).name or "files"

    def wants(self, path: str) -> bool:
        """Tell whether `paths` covers a file; all files without `paths`."""
        return GitSource(url=self.url, paths=self.paths).wants(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSource:
    """An archive on the web, of which the hash is known: the source distribution of a package."""

    type: ClassVar[str] = "archive"
    url: str
    hash: str
    """Of its bytes, as `sha256:…` or `sha512:…`."""
    paths: tuple[str, ...] = ()
    role: Role | None = None
    package: str | None = None
    """The package and version it is of: `pypi flask 3.0.1`."""

    @property
    def name(self) -> str:
        """The name of the package, else that of the file."""
        if self.package:
            return parse_package(self.package).package.rpartition("/")[2]
        return PurePosixPath(urlsplit(self.url).path).name.partition(".")[0] or "archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource:
    """The documentation of a package: a plan finds its repository, and its version's tag.

    Without `version` it is that of the workspace, else the newest.
    """

    type: ClassVar[str] = "package"
    ecosystem: str
    package: str
    version: str | None = None
    role: Role | None = None

    @property
    def url(self) -> str:
        """Where people look at the package."""
        return PACKAGE_PAGES[self.ecosystem] + self.package


PACKAGE_PAGES = {
    "pypi": "https://pypi.org/project/",
    "npm": "https://www.npmjs.com/package/",
    "crate": "https://crates.io/crates/",
    "go": "https://pkg.go.dev/",
}

_PACKAGE = re.compile(r"(?:@[A-Za-z0-9._-]{1,100}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_MODULE = re.compile(
    r"[a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60})+(?:/[\w~-][\w.~-]{0,100}){1,8}", re.ASCII
)
_HASH = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,100}")

TreeSource = GitSource | LocalSource | ArchiveSource
"""Those that hold files with paths."""

Source = TreeSource | WebSource | CrawlSource | PackageSource

KINDS = ("git", "web", "crawl", "package", "local", "archive")
_OPERATORS = frozenset({"local", "archive"})
"""Kinds that models may not name."""


def read_source(
    fields: Fields,
    *,
    allow_local: bool = False,
    protocols: Collection[str] = (),
    lenient: bool = False,
) -> Source | None:
    """Return the source of a table; None if it is invalid, with its problems recorded.

    `protocols` are the user layer's additions for git. `lenient` passes over unknown
    keys, as `topic.md` may have some of its owner's.
    """
    known = len(fields.problems)
    kind = fields.choice("type", [name for name in KINDS if allow_local or name not in _OPERATORS])
    url = "" if kind == "package" else fields.text("url", read=read_string)
    role = fields.get("role", lambda value: Role(read_choice(value, ROLES)))
    source: Source | None = None
    try:
        if kind == "git":
            source = _read_git(fields, url, role, protocols)
        elif kind == "web":
            source = WebSource(url=check_web_url(url, ""), role=role)
        elif kind == "crawl":
            source = _read_crawl(fields, url, role)
        elif kind == "package":
            source = _read_package(fields, role)
        elif kind == "local":
            source = _read_local(fields, url, role)
        elif kind == "archive":
            source = _read_archive(fields, url, role)
    except SourceError as error:
        if url or kind == "package":  # else it was reported as missing
            fields.report("", error.reason)
    if not lenient and kind:
        fields.reject_unknown()
    return source if len(fields.problems) == known else None


def _read_git(fields: Fields, url: str, role: Role | None, protocols: Collection[str]) -> GitSource:
    ref, commit = fields.get("ref", read_string), fields.get("commit", read_string)
    paths = fields.texts("paths", read_string)
    package = fields.get("package", read_string)
    if package is not None:
        parse_package(package)
    return GitSource(
        url=check_git_url(url, "", protocols),
        ref=check_ref(ref or None, ""),
        commit=check_ref(commit or None, ""),
        paths=check_paths(paths, ""),
        role=role,
        package=package,
    )


def _read_package(fields: Fields, role: Role | None) -> PackageSource:
    ecosystem = fields.choice("ecosystem", PACKAGE_PAGES)
    name, version = fields.text("name", read=read_string), fields.get("version", read_string)
    source = PackageSource(
        ecosystem=ecosystem or "pypi", package=name, version=version or None, role=role
    )
    return _check_package(source) if name else source


def parse_package(text: str) -> PackageSource:
    """Return the package and version that `pypi flask 3.0.1` names; raise SourceError."""
    words = text.split(" ")
    if len(words) != 3 or words[0] not in PACKAGE_PAGES:
        raise SourceError("", f"{text!r} is not a package such as 'pypi flask 3.0.1'")
    ecosystem, name, version = words
    return _check_package(PackageSource(ecosystem=ecosystem, package=name, version=version))


def _check_package(source: PackageSource) -> PackageSource:
    pattern = _MODULE if source.ecosystem == "go" else _PACKAGE
    if not pattern.fullmatch(source.package):
        raise SourceError("", f"{source.package!r} is not the name of a package")
    if source.version is not None and not _VERSION.fullmatch(source.version):
        raise SourceError("", f"{source.version!r} is not a version")
    return source


def _read_crawl(fields: Fields, url: str, role: Role | None) -> CrawlSource:
    # Models know the first of these from other tools.
    depth = fields.count("max_depth", 2, most=MAX_CRAWL_DEPTH)
    depth = fields.count("depth", depth, most=MAX_CRAWL_DEPTH)
    max_pages = fields.count("max_pages", 50, most=MAX_CRAWL_PAGES)
    patterns = {key: fields.texts(key, _read_pattern) for key in ("include", "exclude")}
    return CrawlSource(
        url=check_web_url(url, ""), depth=depth, max_pages=max_pages, role=role, **patterns
    )


def _read_pattern(value: object) -> str:
    """Read a pattern over paths."""
    try:
        return parse_pattern(read_string(value)).text
    except PatternError as error:
        raise BadValueError(
            describe(value), f"a pattern such as 'guide/**' ({error.reason})"
        ) from error


def _read_local(fields: Fields, url: str, role: Role | None) -> LocalSource:
    paths = fields.texts("paths", read_string)
    if not _ABSOLUTE.match(url) or is_unsafe(url):
        raise SourceError("", f"url {url!r} must be the absolute path of a directory")
    return LocalSource(url=url, paths=check_paths(paths, ""), role=role)


def _read_archive(fields: Fields, url: str, role: Role | None) -> ArchiveSource:
    paths, hash_ = fields.texts("paths", read_string), fields.text("hash", read=read_string)
    package = fields.get("package", read_string)
    if hash_ and not _HASH.fullmatch(hash_):
        raise SourceError("", f"hash {hash_!r} must be sha256: or sha512: and as many digits")
    if package is not None:
        parse_package(package)
    return ArchiveSource(
        url=check_web_url(url, ""),
        hash=hash_,
        paths=check_paths(paths, ""),
        role=role,
        package=package,
    )


def source_table(source: Source) -> dict[str, Any]:
    """Return the table `parse_source` reads back; keys in the order `topic.md` has them."""
    table: dict[str, Any] = {"type": source.type}
    if isinstance(source, PackageSource):
        table |= {"ecosystem": source.ecosystem, "name": source.package, "version": source.version}
    else:
        table["url"] = source.url
    if isinstance(source, GitSource):
        table |= {"ref": source.ref, "commit": source.commit, "paths": list(source.paths)}
        table["package"] = source.package
    if isinstance(source, LocalSource):
        table |= {"paths": list(source.paths)}
    if isinstance(source, ArchiveSource):
        table |= {"hash": source.hash, "paths": list(source.paths), "package": source.package}
    if isinstance(source, CrawlSource):
        table |= {"depth": source.depth, "max_pages": source.max_pages}
        table |= {"include": list(source.include), "exclude": list(source.exclude)}
    table["role"] = source.role.value if source.role else None
    return {key: value for key, value in table.items() if value is not None and value != []}


def describe_source(source: Source) -> str:
    """Name a source for people: `owner/name` on a known forge, else its address."""
    if isinstance(source, LocalSource):
        return source.url
    split = urlsplit(source.url)
    is_github = (split.scheme, split.netloc) == ("https", "github.com")
    if isinstance(source, GitSource) and is_github:
        return split.path.strip("/").removesuffix(".git")
    return source.url


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPage:
    """One page of a plan; `size` is None where the server does not say."""

    url: str
    size: int | None = None

    @property
    def most(self) -> int | None:
        """How many bytes may be fetched under this plan; None when only the limits say."""
        return None if self.size is None else self.size + self.size // 4 + SLACK_BYTES


SLACK_BYTES = 65_536
"""By how much, besides a quarter, a page may outgrow its plan: pages are alive."""
