"""Finds the pages of a project: all its prose, sorted by the rules that leave some of it out."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from llm_kb.git.run import GitError, read_git
from llm_kb.search.roles import DOCS_DIRECTORY
from llm_kb.subjects.editions import LANGUAGES, find_editions, find_translations
from llm_kb.subjects.ignore import IgnoreRules, is_always_ignored
from llm_kb.subjects.names import DOCUMENTS, can_convert, find_extension, find_flaw, is_readable


class Rule(NamedTuple):
    """A reason to leave pages out, by the names of their files or directories.

    A directory counts wherever it is if the rule is `deep`, else only outside documentation.
    """

    name: str
    what: str
    directories: frozenset[str] = frozenset()
    stems: re.Pattern[str] = re.compile(r"(?!)")
    deep: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RULES = (
    Rule(
        "generated",
        "generated and vendored files",
        _words(
            "vendor vendored third_party third-party thirdparty external node_modules build dist"
            " target out _build _site site-packages venv env deps bower_components pods"
        ),
    ),
    Rule(
        "tests",
        "tests and their data",
        _words(
            "test tests __tests__ fixture fixtures testdata test-data test_data snapshots"
            " __snapshots__ cassettes revdep e2e"
        ),
    ),
    Rule(
        "forms",
        "forms for issues and pull requests",
        _words("issue_template pull_request_template discussion_template"),
        re.compile(r"(?:issue|pull_request|discussion)_template.*"),
    ),
    Rule(
        "formalities",
        "licences, authors and codes of conduct",
        _words("licenses licences"),
        re.compile(
            r"(?:licen[cs]es?|copying|notices?)(?:[._-].*)?|third.?party.?(?:notices?|licen[cs]es?)"
            r"|authors|contributors|maintainers|owners|credits|thanks|sponsors|backers|funding"
            r"|code.?of.?conduct"
        ),
        deep=True,
    ),
    Rule(
        "changes",
        "change logs and release notes",
        _words("changelog changelogs .changeset .changes newsfragments release-notes relnotes"),
        re.compile(r"(?:change.?logs?|changes|release.?notes|news|history)(?:[._-].*)?"),
        deep=True,
    ),
    Rule(
        "demos",
        "examples and demos with their code",
        _words("example examples demo demos sample samples playground playgrounds"),
    ),
    Rule(
        "templates",
        "templates of a site",
        _words("archetypes layouts themes _layouts _includes _templates"),
    ),
    Rule("data", "data in documentation, with more text than its pages"),
    Rule("languages", "other languages than the main one"),
    Rule("versions", "other versions of the same pages"),
    Rule("copies", "skills that are there twice"),
    Rule("single", "single pages in other directories"),
)
"""The rules by their names, in the order in which they are tried."""

_MIXED = frozenset({"demos"})
"""Rules that leave out no directory that holds little but pages."""

_SURE = re.compile(r"(?:change.?logs?|changes|release.?notes|code.?of.?conduct|.*_template).*")
"""Names of files that a rule leaves out even in a directory of pages."""

_PROSE = _words(
    "md markdown mdown mkd mdx mdc rst adoc asciidoc org textile wiki pod qmd rmd ipynb tex typ"
    " cheatmd livemd rd rdoc texi texinfo mediawiki wikitext creole"
)
_DATA = _words("yml yaml json xml toml")
_PLAIN = frozenset({"txt", "text"})
_HTML = frozenset({"html", "htm"})
_BARE = _words("readme install hacking contributing architecture design agents")
_NOT_PROSE = re.compile(
    r"(?:.*[_-])?(?:requirements|constraints)(?:[_-].*)?|cmakelists|robots|humans|runtime"
    r"|top_level|sources|entry_points|manifest|(?:.*[_-])?(?:packages|deps|list)"
)
_DOCUMENTATION = re.compile(
    rf"{DOCS_DIRECTORY}|manuals|man|notes|handbook|adrs?|decisions|rfcs|kb|knowledge|skills"
)
_TEMPLATES = re.compile(r"(?:^|/)(?:_|(?:layouts|themes|templates|partials)(?:/|$))")
"""Directories whose HTML is not read by anybody as it is."""
RULE_FILES = {".cursorrules": "Cursor", ".windsurfrules": "Windsurf", ".clinerules": "Cline"}
"""Hidden files with rules for a coding tool."""

_LEAST_DATA = 20_000
"""Smallest size in bytes of data that is worth naming."""

_MOST_BYTES = 64_000_000


@dataclass(frozen=True)
class Project:
    """The files of a project, with the pages among them: those to take, and those left out."""

    root: Path
    files: Mapping[str, int]
    """The regular files with their sizes, links left out."""
    pages: Sequence[str]
    left_out: Mapping[str, Sequence[str]]
    """The pages that a rule leaves out, keyed by the name of the rule."""


def read_project(root: Path) -> Project:
    """Return the files of a project, and its pages by the rules."""
    files = {path: size for path in _list_files(root) if (size := _measure(root, path)) is not None}
    directories = {path.rpartition("/")[0] for path in files if find_extension(path) in _PROSE}
    pages = [path for path in files if _is_page(path, directories)]
    dense = find_dense(files, pages)
    other = {f"{place}": "languages" for place in find_translations(pages)}
    other |= {place: f"{kind}s" for place, kind in find_editions(pages).items()}
    other |= dict.fromkeys(_find_language_twins(files), "languages")
    # `docs/history.md` is another copy of `HISTORY.md`.
    own = {_find_stem(path): _find_rule(path, ()) for path in pages if "/" not in path}
    logs = {stem for stem, rule in own.items() if rule == "changes"}
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    kept = []
    for path in pages:
        rule = _find_rule(path, dense) or _find_edition(path, other)
        if rule is None and _find_stem(path) in logs:
            rule = "changes"
        if rule:
            left_out[rule].append(path)
        else:
            kept.append(path)
    left_out["data"] = list(_find_data(files, kept))
    return Project(root, files, kept, left_out)


def _find_data(files: Mapping[str, int], pages: Iterable[str]) -> Iterator[str]:
    """Yield the data in directories of documentation that have more of it than of pages."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        place = next(filter(is_documentation, list_parents(path)), None)
        if place and find_extension(path) in _DATA and not path.startswith("."):
            places[place].append(path)
    of_pages = measure_below(files, pages)
    for place, data in places.items():
        if sum(map(files.__getitem__, data)) > max(of_pages[place], _LEAST_DATA):
            yield from data


def _measure(root: Path, path: str) -> int | None:
    """Return the size of a file; None for a link, or a path that no subject can have."""
    if any(find_flaw(name) or is_always_ignored(name) for name in path.split("/")):
        return None
    try:
        status = os.lstat(f"{root}/{path}")
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def count_below(paths: Iterable[str]) -> Counter[str]:
    """Return the number of files in each directory and all those below it."""
    return Counter(parent for path in paths for parent in list_parents(path))


def measure_below(sizes: Mapping[str, int], paths: Iterable[str]) -> Counter[str]:
    """Return the size of some files in each directory and all those below it."""
    total: Counter[str] = Counter()
    for path in paths:
        for parent in list_parents(path):
            total[parent] += sizes[path]
    return total


def find_dense(sizes: Mapping[str, int], pages: Collection[str]) -> frozenset[str]:
    """Return the directories whose text is mostly pages, by the number or the size of files."""
    texts = {*pages, *filter(_may_be_text, sizes)}
    counts, number = count_below(texts), count_below(pages)
    total, size = measure_below(sizes, texts), measure_below(sizes, pages)
    return frozenset(
        place
        for place in number
        if 2 * number[place] > counts[place] or 2 * size[place] > total[place]
    )


def list_parents(path: str) -> Iterator[str]:
    """Yield the directories that a path is in, the outermost first, without the root."""
    for match in re.finditer("/", path):
        yield path[: match.start()]


def is_documentation(directory: str) -> bool:
    """Tell whether one component of a path names documentation."""
    return any(
        _DOCUMENTATION.fullmatch(name.partition(".")[0]) for name in directory.lower().split("/")
    )


def _may_be_text(path: str) -> bool:
    return is_readable(path) and find_extension(path) not in {"css", "scss", "lock", "po", "pot"}


def _list_files(root: Path) -> list[str]:
    """Return the files below a directory, sorted: those that git knows, or would add."""
    try:
        listed, _ = read_git(
            *("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
            cwd=root,
            limit=_MOST_BYTES,
        )
    except GitError:
        return sorted(_walk(root))
    return sorted(set(filter(None, os.fsdecode(listed).split("\0"))))


def _walk(root: Path) -> Iterator[str]:
    """Yield the files of a directory without git, except those that a `.gitignore` excludes."""
    rules: list[tuple[str, IgnoreRules]] = []
    for parent, directories, names in os.walk(root):
        place = os.path.relpath(parent, root)
        place = "" if place == "." else f"{place}/"
        if ".gitignore" in names:
            lines = Path(parent, ".gitignore").read_text("utf-8", "replace").splitlines()
            rules.append((place, IgnoreRules([(".gitignore", lines)])))
        inside = [(base, each) for base, each in rules if place.startswith(base)]

        def is_known(path: str, inside: Sequence[tuple[str, IgnoreRules]] = inside) -> bool:
            return not any(each.ignores(path[len(base) :]) for base, each in inside)

        directories[:] = [
            name
            for name in directories
            if not is_always_ignored(name) and is_known(f"{place}{name}/")
        ]
        for name in names:
            if is_known(place + name):
                yield place + name


def _is_page(path: str, directories: Collection[str]) -> bool:
    """Tell whether a file is prose; `directories` are those with pages in a markup."""
    directory, _, name = path.rpartition("/")
    extension = find_extension(name)
    if extension in _PROSE or (extension in DOCUMENTS and can_convert()):
        return extension in _PROSE or is_documentation(directory)
    if not extension:
        return name.lower() in _BARE or name in RULE_FILES
    stem = name[: -len(extension) - 1].lower()
    if extension in _PLAIN:
        is_place = not directory or is_documentation(directory)
        return is_place and not _NOT_PROSE.fullmatch(stem)
    if directory.rpartition("/")[2].startswith("man") and extension in {*"12345678"}:
        return True
    is_site = is_documentation(directory) and directory not in directories
    return extension in _HTML and is_site and not _TEMPLATES.search(directory)


def _find_rule(path: str, dense: Collection[str]) -> str | None:
    """Return the name of the first rule that leaves a page out, by its own name or place."""
    *parents, name = path.lower().split("/")
    stem = _find_stem(name)
    is_loud = path.rpartition("/")[2].partition(".")[0].isupper()
    places = list(list_parents(path))
    documented = next((n for n, each in enumerate(parents) if _DOCUMENTATION.fullmatch(each)), None)
    # Among many pages `history` and `license` may be what they are about.
    is_page = bool(places) and places[-1] in dense and not (is_loud or _SURE.fullmatch(stem))
    for rule in RULES:
        if rule.stems.fullmatch(stem) and not is_page:
            return rule.name
        outer = parents if rule.deep else parents[:documented]
        for place, parent in zip(places, outer, strict=False):
            is_meant = parent.replace(" ", "-") in rule.directories
            if is_meant and not (rule.name in _MIXED and place in dense):
                return rule.name
    return None


_LANGUAGE = r"(?P<language>[a-z]{2}(?:[-_][A-Za-z]{2,4})?)"
_TRANSLATED = re.compile(
    rf"(?P<stem>(?:.*/)?[A-Z_]+)[._-]{_LANGUAGE}(?P<end>\.\w+)"
    rf"|(?P<stem_2>.*/(?:locales?|i18n|l10n|lang|translations)/[^/]+)[._-]"
    rf"{_LANGUAGE.replace('language', 'language_2')}(?P<end_2>\.\w+)"
    rf"|(?P<stem_3>.*[^/])\.{_LANGUAGE.replace('language', 'language_3')}(?P<end_3>\.\w+|/)"
)


def _find_language_twins(files: Collection[str]) -> Iterator[str]:
    """Yield the files and directories named as another one with a language: `README.de.md`.

    Two letters that are rarely a language count beside two that are.
    """
    known = {*files, *(f"{place}/" for place in count_below(files))}
    twins: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path in known:
        if match := _TRANSLATED.fullmatch(path):
            stem, language, end = filter(None, match.groups())
            if stem + end in known and (end != "/" or language[:2] != "en"):
                twins[stem + end][path] = language.lower()[:2]
    for found in twins.values():
        common = [path for path, language in found.items() if language in LANGUAGES]
        yield from found if len(common) > 1 else common


def _find_stem(path: str) -> str:
    name = path.lower().rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _find_edition(path: str, editions: Mapping[str, str]) -> str | None:
    places = [path, *(f"{place}/" for place in list_parents(path))]
    return next((editions[place] for place in places if place in editions), None)
