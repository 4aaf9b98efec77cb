"""Where reference topics are fetched from: records, and the tables they are read from.

Sources come from models, from `topic.md` and from the command line; all of it is
parsed here, once, before anything is run or connected to. Nothing here does I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, ClassVar
from urllib.parse import urlsplit

from llm_kb.references.errors import SourceError, show_value
from llm_kb.references.sources.rules import (
    check_git_url,
    check_paths,
    check_ref,
    check_web_url,
    is_unsafe,
)

MAX_CRAWL_DEPTH = 5
MAX_CRAWL_PAGES = 500

_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")


class Role(Enum):
    """What a source is good for: explanations rank above code."""

    DOCS = "docs"
    CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A repository, or the files of it that `paths` names (`docs/`, `README.md`)."""

    type: ClassVar[str] = "git"
    url: str
    ref: str | None = None
    paths: tuple[str, ...] = ()
    commit: str | None = None
    role: Role | None = None

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
    """The pages of one host that a page leads to and that lie below its directory."""

    type: ClassVar[str] = "crawl"
    url: str
    depth: int = 2
    max_pages: int = 50
    role: Role | None = None


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


Source = GitSource | WebSource | CrawlSource | LocalSource

_KEYS: dict[str, frozenset[str]] = {
    "git": frozenset({"url", "ref", "paths", "commit"}),
    "web": frozenset({"url"}),
    "crawl": frozenset({"url", "depth", "max_pages"}),
    "local": frozenset({"url", "paths"}),
}


def parse_source(
    table: Mapping[str, Any],
    where: str,
    *,
    allow_local: bool = False,
    protocols: Collection[str] = (),
    lenient: bool = False,
) -> Source:
    """Turn one table of `sources` into its record; raise SourceError at `where`.

    `protocols` are the user layer's additions for git. `lenient` passes over
    unknown keys, as `topic.md` may have some of its owner's.
    """
    kind = table.get("type")
    if not isinstance(kind, str) or kind not in _KEYS or (kind == "local" and not allow_local):
        kinds = ", ".join(name for name in _KEYS if allow_local or name != "local")
        raise SourceError(where, f"type is {show_value(kind)}; it must be one of {kinds}")
    unknown = sorted(set(table) - _KEYS[kind] - {"type", "role"})
    if unknown and not lenient:
        allowed = ", ".join(sorted({*_KEYS[kind], "role", "type"}))
        raise SourceError(where, f"unknown key {unknown[0]!r}; a {kind} source has {allowed}")
    url = _text(table, "url", where)
    role = _role(table, where)
    if kind == "git":
        return GitSource(
            url=check_git_url(url, where, protocols),
            ref=check_ref(_optional_text(table, "ref", where), where),
            commit=check_ref(_optional_text(table, "commit", where), where),
            paths=check_paths(table.get("paths"), where),
            role=role,
        )
    if kind == "web":
        return WebSource(url=check_web_url(url, where), role=role)
    if kind == "local":
        if not _ABSOLUTE.match(url) or is_unsafe(url):
            raise SourceError(where, f"url {url!r} must be the absolute path of a directory")
        return LocalSource(url=url, paths=check_paths(table.get("paths"), where), role=role)
    return CrawlSource(
        url=check_web_url(url, where),
        depth=_number(table, "depth", 2, MAX_CRAWL_DEPTH, where),
        max_pages=_number(table, "max_pages", 50, MAX_CRAWL_PAGES, where),
        role=role,
    )


def source_table(source: Source) -> dict[str, Any]:
    """Return the table `parse_source` reads back; keys in the order `topic.md` has them."""
    table: dict[str, Any] = {"type": source.type, "url": source.url}
    if isinstance(source, GitSource):
        table |= {"ref": source.ref, "commit": source.commit, "paths": list(source.paths)}
    if isinstance(source, LocalSource):
        table |= {"paths": list(source.paths)}
    if isinstance(source, CrawlSource):
        table |= {"depth": source.depth, "max_pages": source.max_pages}
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


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise SourceError(where, f"{key} is missing")
    return value


def _optional_text(table: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if table.get(key) in (None, "") else _text(table, key, where)


def _number(table: Mapping[str, Any], key: str, default: int, most: int, where: str) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise SourceError(where, f"{key} must be a number from 0 to {most}")
    return value


def _role(table: Mapping[str, Any], where: str) -> Role | None:
    value = table.get("role")
    if value is None:
        return None
    try:
        return Role(value)
    except ValueError as error:
        raise SourceError(where, f"role is {show_value(value)}; it must be docs or code") from error


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
