"""The role of a document, found by its path, and a search limited by it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from llm_kb.subjects.patterns import Matcher, compile_any, parse_pattern
from llm_kb.subjects.topics import slugify
from llm_kb.texts.formats import Kind, find_extension, find_format, find_stem, has_generated_name


class Role(Enum):
    """The role of a document: explanations come before code, tests and changes.

    Changes are release notes, and what else is of its time: blogs, proposals, drafts.
    """

    DOCS = "docs"
    CODE = "code"
    TESTS = "tests"
    EXAMPLES = "examples"
    CHANGES = "changes"


ROLES = tuple(role.value for role in Role)

# Of a document

_README = re.compile(r"readme|contributing|licen[cs]e|copying|authors|security")
# Whole names of directories or files, in lower case and without extension.
DOCS_DIRECTORY = r"docs?|documentation|guides?|manual|book|tutorials?|how-?to|wiki|website|site"
"""Names of directories of documentation, as a regular expression."""
_DOCS = re.compile(DOCS_DIRECTORY)
TESTS_DIRECTORY = (
    r"tests?|testing|__tests__|testsuite|test[-_]?(?:data|cases|files|fixtures|dir)|fixtures?"
    r"|(?:__)?snapshots(?:__)?|cassettes|revdep|e2e"
)
"""Names of directories of tests and their data, as a regular expression."""
_TESTS = re.compile(TESTS_DIRECTORY)
_TESTS_OF_CODE = re.compile(rf"{TESTS_DIRECTORY}|specs?|benches|benchmarks|x?t")
"""Pages may be in a directory of specifications or of benchmarks."""
_OF_TESTS = re.compile(r".*(?<!la)(?<!con)(?<!pro)tests?")
"""Directories and extensions of tests: `caddytest`, `smoke-tests`, `.sqltest`; not `latest`."""
_TEST_FILE = re.compile(r"test_.*|.*[_.-](?:tests?|spec)|tests?|conftest")
_EXAMPLES = re.compile(r"examples?|samples?|demos?|docs_src|cookbook")
_CHANGES = re.compile(
    r"(?:changes|change[-_]?logs?|history|news|newsfragments|release[-_ ]?notes?|releases?"
    r"|announce(?:ments?)?|what'?s[-_]?new)(?:[-_.]?v?[\d.x]+)?"
)
_DATED = re.compile(r"blogs?|_posts|_?drafts?|rfcs?|proposals?|archive[ds]?|legacy|old")
"""Directories of what was written once, and is not kept true as documentation is."""


def find_role(path: str, start: str | None = None) -> Role:
    """Return the role of a document, by its path and, if that is ambiguous, the start of it."""
    *parents, name = path.lower().split("/")
    stem, extension = find_stem(name), find_extension(name)
    known = find_format(path, start) if extension else None
    is_readme = bool(_README.fullmatch(stem))
    is_markup = is_readme or (known is not None and known.is_prose)
    is_plain = not is_readme and known is not None and known.kind is Kind.PLAIN
    tests = _TESTS if is_markup else _TESTS_OF_CODE
    for parent in parents:
        if _DOCS.fullmatch(parent):
            break
        # Plain text beside tests is their input; source code may be a library for tests.
        if tests.fullmatch(parent) or (is_plain and _OF_TESTS.fullmatch(parent)):
            return Role.TESTS
        if _EXAMPLES.fullmatch(parent):
            return Role.EXAMPLES
    if not is_markup and extension:
        if _TEST_FILE.fullmatch(stem) or _OF_TESTS.fullmatch(extension):
            return Role.TESTS
        is_for_docs = any(_DOCS.fullmatch(each) or _EXAMPLES.fullmatch(each) for each in parents)
        return Role.EXAMPLES if is_for_docs else Role.CODE
    if any(map(_CHANGES.fullmatch, (*parents, stem))) or any(map(_DATED.fullmatch, parents)):
        return Role.CHANGES
    return Role.DOCS if is_markup else Role.CODE


_GENERATED = re.compile(
    r"@generated\b|\b(?:code|file) (?:is )?(?:auto-?)?generated\b.{0,80}\bdo not (?:edit|modify)",
    re.IGNORECASE | re.DOTALL,
)
_LONG_LINES = 1_000
"""Average line length from which a text counts as machine-made, over the lines of `_FEW_LINES`."""

_FEW_LINES = {Kind.CODE: 4, Kind.DATA: 20}

MACHINE_MADE, ONE_LINE = "written by a machine, or for one", "data in one long line"
"""Why no search reads a file."""

_DESCRIPTION = re.compile(
    r'"(?:openapi|swagger|asyncapi|__schema)"\s*:|"\$schema"\s*:\s*"https?://json-schema\.org/'
    r"|<(?:\w{1,20}:)?schema[\s>]|<(?:\w{1,20}:)?definitions\s"
)
"""A description of an API, or a schema, which people search."""


def explain_unsearched(path: str, text: str) -> str:
    """Return why no search reads a file that nobody wrote: a lock, minified code, data; or nothing.

    A description of an API, or a schema, is searched though it is in one long line.
    """
    known = find_format(path, text)
    if has_generated_name(path) or (known and known.is_table):
        return MACHINE_MADE
    few = _FEW_LINES.get(known.kind) if known else None
    if known and few and len(text) / _LONG_LINES - text.count("\n") > few:
        if known.kind is not Kind.DATA:
            return MACHINE_MADE
        return "" if _DESCRIPTION.search(text) else ONE_LINE
    is_page = known and known.is_prose and find_extension(path)
    return MACHINE_MADE if not is_page and _GENERATED.search(text[:2_000]) else ""


# Of a search

_PLACE = re.compile(r"(?<=.):\d+(?:-\d+)?$|(?<=.)#[^/]*$")
"""Lines or an anchor after the name of a file."""


# Without slots: `cached_property` keeps the compiled patterns in the instance.
@dataclass(frozen=True)
class Scope:
    """The documents that a search is limited to, by role and path.

    `paths` are patterns for paths or slugs, or directories (`docs/`), in a topic or after its id,
    also with lines or an anchor, as answers name them. Either may be empty, for all. Raises
    PatternError at the first use.
    """

    roles: Collection[Role] = ()
    paths: Sequence[str] = ()

    @cached_property
    def _matches(self) -> Matcher:
        bare = [path.rstrip("/") or path for path in self.paths]
        files = [_PLACE.sub("", path) for path in bare]
        return compile_any(
            [parse_pattern(each) for each in (*bare, *(f"{b}/**" for b in bare), *files) if each]
        )

    def __str__(self) -> str:
        """Return its documents in words: `file in docs/ with the role code`."""
        where = f" in {' or '.join(self.paths)}" if self.paths else ""
        roles = " or ".join(role.value for role in self.roles)
        return f"file{where}{f' with the role {roles}' if roles else ''}"

    def covers(self, topic: str, path: str, role: Role) -> bool:
        """Tell whether a document is searched."""
        if self.roles and role not in self.roles:
            return False
        slug = slugify(path)
        names = (path, slug, f"{topic}/{path}", f"{topic}/{slug}")
        return not self.paths or any(map(self._matches, names))
