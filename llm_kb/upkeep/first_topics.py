"""Proposes topics for the pages of a project, by the directories that people would name."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from llm_kb.files.containment import Containment
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.knowledge_base.open_topic import OpenTopic
from llm_kb.knowledge_base.subject_list import list_topic
from llm_kb.rendering.plain_text import shorten
from llm_kb.rendering.summaries import find_title
from llm_kb.subjects.ignore import IgnoreRules, Include
from llm_kb.subjects.topics import Layout, TopicConfig, find_flaw
from llm_kb.texts.decoding import decode_text
from llm_kb.texts.formats import find_extension, find_stem
from llm_kb.texts.safe import UNUSABLE
from llm_kb.upkeep import project_files
from llm_kb.upkeep.accounts import Leftover, account_for
from llm_kb.upkeep.project_files import count_below, escape, is_documentation, list_parents

_MOST_TOPICS = 8
"""The most directories in one that are topics each; of more, only their parent is one."""
_LEAST_PAGES = 3
"""The fewest pages for which a directory is a topic, unless its name says documentation."""
_SHARES, _NAMED_SHARES = (0.002, 0.1), (0.0, 0.02)
"""The smallest part of all pages of which a directory is a topic: in the root, and below."""
_FEW = 2
"""Most pages outside of all other topics that are in the overview."""
_MOST_NAMED = 5
_DEEPEST = 5
"""The most directories inside one another whose content is named instead."""
_MOST_READ, _READ_BYTES = 1_000, 64_000
"""The most pages of a topic that are read for titles and links, and the first bytes of each."""
_LONGEST_TITLE = 60
_MOST_PATTERNS = 20
"""The most patterns of files to leave out that are written if the pages have fewer names."""


class Proposals(NamedTuple):
    """What a project may have as topics, and all else that was seen: no file is in two of them."""

    topics: Sequence[Proposal]
    left_out: Mapping[str, Sequence[str]]
    """The pages that a rule leaves out, by rule; those that no topic can hold have `other`."""
    others: Sequence[Leftover]
    """What is not a page."""


class Proposal(NamedTuple):
    """A topic that a first configuration may define, and the pages that it lists."""

    id: str
    title: str
    introduction: str
    subjects: str
    pages: Collection[str] = ()
    include: Sequence[str] = ()
    ignore: Sequence[str] = ()
    layout: str = ""
    """Empty for the default."""
    totals: tuple[int, int] = (0, 0)
    """The number of its subjects, and of their tokens."""
    largest: tuple[str, int] = ("", 0)
    """The name of the largest subject, and its tokens."""


def propose_topics(
    root: Path, rules: Collection[str] = (), existing: Sequence[TopicConfig] = ()
) -> Proposals:
    """Return topics for the pages that no existing topic has, and what was left out.

    The pages of the `rules` named are taken.
    """
    listed, sizes, found = project_files.find_project(root)
    patterns = {path: pattern for path, (rule, pattern) in found.items() if rule}
    left_out: dict[str, list[str]] = {rule: [] for rule in ("", *project_files.RULES, "other")}
    covered = {path for topic in existing for path in _list_covered(root, topic)}
    for path in sorted(found.keys() - covered):
        left_out[found[path][0]].append(path)
    groups = _group(left_out.pop(""), {path: sizes[path] for path in sizes.keys() - patterns})
    pages = [(place, {path: sizes[path] for path in paths}) for place, paths in groups.items()]
    proposals = [_name_topic(root, place, each) for place, each in pages]
    for rule in rules:
        taken_patterns = {path: patterns.pop(path) for path in left_out.pop(rule)}
        proposals += _name_rule(root, rule, taken_patterns, sizes)
    topics: dict[str, Proposal] = {}
    taken = {topic.id for topic in existing}
    alike = Counter(proposal.id for proposal in proposals)
    for proposal in proposals:
        topic = _complete(root, proposal, sizes, patterns)
        if topic.pages:
            is_alone = alike[topic.id] == 1
            id_ = next(id_ for id_ in _list_ids(topic, is_alone) if id_ not in {*taken, *topics})
            titles = {each.title for each in existing} | {each.title for each in topics.values()}
            where = f" in {topic.subjects}/" if topic.title in titles else ""
            topics[id_] = topic._replace(id=id_, title=f"{topic.title}{where}")
    held = {path for topic in topics.values() for path in topic.pages}
    left_out["other"] += [path for each in proposals for path in each.pages if path not in held]
    return Proposals(
        topics=list(topics.values()),
        left_out={rule: paths for rule, paths in left_out.items() if paths},
        others=account_for(root, set(listed) - found.keys() - covered - held),
    )


def _list_ids(topic: Proposal, is_alone: bool) -> Iterator[str]:
    """Yield ids for a topic: of several alike, or if it is taken, by the names of directories."""
    if is_alone:
        yield topic.id
    place = _slugify(topic.subjects.rpartition("/")[2]), _slugify(topic.subjects)
    yield from filter(None, place)
    yield from (f"{topic.id}{number}" for number in chain([""], (f"-{n}" for n in count(2))))


def _slugify(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].rstrip("-")


def find_layout(directory: Path) -> Layout:
    """Return the layout of a directory: skills if one of its directories has a SKILL.md."""
    inner = (path for path in directory.glob("[!.]*") if path.is_dir())
    return Layout.SKILLS if any((path / SKILL_FILE).is_file() for path in inner) else Layout.FILES


def _list_covered(root: Path, topic: TopicConfig) -> Iterator[str]:
    """Yield the files of a topic by their paths below a directory."""
    top = f"{os.path.realpath(root)}{os.sep}"
    for subject in DirectoryTopic(topic).list().subjects:
        yield f"{topic.root}{os.sep}{subject.path}".removeprefix(top)


# Groups of pages


def _group(paths: Sequence[str], sizes: Mapping[str, int]) -> dict[str, list[str]]:
    """Return pages by the directory that is their topic; `sizes` are those of all files.

    Pages beside the README have the directory `.`, and all others `./`.
    """
    places = {*map(_find_tool_place, paths), *_find_places(paths, sizes)} - {""}
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        parents = [*list_parents(path)]
        place = next((place for place in reversed(parents) if place in places), "")
        groups[place or ("./" if parents else ".")].append(path)
    if len(groups["./"]) <= _FEW:
        groups["."] += groups.pop("./")
    order = sorted(groups, key=lambda place: (place != ".", "/." in f"/{place}", place))
    return {place: groups[place] for place in order if groups[place]}


def _find_tool_place(path: str) -> str:
    """Return the directory of skills, or the hidden one, that a page is in; empty for none."""
    *parents, name = path.split("/")
    if name == SKILL_FILE and len(parents) > 1:
        top = parents.index("skills") if "skills" in parents[:-1] else len(parents) - 2
        return "/".join(parents[: top + 1])
    return _find_hidden(path)


def _find_hidden(path: str) -> str:
    """Return the outermost hidden directory that a page is in; empty for none."""
    return next((p for p in list_parents(path) if p.rpartition("/")[2][0] == "."), "")


def _find_places(paths: Sequence[str], sizes: Mapping[str, int]) -> Iterable[str]:
    """Return the outermost directories of documentation, and those that hold little but pages.

    One inside another directory must hold a good part of the pages, and not a few of many.
    Of many beside one another their parent is one.
    """
    whole = sum(sizes[path] for path in paths)
    paths = [path for path in paths if not _find_hidden(path)]
    counts, written = count_below(paths), count_below(paths, sizes)
    dense = project_files.find_dense(sizes, paths)
    places: dict[str, str] = {}
    for place in sorted(counts, key=lambda place: (place.count("/"), place)):
        above, _, name = place.rpartition("/")
        is_inner = above == "kb" or name.lower() in _DECISIONS
        if not is_inner and not places.keys().isdisjoint(list_parents(place)):
            continue
        is_named = is_inner or is_documentation(name)
        share = (_NAMED_SHARES if is_named else _SHARES)["/" in place]
        is_one = is_named or (counts[place] >= _LEAST_PAGES and place in dense)
        if is_one and written[place] >= share * whole:
            places[place] = above
    beside = Counter(places.values())
    merged = {above if beside[above] > _MOST_TOPICS else place for place, above in places.items()}
    return sorted(merged, key=lambda place: (-counts[place], place))[: 2 * _MOST_TOPICS]


# Names


_DECISIONS = frozenset({"adr", "adrs", "decisions"})
_GENERIC = re.compile(r"(?i)src|content|contents|site|website|www|packages?|apps?|libs?|en|main")
_SAME = {"doc": "docs", "documentation": "docs", "adr": "decisions", "adrs": "decisions"}
_TITLES = {"docs": "Documentation", ".github": "Contributing"}


def _name_topic(root: Path, place: str, sizes: Mapping[str, int]) -> Proposal:
    """Return the topic of the pages of a directory."""
    paths = list(sizes)
    inside = place if _find_hidden(paths[0]) else _narrow(paths)
    content = _name_content(root, inside, sizes, 0 if place == "./" else _DEEPEST)
    if place == ".":
        about = f"Pages about {content}."
        if len(paths) <= 2 * _MOST_TOPICS:
            about = "What this project is, and the rules for changing it."
        beside = [path for path in paths if "/" not in path]
        include = [*_list_kinds(beside, "/"), *(f"/{escape(p)}" for p in paths if "/" in p)]
        return Proposal("overview", "Overview", about, ".", paths, include)
    if place == "./":
        about = f"READMEs and notes beside the code: {content}."
        include = _list_kinds(paths, "/*/**/")
        return Proposal("pages", "Pages beside the code", about, ".", paths, include, _ALWAYS_OUT)
    names = [name for name in place.split("/") if not _GENERIC.fullmatch(name)] or ["docs"]
    owner, last = ["", *names][-2:]
    last = _SAME.get(last.lower().partition(".")[0], last)
    layout = "skills" if any(path.endswith(f"/{SKILL_FILE}") for path in paths) else ""
    if layout:
        inside, owner = place, ""
        about = "Step-by-step instructions for particular tasks."
    elif last == ".github":
        about = "How to contribute, and the rules for it."
    elif last.startswith("."):
        about = f"Rules and instructions for {_title(last)}."
    elif last == "decisions":
        owner, about = "", "What was decided, and why."
    elif is_documentation(last):
        about = f"How {owner or 'this project'} is used and how it works: {content}."
    else:
        owner, about = "", f"Pages about {content}."
    title = f"{_title(owner)} {_TITLES.get(last) or _title(last)}".strip()
    if layout:
        title = " ".join(map(_title, names))
    id_ = _slugify(f"{owner}-{last}") or "pages"
    return Proposal(id_, title, about, inside, paths, layout=layout)


def _name_rule(
    root: Path, rule: str, patterns: Mapping[str, str], sizes: Mapping[str, int]
) -> Iterator[Proposal]:
    """Yield topics of the pages that a rule would leave out, with their patterns.

    Only in a topic of its own are the pages of a hidden directory listed.
    """
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for path in patterns:
        parts[_find_hidden(path)].append(path)
    title = project_files.RULES[rule].what.capitalize()
    for hidden, paths in parts.items():
        place = _narrow(paths)
        about = f"{title}: {_name_content(root, place, {path: sizes[path] for path in paths})}."
        kept = {_name_kind(path) if hidden else _keep(patterns[path], path) for path in paths}
        yield Proposal(rule, title, about, place if hidden else ".", paths, sorted(kept))


def _keep(pattern: str, path: str) -> str:
    """Return the pattern of the pages of one kind that a rule's pattern, if any, ignores."""
    if not pattern.endswith("/"):
        return pattern or f"/{escape(path)}"
    return f"{pattern if pattern.startswith('/') else f'**/{pattern}'}**/{_name_kind(path)}"


def _narrow(paths: Sequence[str]) -> str:
    """Return the innermost directory that holds all pages."""
    common = os.path.commonpath(paths)
    return common.rpartition("/")[0] if common in paths else common


def _name_content(root: Path, place: str, sizes: Mapping[str, int], deepest: int = _DEEPEST) -> str:
    """Return what the pages below a place are about: its directories and pages of most weight.

    A page weighs its size, as often as it is linked to, and is named by its title.
    """
    # Of a directory its first pages: what leads to the others is in the outer ones.
    read = sorted(sizes, key=lambda path: (path.count("/"), -sizes[path]))[:_MOST_READ]
    texts = {path: _read_text(root, path) for path in read}
    linked = Counter(chain.from_iterable({*_find_linked(text)} for text in texts.values()))
    parts = _find_parts(sizes, f"{place}/" if place else "", deepest)
    weights = {
        part: sum(sizes[path] * (1 + linked[find_stem(path).lower()]) for path in paths)
        for part, paths in parts.items()
    }
    telling = [part for part in parts if not _SILENT.fullmatch(find_stem(part))] or list(parts)
    ranked = sorted(telling, key=lambda part: (-weights[part], part))
    only = {part: parts[part][0] for part in ranked if len(parts[part]) == 1}
    titles = (
        _find_page_title(only.get(part, ""), texts) or _title(part.rpartition("/")[2])
        for part in ranked
    )
    names = dict.fromkeys(re.sub(r"^[\d .]+(?=\D)", "", title) for title in titles)
    return ", ".join([*names][:_MOST_NAMED]) + (" and more" if len(names) > _MOST_NAMED else "")


def _find_parts(paths: Collection[str], start: str, deepest: int) -> dict[str, list[str]]:
    """Return pages by the file or directory that they are in.

    A directory that has most of them tells nothing: what is in it takes its place, `deepest`
    times.
    """
    parts = _split(paths, start)
    for _ in range(deepest):
        most = max(parts, key=lambda part: len(parts[part]))
        if len(parts[most]) <= max(1, len(paths) / 2):
            break
        parts |= _split(parts.pop(most), f"{most}/")
    return parts


def _split(paths: Iterable[str], start: str) -> dict[str, list[str]]:
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        parts[start + path[len(start) :].partition("/")[0]].append(path)
    return dict(parts)


_SILENT = re.compile(r"(?i)index|readme|introduction|summary|\d*")
_LINKED = re.compile(
    r"(?:\]\(|\[\[|:doc:`(?:[^`<>]{0,200}<)?|xref:|link:|include::|\\(?:input|include)\{|href=[\"'])"
    r"(?P<target>[^\s()\[\]{}`\"'#<>|]{1,200})"
)


def _find_linked(text: str) -> Iterator[str]:
    """Yield the names of the pages to which the links of a text in any markup lead."""
    return (find_stem(match["target"]).lower() for match in _LINKED.finditer(text))


def _read_text(root: Path, path: str) -> str:
    """Return the start of a page; empty if it cannot be read as text."""
    with suppress(OSError):
        return decode_text(Containment(root, ()).read_file(path, _READ_BYTES)[0], whole=False) or ""
    return ""


def _find_page_title(path: str, texts: Mapping[str, str]) -> str:
    """Return the title of a page; empty if its text was not read, or says none.

    The title of a template, `pytest-{version}`, says nothing.
    """
    if not texts.get(path) or _SILENT.fullmatch(find_stem(path)):
        return ""
    title = find_title(texts[path], path)
    return "" if "{" in title else shorten(UNUSABLE.sub("", title), _LONGEST_TITLE)


def _title(name: str) -> str:
    """Return a name in words, without its extension."""
    stem = name.rpartition(".")[0] if find_extension(name) else name
    words = re.split("[_-]+", UNUSABLE.sub("", stem).strip("."))
    return " ".join(word[:1].upper() + word[1:] for word in words if word)


# Patterns


_ALWAYS_OUT = (".*", "vendor/", "build/", "dist/", "target/", "venv/")
"""Directories in which tools may write beside the pages of a whole project."""


def _complete(
    root: Path, proposal: Proposal, sizes: Mapping[str, int], patterns: Mapping[str, str]
) -> Proposal:
    """Return a topic with the patterns by which it lists its pages, and those that it lists.

    `sizes` has all files of the project, and `patterns` are those of the rules for other pages.
    """
    place = "" if proposal.subjects == "." else f"{proposal.subjects}/"
    kept = {path.removeprefix(place) for path in proposal.pages}
    files = {path.removeprefix(place) for path in sizes if path.startswith(place)}
    include, kinds = list(proposal.include), _list_kinds(kept, "")
    hidden = sorted(f"/{escape(path)}" for path in kept if _is_guide(path))
    others = any(_name_kind(path) not in kinds for path in files)
    if not (include or proposal.layout) and (hidden or others):
        include = kinds
    include += [path for path in hidden if path not in include and not proposal.layout]
    takes = Include(include).takes
    surplus = [] if proposal.layout else sorted(filter(takes, files - kept))
    known = {
        path.removeprefix(place): f"/{pattern.removeprefix(f'/{place}')}"
        if pattern.startswith(f"/{place}")
        else pattern
        for path, pattern in patterns.items()
        if path.startswith(place)
    }
    ignore = _list_patterns(proposal.ignore, surplus, kept, known)
    if len(kept) < len(ignore) > _MOST_PATTERNS:
        include, ignore = [f"/{escape(path)}" for path in sorted(kept)], ()
    directory = Path(os.path.realpath(root / proposal.subjects))
    topic = TopicConfig(
        id="proposed",
        root=directory,
        include=tuple(include),
        ignore=ignore,
        layout=Layout(proposal.layout or "files"),
    )
    opened = OpenTopic(DirectoryTopic(topic))
    found = {subject.path for subject in opened.listing.subjects}
    listed = list_topic(opened)
    return proposal._replace(
        include=include,
        ignore=ignore,
        totals=(len(listed.visible), listed.tokens),
        largest=max(
            ((s.name, s.tokens or 0) for s in listed.visible), key=itemgetter(1), default=("", 0)
        ),
        pages={place + path for path in found - (files - kept)},
    )


def _list_patterns(
    first: Sequence[str], surplus: Sequence[str], kept: Collection[str], known: Mapping[str, str]
) -> tuple[str, ...]:
    """Return patterns that ignore files: those of their rules, or whole directories, or names.

    None ignores what is kept; `first` are tried before, and `known` are the rules' patterns.
    """
    places = {f"{place}/" for path in kept for place in list_parents(path)}

    @cache
    def find_rules(pattern: str) -> Callable[[str], bool] | None:
        """Return what a pattern ignores; None if that is something kept."""
        ignores = IgnoreRules([pattern]).ignores
        return None if any(map(ignores, (*kept, *places))) else ignores

    patterns = {pattern: None for pattern in first if find_rules(pattern)}
    for path in sorted(surplus, key=lambda path: (path in known, path)):
        parents = [*list_parents(path)]
        empty = next((place for place in parents if f"{place}/" not in places), "")
        options = [known.get(path, ""), f"/{escape(empty)}/" if empty else "", f"/{escape(path)}"]
        able = [
            each
            for each in options
            if each
            and (rules := find_rules(each))
            and any(map(rules, (path, *(f"{place}/" for place in parents))))
        ]
        if not patterns.keys() & able and not any(map(find_flaw, path.split("/"))):
            patterns[able[0]] = None
    return tuple(patterns)


def _list_kinds(paths: Collection[str], start: str) -> list[str]:
    """Return the patterns of the kinds of pages, without those of hidden guides."""
    return sorted({f"{start}{_name_kind(path)}" for path in paths if not _is_guide(path)})


def _is_guide(path: str) -> bool:
    """Tell whether a page is a hidden guide of a tool, such as `.cursorrules`."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and not find_extension(name)


def _name_kind(path: str) -> str:
    """Return the pattern of the files with a page's extension, or its name if it has none."""
    name = path.rpartition("/")[2]
    return f"*{escape(Path(name).suffix)}" if find_extension(name) else escape(name)
