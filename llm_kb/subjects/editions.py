"""Finds versions and translations of documentation by the paths of its pages. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from llm_kb.errors import join_names
from llm_kb.texts.formats import find_extension, is_prose

_VERSION = re.compile(
    r"v?\d{1,4}(?:\.\d{1,4})+(?:\.x)?|v\d{1,4}|v?\d{1,4}(?:\.\d{1,4})?\.x"
    r"|latest|stable|current|next|dev|devel|edge|main|master|nightly|unstable"
)
_BEST = ("stable", "latest", "current", "en")
# In pages of a repository other names of two letters are common: `examples/go/`, `examples/cs/`.
LANGUAGES = frozenset(
    """
    ar az be bg bn ca cn cy da de el en es et eu fa fi fr gl he hi hr hu hy id it ja jp ka km ko kr
    lt lv mn ms nb nl pl pt ro ru sk sl sq sr sv sw ta te th tr uk ur uz vi zh
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
LANGUAGE = (
    rf"(?:{'|'.join(sorted(LANGUAGES))})(?:[-_](?:[A-Za-z]{{2}}|(?i:hans|hant|latn|cyrl|arab)|419))?"
    "|[a-z]{2}[-_][A-Z]{2}"
)
"""A language, perhaps with a region or a script, as a regular expression: not `uv-auth`."""
# Beside `en`, any two letters are one: `em` is a joke that some projects translate into.
_LANGUAGE = re.compile(rf"[a-z]{{2}}|{LANGUAGE}")
_KINDS = {"version": _VERSION, "language": _LANGUAGE}
_TRANSLATED = ("i18n/", "l10n/", "locale/", "locales/", "translations/")
"""Names of directories that hold only translations."""

_SEVERAL = 4
"""Number of neighbours named by common languages, with en or repeating what is above them, from
which all are translations."""

_DEPTH = 4
"""The most directories of a path that are looked at."""


def find_editions(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the directories that repeat a site in another version or language, with their kind.

    `docs/2.x/` is one where most of its pages are in `docs/` or `docs/1.x/` as well. Of several
    that only repeat one another, the one that is called stable, latest, current or en, or the
    newest, is not among them.
    """
    known = frozenset(re.sub(r"(?:^|(?<=/))index\.html?$", "", path) for path in paths)
    pages: Counter[tuple[str, str, str]] = Counter()
    repeated: Counter[tuple[str, str, str]] = Counter()
    plain: set[tuple[str, str]] = set()
    for (kind, parent, rest), names in _group(known).items():
        places = [(kind, parent, name) for name in names]
        pages.update(places)
        if parent + rest in known:
            plain.add((kind, parent))
        if parent + rest in known or len(names) > 1:
            repeated.update(places)
    groups: dict[tuple[str, str], list[str]] = {}
    for kind, parent, name in sorted(repeated):
        if 2 * repeated[kind, parent, name] > pages[kind, parent, name]:
            groups.setdefault((kind, parent), []).append(name)
    for kind, parent in groups.keys() - plain:
        editions = groups[kind, parent]
        # Where few English pages are translated, the others repeat only a part of them.
        if "en" in editions or (kind, parent, "en") not in repeated:
            editions.remove(max(editions, key=_rank))
    return {f"{parent}{name}/": kind for (kind, parent), each in groups.items() for name in each}


def find_translations(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the directories of a repository whose pages are in another language, with their kind.

    These are the ones next to `docs/en/` that repeat it, or that are several and named by common
    languages, since names of files are translated too; the ones in `docs/` that repeat the pages of
    `docs/` itself and are named by a common language; all next to several of these; and all in a
    directory for translations.
    """
    pages = {path for path in paths if find_extension(path) and is_prose(path)}
    repeating = {path for path, kind in find_editions(pages).items() if kind == "language"}
    places: dict[str, dict[str, list[str]]] = {}
    for page in pages:
        parts = page.split("/")
        for level, name in enumerate(parts[:-1][:_DEPTH]):
            if _LANGUAGE.fullmatch(name):
                above, rest = "/".join([*parts[:level], ""]), "/".join(parts[level + 1 :])
                places.setdefault(above, {}).setdefault(name, []).append(rest)
    found = set()
    for above, editions in places.items():
        common = set(filter(_is_common, editions))
        for name, rests in editions.items():
            if f"{above}{name}/" in repeating:
                in_place = sum(above + rest in pages for rest in rests)
                is_other = "en" in editions or (name in common and in_place > 1)
            else:
                is_place = above.lower().endswith(_TRANSLATED) or (
                    sum(f"{above}{other}/" in repeating for other in common) >= _SEVERAL
                )
                is_beside = "en" in editions and len(common) >= _SEVERAL
                is_other = is_beside or (name in common and is_place)
            if is_other and not name.startswith("en"):
                found.add(f"{above}{name}/")
    return dict.fromkeys(sorted(found), "language")


def leading_directories(path: str) -> Iterator[str]:
    """Yield the directories of a path that can be an edition, each with its final `/`.

    With these, whether a path is in one of many editions takes no longer than for one.
    """
    return accumulate(f"{name}/" for name in path.split("/", _DEPTH)[:-1])


def _is_common(name: str) -> bool:
    return re.split("[-_]", name)[0] in LANGUAGES


def _group(paths: Iterable[str]) -> Mapping[tuple[str, str, str], set[str]]:
    """Return the names of editions, keyed by kind and by what is before and after the name."""
    groups: dict[tuple[str, str, str], set[str]] = {}
    for path in paths:
        parts = path.split("/")
        for level, name in enumerate(parts[:-1][:_DEPTH]):
            parent, rest = "/".join([*parts[:level], ""]), "/".join(parts[level + 1 :])
            for kind, pattern in _KINDS.items():
                if rest and pattern.fullmatch(name):
                    groups.setdefault((kind, parent, rest), set()).add(name)
    return groups


def describe_editions(directories: Mapping[str, str], how: str) -> str:
    """Return a note on the versions and languages that were left out, and how to take one."""
    told = []
    for kind in _KINDS:
        names = {path.split("/")[-2] for path, of in directories.items() if of == kind}
        if names:
            told.append(f"{kind}s {join_names(sorted(names, key=_rank), 10)}")
    return f"left out: {' and '.join(told)}; {how.format(min(directories))} takes one"


def _rank(name: str) -> tuple[int, list[int], str]:
    """Return the sort key of an edition; the best one is last."""
    place = len(_BEST) - _BEST.index(name) if name in _BEST else 0
    return place, [int(number) for number in re.findall(r"\d+", name)], name
