"""Proposes topics for the pages of a project, by the directories that people would name."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llm_kb.config.keys import TOPIC_ID
from llm_kb.files.directory import NO_SKILL, DirectoryCatalog
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.knowledge_base.subject_list import list_topic
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.subjects.names import UNUSABLE, find_extension, is_readable
from llm_kb.subjects.topics import Layout, Topic
from llm_kb.upkeep.project_files import (
    RULE_FILES,
    RULES,
    Project,
    count_below,
    find_dense,
    is_documentation,
    list_parents,
    measure_below,
    read_project,
)

_MOST_TOPICS = 8
"""The most directories of one kind that are topics each; of more, only their parent is one."""
_LEAST_PAGES = 3
"""The fewest pages for which a directory is a topic, unless its name says documentation."""
_SHARES, _NAMED_SHARES = (0.002, 0.1, 0.1), (0.0, 0.002, 0.02)
"""The smallest part of all pages of which a directory is a topic, by its depth."""
_FEW = 2
"""Most pages outside of all topics that are left out instead of made a topic."""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A topic that a first configuration may define."""

    id: str
    title: str
    introduction: str
    subjects: str
    description: str = ""
    ignore: tuple[str, ...] = ()
    layout: Layout = Layout.FILES
    totals: tuple[int, int] = (0, 0)
    """The number of its subjects, and of their tokens."""
    first: Sequence[str] = ()
    """The names of some of its pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Topics for a project, and the pages that none of them has, keyed by the rule's name.

    Pages that no rule leaves out, and that no topic can hold, have the name `other`.
    """

    topics: Sequence[Proposal]
    left_out: Mapping[str, Sequence[str]]


FIRST_TOPIC = Proposal(
    id="project",
    title="Project",
    introduction="How we work on this project, and why.",
    subjects="kb/project",
)
"""The proposal for an empty workspace; its directory must be created."""


def propose_topics(
    root: Path, rules: Collection[str] = (), existing: Sequence[Topic] = ()
) -> Proposals:
    """Return topics for all pages that no existing topic has and no rule leaves out.

    The pages of the `rules` named are taken.
    """
    project = read_project(root)
    covered = {path for topic in existing for path in _list_covered(root, topic)}
    new = [path for path in project.pages if path not in covered]
    left_out = {
        rule: paths
        for rule, found in project.left_out.items()
        if (paths := [path for path in found if path not in covered])
    }
    taken = [_group_rule(rule, left_out.pop(rule)) for rule in rules if rule in left_out]
    topics: dict[str, Proposal] = {topic.id: FIRST_TOPIC for topic in existing}
    listed: set[str] = set()
    groups = _group(replace(project, pages=new), left_out, rules, len(project.pages))
    for group in (*groups, *taken):
        proposal, pages = _settle(root, group)
        if pages:
            id_ = _find_free_id(proposal.id, topics)
            topics[id_] = replace(proposal, id=id_)
            listed |= pages
    named = {path for paths in left_out.values() for path in paths}
    if lost := [path for path in new if path not in listed and path not in named]:
        left_out["other"] = lost
    order = [rule.name for rule in RULES]
    return Proposals(
        topics=[topic for topic in topics.values() if topic is not FIRST_TOPIC],
        left_out={rule: left_out[rule] for rule in (*order, "other") if left_out.get(rule)},
    )


def find_layout(directory: Path) -> Layout:
    """Return the layout of a directory: skills if one of its directories has a SKILL.md."""
    inner = (path for path in directory.glob("[!.]*") if path.is_dir())
    return Layout.SKILLS if any((path / SKILL_FILE).is_file() for path in inner) else Layout.FILES


def measure(directory: Path, layout: Layout, ignore: tuple[str, ...] = ()) -> tuple[int, int]:
    """Return the number and tokens of the subjects that a directory would list as a topic."""
    topic = _make_topic(directory, layout, ignore)
    listed = list_topic(OpenTopic(topic, DirectoryCatalog(topic)))
    return len(listed.visible), listed.tokens


def _make_topic(directory: Path, layout: Layout, ignore: tuple[str, ...]) -> Topic:
    root = Path(os.path.realpath(directory))
    return Topic(id="proposed", root=root, ignore=ignore, layout=layout)


def _list_covered(root: Path, topic: Topic) -> Iterator[str]:
    """Yield the files of a topic that are below a directory, by their paths there."""
    top = f"{os.path.realpath(root)}{os.sep}"
    for subject in DirectoryCatalog(topic).list().subjects:
        path = f"{topic.root}{os.sep}{subject.path}"
        if path.startswith(top):
            yield path[len(top) :]


def _find_free_id(id_: str, taken: Collection[str]) -> str:
    numbered = (f"{id_}-{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in (id_, *numbered) if candidate not in taken)


# Groups of pages


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The pages below a directory that belong into one topic, and what to call it."""

    proposal: Proposal
    pages: frozenset[str]
    everything: bool = False
    """Whether all files of the directory are the topic's, as in one of skills."""
    is_named: bool = False
    """Whether the pages are chosen by the starts of their names."""


def _group(
    project: Project, left_out: dict[str, list[str]], rules: Collection[str], whole: int
) -> Iterator[_Group]:
    """Yield the groups of a project's pages, of `whole` in all, the most important first.

    Adds to `left_out` what only shows here, unless the `rules` named are taken: the skills that
    are there twice, and single pages.
    """
    rest = dict.fromkeys(project.pages)

    def take(paths: Iterable[str]) -> frozenset[str]:
        taken = frozenset(path for path in paths if path in rest)
        for path in taken:
            del rest[path]
        return taken

    skills = list(_group_skills(project, take, left_out, rules))
    hidden = list(_group_hidden(project, take))
    knowledge = list(_group_knowledge(project, take))
    overview = take(path for path in list(rest) if "/" not in path)
    documents = list(_group_documents(project, rest, take))
    if overview:
        yield _Group(proposal=_name_overview(overview), pages=overview)
    yield from (*knowledge, *documents, *skills, *hidden)
    if 0 < len(rest) <= _FEW and whole > len(rest) and "single" not in rules:
        left_out["single"] = list(rest)
    elif rest:
        yield _Group(proposal=_name_rest(project, rest), pages=frozenset(rest))


_Take = Callable[[Iterable[str]], frozenset[str]]


def _group_skills(
    project: Project, take: _Take, left_out: dict[str, list[str]], rules: Collection[str]
) -> Iterator[_Group]:
    """Yield the collections of skills; the same skills for another tool are left out."""
    collections: defaultdict[str, set[str]] = defaultdict(set)
    for path in project.pages:
        *parents, name = path.split("/")
        if name == SKILL_FILE and len(parents) > 1:
            top = parents.index("skills") if "skills" in parents[:-1] else len(parents) - 2
            collections["/".join(parents[: top + 1])].add("/".join(parents[top + 1 :]))
    seen: set[str] = set()
    ranked = sorted(collections, key=lambda each: (-len(collections[each]), each))
    for place in ranked[: 2 * _MOST_TOPICS]:
        names = collections[place]
        inside = tuple(f"{place}/{name}/" for name in names)
        pages = take(path for path in project.pages if path.startswith(inside))
        if names <= seen and "copies" not in rules:
            left_out.setdefault("copies", []).extend(sorted(pages))
            continue
        tool = place.rpartition("/")[0].rpartition("/")[2].lstrip(".")
        yield _Group(
            proposal=Proposal(
                id=_make_id(f"{tool}-skills" if seen else "skills"),
                title=f"Skills ({_title(tool)})" if seen and tool else "Skills",
                introduction="Step-by-step instructions for particular tasks.",
                subjects=place,
                layout=Layout.SKILLS,
            ),
            pages=pages,
            everything=True,
        )
        seen |= names


_TOOLS = {
    "agents": "coding agents",
    "github": "GitHub Copilot",
    **{name: name.title() for name in ("claude", "cursor", "gemini", "codex", "windsurf")},
    "clinerules": "Cline",
}


def _group_hidden(project: Project, take: _Take) -> Iterator[_Group]:
    """Yield the pages in each hidden directory: rules that people wrote for coding tools."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for path in project.pages:
        place = next((p for p in list_parents(path) if p.rpartition("/")[2][0] == "."), None)
        if place:
            groups[place].append(path)
    for place, paths in groups.items():
        pages = take(paths)
        above, _, name = place.rpartition("/")
        bare = name.lstrip(".")
        tool = _TOOLS.get(bare, _title(bare))
        is_guide = bare == "github" and not all("opilot" in path for path in pages)
        title = "Contributing" if is_guide else f"For {tool}"
        yield _Group(
            proposal=Proposal(
                id=_make_id(f"{above.rpartition('/')[2]}-{bare}"),
                title=f"{title} ({above})" if above else title,
                introduction="How to contribute, and the rules for it."
                if is_guide
                else f"Rules and instructions that were written for {tool}.",
                subjects=place,
            ),
            pages=pages,
        )


def _group_knowledge(project: Project, take: _Take) -> Iterator[_Group]:
    """Yield each directory of `kb`, and `kb` itself for its other files, whatever their kind."""
    files = [path for path in project.files if path.startswith("kb/") and is_readable(path)]
    names = sorted({path.split("/")[1] for path in files if path.count("/") > 1})
    for name in (*(name for name in names if TOPIC_ID.fullmatch(name)), ""):
        place = f"kb/{name}".rstrip("/")
        mine = [path for path in files if path.startswith(f"{place}/")]
        take(mine)
        files = [path for path in files if path not in set(mine)]
        if mine:
            id_ = name or next(id_ for id_ in ("project", "kb", "general") if id_ not in names)
            title = _title(id_)
            about = f"What to know about {title.lower()}."
            proposal = Proposal(id=id_, title=title, introduction=about, subjects=place)
            yield _Group(proposal=proposal, pages=frozenset(mine))


def _group_documents(project: Project, rest: Mapping[str, None], take: _Take) -> Iterator[_Group]:
    """Yield the directories of documentation, and those that hold little but pages."""
    pages = count_below(rest)
    places = list(_find_places(project, rest))
    for parent, number in Counter(place.rpartition("/")[0] for place in places).items():
        if number > _MOST_TOPICS:
            places = [place for place in places if place.rpartition("/")[0] != parent]
            places += [parent] if parent else []
    places = sorted(places, key=lambda place: -pages[place])[: 2 * _MOST_TOPICS]
    records = [r for place in places for r in pages if r.startswith(f"{place}/") and _is_record(r)]
    for place in (*records, *places):
        inside = _narrow(place, list(rest))
        found = take(path for path in list(rest) if path.startswith(f"{place}/"))
        if found:
            named = place if is_documentation(place.rpartition("/")[2]) else inside
            proposal = replace(_name_directory(named, found), subjects=inside)
            yield _Group(proposal=proposal, pages=found)


def _group_rule(rule: str, paths: Sequence[str]) -> _Group:
    """Return the pages that a rule would leave out as one group."""
    what = next(each.what for each in RULES if each.name == rule)
    proposal = Proposal(
        id=rule,
        title=f"{what[:1].upper()}{what[1:]}",
        introduction=f"{what[:1].upper()}{what[1:]}: {_name_content('', paths)}.",
        subjects=_narrow("", paths) or ".",
    )
    return _Group(proposal=proposal, pages=frozenset(paths), is_named=True)


def _find_places(project: Project, pages: Collection[str]) -> Iterator[str]:
    """Yield the outermost directories of documentation, and those that hold little but pages.

    One inside another directory must hold a good part of the pages, and not a few of many.
    """
    counts, sizes = count_below(pages), measure_below(project.files, pages)
    whole = sum(project.files[path] for path in project.pages)
    dense = find_dense(project.files, pages)
    passed: set[str] = set()
    for place in sorted(counts, key=lambda place: (place.count("/"), place)):
        if any(parent in passed for parent in list_parents(place)):
            continue
        depth = min(place.count("/"), 2)
        is_named = is_documentation(place.rpartition("/")[2])
        share = (_NAMED_SHARES if is_named else _SHARES)[depth]
        is_large = counts[place] >= (1 if is_named else _LEAST_PAGES)
        if (is_named or place in dense) and is_large and sizes[place] >= share * whole:
            passed.add(place)
            yield place


def _narrow(place: str, pages: Sequence[str]) -> str:
    """Return the innermost directory that holds all the pages of a place."""
    inside = [path for path in pages if not place or path.startswith(f"{place}/")]
    common = os.path.commonpath(inside) if inside else place
    return common.rpartition("/")[0] if common in inside else common


def _is_record(place: str) -> bool:
    return place.rpartition("/")[2].lower() in {"adr", "adrs", "decisions"}


# Names


_GENERIC = re.compile(r"src|content|contents|site|website|www|pages|packages?|apps?|libs?|en|main")
_NAMED = {
    "docs": ("Documentation", "How {} is used and how it works."),
    "wiki": ("Wiki", "The wiki of {}."),
    "notes": ("Notes", "The notes of {}."),
    "guides": ("Guides", "The guides of {}."),
    "man": ("Manual Pages", "The commands of {}, with all their options."),
    "decisions": ("Architecture Decisions", "What was decided in {}, and why."),
}
_SAME = {"doc": "docs", "documentation": "docs", "adr": "decisions", "adrs": "decisions"}
_SAME |= {"guide": "guides"}


def _name_directory(place: str, pages: Collection[str]) -> Proposal:
    """Return the topic of a directory, without patterns."""
    names = [name for name in place.split("/") if not _GENERIC.fullmatch(name.lower())] or [
        place if place == "pages" else "docs"
    ]
    kind = next((i for i, name in enumerate(names) if name.lower() in {*_NAMED, *_SAME}), None)
    last = names[-1]
    if kind is not None and (kind == len(names) - 1 or _is_record(place)):
        last = names[-1].lower()
        named = _SAME.get(last, last)
        title, about = _NAMED.get(named, _NAMED["docs"])
        owner = names[kind - 1] if kind else ""
        id_ = _make_id(f"{owner}-{named}")
        title = f"{_title(owner)} {title}".strip()
        about = about.format(owner or "this project")
        if len(pages) > _MOST_NAMED and any("/" in path[len(place) + 1 :] for path in pages):
            about = f"{about.rstrip('.')}: {_name_content(place, pages)}."
        return Proposal(id=id_, title=title, introduction=about, subjects=place)
    id_ = _make_id(last)
    about = f"Pages about {_name_content(place, pages)}."
    return Proposal(id=id_, title=_title(last), introduction=about, subjects=place)


def _name_overview(pages: Collection[str]) -> Proposal:
    """Return the topic of the pages beside the README, without patterns."""
    hidden = [name for name in RULE_FILES if name in pages]
    return Proposal(
        id="overview",
        title="Overview",
        introduction="What this project is, and the rules for changing it."
        if len(pages) <= 2 * _MOST_TOPICS
        else f"Pages about {_name_content('', pages)}.",
        subjects=".",
        description=" ".join(
            f"The rules for {RULE_FILES[name]} are in the subject `{name[1:]}`." for name in hidden
        ),
    )


def _name_rest(project: Project, pages: Collection[str]) -> Proposal:
    """Return the topic of the pages in all other directories, without patterns."""
    dense = find_dense(project.files, pages)
    is_text = 2 * sum(path.split("/")[0] in dense for path in pages) > len(pages)
    content = _name_content("", pages)
    return Proposal(
        id="pages" if is_text else "directories",
        title="Pages" if is_text else "Directories",
        introduction=f"Pages about {content}."
        if is_text
        else f"What single directories hold: {content}.",
        subjects=".",
    )


def _name_content(place: str, pages: Collection[str]) -> str:
    """Return the names on the first level below a place, those with the most pages first."""
    place = _narrow(place, sorted(pages)) if len(pages) > 1 else place
    start = len(place) + 1 if place else 0
    names = Counter(_bare(path[start:].split("/")[0]) for path in pages)
    for name in list(names):
        says_nothing = name.lower() in {"index", "readme", "introduction"} or name.isdecimal()
        if len(names) > 1 and says_nothing:
            del names[name]
    ranked = sorted(names, key=lambda name: (-names[name], name))[:_MOST_NAMED]
    first = [_title(name).strip() for name in ranked]
    more = " and more" if len(names) > _MOST_NAMED else ""
    return ", ".join(filter(None, first)) + more


def _bare(name: str) -> str:
    stem = name.rpartition(".")[0] if find_extension(name) else name
    return re.sub(r"^[\d._-]+(?=\D)", "", stem) or stem


def _make_id(name: str) -> str:
    id_ = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
    return id_[:60] or "pages"


def _title(name: str) -> str:
    words = UNUSABLE.sub("", name).replace("_", "-").strip(".").split("-")
    return " ".join(word[:1].upper() + word[1:] for word in words if word)


# Patterns


_MOST_FILES = 20
"""The most files for which one pattern each is looked for."""
_MOST_KINDS = 3
"""The most kinds of other files that are named; beside more, the kinds of pages are."""
_ALWAYS_OUT = ("vendor/", "build/", "dist/", "target/", "venv/")


def _settle(root: Path, group: _Group) -> tuple[Proposal, set[str]]:
    """Return a group's topic with the patterns for its pages, and those that it lists."""
    proposal = group.proposal
    place = "" if proposal.subjects == "." else f"{proposal.subjects}/"
    kept = {path[len(place) :] for path in group.pages}
    ignore = () if place else _keep_only(kept, is_named=group.is_named)
    for _ in range(3):  # a pattern can uncover what another one hid
        topic = _make_topic(root / proposal.subjects, proposal.layout, ignore)
        listing = DirectoryCatalog(topic).list()
        skipped = {s.path for s in listing.skipped if s.path and s.reason != NO_SKILL}
        surplus = set() if group.everything else {s.path for s in listing.subjects} - kept
        new = tuple(_find_patterns((surplus | skipped) - kept, kept))
        if not ignore and sum(line.startswith("*.") for line in new) > _MOST_KINDS:
            new = ("*", "!*/", *sorted({f"!{_pattern_of_kind(path)}" for path in kept}))
        new = tuple(line for line in new if line not in ignore)
        if not new:
            break
        ignore += new
    totals = measure(root / proposal.subjects, proposal.layout, ignore)
    found = {s.path for s in listing.subjects}
    first = sorted(found & kept, key=lambda path: (path.count("/"), not path.isupper(), path))
    return replace(proposal, ignore=ignore, totals=totals, first=first[:4]), {
        place + path for path in found & kept
    }


def _keep_only(kept: Collection[str], *, is_named: bool) -> tuple[str, ...]:
    """Return patterns that ignore all but the kinds of pages that are kept, in the root or below.

    Directories that tools write stay out, also those that are not there yet.
    """
    is_deep = any("/" in path for path in kept)
    kinds = sorted({_pattern_of_kind(path, is_named=is_named) for path in kept})
    if is_deep:
        own = () if any("/" not in path for path in kept) else ("/*.*",)
        return ("*", "!*/", *(f"!{kind}" for kind in kinds), *own, ".*", *_ALWAYS_OUT)
    return ("*", *(f"!/{kind}" for kind in kinds))


def _pattern_of_kind(path: str, *, is_named: bool = False) -> str:
    name = path.rpartition("/")[2]
    start = re.split(r"[._-]", name)[0] if is_named else ""
    return f"{escape(start)}*{Path(name).suffix}" if find_extension(name) else escape(name)


def _find_patterns(surplus: Collection[str], kept: Collection[str]) -> Iterator[str]:
    """Yield patterns that ignore files and none of those that are kept, as few as possible."""
    kinds = {Path(path).suffix for path in kept}
    kept_places, kept_names = count_below(kept), {path.rpartition("/")[2] for path in kept}
    kept_names |= {name for place in kept_places for name in place.split("/")}
    places: defaultdict[str, list[str]] = defaultdict(list)
    files = []
    for path in sorted(surplus):
        hidden = any(name[0] == "." for name in path.split("/"))
        suffix = Path(path).suffix if find_extension(path) else ""
        if hidden and not any(name[0] == "." for name in kept_names):
            places[".*"].append(path)
        elif suffix and suffix not in kinds:
            places[f"*{escape(suffix)}"].append(path)
        elif place := next((p for p in list_parents(path) if p not in kept_places), None):
            places[_pattern_of_place(place, kept_names)].append(path)
        else:
            files.append(path)
    some = files[:_MOST_FILES]
    named = list(dict.fromkeys(_pattern_of_file(path, kept, some) for path in some))
    for pattern, inside in places.items():
        if not all(any(_fits(path, glob) for glob in named) for path in inside):
            yield pattern
    yield from named


def _pattern_of_place(place: str, kept_names: Collection[str]) -> str:
    """Return the pattern of a directory: its name if none that is kept has it, or its path."""
    above, _, name = place.rpartition("/")
    stem, dot, _ = name.partition(".")
    if stem and dot:  # `pages.de`, `pages.fr`
        return f"/{escape(f'{above}/{stem}'.lstrip('/'))}.*/"
    return f"/{escape(place)}/" if name in kept_names else f"{escape(name)}/"


def _pattern_of_file(path: str, kept: Collection[str], files: Sequence[str]) -> str:
    """Return the pattern of a file: one for files named alike, if it fits none that is kept.

    Of one file the whole name counts, with any extension: `code*` would hide later pages.
    """
    above, slash, name = path.rpartition("/")
    words = re.split(r"(?<=[._-])", name)
    extension = Path(name).suffix
    starts = ["".join(words[:number]) for number in range(1, len(words))]
    stem = f"{name.removesuffix(extension)}." if extension else ""
    for start in (*starts, stem):
        globs = (f"{start}*", f"{start}*{extension}")
        for glob in (*globs, *(f"/{above}{slash}{glob}" for glob in globs)):
            is_alike = start == stem or sum(_fits(each, glob) for each in files) > 1
            if start and is_alike and not any(_fits(each, glob) for each in kept):
                literal, _, end = glob.partition("*")
                return f"{escape(literal)}*{escape(end)}"
    return f"/{escape(path)}"


def _fits(path: str, glob: str) -> bool:
    """Tell whether a glob with one star fits a path, or without a slash the name of a file."""
    start, _, end = glob.partition("*")
    text = f"/{path}" if "/" in start else path.rpartition("/")[2]
    star = text[len(start) :]
    return text.startswith(start) and star.endswith(end) and "/" not in star


_SPECIAL = re.compile(
    r"(?P<code>\\(?:x[0-9a-f]{2}|[nrt]|(?P<long>u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})))"
    r"|[\\*?\[\]]|\s\Z"
)
"""Text that must be escaped in a pattern; the codes of `printable` come first."""
_CONTROL = "[! -~\u00a0-\u00ac\u00ae-\ud7ff\ue000-\U0010ffff]"
"""The pattern of a control character or an undecodable byte, which no subject's name has."""


def escape(path: str) -> str:
    """Return the pattern of a path, which may have codes in place of unusual characters."""
    return _SPECIAL.sub(_escape, path)


def _escape(match: re.Match[str]) -> str:
    if match["long"]:
        char = match["code"].encode().decode("unicode_escape")
        # Some names have a backslash and digits of their own.
        return char if UNUSABLE.fullmatch(char) else f"\\{match[0]}"
    return _CONTROL if match["code"] else f"\\{match[0]}"
