"""Proposes topics for the knowledge that is already in a directory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from llm_kb.config.keys import TOPIC_ID
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.subjects.topics import Layout
from llm_kb.upkeep.guides import (
    FORMALITY,
    propose_changes,
    propose_guides,
    propose_tool_directories,
)
from llm_kb.upkeep.places import (
    count_pages,
    escape,
    find_built,
    find_ignored,
    find_names,
    has_pages,
    has_text,
    ignore_suffixes,
    is_inside,
    keep_only,
    leave_out_links,
    list_directories,
    walk,
)
from llm_kb.upkeep.proposal import Proposal, find_layout, leave_out_built, settle

_DOCUMENTATION = ("docs", "doc", "documentation", "Documentation")
_SITES = ("site", "website", "www")
"""Directories of a project's site, whose pages are the documentation of the project."""
_NOTES = {
    "wiki": ("Wiki", "The wiki of this project."),
    "notes": ("Notes", "The notes of this project."),
    "guides": ("Guides", "The guides of this project."),
    "man": ("Manual Pages", "The commands of this project, with all their options."),
}
_RECORDS = (
    *("docs/adr", "docs/adrs", "docs/decisions", "docs/architecture/decisions"),
    *("doc/adr", "doc/adrs", "doc/decisions", "doc/architecture/decisions"),
    *("adr", "adrs", "decisions"),
)
_SKILLS = (".agents/skills", ".claude/skills", ".github/skills", ".cursor/skills", "skills")

_WHOLE = ("project", "kb", "general")
"""Possible ids for the whole of `kb`; the first that none of its directories has is used."""
_BUILT = frozenset({"build", "dist", "target", "vendor", "venv", "node_modules", "site-packages"})
_TESTS = frozenset(
    {"test", "tests", "testing", "testdata", "test-data", "test_data", "fixture", "fixtures"}
)
_NOT_PARTS = (
    _BUILT
    | _TESTS
    | {
        *("example", "examples", "demo", "demos", "playground"),
        *("benchmark", "benchmarks", "third_party", "external", "kb", "src"),
    }
)
"""Directories whose documentation is not about the project."""
_MOST_PAGE_TOPICS = 6
_MOST_READMES = 30
_README_DEPTH = 3
_MOST_PARTS = 200


def propose_topics(root: Path) -> list[Proposal]:
    """Return a topic for each place where people keep knowledge, the likely ones first."""
    built = _find_built(root)
    found = [
        *_propose_knowledge(root),
        *propose_guides(root),
        *_propose_documents(root),
        *_propose_pages(root, built),
        *_propose_skills(root),
        *propose_tool_directories(root),
        *_propose_readmes(root),
        *propose_changes(root),
    ]
    proposals: dict[str, Proposal] = {}
    for proposal in leave_out_built(found, built):
        settled = settle(root, proposal)
        if settled.totals.subjects:
            id_ = _find_free_id(proposal.id, proposals)
            proposals[id_] = replace(settled, id=id_)
    return sorted(proposals.values(), key=lambda proposal: not proposal.is_likely)


def _find_built(root: Path) -> frozenset[str]:
    """Return the directories of books that were built from pages beside them."""
    places = (".", *_DOCUMENTATION, *(path.name for path in _list_parts(root)))
    return frozenset(filter(None, (find_built(root, place) for place in places)))


def find_passed_over(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place whose content prevents a proposal, with the reason."""
    below = [f"kb/{path.name}" for path in list_directories(root / "kb")]
    places = (*(below or ["kb"]), *_DOCUMENTATION, *_NOTES, *_RECORDS, *_SKILLS)
    for place in leave_out_links(root, places):
        if not (root / place).is_dir():
            continue
        if not is_inside(root, place):
            yield place, "leads out of this directory"
        elif not has_text(root / place):
            yield place, "has no text yet"
        elif place in _DOCUMENTATION and not has_pages(root / place):
            yield place, "holds code alone"
        elif place in _SKILLS and find_layout(root / place) is not Layout.SKILLS:
            yield place, f"has no directory with a {SKILL_FILE}"


def _find_free_id(id_: str, taken: Collection[str]) -> str:
    numbered = (f"{id_}-{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in (id_, *numbered) if candidate not in taken)


def _propose_knowledge(root: Path) -> Iterator[Proposal]:
    """Propose each directory in `kb`, and `kb` itself for its other files."""
    kb = root / "kb"
    if not is_inside(root, "kb"):
        return
    names = [
        path.name
        for path in list_directories(kb)
        # A directory whose name cannot be an id is not a topic, but its files are subjects of `kb`.
        if TOPIC_ID.fullmatch(path.name) and is_inside(root, f"kb/{path.name}") and has_text(path)
    ]
    whole = next((id_ for id_ in _WHOLE if id_ not in names), _WHOLE[-1])
    for id_, place in (*((name, f"kb/{name}") for name in names), (whole, "kb")):
        inner = names if place == "kb" else []
        yield Proposal(
            id=id_,
            title=_title(id_),
            introduction=f"What to know about {_title(id_).lower()}.",
            subjects=place,
            ignore=(
                *(f"/{name}/" for name in inner),
                *ignore_suffixes(find_names(root / place, inner)),
            ),
        )


def _propose_documents(root: Path) -> Iterator[Proposal]:
    """Propose directories of documentation, notes and decisions, and those of packages."""
    texts = {**_name_documentation(root), **{place: (place, *_NOTES[place]) for place in _NOTES}}
    decisions = ("decisions", "Architecture Decisions", "What was decided, and why.")
    texts |= dict.fromkeys(_RECORDS, decisions)
    for place in leave_out_links(root, texts):
        if not is_inside(root, place) or not has_pages(root / place):
            continue
        id_, title, introduction = texts[place]
        records = [record for record in _RECORDS if record.startswith(f"{place}/")]
        apart = [f"{r.removeprefix(place)}/" for r in records if (root / r).is_dir()]
        ignore = (*apart, *find_ignored(root / place))
        yield Proposal(
            id=id_, title=title, introduction=introduction, subjects=place, ignore=ignore
        )


def _name_documentation(root: Path) -> dict[str, tuple[str, str, str]]:
    """Return id, title and introduction for each possible place of documentation."""
    how = "How {} is used and how it works."
    whole = ("docs", "Documentation", how.format("this project"))
    texts = dict.fromkeys(_DOCUMENTATION, whole)
    for part in _list_parts(root):
        if part.name in _SITES:
            texts |= {f"{part.name}/{name}": whole for name in ("content", *_DOCUMENTATION)}
        else:
            for path in (part, *_list_parts(part)):
                place, name = path.relative_to(root).as_posix(), path.name
                title = f"{_title(name)} Documentation"
                own = (f"{name}-docs", title, how.format(name))
                if TOPIC_ID.fullmatch(name):
                    texts |= {f"{place}/{docs}": own for docs in (*_DOCUMENTATION, "src/docs")}
    return texts


def _propose_pages(root: Path, built: Collection[str]) -> Iterator[Proposal]:
    """Propose other directories that have little but pages; many of them as one topic."""
    places = (place for place in _name_documentation(root) if is_inside(root, place))
    taken = {*(place.partition("/")[0] for place in places), *_RECORDS, *built}
    counts = {
        path.name: count_pages(path)
        for path in (*_list_parts(root), root / "src")
        if path.name not in taken and not FORMALITY.fullmatch(path.name)
    }
    names = [name for name in counts if counts[name] and _is_own(root, name)]
    if len(names) > _MOST_PAGE_TOPICS:
        others = (path.name for path in list_directories(root) if path.name not in names)
        yield Proposal(
            id="pages",
            title="Pages",
            introduction=f"Pages about {', '.join(names[:_MOST_PAGE_TOPICS])} and more.",
            subjects=".",
            ignore=(
                *("/*", "!/*/"),
                *(f"/{escape(name)}/" for name in others),
                *find_ignored(root),
            ),
        )
        return
    for name in names:
        is_book = name == "src"
        yield Proposal(
            id="pages" if is_book else name,
            title="Pages" if is_book else _title(name),
            introduction=f"The pages in {name}.",
            subjects=name,
            ignore=tuple(find_ignored(root / name)),
            is_likely=counts[name] > 1,
        )


def _is_own(root: Path, name: str) -> bool:
    return bool(TOPIC_ID.fullmatch(name)) and is_inside(root, name)


def _list_parts(directory: Path) -> list[Path]:
    """Return the directories of a project that may have documentation of their own."""
    passed_over = {*_NOT_PARTS, *_DOCUMENTATION, *_NOTES, "skills"}
    parts = [path for path in list_directories(directory) if path.name not in passed_over]
    return parts[:_MOST_PARTS]


def _propose_skills(root: Path) -> Iterator[Proposal]:
    """Propose directories of skills; the first one has their title, others name their tool."""
    seen: set[str] = set()
    for place in leave_out_links(root, _SKILLS):
        if not is_inside(root, place) or find_layout(root / place) is not Layout.SKILLS:
            continue
        names = {path.name for path in list_directories(root / place)}
        tool = Path(place).parent.name.lstrip(".") or "project"
        yield Proposal(
            id=f"{tool}-skills" if seen else "skills",
            title=f"Skills ({_title(tool)})" if seen else "Skills",
            introduction="Step-by-step instructions for particular tasks.",
            subjects=place,
            layout=Layout.SKILLS,
            is_likely=not names <= seen,  # the same skills once more, for another tool
        )
        seen |= names


def _propose_readmes(root: Path) -> Iterator[Proposal]:
    """Propose the README files of directories."""
    found: list[Path] = []
    guides = {os.path.realpath(path) for path in root.glob("[!.]*") if path.is_file()}
    for parent, directories, names in walk(root):
        depth = len(parent.relative_to(root).parts)
        paths = [parent / n for n in names if depth and n.lower() in {"readme.md", "readme.rst"}]
        found += [path for path in paths if os.path.realpath(path) not in guides]
        skipped = _BUILT if depth else {*_BUILT, "kb", *_DOCUMENTATION, *_NOTES, *_SKILLS}
        # The README of tests describes them; those below it are their input.
        is_near = depth < _README_DEPTH and parent.name.lower() not in _TESTS
        directories[:] = [name for name in directories if is_near and name.lower() not in skipped]
    if found:
        readmes = sorted(path.relative_to(root) for path in found)
        yield Proposal(
            id="readmes",
            title="Directories",
            introduction="What the directories of this project hold.",
            subjects=".",
            ignore=keep_only(readmes[:_MOST_READMES]),
            is_likely=False,
        )


def _title(id_: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in id_.replace("_", "-").split("-"))
