"""Finds versions and translations of documentation by the paths of its pages. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from llm_kb.errors import join_names
from llm_kb.texts.formats import find_extension, is_prose

_VERSION = re.compile(
    r"v?\d{1,4}(?:\.\d{1,4})+(?:\.x)?|v\d{1,4}|v?\d{1,4}(?:\.\d{1,4})?\.x"
    r"|latest|stable|current|next|dev|devel|edge|main|master|nightly|unstable"
)
_BEST = ("stable", "latest", "current")
# In pages of a repository other names of two letters are common: `examples/go/`, `examples/cs/`.
_LANGUAGES = """
    ar ast az be bg bn br ca cn cs cy cz da de el en es et eu fa fi fil fr ga gl he hi hr hu hy id
    is it ja jp ka kk km ko kr lt lv mk mn ms my nb ne nl nn pl pt ro ru si sk sl sq sr sv sw ta te
    th tr tw ua uk ur uz vi zh
"""
_COUNTRIES = {"br": "pt", "cn": "zh", "cz": "cs", "jp": "ja", "kr": "ko", "tw": "zh", "ua": "uk"}
"""Codes of countries that name their language."""
LANGUAGE = (
    rf"(?i:(?:{'|'.join(_LANGUAGES.split())})"
    r"(?:[-_](?:hans|hant|latn|cyrl|arab|deva|simplified|traditional|valencia|r?[a-z]{2}|001|150|419))"
    r"{0,2}(?:\.utf-?8)?(?:@[a-z]{2,12})?)"
    "|[a-z]{2}[-_][A-Z]{2}"
)
"""A language, perhaps with a region or a script, as a regular expression: not `uv-auth`."""
# Beside English, any two letters are one: `em` is a joke that some projects translate into.
_LANGUAGE = re.compile(rf"[A-Za-z]{{2}}|{LANGUAGE}")
_KINDS = {"version": _VERSION, "language": _LANGUAGE}
_TRANSLATED = ("i18n/", "l10n/", "locale/", "locales/", "translations/")
"""Names of directories that hold only translations."""

_SEVERAL = 4
"""Number of neighbours named by common languages, with English or repeating what is above them,
from which all are translations."""

_DEPTH, _LONGEST = 20, 300
"""The most directories of a path that are looked at, and the most characters of such a path: what
is around each directory is remembered."""


def find_language(name: str) -> str:
    """Return the language of a name such as `pt-BR`, `zh_Hans` or `sr@latin`; empty without one."""
    if not _LANGUAGE.fullmatch(name):
        return ""
    code = re.split("[-_.@]", name.lower())[0]
    return _COUNTRIES.get(code, code)


def find_main_language(pages: Mapping[str, int], preferred: str = "en") -> str:
    """Return the best of several names of languages, given with the numbers of their pages.

    It is English, else the preferred one, else the one with the most pages.
    """

    def rank(name: str) -> tuple[object, ...]:
        language, lower = find_language(name), name.lower().replace("_", "-")
        is_plain = lower in {"en", "en-us"}, lower == "en"
        return language == "en", *is_plain, language == preferred, pages[name], name

    return max(pages, key=rank)


def find_editions(paths: Iterable[str], preferred: str = "en") -> Mapping[str, str]:
    """Return the directories that repeat a site in another version or language, with their kind.

    `docs/2.x/` is one where most of its pages are in `docs/` or `docs/1.x/` as well. Of several
    that only repeat one another, the one that is called stable, latest, current or by a name of
    English or else of the preferred language, or the newest, is not among them.
    """
    known = frozenset(
        re.sub(r"(?:^|(?<=/))index\.html?$", "", path) for path in paths if len(path) <= _LONGEST
    )
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
    english: dict[tuple[str, str], list[str]] = {}
    for kind, parent, name in sorted(repeated):
        if 2 * repeated[kind, parent, name] > pages[kind, parent, name]:
            groups.setdefault((kind, parent), []).append(name)
        if kind == "language" and find_language(name) == "en":
            english.setdefault((kind, parent), []).append(name)
    for kind, parent in groups.keys() - plain:
        editions = groups[kind, parent]
        # Where few English pages are translated, the others repeat only a part of them.
        able = english.get((kind, parent), editions)
        best = max(able, key=_rank)
        if kind == "language":
            best = find_main_language({name: pages[kind, parent, name] for name in able}, preferred)
        groups[kind, parent] = [name for name in editions if name != best]
    return {f"{parent}{name}/": kind for (kind, parent), each in groups.items() for name in each}


def find_translations(paths: Iterable[str], preferred: str = "en") -> Mapping[str, str]:
    """Return the directories of a repository whose pages are in another language, with their kind.

    These are the ones next to English (`docs/en-US/`) that repeat it, or that are several and named
    by common languages, since names of files are translated too; the ones in `docs/` that repeat
    the pages of `docs/` itself and are named by a common language; all next to several of these;
    all in a directory for translations; and without English or `docs/` itself, all that repeat one
    another but the best. One always stays where these are all the pages.
    """
    short = (path for path in paths if len(path) <= _LONGEST)
    pages = {path for path in short if find_extension(path) and is_prose(path)}
    editions = find_editions(pages, preferred).items()
    repeating = {path for path, kind in editions if kind == "language"}
    places: dict[str, dict[str, list[str]]] = {}
    for page in pages:
        parts = page.split("/")
        for level, name in enumerate(parts[:-1][:_DEPTH]):
            if _LANGUAGE.fullmatch(name):
                above, rest = "/".join([*parts[:level], ""]), "/".join(parts[level + 1 :])
                places.setdefault(above, {}).setdefault(name, []).append(rest)
    found: set[str] = set()
    for above, names in places.items():
        again = {each for each in names if f"{above}{each}/" in repeating}
        in_place = {name: sum(above + rest in pages for rest in names[name]) for name in names}
        others = _find_others(above, names, again, in_place)
        best = find_main_language({name: len(names[name]) for name in names}, preferred)
        others.update(name for name in again if find_language(name) == "en")
        if find_language(best) == "en" or _are_all(above, others, names, in_place, pages):
            others.discard(best)
        found.update(f"{above}{name}/" for name in others)
    return dict.fromkeys(sorted(found), "language")


def _find_others(
    above: str,
    names: Mapping[str, Sequence[str]],
    again: Collection[str],
    in_place: Mapping[str, int],
) -> set[str]:
    """Return the directories beside one another that are translations, by the pages in each.

    `again` are those that repeat another, and `in_place` counts the pages of each that are above.
    """
    english = [name for name in names if find_language(name) == "en"]
    common = {name for name in names if re.fullmatch(LANGUAGE, name)}
    is_place = above.lower().endswith(_TRANSLATED) or len(common & set(again)) >= _SEVERAL
    others = set()
    for name, rests in names.items():
        repeats = in_place[name] > 1 or (len(rests) > 1 and not any(in_place.values()))
        if name in again:
            is_other = bool(english) or (name in common and repeats)
        else:
            is_beside = bool(english) and len(common) >= _SEVERAL
            is_other = is_beside or (name in common and is_place)
        if is_other and name not in english:
            others.add(name)
    return others


def _are_all(
    above: str,
    others: Collection[str],
    names: Mapping[str, Sequence[str]],
    in_place: Mapping[str, int],
    pages: Collection[str],
) -> bool:
    """Tell whether nothing would stay of pages in several languages."""
    if len(others) < len(names) or any(in_place.values()):
        return False
    if not above.lower().endswith(_TRANSLATED):
        return True
    most = max(map(len, names.values()))
    return len(pages) - sum(map(len, names.values())) < most


def leading_directories(path: str) -> Iterator[str]:
    """Yield the directories of a path that can be an edition, each with its final `/`.

    With these, whether a path is in one of many editions takes no longer than for one.
    """
    return accumulate(f"{name}/" for name in path.split("/", _DEPTH)[:-1])


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
