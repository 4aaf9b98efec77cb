"""Finds versions and translations of documentation by the paths of its pages. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain

from llm_kb.errors import join_names
from llm_kb.texts.formats import find_extension, is_prose

_VERSION = re.compile(
    r"v?\d{1,4}(?:\.(?:\d{1,4}|x)){1,4}|v\d{1,4}|latest|stable|current|next|dev|main|nightly"
)
_BEST = ("current", "latest", "stable")
_LANGUAGE = (
    r"(?i:(?P<code>a[rz]|b[egnr]|c[anszy]|d[ae]|e[lnstu]|f[air]|fil|g[al]|h[eiruy]|i[dst]|j[ap]|k[akmor]"
    r"|l[tv]|m[nsy]|n[bln]|p[lt]|r[ou]|s[klqrvw]|t[ahrw]|u[akrz]|vi|zh)"
    r"(?:[-_](?:hans|hant|latn|cyrl|[a-z]{2}|\d{3})){0,2}(?:@[a-z]{2,12})?)"
)
_COUNTRIES = {"br": "pt", "cn": "zh", "cz": "cs", "jp": "ja", "kr": "ko", "tw": "zh", "ua": "uk"}
"""Codes of countries that name their language."""
_NAMED = re.compile(rf"(?P<stem>.+?)(?P<mark>[._-])(?P<name>{_LANGUAGE})(?P<end>\.\w+)?")
"""A page or a directory that is called as another one with a language: `README.zh-CN.md`."""
_TRANSLATED = ("i18n/", "l10n/", "locale/", "locales/", "translations/")
"""Names of directories that hold only translations."""

_SEVERAL = 4
"""Number of neighbours named by languages from which, with English, all are translations."""

_DEPTH, _LONGEST = 20, 300
"""The most directories of a path that are looked at, and the most characters of such a path: what
is around each directory is remembered."""

Edition = tuple[str, str]
"""Whether it is a `version` or a `language`, and its name: `2.x`, `zh-CN`."""


def find_language(name: str) -> str:
    """Return the language of a name such as `pt-BR`, `zh_Hans` or `sr@latin`; empty without one."""
    match = re.fullmatch(_LANGUAGE, name)
    return _COUNTRIES.get(code := match["code"].lower(), code) if match else ""


def rank_edition(name: str) -> tuple[bool, int, list[int]]:
    """Return the sort key of a version, the newest last, or of a language, English last."""
    place = _BEST.index(name) + 1 if name in _BEST else 0
    return find_language(name) == "en", place, [int(n) for n in re.findall(r"\d+", name)]


def rank_versions(path: str) -> tuple[bool, Sequence[object]]:
    """Return the sort key of a page by the versions in its path: the newest, or none, is last."""
    found = [rank_edition(name) for name in path.split("/")[:-1] if _VERSION.fullmatch(name)]
    return not found, found


def find_editions(paths: Iterable[str]) -> Mapping[str, Edition]:
    """Return the directories and pages that are other versions or translations of pages.

    A directory is one if most of its pages are in the directory above it or in another version
    as well, or if it is one of several that are named by languages. Of those that only repeat
    one another the best is not among them: a stable, latest, current or the newest version,
    English, or the language with the most pages.
    """
    known = frozenset(path for path in paths if len(path) <= _LONGEST)
    groups: dict[tuple[str, str], dict[tuple[str, str], list[str]]] = {}
    for path in known:
        for place in list_places(path):
            for kind, name, plain in _read_name(place, is_page=place == path):
                neighbours = groups.setdefault((kind, plain), {})
                neighbours.setdefault((name, place), []).append(path[len(place) :])
    return {
        place: (kind, name)
        for (kind, plain), neighbours in groups.items()
        for name, place in _find_others(kind, plain, neighbours, known)
    }


def find_translations(paths: Iterable[str]) -> Mapping[str, Edition]:
    """Return the directories and pages of a repository that are translations of its prose."""
    pages = (path for path in paths if find_extension(path) and is_prose(path))
    return {place: each for place, each in find_editions(pages).items() if each[0] == "language"}


def list_places(path: str) -> Iterator[str]:
    """Yield the directories of a path that can be an edition, each with its final `/`, and itself.

    With these, whether a path is in one of many editions takes no longer than for one.
    """
    *above, rest = path.split("/", _DEPTH)
    return accumulate((*(f"{name}/" for name in above), rest))


def describe_editions(found: Mapping[str, Edition], how: str) -> str:
    """Return a note on the versions and languages that were left out, and how to take one."""
    names = sorted({name for _, name in found.values()}, key=lambda n: (rank_edition(n), n))
    return (
        f"left out: other versions and languages ({join_names(names, 10)});"
        f" {how.format(min(found))} takes one"
    )


def _read_name(place: str, *, is_page: bool) -> Iterator[tuple[str, str, str]]:
    """Yield what editions a directory or page may be: kind, name, and its path without that."""
    above, slash, name = place.rstrip("/").rpartition("/")
    if not is_page and _VERSION.fullmatch(name):
        yield "version", name, above + slash
    elif not is_page and find_language(name):
        yield "language", name, above + slash
    match = _NAMED.fullmatch(name)
    # `npm-it.md` beside `npm.md` may be another page.
    if (
        match
        and is_page == bool(match["end"])
        and (match["mark"] == "." or re.fullmatch("[A-Z]+", match["stem"]))
    ):
        yield "language", match["name"], f"{above}{slash}{match['stem']}{match['end'] or '/'}"


def _find_others(
    kind: str, plain: str, group: Mapping[Edition, Sequence[str]], known: Collection[str]
) -> set[Edition]:
    """Return which of the neighbours in a group, given with their pages, are to be left out.

    `plain` is what comes before the same pages without an edition.
    """
    counts = Counter(chain.from_iterable(group.values()))
    above = {each: sum(plain + rest in known for rest in rests) for each, rests in group.items()}
    again = {
        each
        for each, rests in group.items()
        if 2 * sum(counts[rest] > 1 or plain + rest in known for rest in rests) > len(rests)
    }
    english = {each for each in group if find_language(each[0]) == "en"}
    is_place = plain.endswith(_TRANSLATED)
    if is_place or (kind == "language" and len(group if english else again) >= _SEVERAL):
        again = set(group)
    best = max(
        english or again, key=lambda e: (*rank_edition(e[0]), len(group[e]), e), default=None
    )
    if best and (best in english or not (is_place or 2 * above[best] > len(group[best]))):
        again.discard(best)
    return again
