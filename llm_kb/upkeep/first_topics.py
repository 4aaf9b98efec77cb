"""Proposes topics for the pages of a project, by the directories that people would name."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llm_kb.config.changes import define_topic
from llm_kb.files.directory import NO_SKILL, DirectoryCatalog
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.knowledge_base.subject_list import list_topic
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.subjects.ignore import IgnoreRules
from llm_kb.subjects.names import UNUSABLE, find_extension
from llm_kb.subjects.topics import Layout, Topic
from llm_kb.upkeep.project_files import (
    RULES,
    count_below,
    escape,
    find_dense,
    find_pages,
    is_documentation,
    list_parents,
)

_MOST_TOPICS = 8
"""The most directories in one that are topics each; of more, only their parent is one."""
_LEAST_PAGES = 3
"""The fewest pages for which a directory is a topic, unless its name says documentation."""
_SHARES, _NAMED_SHARES = (0.002, 0.1), (0.0, 0.02)
"""The smallest part of all pages of which a directory is a topic: in the root, and below."""
_FEW = 2
"""Most pages outside of all other topics that are in the overview."""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A topic that a first configuration may define, and the pages that it lists."""

    id: str
    title: str
    introduction: str
    subjects: str
    ignore: tuple[str, ...] = ()
    layout: Layout = Layout.FILES
    pages: Collection[str] = ()
    totals: tuple[int, int] = (0, 0)
    """The number of its subjects, and of their tokens."""

    @property
    def fields(self) -> dict[str, str | list[str]]:
        """The keys of the topic in a configuration with their values."""
        fields: dict[str, str | list[str]] = {
            "title": self.title,
            "introduction": self.introduction,
            "subjects": self.subjects,
            "ignore": list(self.ignore),
            "layout": "" if self.layout is Layout.FILES else self.layout.value,
        }
        return {name: value for name, value in fields.items() if value}


FIRST_TOPIC = Proposal(
    id="project",
    title="Project",
    introduction="How we work on this project, and why.",
    subjects="kb/project",
)
"""The proposal for an empty workspace; its directory must be created."""


def propose_topics(
    root: Path, rules: Collection[str] = (), existing: Sequence[Topic] = ()
) -> tuple[Sequence[Proposal], Mapping[str, Sequence[str]]]:
    """Return topics for the pages that no existing topic has, and the pages left out, by rule.

    The pages of the `rules` named are taken. Pages that no rule leaves out, and that no topic
    can hold, have the rule `other`.
    """
    files, found = find_pages(root)
    covered = {path for topic in existing for path in _list_covered(root, topic)}
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(found.keys() - covered):
        left_out[found[path][0]].append(path)
    patterns = {path: pattern for path, (rule, pattern) in found.items() if rule}
    sizes = {path: size for path, size in files.items() if path not in patterns}
    whole = sum(sizes[path] for path in found if path in sizes)
    groups = _group(left_out.pop("", ()), sizes, whole)
    proposals = [_name_topic(place, paths) for place, paths in groups.items()]
    for rule in (rule for rule in rules if rule in left_out):
        own = {path: patterns.pop(path) for path in left_out.pop(rule)}
        proposals.extend(_name_rule(rule, part) for part in _split_hidden(own))
    topics: dict[str, Proposal] = {}
    taken = {topic.id for topic in existing}
    for proposal in proposals:
        topic = _settle(root, proposal, patterns)
        if topic.pages:
            numbered = (f"{topic.id}-{number}" for number in range(2, 99))
            id_ = next(id_ for id_ in (topic.id, *numbered) if id_ not in {*taken, *topics})
            topics[id_] = replace(topic, id=id_)
    listed = {path for topic in topics.values() for path in topic.pages}
    if lost := [p for each in proposals for p in each.pages if p not in listed]:
        left_out["other"] = lost
    order = {rule.name: number for number, rule in enumerate(RULES)}
    ranked = sorted(left_out, key=lambda rule: order.get(rule, len(order)))
    return list(topics.values()), {rule: left_out[rule] for rule in ranked}


def find_layout(directory: Path) -> Layout:
    """Return the layout of a directory: skills if one of its directories has a SKILL.md."""
    inner = (path for path in directory.glob("[!.]*") if path.is_dir())
    return Layout.SKILLS if any((path / SKILL_FILE).is_file() for path in inner) else Layout.FILES


def _list_covered(root: Path, topic: Topic) -> Iterator[str]:
    """Yield the files of a topic that are below a directory, by their paths there."""
    top = f"{os.path.realpath(root)}{os.sep}"
    for subject in DirectoryCatalog(topic).list().subjects:
        path = f"{topic.root}{os.sep}{subject.path}"
        if path.startswith(top):
            yield path[len(top) :]


# Groups of pages


def _group(paths: Sequence[str], sizes: Mapping[str, int], whole: int) -> dict[str, list[str]]:
    """Return pages by the directory that is their topic, of pages of `whole` bytes in all.

    Those beside the README have the directory `.`, and all others `./`.
    """
    inside = [path for path in paths if not path.startswith(".") and "/." not in path]
    places = {place for path in paths if (place := _find_tool_place(path))}
    places.update(_find_places(inside, sizes, whole))
    groups: dict[str, list[str]] = {".": []}
    rest = []
    for path in paths:
        parents = [*list_parents(path)]
        place = next((place for place in reversed(parents) if place in places), "")
        if place or not parents:
            groups.setdefault(place or ".", []).append(path)
        else:
            rest.append(path)
    if rest:
        groups.setdefault("." if len(rest) <= _FEW else "./", []).extend(rest)
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


def _find_places(paths: Sequence[str], sizes: Mapping[str, int], whole: int) -> Iterator[str]:
    """Yield the outermost directories of documentation, and those that hold little but pages.

    One inside another directory must hold a good part of the pages, and not a few of many.
    Of many beside one another their parent is one.
    """
    counts, written = count_below(paths), count_below(paths, sizes)
    dense = find_dense(sizes, paths)
    places: list[str] = []
    for place in sorted(counts, key=lambda place: (place.count("/"), place)):
        above, _, name = place.rpartition("/")
        is_inner = above == "kb" or name.lower() in _DECISIONS
        if not is_inner and any(parent in places for parent in list_parents(place)):
            continue
        is_named = is_inner or is_documentation(name)
        share = _NAMED_SHARES["/" in place] if is_named else _SHARES["/" in place]
        is_large = counts[place] >= (1 if is_named else _LEAST_PAGES)
        if is_large and written[place] >= share * whole and (is_named or place in dense):
            places.append(place)
    beside = Counter(place.rpartition("/")[0] for place in places)
    merged = dict.fromkeys(
        above if beside[above := place.rpartition("/")[0]] > _MOST_TOPICS else place
        for place in places
    )
    ranked = sorted(merged, key=lambda place: -counts[place])[: 2 * _MOST_TOPICS]
    return filter(None, ranked)


# Names


_DECISIONS = frozenset({"adr", "adrs", "decisions"})
_GENERIC = re.compile(r"(?i)src|content|contents|site|website|www|packages?|apps?|libs?|en|main")
_SAME = {"doc": "docs", "documentation": "docs", "adr": "decisions", "adrs": "decisions"}


def _name_topic(place: str, paths: Sequence[str]) -> Proposal:
    """Return the topic of the pages of a directory, without patterns."""
    inside = place if "/." in f"/{place.rstrip('./')}" else _narrow(paths)
    content = _name_content(inside, paths)
    names = [name for name in place.split("/") if not _GENERIC.fullmatch(name)] or ["docs"]
    owner, last = names[-2] if len(names) > 1 else "", names[-1]
    last = _SAME.get(last.lower().partition(".")[0], last)
    id_, title, about = last, _title(last), f"Pages about {content}."
    layout, ignore = Layout.FILES, list[str]()
    if place == ".":
        id_, title, inside = "overview", "Overview", "."
        ignore = _keep_beside_readme(paths)
        if len(paths) <= 2 * _MOST_TOPICS:
            about = "What this project is, and the rules for changing it."
    elif place == "./":
        id_, title, inside = "pages", "Pages", "."
        ignore = ["*", "!*/", *(f"!{kind}" for kind in _list_kinds(paths)), "/*.*", *_ALWAYS_OUT]
        about = f"Pages in single directories: {content}."
    elif any(path.endswith(f"/{SKILL_FILE}") for path in paths):
        inside, layout, title = place, Layout.SKILLS, " ".join(map(_title, names))
        about = "Step-by-step instructions for particular tasks."
    elif last == ".github":
        title, about = "Contributing", "How to contribute, and the rules for it."
    elif last.startswith("."):
        id_, title = f"{owner}-{last}", f"{_title(owner)} {_title(last)}".strip()
        about = f"Rules and instructions for {_title(last)}."
    elif last == "decisions":
        about = "What was decided, and why."
    elif is_documentation(last):
        name = "Documentation" if last == "docs" else _title(last)
        id_, title = f"{owner}-{last}", f"{_title(owner)} {name}".strip()
        about = f"How {owner or 'this project'} is used and how it works: {content}."
    return Proposal(
        id=_make_id(id_),
        title=title,
        introduction=about,
        subjects=inside,
        ignore=tuple(ignore),
        layout=layout,
        pages=paths,
    )


def _keep_beside_readme(paths: Sequence[str]) -> list[str]:
    """Return patterns that keep the kinds of pages in the root, and single others."""
    inner = [f"!/{escape(path)}" for path in paths if "/" in path]
    kinds = _list_kinds([path for path in paths if "/" not in path])
    return ["*", *(["!*/"] if inner else []), *(f"!/{kind}" for kind in kinds), *inner]


def _split_hidden(patterns: Mapping[str, str]) -> list[dict[str, str]]:
    """Return pages with their patterns by hidden directory, or together if some are in none.

    Only in a topic of its own are the pages of a hidden directory listed.
    """
    parts: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path, pattern in patterns.items():
        parts[_find_hidden(path)][path] = pattern
    is_split = "" not in parts and len(parts) <= _MOST_TOPICS
    return [*parts.values()] if is_split else [dict(patterns)]


def _name_rule(rule: str, patterns: Mapping[str, str]) -> Proposal:
    """Return the topic of the pages that a rule would leave out, with their patterns."""
    paths = list(patterns)
    what = next(each.what for each in RULES if each.name == rule)
    title = f"{what[:1].upper()}{what[1:]}"
    about = f"{title}: {_name_content(_narrow(paths), paths)}."
    place = _narrow(paths)
    is_hidden = "/." in f"/{place}"
    kept = _list_kinds(paths) if is_hidden else sorted({_keep(patterns[p], p) for p in paths})
    return Proposal(
        id=rule,
        title=title,
        introduction=about,
        subjects=place if is_hidden else ".",
        ignore=("*", "!*/", *(f"!{pattern}" for pattern in kept)),
        pages=paths,
    )


def _keep(pattern: str, path: str) -> str:
    """Return the pattern of the pages of one kind that a rule's pattern ignores."""
    kind = _name_kind(path)
    if pattern.endswith("/"):
        return f"{pattern}**/{kind}" if pattern.startswith("/") else f"**/{pattern}**/{kind}"
    # That for names is of any kind of file: `CHANGELOG.*`, `CHANGELOG[._-]*`.
    start = re.fullmatch(r"([^/]+)(?:\.|\[\._-\])\*", pattern)
    return f"{start[1]}{kind}" if start else pattern or kind


def _narrow(paths: Sequence[str]) -> str:
    """Return the innermost directory that holds all pages."""
    common = os.path.commonpath(paths)
    return common.rpartition("/")[0] if common in paths else common


def _name_content(place: str, paths: Sequence[str]) -> str:
    """Return the names on the first level below a place, those with the most pages first."""
    start = len(place) + 1 if place else 0
    names = Counter(_bare(path[start:].split("/")[0]) for path in paths)
    for name in list(names):
        says_nothing = re.fullmatch(r"(?i)index|readme|introduction|summary|\d+", name)
        if len(names) > 1 and says_nothing:
            del names[name]
    ranked = sorted(names, key=lambda name: (-names[name], name))[:_MOST_NAMED]
    more = " and more" if len(names) > _MOST_NAMED else ""
    return ", ".join(filter(None, map(_title, ranked))) + more


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


_ALWAYS_OUT = (".*", "vendor/", "build/", "dist/", "target/", "venv/")
"""What tools may write beside the pages of a whole project."""


def _settle(root: Path, proposal: Proposal, patterns: Mapping[str, str]) -> Proposal:
    """Return a topic with patterns that ignore all but its pages, and the pages that it lists.

    `patterns` are those of the rules for other pages.
    """
    place = "" if proposal.subjects == "." else f"{proposal.subjects}/"
    kept = {path.removeprefix(place) for path in proposal.pages}
    known = {
        path.removeprefix(place): re.sub(rf"^/{re.escape(place)}", "/", pattern)
        for path, pattern in patterns.items()
        if path.startswith(place)
    }
    directory = Path(os.path.realpath(root / proposal.subjects))
    ignore = proposal.ignore
    for _ in range(3):  # a pattern can uncover what another one hid
        topic = Topic(id="proposed", root=directory, ignore=ignore, layout=proposal.layout)
        opened = OpenTopic(topic, DirectoryCatalog(topic))
        found = {subject.path for subject in opened.listing.subjects}
        surplus = {s.path for s in opened.listing.skipped if s.path and s.reason != NO_SKILL}
        surplus |= found if proposal.layout is Layout.FILES else set()
        new = list(_find_patterns(sorted(surplus - kept), kept, known, is_first=not ignore))
        if not new:
            break
        ignore += tuple(line for line in dict.fromkeys(new) if line not in ignore)
    listed = list_topic(opened)
    totals = len(listed.visible), listed.tokens
    pages = {place + path for path in found & kept}
    return replace(proposal, ignore=ignore, totals=totals, pages=pages)


def _find_patterns(
    surplus: Sequence[str], kept: Collection[str], known: Mapping[str, str], *, is_first: bool
) -> Iterator[str]:
    """Yield patterns that ignore files and none of those that are kept.

    Beside files of other kinds, the first ones are for the kinds of those that are kept.
    """
    kinds = _list_kinds(kept)
    if is_first and any(_name_kind(path) not in kinds for path in surplus):
        yield from ("*", "!*/", *(f"!{kind}" for kind in kinds))
        surplus = [path for path in surplus if _name_kind(path) in kinds]
    places = {f"{place}/" for path in kept for place in list_parents(path)}
    names = {name for path in kept for name in path.split("/")}
    hides = {"/": True}
    for pattern in {".*", *filter(None, map(known.get, surplus))}:
        ignores = IgnoreRules([("", [pattern])]).ignores
        hides[pattern] = any(map(ignores, (*kept, *places)))
    closed: set[str] = set()
    for path in sorted(surplus, key=lambda path: bool(known.get(path))):
        parents = list(list_parents(path))
        if closed.intersection(parents):
            continue
        empty = next((place for place in parents if f"{place}/" not in places), None)
        pattern = known.get(path) or (".*" if "/." in f"/{path}" else "/")
        name = path.rpartition("/")[2]
        if not hides[pattern] and not (empty and pattern.startswith("/")):
            yield pattern
        elif empty:
            closed.add(empty)
            yield f"/{escape(empty)}/"
        else:
            yield f"/{escape(path)}" if name in names else escape(name)


def _list_kinds(paths: Collection[str]) -> list[str]:
    return sorted(set(map(_name_kind, paths)))


def _name_kind(path: str) -> str:
    """Return the pattern of the files with a page's extension, or its name if it has none."""
    name = path.rpartition("/")[2]
    return f"*{escape(Path(name).suffix)}" if find_extension(name) else escape(name)


# The configuration


def render_workspace(proposals: Sequence[Proposal]) -> str:
    """Return a workspace's first configuration, with comments on other settings."""
    text = WORKSPACE
    for proposal in proposals:
        text = define_topic(text, proposal.id, proposal.fields)
    return text


WORKSPACE = """\
# The knowledge that models can learn in this directory and below it.
#
#   llm kb list                      what there is
#   llm kb prompt                    what a model sees
#   llm -T learn "your question"     let it read what it needs

[kb]
# menu = "subjects"        # list every subject with a summary, not the topics alone
# menu_budget = 1200       # tokens the menu may take
# auto = true              # as if every prompt had -T learn; counts after `llm kb trust`

# A topic is a directory of text files. More about one:
#   description = "Shown when it is listed, and above what is pre-loaded of it."
#   learned = ["code-quality", "maintainers/*"]     # in every section that is sent
#   disabled = ["drafts/**"]                        # never shown to a model
#   ignore = ["*.log"]                              # no subjects, as in .gitignore
"""
