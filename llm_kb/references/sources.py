"""Where reference topics are fetched from: records, and the rules a source must keep.

Sources come from models, from `topic.md` and from the command line; all of it is
parsed here, once, before anything is run or connected to. Nothing here does I/O.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from llm_kb.references.errors import SourceError, show_value

GIT_PROTOCOLS = frozenset({"https", "http"})
"""What git may speak unless the user layer's `allow_protocols` adds to it."""

OPTIONAL_GIT_PROTOCOLS = frozenset({"file", "git", "ssh"})
"""What `allow_protocols` may add; remote helpers such as `ext::` never run."""

MAX_CRAWL_DEPTH = 5
MAX_CRAWL_PAGES = 500

_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""What a terminal carries out, what turns or hides text, what ends a line, and what is no text."""

# A subset of git's own rule (git-check-ref-format), and no first character that makes
# an option, a refspec or a revision expression of it.
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=#@-]*")


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
        if not _ABSOLUTE.match(url) or _is_unsafe(url):
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
    if isinstance(source, GitSource) and split.hostname == "github.com":
        return split.path.strip("/").removesuffix(".git")
    return source.url


def check_git_url(url: str, where: str, protocols: Collection[str] = ()) -> str:
    """Return a URL git may be given; raise SourceError for any other."""
    allowed = GIT_PROTOCOLS | (OPTIONAL_GIT_PROTOCOLS & set(protocols))
    if "::" in url.partition("//")[0]:
        raise SourceError(where, f"url {url!r}: git remote helpers are never run")
    split = _split(url, where)
    if split.scheme not in allowed:
        hint = ""
        if split.scheme in OPTIONAL_GIT_PROTOCOLS or not split.scheme:
            hint = (
                "; allow_protocols under [kb.references] in your own kb.toml adds "
                "URLs such as file:///path, ssh://git@host/path and git://host/path"
            )
        kinds = " or ".join(sorted(allowed))
        raise SourceError(where, f"url {url!r} must be a URL of {kinds}{hint}")
    if split.scheme != "file":
        _check_host(split, url, where)
    if split.query or split.fragment:
        raise SourceError(where, f"url {url!r} may not have a query or a #fragment")
    if not split.path.strip("/"):
        raise SourceError(where, f"url {url!r} names no repository")
    return url


def check_web_url(url: str, where: str) -> str:
    """Return the URL of a page; raise SourceError unless it is http or https."""
    split = _split(url, where)
    if split.scheme not in {"http", "https"}:
        raise SourceError(where, f"url {url!r} must be http or https")
    _check_host(split, url, where)
    return url


def check_ref(ref: str | None, where: str) -> str | None:
    """Return a branch, tag or commit id that git cannot take for anything else."""
    if ref is None:
        return None
    bad = not _REF.fullmatch(ref) or ".." in ref or "//" in ref or "@{" in ref
    if bad or ref.endswith(("/", ".", ".lock")) or "/." in ref:
        raise SourceError(where, f"ref {ref!r} is no name of a branch or tag, nor a commit id")
    return ref


def check_paths(paths: object, where: str) -> tuple[str, ...]:
    """Return the `paths` of a source; raise SourceError for one that leads outside."""
    if paths is None:
        return ()
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise SourceError(where, "paths must be a list of strings")
    for path in paths:
        parts = path.removesuffix("/").split("/")
        if _is_unsafe(path) or any(part in {"", ".", ".."} for part in parts):
            raise SourceError(
                where,
                f"path {path!r} must name a file or a directory inside the source, such as "
                "'README.md' or 'docs/'",
            )
    return tuple(dict.fromkeys(paths))


def _is_unsafe(path: str) -> bool:
    """Tell whether a path has what could deceive, or what is a separator elsewhere."""
    return "\\" in path or any(unicodedata.category(c) in _HIDDEN for c in path)


def _split(url: str, where: str) -> SplitResult:
    # What is not printable are those that hide, and blanks; a URL has a code for either.
    if not url.isprintable() or " " in url or url.startswith("-"):
        raise SourceError(where, f"url {url!r} has blanks or control characters, or a leading '-'")
    try:
        split = urlsplit(url)
        _ = split.port  # parsed late, and raises late
    except ValueError as error:
        raise SourceError(where, f"url {url!r} is none: {error}") from error
    return split


def _check_host(split: SplitResult, url: str, where: str) -> None:
    if not split.hostname or split.hostname.startswith("-"):
        raise SourceError(where, f"url {url!r} names no host")
    # `ssh://git@host` names a login, which is no secret.
    if split.password or (split.username and split.scheme != "ssh"):
        raise SourceError(
            where,
            f"the url of {split.hostname} holds a user name or password, which would be kept in "
            "plain text; use a git credential helper",
        )


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
