"""Proposes topics for the pages of a project, and accounts for all its other files."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple

from llm_kb.errors import KbError, show_place
from llm_kb.files.containment import Containment
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.git import TIMED_OUT, GitError, OutputTooLargeError, run_git
from llm_kb.files.git_ignored import is_repository
from llm_kb.files.layouts import SKILL_FILE, is_agent_skill
from llm_kb.files.walk import iter_files
from llm_kb.rendering.plain_text import estimate_tokens, shorten
from llm_kb.rendering.summaries import LONGEST_LABEL, find_title
from llm_kb.subjects.editions import find_editions, list_places
from llm_kb.subjects.ignore import is_always_ignored
from llm_kb.subjects.topics import Layout, Slug, Subject, TopicConfig, find_flaw
from llm_kb.texts import formats
from llm_kb.texts.decoding import START, open_text
from llm_kb.texts.formats import Proposed, find_extension, find_stem
from llm_kb.texts.safe import UNUSABLE

REASONS = {
    "generated": "generated and vendored files",
    "tests": "tests and their data",
    "examples": "examples with their code",
    "templates": "templates and redirects of a site",
    "formalities": "licences, codes of conduct, forms for issues",
    "changes": "change logs, release notes and blogs",
    "versions": "other versions of the same pages",
    "languages": "other languages than the main one",
    "copies": "links to pages, and guides and skills that are there twice",
    "names": "pages with names that no topic can hold",
}
"""The reasons to leave pages out, in words."""

_DIRECTORIES = {
    "generated": "vendor vendored third_party third-party deps build _build dist target generated",
    "tests": "test tests testing testdata test-data test_data testsuite fixtures __tests__ spec"
    " __snapshots__ __fixtures__ e2e cassettes revdep t xt",
    "examples": "example examples demo demos sample samples playground playgrounds",
    "templates": "archetypes _layouts _includes _partials _templates",
    "formalities": "issue_template pull_request_template discussion_template licenses",
    "changes": "changelog changelogs .changeset .changes newsfragments changelog.d release-notes"
    " release_notes relnotes blog blogs _posts announce announcements whatsnew",
    "versions": "versioned_docs versioned_docs_archived",
}
"""Names of directories that are left out."""
_OUTSIDE = {"generated", "tests", "examples"}
"""The reasons that do not count for a directory in documentation."""
_PLACES = {word: reason for reason, words in _DIRECTORIES.items() for word in words.split()}
_NAMES = {
    "formalities": r"(?i:licen[cs]es?(?:[-_.].*)?|third.?party.?(?:licen[cs]es?|notices?).*|fdl"
    r"|code.of.conduct.*|(?:issue|pull_request|discussion)_template)|COPYING|NOTICES?|AUTHORS"
    r"|CONTRIBUTORS|MAINTAINERS|OWNERS|CREDITS|THANKS|SPONSORS|BACKERS",
    "changes": r"(?i:(?:\d{1,3}[-_.])*(?:change.?log|release.?note)s?(?:[-_.].*)?"
    r"|changes(?:[-_.]v?\d.*)?)|(?:HISTORY|NEWS)(?:[-_.]v?\d.*)?",
    "templates": r"(?i:_?redirects?)",
}
"""Names of pages that are left out, without their extension, as expressions."""
_DOCUMENTATION = re.compile(
    r"(?i)(?:docs?|documentation|manuals?|man|guides?|handbook|book|wiki|adrs?|decisions|rfcs?|notes"
    r"|kb|knowledge|website|site|tutorials?|how-?to)(?:\..*)?"
)
_GUIDES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "copilot-instructions.md", ".cursorrules")
"""Names under which projects have one and the same guide; the best one first."""
_PLAIN_NAMES = re.compile(r"(?i)readme|contributing|agents|claude|gemini|security|support|install")

_HIDDEN = re.compile(r"\..*")
_MOST_BYTES, _MOST_GUIDE = 64_000_000, 1_000_000
"""The most bytes that git may print, and of a guide that may be a copy."""
_MOST_FILES = 200_000
"""The most files of a directory without git: one with more is a home or a disk, not a project."""
_MOST_TOPICS = 12
_LEAST_PAGES = 10
"""The fewest pages for which a directory is a topic, unless it is documentation of the root."""
_FEW = 2
"""Most pages outside of all other topics that are in the overview."""
_MOST_READ, _READ_BYTES, _MOST_NAMED = 12, 8_000, 5
"""The most pages of a topic whose titles are looked for, their first bytes, and most titles."""


class Topic(NamedTuple):
    """A topic that a first configuration may define, and the pages that it lists."""

    id: str
    fields: Mapping[str, Any]
    """The keys and values of its table."""
    pages: Sequence[str] = ()
    """The paths of its pages in the project, those of skills with all files beside them."""
    subjects: int = 0
    """How many of them are not hidden."""
    tokens: int = 0


class Proposals(NamedTuple):
    """What a project may have as topics, and all else that was seen: no file is in two of them."""

    topics: Sequence[Topic]
    left_out: Mapping[str, Sequence[str]]
    """The pages that are left out, by reason."""
    others: int
    """The number of all other files."""


def propose_topics(root: Path, existing: Sequence[TopicConfig] = ()) -> Proposals:
    """Return topics for the pages that no existing topic has, and what was left out.

    Raises KbError for a directory with too many files.
    """
    files = sorted(_list_files(root))
    sizes = dict(_measure(root, files))
    settled = set(_list_settled(root, existing, files))
    pages = [path for path in sizes if _is_page(root, path)]
    left_out: dict[str, list[str]] = {}
    for path, reason in _find_reasons(root, pages, sizes):
        if path not in settled:
            left_out.setdefault(reason, []).append(path)
    out = set(chain.from_iterable(left_out.values()))
    groups = _group([path for path in pages if path not in out and path not in settled])
    topics: list[Topic] = []
    for place, paths in groups.items():
        taken = {topic.id for topic in existing} | {topic.id for topic in topics}
        id_ = next(id_ for id_ in _list_ids(place) if id_ not in taken)
        topics.append(_describe(root, id_, place, paths, sizes))
    seen = {path for topic in topics for path in topic.pages} | out
    return Proposals(topics, left_out, len({*files} - seen - settled))


def find_layout(directory: Path) -> Layout:
    """Return the layout of a directory: skills if one of its directories has a SKILL.md."""
    inner = (path for path in directory.glob("[!.]*") if path.is_dir())
    return Layout.SKILLS if any((path / SKILL_FILE).is_file() for path in inner) else Layout.FILES


# Files and pages


def _list_files(root: Path) -> Collection[str]:
    """Return the files that git knows or would add; else all files."""
    listed = b""
    try:
        command = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        listed = run_git(*command, cwd=root, max_output=_MOST_BYTES)
    except GitError as error:
        if error.code == TIMED_OUT or isinstance(error, OutputTooLargeError):
            raise KbError(f"{error}; a named pipe makes git wait: find . -type p") from error
    if listed:
        return set(filter(None, os.fsdecode(listed).split("\0")))

    def enters(path: str) -> bool:
        return not is_always_ignored(path.split("/")[-2]) and not is_repository(f"{root}/{path}")

    paths = [path for path, _ in islice(iter_files(root, enters), _MOST_FILES + 1)]
    if len(paths) > _MOST_FILES:
        raise KbError(
            f"{show_place(root)} has over {_MOST_FILES:,} files and is not a git repository;"
            " run init in the directory of a project"
        )
    return paths


def _measure(root: Path, files: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the files that a topic may have with their sizes, and links to files with -1."""
    top, containment = f"{os.path.realpath(root)}{os.sep}", Containment(root, ())
    for path in files:
        if any(map(is_always_ignored, path.split("/"))) or is_agent_skill(containment, path):
            continue
        with suppress(OSError):
            status = os.lstat(top + path)
            if stat.S_ISREG(status.st_mode):
                yield path, status.st_size
            elif stat.S_ISLNK(status.st_mode):
                real = os.path.realpath(top + path, strict=True)
                if real.startswith(top) and os.path.isfile(real):  # noqa: PTH113
                    yield path, -1


def _list_settled(
    root: Path, existing: Sequence[TopicConfig], files: Iterable[str]
) -> Iterator[str]:
    """Yield the files of existing topics, with those that their settings leave out."""
    top = f"{os.path.realpath(root)}{os.sep}"
    for topic in existing:
        place = f"{topic.root}{os.sep}".removeprefix(top)
        yield from (path for path in files if place and path.startswith(place))
        yield from (place + subject.path for subject in DirectoryTopic(topic).list().subjects)


def _is_page(root: Path, path: str) -> bool:
    """Tell whether a file is prose, by the table of formats."""
    known = formats.find_format(path)
    if formats.is_ambiguous(path):
        with suppress(OSError):
            start = Containment(root, ()).read_file(path, START)[0]
            known = formats.find_format(path, start)
    wanted = {Proposed.EVERYWHERE}
    if "/" not in path or _find_documentation(path):
        wanted.add(Proposed.DOCUMENTATION)
    return known is not None and not known.is_unread and known.proposed in wanted


def _find_documentation(path: str) -> str:
    """Return the outermost directory of documentation that a path is in; empty without one."""
    return _find_outermost(path.rpartition("/")[0], _DOCUMENTATION)


@lru_cache(maxsize=16_384)
def _find_outermost(directory: str, names: re.Pattern[str]) -> str:
    parents = directory.split("/")
    end = next((end for end, name in enumerate(parents, 1) if names.fullmatch(name)), 0)
    return "/".join(parents[:end])


# Reasons to leave pages out


def _find_reasons(
    root: Path, pages: Sequence[str], sizes: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Yield the pages that are left out, each with the reason.

    What comes with a skill belongs to it, whatever its name.
    """
    rules = {path: _find_rule(re.sub(rf"[^/]+/{SKILL_FILE}$", SKILL_FILE, path)) for path in pages}
    skills = _find_skills(path for path in pages if not rules[path][0])
    written, every = (
        Counter(chain.from_iterable(map(list_places, each))) for each in (pages, sizes)
    )
    editions, copies = find_editions(pages), {*_find_copies(root, pages, sizes)}
    for path in pages:
        places = [*list_places(path)]
        reason, place = rules[path]
        # Among more pages than other files they are documentation.
        is_skill = not skills.keys().isdisjoint(places)
        if is_skill or (reason == "examples" and 2 * written[place] > every[place]):
            reason = ""
        if not reason and not is_skill:
            reason = next((f"{editions[each][0]}s" for each in places if each in editions), "")
        if sizes[path] < 0 or not copies.isdisjoint(places):
            reason = reason or "copies"
        if any(map(find_flaw, path.split("/"))):
            reason = "names"
        if reason:
            yield path, reason


def _find_rule(path: str) -> tuple[str, str]:
    """Return the reason to leave a page out by a name, and the directory that has it."""
    *parents, name = path.split("/")
    is_documentation, place = False, ""
    for parent in parents:
        place += f"{parent}/"
        word = "tests" if parent.endswith(("-tests", "_tests")) else parent.lower()
        reason = _PLACES.get(word, "")
        if reason and not (is_documentation and reason in _OUTSIDE):
            return reason, place
        is_documentation = is_documentation or bool(_DOCUMENTATION.fullmatch(parent))
    stem = find_stem(name)
    if "changes" in parents and stem.partition(".")[0].isdigit():
        return "changes", ""
    if ".github" in parents and stem.lower().endswith("template"):
        return "formalities", ""
    return next((each for each, names in _NAMES.items() if re.fullmatch(names, stem)), ""), ""


def _find_copies(root: Path, pages: Iterable[str], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield the guides and the directories of skills that are there before, under another name."""
    ranks = {name: rank for rank, name in enumerate((*_GUIDES, SKILL_FILE))}
    guides = [path for path in pages if path.rpartition("/")[2] in ranks and sizes[path] >= 0]
    seen: set[tuple[str, bytes]] = set()
    for path in sorted(guides, key=lambda path: (ranks[path.rpartition("/")[2]], path.count("/"))):
        place, _, name = path.rpartition("/")
        data = b""
        with suppress(OSError):
            data = Containment(root, ()).read_file(path, _MOST_GUIDE)[0]
        key = place.rpartition("/")[2] if name == SKILL_FILE else "", sha256(data).digest()
        if key in seen:
            yield f"{place}/" if name == SKILL_FILE else path
        seen.add(key)


# Groups of pages


def _group(pages: Sequence[str]) -> Mapping[str, list[str]]:
    """Return pages by the directory of their topic: `.` for the root's, `./` for the rest."""
    skills = _find_skills(pages)
    tops = Counter(path.partition("/")[0] for path in pages)
    inner = Counter(map(_find_documentation, pages))
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for path in pages:
        place = next((skills[place] for place in list_places(path) if place in skills), "")
        groups[place or _find_place(path, tops, inner)].append(path)
    ranked = sorted(
        groups, key=lambda place: (place not in {".", "./"}, -len(groups[place]), place)
    )
    for place in ranked[_MOST_TOPICS:]:
        groups["./"] += groups.pop(place)
    if len(groups["./"]) <= _FEW:
        groups["."] += groups.pop("./")
    order = sorted(groups, key=lambda place: (place != ".", "/." in f"/{place}", place))
    return {place: groups[place] for place in order if groups[place]}


def _find_skills(pages: Iterable[str]) -> Mapping[str, str]:
    """Return the directories of skills, each ending in `/`, with the directory that has them."""
    skills = {}
    for path in pages:
        parents = path.split("/")[:-1]
        if path.endswith(f"/{SKILL_FILE}") and len(parents) > 1:
            end = parents.index("skills") + 1 if "skills" in parents[:-1] else len(parents) - 1
            skills[path.removesuffix(SKILL_FILE)] = "/".join(parents[:end])
    return skills


def _find_place(path: str, tops: Mapping[str, int], inner: Mapping[str, int]) -> str:
    """Return the directory of a page's topic, by the numbers of pages in directories.

    Each directory in one that is called `kb` is a topic, and so is a hidden one.
    """
    parents = path.split("/")[:-1]
    if not parents:
        return "."
    if "kb" in parents:
        return "/".join(parents[: parents.index("kb") + 2])
    if hidden := _find_outermost("/".join(parents), _HIDDEN):
        return hidden
    place = _find_documentation(path)
    if place and (place.count("/") <= 1 or inner[place] >= _LEAST_PAGES):
        return place
    return parents[0] if tops[parents[0]] >= _LEAST_PAGES else "./"


# Topics


def _list_ids(place: str) -> Iterator[str]:
    """Yield ids for the topic of a directory: by its name, its path, and with numbers."""
    names = {".": ["overview"], "./": ["pages"]}.get(place, [place.rpartition("/")[2], place])
    ids = [re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].rstrip("-") for name in names]
    yield from filter(None, ids)
    yield from (f"{ids[0] or 'pages'}-{number}" for number in count(2))


def _describe(
    root: Path, id_: str, place: str, pages: Sequence[str], sizes: Mapping[str, int]
) -> Topic:
    """Return the topic of the pages of a directory, with the patterns by which it lists these."""
    inside = "" if place in {".", "./"} else f"{place}/"
    skills = {each for each, above in _find_skills(pages).items() if above == place}
    if skills:
        pages = [p for p in sizes if sizes[p] >= 0 and not skills.isdisjoint(list_places(p))]
    kept = {path.removeprefix(inside) for path in pages}
    files = {path.removeprefix(inside) for path in sizes if path.startswith(inside)}
    kinds = {_name_kind(path, place) for path in kept}
    # A hidden guide is listed if its path is written out.
    is_chosen = "/" in "".join(kinds) or any(_name_kind(path, place) not in kinds for path in files)
    include = sorted(kinds) if is_chosen and not skills else []
    surplus = [path for path in files - kept if not include or _name_kind(path, place) in kinds]
    ignore = _list_ignored(sorted(surplus), kept)
    shown = [
        inside + path
        for path in sorted(kept)
        if not skills or path.endswith(f"/{SKILL_FILE}")
        if "/." not in f"/{path}" or f"/{escape(path)}" in include
    ]
    title, introduction = _name(root, id_, place, shown, sizes)
    fields = {
        "title": title,
        "introduction": introduction,
        "subjects": inside[:-1] or ".",
        "include": include,
        "ignore": ignore,
        "layout": Layout.SKILLS.value if skills else "",
    }
    return Topic(id_, fields, pages, len(shown), sum(_list_tokens(root, shown, sizes)))


def _list_tokens(root: Path, pages: Iterable[str], sizes: Mapping[str, int]) -> Iterator[int]:
    topic = DirectoryTopic(TopicConfig(id="proposed", root=Path(os.path.realpath(root))))
    for path in pages:
        with suppress(OSError, KbError):
            subject = Subject(Slug(path), Slug(path), path)
            yield estimate_tokens(
                topic.find_size(subject) if formats.find_converted(path) else sizes[path]
            )


def _name_kind(path: str, place: str) -> str:
    """Return the pattern by which the topic of a directory takes a page, and those of its kind."""
    name = path.rpartition("/")[2]
    is_guide = name.startswith(".") and not find_extension(name)
    if is_guide or (place in {".", "./"} and (place == ".") == ("/" in path)):
        return f"/{escape(path)}"
    kind = f"*{escape(Path(name).suffix)}" if find_extension(name) else escape(name)
    return {".": "/", "./": "/*/**/"}.get(place, "") + kind


def _list_ignored(surplus: Sequence[str], kept: Collection[str]) -> list[str]:
    """Return patterns of the files that a topic would take, and does not keep.

    They are directories, names and ends of names that none of those it keeps has.
    """
    above = {place for path in kept for place in list_places(path)}
    names = {name for path in kept for name in path.split("/")}
    ends = {path.rpartition("/")[2].partition(".")[2] for path in kept}
    options: dict[str, list[str]] = {}
    for path in surplus:
        *parents, name = path.split("/")
        empty = next((place for place in list_places(path) if place not in above), path)
        options[path] = [f"/{escape(empty)}"]
        options[path] += [f"{escape(part)}/" for part in parents if part not in names]
        options[path] += [escape(name)] if name not in names else []
        end = name.partition(".")[2]
        options[path] += [f"*.{escape(end)}"] if "." in end and end not in ends else []
    counts = Counter(chain.from_iterable(options.values()))
    usable = (options[path] for path in surplus if not any(map(find_flaw, path.split("/"))))
    return [*dict.fromkeys(max(each, key=counts.__getitem__) for each in usable)]


def escape(path: str) -> str:
    """Return the pattern of a path."""
    return re.sub(r"[\\*?\[\]!#]|\s\Z", r"\\\g<0>", path)


def _name(
    root: Path, id_: str, place: str, pages: Sequence[str], sizes: Mapping[str, int]
) -> tuple[str, str]:
    """Return the title of a topic, and its introduction: the titles of its largest pages."""
    readme = next((path for path in pages if re.fullmatch(r"(?i)readme(\.\w+)?", path)), "")
    title = "Pages beside the code" if place == "./" else id_.replace("-", " ").capitalize()
    title = _find_title(root, readme) or title
    ranked = sorted(pages, key=lambda path: (path == readme, -sizes[path], path))[:_MOST_READ]
    plain = {path for path in ranked if place == "." and _PLAIN_NAMES.fullmatch(find_stem(path))}
    names = ((path not in plain and _find_title(root, path)) or _find_name(path) for path in ranked)
    named = [*dict.fromkeys(names)][:_MOST_NAMED]
    rest = len(pages) - len(named)
    return title, ", ".join(named) + (f" and {rest:,} more" if rest > 0 else "")


def _find_name(path: str) -> str:
    """Return the name of a page in words, that of the directory for a skill."""
    stem = path.split("/")[-2] if path.endswith(f"/{SKILL_FILE}") else find_stem(path)
    return UNUSABLE.sub("", re.sub("[_-]+", " ", stem)).strip(" .")


def _find_title(root: Path, path: str) -> str:
    """Return the title of a page; empty without one, and for that of a template."""
    with suppress(OSError):
        data = Containment(root, ()).read_file(path, _READ_BYTES)[0] if path else b""
        title = find_title(open_text(data, whole=False).text, path)
        return "" if "{" in title else shorten(UNUSABLE.sub("", title), LONGEST_LABEL)
    return ""
