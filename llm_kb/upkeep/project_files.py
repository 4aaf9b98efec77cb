"""Finds the pages of a project: all its prose, with the rules that leave some of it out."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import KbError, show_place
from llm_kb.files.containment import Containment, read_regular
from llm_kb.files.git import MOST_SECONDS, TIMED_OUT, GitError, OutputTooLargeError, run_git
from llm_kb.files.git_ignored import is_repository
from llm_kb.files.layouts import is_agent_skill
from llm_kb.files.walk import iter_files
from llm_kb.search.question import STOP_WORDS
from llm_kb.search.roles import DOCS_DIRECTORY, TESTS_DIRECTORY
from llm_kb.subjects.editions import (
    LANGUAGE,
    find_editions,
    find_language,
    find_main_language,
    find_translations,
)
from llm_kb.subjects.ignore import IgnoreRules, is_always_ignored
from llm_kb.subjects.topics import find_flaw
from llm_kb.texts.folding import fold
from llm_kb.texts.formats import (
    START,
    Format,
    Kind,
    Proposed,
    find_extension,
    find_format,
    find_stem,
    is_ambiguous,
    is_readable,
)

_OF_VERSION = r"[._-]v?(?:\d+(?:[._](?:\d+|x)){1,9}|(?<=v)\d+)"
"""The end of a name that is of one version: `_1.x`, `-2.0.1`, `.v3`."""


class Reason(NamedTuple):
    """A reason to leave pages out, by whole names of their directories or the start of their own.

    Directories are expressions, and count only outside documentation, except those that count
    `everywhere`, which are words.
    """

    what: str
    directories: str = "(?!)"
    everywhere: str = ""
    sure: str = "(?!)"
    """Expression for names that are never of a page."""
    loud: str = "(?!)"
    """Expression for names that may be of a page, unless in upper case or a name in the root."""


RULES = {
    "generated": Reason(
        "generated and vendored files",
        "vendor(?:ed)?|third[_-]?party|external|node_modules|_?build|dist|target|out|_site"
        "|site-packages|venv|env|deps|bower_components|pods|generated",
        everywhere=".generated",
    ),
    "tests": Reason("tests and their data", rf"{TESTS_DIRECTORY}|x?t"),
    "formalities": Reason(
        "licences, authors, codes of conduct, forms for issues",
        everywhere="licenses licences issue_template pull_request_template discussion_template",
        sure="code.?of.?conduct|(?:issue|pull_request|discussion)_template",
        loud="licen[cs]es?|copying|(?:third.?party.?)?notices?|authors|contributors|maintainers"
        "|owners|credits|thanks|sponsors|backers|funding",
    ),
    "changes": Reason(
        "change logs and release notes",
        everywhere="changelog changelogs .changeset .changes newsfragments release-notes relnotes",
        sure=rf"change.?logs?|release.?notes|(?:changes|history|news)(?={_OF_VERSION}$)",
        loud="changes|news|history",
    ),
    "demos": Reason(
        "examples and demos with their code",
        "(?:example|demo|sample|playground)s?",
    ),
    "trash": Reason(
        "trash, backups and caches of other programs",
        everywhere=".trash .trashes .stversions .stfolder .history .obsidian .logseq .dropbox.cache"
        " .dropbox .sync .recycle $recycle.bin lost+found .cache .backup .backups .bak .tmp .undo"
        " .local-history .vscode-history",
    ),
    "templates": Reason("templates of a site", "archetypes|_layouts|_includes"),
    "languages": Reason("other languages than the main one"),
    "versions": Reason(
        "other versions of the same pages", everywhere="versioned_docs versioned_docs_archived"
    ),
    "copies": Reason("skills that another tool has too"),
}
"""The rules by their names, in the order in which they are tried."""


_DOCUMENTATION = re.compile(
    rf"(?i)(?:{DOCS_DIRECTORY}|manuals|man|notes|handbook|adrs?|decisions|rfcs|kb|knowledge|skills)"
    r"(?:\..*)?"
)
_MOST_BYTES = 64_000_000
_MOST_RULES_BYTES = 1_000_000
MOST_FILES = 200_000
"""The most files of a directory without git: one with more is a home or a disk, not a project."""
_MANY = 10
"""Of more pages that are translated beside themselves, the languages are patterns."""


class Project(NamedTuple):
    """The files of a project."""

    listed: Collection[str]
    """All that git knows or would add, or all without git: also links and submodules."""
    sizes: Mapping[str, int]
    """The sizes of those that are files, and may be in a topic."""
    pages: Mapping[str, tuple[str, str]]
    """The rule that leaves each page out, and the pattern for that, or empty ones; sorted."""


def find_project(
    root: Path, most: int | None = None, is_settled: Callable[[str], bool] = lambda _: False
) -> Project:
    """Return the files of a project. Raises KbError for more than `most` without git.

    Of pages that are settled no rule is looked for.
    """
    known = sorted(_list_files(root, most or MOST_FILES))
    # Git knows files that no topic may have: keys that were added, and names of a forged index.
    listed = [path for path in known if not any(map(is_always_ignored, path.split("/")))]
    containment = Containment(root, ())
    listed = [path for path in listed if not is_agent_skill(containment, path)]
    files = {path: size for path in listed if (size := _measure(root, path)) is not None}
    formats = _find_formats(root, files, is_settled)
    written = count_below(p for p in formats if formats[p].proposed is Proposed.EVERYWHERE)
    paths = [path for path in formats if _is_page(path, formats[path], written)]
    dense = lru_cache(maxsize=1)(partial(find_dense, files, paths))
    preferred = _find_readme_language(root, files)
    editions = {
        place: (f"{kind}s", f"/{place}")
        for place, kind in find_editions(paths).items()
        if kind != "language"
    }
    others = find_translations(paths, preferred)
    editions |= {place: ("languages", f"/{place}") for place in others}
    twins = _find_language_twins(paths, preferred)
    editions |= {place: ("languages", pattern) for place, pattern in twins}
    editions |= _find_built(formats, files, paths)
    editions |= _find_announcements(paths)
    own = {find_stem(path).lower() for path in listed if "/" not in path}
    stems = (find_stem(path).lower() for path in paths)
    own.update(stem[: of.start()] for stem in stems if (of := re.search(f"{_OF_VERSION}$", stem)))
    pages: dict[str, tuple[str, str]] = {}
    skills: dict[str, str] = {}
    for path in paths:
        if is_settled(path):
            continue
        places = [path, *(f"{place}/" for place in list_parents(path))]
        edition = next((editions[place] for place in places if place in editions), ("", ""))
        pages[path] = _find_rule(path, dense, own) or edition
        skill = f"/{path}".rpartition("/.")[2].partition("/")[2]
        if any(map(find_flaw, path.split("/"))):
            pages[path] = "other", ""
        elif skill.startswith("skills/") and skills.setdefault(skill, path) != path:
            pages[path] = "copies", ""
    return Project(known, files, pages)


def list_parents(path: str) -> Iterator[str]:
    """Yield the directories that a path is in, the outermost first, without the root."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)


def count_below(paths: Iterable[str], sizes: Mapping[str, int] | None = None) -> Counter[str]:
    """Return the number of files, or their size, in each directory and all those below it."""
    direct: Counter[str] = Counter()
    for path in paths:
        direct[path.rpartition("/")[0]] += sizes[path] if sizes else 1
    total: Counter[str] = Counter()
    for place, number in direct.items():
        for parent in list_parents(f"{place}/" if place else ""):
            total[parent] += number
    return total


def find_dense(sizes: Mapping[str, int], pages: Collection[str]) -> frozenset[str]:
    """Return the directories whose text is mostly pages, by the number or the size of files."""
    texts = {*pages, *filter(is_readable, sizes)}
    dense: set[str] = set()
    for measure in (None, sizes):
        whole, prose = count_below(texts, measure), count_below(pages, measure)
        dense.update(place for place in prose if 2 * prose[place] > whole[place])
    return frozenset(dense)


def is_documentation(directory: str) -> bool:
    """Tell whether one component of a path names documentation."""
    return any(map(_DOCUMENTATION.fullmatch, directory.split("/")))


def _list_files(root: Path, most: int) -> Iterable[str]:
    """Return the files that git knows or would add, or all that `.gitignore` does not exclude."""
    command = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        listed = run_git(*command, cwd=root, max_output=_MOST_BYTES)
    except OutputTooLargeError as error:
        raise KbError(f"git lists too many files of {show_place(root)} to look at") from error
    except GitError as error:
        if error.code == TIMED_OUT:
            raise KbError(
                f"git took over {MOST_SECONDS} s to list the files of {show_place(root)}; a named"
                " pipe there would make it wait: find . -type p"
            ) from error
        rules_file = root / ".gitignore"
        text = ""
        with suppress(OSError):  # git follows no link of that name either
            text = read_regular(rules_file, most=_MOST_RULES_BYTES).decode("utf-8", "replace")
        ignores = IgnoreRules(text.splitlines()).ignores
        repositories: list[str] = []

        def enters(path: str) -> bool:
            if is_always_ignored(path.split("/")[-2]) or ignores(path):
                return False
            if is_own := is_repository(f"{root}/{path}"):
                repositories.append(path)
            return not is_own

        found = iter_files(root, enters)
        paths = [path for path, _ in islice(found, most + 1)]
        if len(paths) > most:
            raise KbError(
                f"{show_place(root)} has over {most:,} files and is not a git repository;"
                " run init in the directory of a project"
            ) from None
        return [*repositories, *(path for path in paths if not ignores(path))]
    return set(filter(None, os.fsdecode(listed).split("\0")))


def _measure(root: Path, path: str) -> int | None:
    """Return the size of a file; None for a link."""
    try:
        status = os.lstat(f"{root}/{path}")
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _find_formats(
    root: Path, paths: Iterable[str], is_settled: Callable[[str], bool]
) -> Mapping[str, Format]:
    """Return the formats of the files that may be pages, of which ambiguous ones are read.

    Those that are settled are not.
    """
    containment = Containment(root, ())
    found = {}
    for path in paths:
        start = b""
        if is_ambiguous(path) and not is_settled(path):
            with suppress(OSError):
                start = containment.read_file(path, START)[0]
        known = find_format(path, start)
        if known and known.proposed is not Proposed.NOWHERE and not known.is_unread:
            found[path] = known
    return found


def _is_page(path: str, known: Format, written: Collection[str]) -> bool:
    """Tell whether a file is prose; `written` are the directories with pages in a markup."""
    if known.proposed is Proposed.EVERYWHERE:
        return True
    directory = path.rpartition("/")[0]
    place = next(filter(is_documentation, list_parents(path)), None)
    if known.needs_extra:
        return place is not None
    if known.is_built:
        return place is not None and place not in written
    return not directory or is_documentation(directory)


def _find_built(
    formats: Mapping[str, Format], sizes: Mapping[str, int], paths: Iterable[str]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the manual pages and Texinfo that are made from pages in another markup, as a rule.

    So may be plain texts in a directory that is called generated.

    Such a page has the name of one of at least half its size, Texinfo of one beside it, and others
    perhaps with a word before it: `borg-create.1` is made from `create.rst`. Where most of a
    directory are made so, all are; a name alone counts only whole.
    """
    built: dict[str, Sequence[str]] = {}
    sources: defaultdict[str, int] = defaultdict(lambda: -1)
    for path in paths:
        place, known = path.rpartition("/")[0], formats[path]
        name = find_stem(path).partition(".")[0].replace("_", "-")
        if known.markup == "texinfo":
            built[path] = [f"{place}/{name}"]
        elif known.markup == "man" or (known.is_plain_text and "generated" in place):
            built[path] = [name, name.partition("-")[2]]
        elif known.kind is Kind.PROSE and not known.is_built:
            for key in (name, f"{place}/{name}"):
                sources[key] = max(sources[key], sizes[path])

    def is_made(path: str, names: Iterable[str]) -> bool:
        return any(sizes[path] <= 2 * sources[name] for name in names)

    twins = [path for path, names in built.items() if is_made(path, names)]
    places, twins_in = count_below(built), count_below(twins)
    for path, names in built.items():
        place = path.rpartition("/")[0]
        if 2 * twins_in[place] > places[place]:
            yield path, ("generated", f"/{escape(place)}/*.{find_extension(path)}")
        elif is_made(path, names[:1]):
            yield path, ("generated", "")


_OF_TIME = re.compile(rf"{_OF_VERSION}$|-\d{{4}}-\d\d")


def _find_announcements(paths: Iterable[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the directories of announcements, as a rule: several names have a version or a date."""
    dated = count_below(path for path in paths if _OF_TIME.search(f"-{find_stem(path)}"))
    for place, number in dated.items():
        name = place.rpartition("/")[2]
        if number > 1 and re.fullmatch("(?i)announce(?:ments)?", name):
            yield f"{place}/", ("changes", f"{escape(name)}/")


_TRASH_OF_USER = re.compile(r"(?<=^\.trash)-\d+$")


def _find_rule(
    path: str, list_dense: Callable[[], frozenset[str]], own: Collection[str]
) -> tuple[str, str] | None:
    """Return the name of the first rule that leaves a page out, and the pattern for that.

    `own` are the names in the root, also of links, and those before a version, in lower case:
    `docs/history.md` may repeat `HISTORY.md`, and `docs/changes.rst` is beside `changes_1.x.rst`.
    """
    stem = find_stem(path)
    is_loud = stem.lower() in own or stem.partition(".")[0].isupper()
    places = list(list_parents(path))
    for name, rule in RULES.items():
        names = f"{rule.sure}|{rule.loud}" if is_loud else rule.sure
        if match := re.fullmatch(rf"(?i)({names})([._-].*)?", stem):
            end = path.rpartition("/")[2][len(stem) :]
            return name, f"{escape(match[1])}{'[._-]*' if match[2] else ''}{end}"
        for place in places:
            parent = place.rpartition("/")[2]
            word = _TRASH_OF_USER.sub("", parent.lower().replace(" ", "-"))
            is_outside = re.fullmatch(rule.directories, word) and not is_documentation(place)
            if not (is_outside or f" {word} " in f" {rule.everywhere} "):
                continue
            # `demos/` and `testing/` may be pages, and `test/` among pages is on how to test.
            above = {*list_parents(place)}
            is_prose = ((name == "demos" or parent == "testing") and place in list_dense()) or (
                parent in {"test", "tests", "testing", "t"} and above and above <= list_dense()
            )
            if not is_prose:
                return name, f"{escape(parent)}/"
    return None


_SCRIPTS = {
    "ja": "[\u3041-\u30ff]",
    "ko": "[\uac00-\ud7af]",
    "zh": "[\u4e00-\u9fff]",
    "ru": "[\u0400-\u04ff]",
}


def _find_readme_language(root: Path, files: Iterable[str]) -> str:
    """Return the language of the README: by its script, or its most frequent words."""
    readme = min(
        (p for p in files if find_stem(p).lower() == "readme" and "/" not in p), default=""
    )
    try:
        text = Containment(root, ()).read_file(readme, START)[0].decode("utf-8", "replace")
    except OSError:
        return "en"
    letters = sum(map(str.isalpha, text))
    for language, script in _SCRIPTS.items():
        if 3 * len(re.findall(script, text)) > letters > 0:
            return language
    words = Counter(re.findall(r"\w+", fold(text)))
    return max(STOP_WORDS, key=lambda each: sum(words[word] for word in STOP_WORDS[each]))


_TRANSLATED = re.compile(
    r"(?P<stem>(?:.*/)?(?P<name>[^/]+?))(?P<dot>[._-])"
    rf"(?P<edition>{LANGUAGE}|(?i:[a-z]{{2}}))(?P<end>\.\w+|/)"
)


def _find_language_twins(paths: Iterable[str], preferred: str) -> Iterator[tuple[str, str]]:
    """Yield the files and directories named as another one with a language, and their patterns.

    `README.de.md` is one beside `README.md`, also in a directory of its own, and beside
    `README.en-US.md`. Two letters that are rarely a language count beside two that are.
    """
    known = {*paths, *(f"{place}/" for place in count_below(paths))}
    twins: defaultdict[tuple[str, str], list[re.Match[str]]] = defaultdict(list)
    for match in filter(None, map(_TRANSLATED.fullmatch, known)):
        twins[match["stem"], match["end"]].append(match)
    chosen: list[re.Match[str]] = []
    for (stem, end), found in twins.items():
        names = (stem + end, found[0]["name"] + end)
        chosen += _choose_translations(found, preferred, is_plain=not known.isdisjoint(names))
    for match in chosen:
        name = "*" if len(chosen) > _MANY else escape(match["name"])
        yield match[0], f"{name}{match['dot']}{escape(match['edition'])}{match['end']}"


def _choose_translations(
    found: Sequence[re.Match[str]], preferred: str, *, is_plain: bool
) -> Iterable[re.Match[str]]:
    """Return which of the files with languages in one name are translations.

    `is_plain` says that one of this name has no language.
    """
    common = [match for match in found if re.fullmatch(LANGUAGE, match["edition"])]
    # `npm-it.md` beside `npm.md` may be another page.
    sure = [match for match in common if match["dot"] == "." or match["name"].isupper()]
    if not common:
        return ()
    best = find_main_language({match["edition"]: 1 for match in common}, preferred)
    is_english = find_language(best) == "en"
    others = sure if len(common) == 1 else found
    if not (is_plain or is_english or sure):
        return ()
    spared = best if is_english or not is_plain else ""
    return [match for match in others if match["edition"] != spared]


def escape(path: str) -> str:
    """Return the pattern of a path."""
    return re.sub(r"[\\*?\[\]]|\s\Z", r"\\\g<0>", path)
