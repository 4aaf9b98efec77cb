"""The sources of reference topics: their records, and how these are read from tables.

Sources come from models, from `topic.md` and from the command line. They are validated here,
once, before anything is run or connected to. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from dataclasses import fields as fields_of
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, ClassVar, get_args
from urllib.parse import urlsplit

from llm_kb.errors import PatternError
from llm_kb.files.fields import BadValueError, Fields, describe, read_choice
from llm_kb.references.errors import SourceError
from llm_kb.references.sources.rules import check_git_url, check_paths, check_web_url, is_ref
from llm_kb.search.roles import ROLES, Role
from llm_kb.subjects.patterns import Matcher, compile_any, parse_pattern
from llm_kb.subjects.topics import is_portable

MAX_CRAWL_DEPTH = 5
MAX_CRAWL_PAGES = 500
MAX_PATTERNS = 4_000
"""Characters of the patterns of a crawl, each of which is compared with each address."""

# The fields of a record are the keys of its table, in the order `topic.md` has them.


class _Source:
    """What is common to all sources; no fields, so that each lists its own in their order."""

    __slots__ = ()
    is_tree: ClassVar[bool] = False
    """Whether it holds files with paths."""
    paths: tuple[str, ...] = ()
    """The files and directories that are wanted; empty for all."""
    package: str | None = None
    """The package and version it is of: `pypi flask 3.0.1`."""

    @property
    def short_name(self) -> str:
        """Its name for people; empty if that is its address."""
        return ""

    @property
    def details(self) -> str:
        """What a plan shows besides the address; empty for nothing."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource(_Source):
    """A repository, or the files in it that `paths` names (`docs/`, `README.md`)."""

    type: ClassVar[str] = "git"
    url: str
    ref: str | None = None
    commit: str | None = None
    paths: tuple[str, ...] = ()
    package: str | None = None
    """The package and version whose repository it is: `pypi flask 3.0.1`."""
    role: Role | None = None
    is_tree: ClassVar[bool] = True

    @property
    def folder(self) -> str:
        """The name of its folder in a topic of several: the last component of its address."""
        name = PurePosixPath(urlsplit(self.url).path).name.removesuffix(".git").lstrip(".")
        return name if is_portable(name) else "files"

    @property
    def details(self) -> str:
        """The revision, its commit, and the paths."""
        at = f" at {self.commit}" if self.commit else ""
        only = f", only {', '.join(self.paths)}" if self.paths else ""
        return f"{self.ref or 'default branch'}{at}{only}"

    @property
    def short_name(self) -> str:
        """`owner/name` on GitHub."""
        split = urlsplit(self.url)
        is_github = (split.scheme, split.netloc) == ("https", "github.com")
        return split.path.strip("/").removesuffix(".git") if is_github else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource(_Source):
    """One page."""

    type: ClassVar[str] = "web"
    url: str
    role: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSource(_Source):
    """The pages that a page links to, directly or not, within its own directory on its host.

    `include` and `exclude` are patterns over paths below that directory: `guide/**`.
    """

    type: ClassVar[str] = "crawl"
    url: str
    depth: int = 2
    max_pages: int = 50
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    role: Role | None = None

    def __post_init__(self) -> None:
        length = len("".join([*self.include, *self.exclude]))
        if length > MAX_PATTERNS:
            raise SourceError(
                f"include and exclude have {length:,} characters, over {MAX_PATTERNS:,}"
            )

    @property
    def details(self) -> str:
        """The patterns."""
        words = {"only": self.include, "without": self.exclude}
        return "; ".join(f"{word} {', '.join(each)}" for word, each in words.items() if each)

    def wants(self, path: str) -> bool:
        """Tell whether the patterns cover a page, with or without its final `/`."""
        paths = {path, path.rstrip("/")}
        included = not self.include or any(map(_matcher(self.include), paths))
        return included and not any(map(_matcher(self.exclude), paths))


@lru_cache(maxsize=8)
def _matcher(patterns: tuple[str, ...]) -> Matcher:
    return compile_any([parse_pattern(pattern) for pattern in patterns])


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource(_Source):
    """The documentation of a package; a plan finds its repository and the tag of its version.

    Without `version` it is the workspace's version, else the newest. Raises SourceError for an
    invalid name or version.
    """

    type: ClassVar[str] = "package"
    ecosystem: str
    name: str
    version: str | None = None
    role: Role | None = None
    is_tree: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not _PACKAGE.fullmatch(self.name):
            raise SourceError(f"{self.name!r} is not the name of a package")
        if self.version is not None and not _VERSION.fullmatch(self.version):
            raise SourceError(f"{self.version!r} is not a version")

    @property
    def url(self) -> str:
        """The address of the package's page for people."""
        return PACKAGE_PAGES[self.ecosystem] + self.name

    def __str__(self) -> str:
        return f"{self.ecosystem} {self.name} {self.version}"


def parse_package(text: str) -> PackageSource:
    """Return the package named by a text such as `pypi flask 3.0.1`; raise SourceError."""
    words = text.split(" ")
    if len(words) != 3 or words[0] not in PACKAGE_PAGES:
        raise SourceError(f"{text!r} is not a package such as 'pypi flask 3.0.1'")
    return PackageSource(ecosystem=words[0], name=words[1], version=words[2])


PACKAGE_PAGES = {
    "pypi": "https://pypi.org/project/",
    "npm": "https://www.npmjs.com/package/",
    "crate": "https://crates.io/crates/",
}

_PACKAGE = re.compile(r"(?:@?[A-Za-z0-9][\w.~-]{0,100}/){0,8}[A-Za-z0-9][\w.~-]{0,200}", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,100}")

ON_GITHUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_-][\w.-]{0,99}", re.ASCII)
"""`owner/name`, as people and models write it."""

Source = GitSource | WebSource | CrawlSource | PackageSource

TYPES: dict[str, type[Source]] = {each.type: each for each in get_args(Source)}
"""The records by the `type` of their tables."""


def read_source(
    fields: Fields, *, protocols: Collection[str] = (), lenient: bool = False
) -> Source | None:
    """Return the source that a table describes; None, with problems recorded, if it is invalid.

    `protocols` are the user layer's additions for git. `lenient` is for a `topic.md`, to which its
    owner may add keys.
    """
    known = len(fields.problems)
    kind = fields.choice("type", [*TYPES])
    if not kind:
        return None
    values: dict[str, Any] = {}
    for key in (each.name for each in fields_of(TYPES[kind])):
        try:
            is_url = key == "url"
            values[key] = _read_url(fields, kind, protocols) if is_url else _READERS[key](fields)
        except SourceError as error:
            fields.report("", str(error))
    if not lenient:
        fields.reject_unknown()
    if len(fields.problems) > known:
        return None
    try:
        return TYPES[kind](**values)
    except SourceError as error:
        fields.report("", str(error))
        return None


def _read_url(fields: Fields, kind: str, protocols: Collection[str]) -> str:
    url = fields.text("url", read=read_string)
    if not url:  # which is reported
        return url
    if kind == "git":
        is_name = ON_GITHUB.fullmatch(url)
        return check_git_url(f"https://github.com/{url}" if is_name else url, protocols)
    return check_web_url(url)


def read_string(value: object) -> str:
    """Read a string with any characters; the field's own rules check them with better messages."""
    if not isinstance(value, str):
        raise BadValueError(describe(value), "a string")
    return value


def _read_pattern(value: object) -> str:
    """Read a pattern over paths."""
    try:
        return parse_pattern(read_string(value)).text
    except PatternError as error:
        allowed = f"a pattern such as 'guide/**' ({error.reason})"
        raise BadValueError(describe(value), allowed) from error


def _read_package(fields: Fields) -> str | None:
    package = fields.get("package", read_string)
    return None if package is None else str(parse_package(package))


def _read_ref(fields: Fields, key: str) -> str | None:
    ref = fields.get(key, read_string)
    if ref and not is_ref(ref):
        raise SourceError(f"ref {ref!r} is not the name of a branch or tag, nor a commit id")
    return ref or None


_READERS: dict[str, Callable[[Fields], object]] = {
    "ref": lambda fields: _read_ref(fields, "ref"),
    "commit": lambda fields: _read_ref(fields, "commit"),
    "paths": lambda fields: check_paths(fields.texts("paths", read_string)),
    "role": lambda fields: fields.get("role", lambda value: Role(read_choice(value, ROLES))),
    "package": _read_package,
    "depth": lambda fields: fields.count("depth", 2, most=MAX_CRAWL_DEPTH),
    "max_pages": lambda fields: fields.count("max_pages", 50, least=1, most=MAX_CRAWL_PAGES),
    "include": lambda fields: fields.texts("include", _read_pattern),
    "exclude": lambda fields: fields.texts("exclude", _read_pattern),
    "ecosystem": lambda fields: fields.choice("ecosystem", PACKAGE_PAGES),
    "name": lambda fields: fields.text("name", read=read_string),
    "version": lambda fields: fields.get("version", read_string) or None,
}
"""The reader of each field except `url`."""


def source_table(source: Source) -> dict[str, Any]:
    """Return the table that `read_source` reads back, without empty values."""
    table: dict[str, Any] = {"type": source.type}
    for key in (each.name for each in fields_of(source)):
        value = getattr(source, key)
        if isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, Role):
            value = value.value
        if value is not None and value != []:
            table[key] = value
    return table


def compile_paths(paths: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that lists the `paths` of a source that cover a file.

    Its time grows with the different lengths of the paths, not with their number.
    """
    named: dict[str, list[str]] = {}
    for path in paths:
        named.setdefault(path.rstrip("/"), []).append(path)
    lengths = sorted(set(map(len, named)))

    def find_covering(file: str) -> list[str]:
        whole = f"{file}/"
        ends = (length for length in lengths if whole[length : length + 1] == "/")
        return [path for end in ends for path in named.get(file[:end], ())]

    return find_covering
