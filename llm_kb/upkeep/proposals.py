"""Propose topics for the knowledge that a directory holds already."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from llm_kb.config.keys import TOPIC_ID
from llm_kb.files.directory import NO_SKILL, DirectoryCatalog
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.subjects.names import is_readable
from llm_kb.subjects.selection import Selection
from llm_kb.subjects.topics import Layout, Topic
from llm_kb.upkeep.check import PROSE
from llm_kb.upkeep.subject_list import Totals, list_topic

_NOTHING = Totals(subjects=0, size=0, tokens=0, changed=None)


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
    totals: Totals = _NOTHING
    is_likely: bool = True
    """Whether it is written unless somebody chooses otherwise."""

    @property
    def place(self) -> str:
        """Its directory, or the files that are chosen from the workspace itself."""
        kept = [line[2:] for line in self.ignore if line.startswith("!/") and line[-1] != "/"]
        return ", ".join(kept) if self.subjects == "." and kept else self.subjects


_GUIDE_NAMES = (
    *("readme", "agents", "claude", "gemini", "contributing"),
    *("architecture", "design", "development", "hacking"),
)
_GUIDE = re.compile(rf"({'|'.join(_GUIDE_NAMES)})(\.(?:md|rst|adoc|txt|org))?", re.IGNORECASE)
_PAGE = re.compile(r"[^.].*\.(?:md|markdown|rst|adoc)", re.IGNORECASE)
_FORMALITY = re.compile(
    r"(change.?log|changes|release.?notes|releases|news|history|licen[cs]e|copying|notices?"
    r"|third.party.notices?|authors|contributors|maintainers|credits|thanks|sponsors|backers"
    r"|code.of.conduct|security|support|funding|readme|todo)([._-].*)?",
    re.IGNORECASE,
)
"""Names of pages beside the README that say little about how the project works."""
_DOT_GUIDES = {
    ".cursorrules": "Cursor",
    ".windsurfrules": "Windsurf",
    ".clinerules": "Cline",
}
"""Guides that are hidden where they lie, so the description has to name them."""

_TOOL_DIRECTORIES = {
    ".claude": ("Claude", ("CLAUDE.md", "commands/", "agents/", "rules/")),
    ".cursor": ("Cursor", ("rules/",)),
    ".github": (
        "GitHub",
        ("CONTRIBUTING.md", "copilot-instructions.md", "instructions/", "prompts/"),
    ),
}
"""Directories of tools, which of their entries are knowledge, and what the tool is called."""

_DOCUMENTATION = ("docs", "doc", "documentation", "Documentation")
_NOTES = ("wiki", "notes", "guides")
_PACKAGES = ("packages", "apps", "libs", "crates", "modules", "services")
_RECORDS = (
    *("docs/adr", "docs/adrs", "docs/decisions", "docs/architecture/decisions"),
    *("doc/adr", "doc/adrs", "doc/decisions", "doc/architecture/decisions"),
    *("adr", "adrs", "decisions"),
)
_SKILLS = (".agents/skills", ".claude/skills", ".github/skills", ".cursor/skills", "skills")

_SPHINX_PARTS = ("_static/", "_templates/", "conf.py")
_SPHINX_TOOLS = ("Makefile", "make.bat", "requirements.txt")
_TOOL_FILES = frozenset(
    {
        *("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "tsconfig.json"),
        *("Gemfile", "Gemfile.lock", "go.sum", "uv.lock", "poetry.lock"),
    }
)
_WHOLE = ("project", "kb", "general")
"""Ids for the whole of `kb`; the first that none of its directories has is taken."""
_SPECIAL = re.compile(r"[\\*?\[\]]|\s\Z")
"""Characters that stand for themselves in a pattern only after a backslash."""
_BUILT = frozenset({"build", "dist", "target", "vendor", "venv", "node_modules", "site-packages"})
_MOST_LOOKED_AT = 5000
"""Files of a directory that are looked at, more or less, so that a proposal comes at once."""
_MOST_READMES = 30
_MOST_PAGES = 20
_README_DEPTH = 3
_MOST_SKIPPED = 20


def propose_topics(root: Path) -> list[Proposal]:
    """Return a topic for each place where people keep knowledge, the likely ones first."""
    found = [
        *_propose_knowledge(root),
        *_propose_guides(root),
        *_propose_documentation(root),
        *_propose_records(root),
        *_propose_skills(root),
        *_propose_tool_directories(root),
        *_propose_packages(root),
        *_propose_readmes(root),
    ]
    proposals: dict[str, Proposal] = {}
    for proposal in found:
        settled = _settle(root, proposal)
        if settled.totals.subjects:
            id_ = _find_free_id(proposal.id, proposals)
            proposals[id_] = replace(settled, id=id_)
    return sorted(proposals.values(), key=lambda proposal: not proposal.is_likely)


def measure(directory: Path, layout: Layout, ignore: tuple[str, ...] = ()) -> Totals:
    """Return the number and size of the subjects that a directory would list as a topic."""
    topic = _make_topic(directory, layout, ignore)
    opened = OpenTopic(
        topic=topic, catalog=DirectoryCatalog(topic), learned=Selection(), known=Selection()
    )
    return list_topic(opened).totals


def find_layout(directory: Path) -> Layout:
    """Return the layout of a directory: skills if there is a SKILL.md in one that it holds."""
    skills = any((directory / name / SKILL_FILE).is_file() for name in _list_directories(directory))
    return Layout.SKILLS if skills else Layout.FILES


def find_passed_over(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place that would be a topic but for its content, with the reason."""
    below = [f"kb/{name}" for name in _list_directories(root / "kb")]
    places = (*(below or ["kb"]), *_DOCUMENTATION, *_NOTES, *_RECORDS, *_SKILLS)
    seen: set[str] = set()
    for place in dict.fromkeys(places):
        real = os.path.realpath(root / place)
        if not (root / place).is_dir() or real in seen:
            continue
        seen.add(real)
        if not _is_inside(root, place):
            yield place, "leads out of this directory"
        elif not _holds_text(root / place):
            yield place, "holds no text yet"
        elif place in _SKILLS and find_layout(root / place) is not Layout.SKILLS:
            yield place, f"holds no directory with a {SKILL_FILE}"


def _make_topic(directory: Path, layout: Layout, ignore: tuple[str, ...]) -> Topic:
    root = Path(os.path.realpath(directory))
    return Topic(id="proposed", root=root, ignore=ignore, layout=layout)


def _settle(root: Path, proposal: Proposal) -> Proposal:
    """Return a proposal that also ignores the files that `check` would report."""
    topic = _make_topic(root / proposal.subjects, proposal.layout, proposal.ignore)
    listing = DirectoryCatalog(topic).list_subjects()
    skipped = [s.path for s in listing.skipped if s.path and s.reason != NO_SKILL]
    slugs = Counter(subject.slug for subject in listing.subjects)
    # Beside a page of the same name, or one another: `install.json` and `install.tsx`.
    code = [s.path for s in listing.subjects if slugs[s.slug] > 1 and s.extension not in PROSE]
    left_out = [*skipped[:_MOST_SKIPPED], *code[:_MOST_SKIPPED]]
    lines = (f"/{_escape(path)}" for path in left_out if path.isprintable())
    ignore = (*proposal.ignore, *lines)
    return replace(proposal, ignore=ignore, totals=measure(topic.root, proposal.layout, ignore))


def _find_free_id(id_: str, taken: Collection[str]) -> str:
    numbered = (f"{id_}-{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in (id_, *numbered) if candidate not in taken)


def _propose_knowledge(root: Path) -> Iterator[Proposal]:
    """Propose each directory in `kb`, and `kb` itself for the files in none of them."""
    places = [name for name in _list_directories(root / "kb") if _is_topic(root, f"kb/{name}")]
    names = [name for name in places if TOPIC_ID.fullmatch(name)]
    for name in names:
        ignore = _find_no_text(root / "kb" / name)
        yield _propose_directory(name, f"kb/{name}", ignore)
    # A directory whose name cannot be an id is not a topic, but its files are subjects of `kb`.
    has_rest = names != places or _has_text(_list_files(root / "kb"))
    if _is_inside(root, "kb") and has_rest:
        id_ = next((id_ for id_ in _WHOLE if id_ not in names), _WHOLE[-1])
        ignore = (*(f"/{name}/" for name in names), *_find_no_text(root / "kb", set(names)))
        yield _propose_directory(id_, "kb", ignore)


def _propose_directory(id_: str, place: str, ignore: tuple[str, ...]) -> Proposal:
    return Proposal(
        id=id_,
        title=_title(id_),
        introduction=f"What to know about {_title(id_).lower()}.",
        subjects=place,
        ignore=ignore,
    )


def _propose_guides(root: Path) -> Iterator[Proposal]:
    """Propose one topic for the README, the guides for contributors and agents, and other pages."""
    files = _list_files(root)
    names = [name for name in files if _GUIDE.fullmatch(name)]
    # Of README.md and README.rst one is enough: they would share a slug.
    first = {name.partition(".")[0].lower(): name for name in sorted(names, reverse=True)}
    ordered = [first[stem] for stem in _GUIDE_NAMES if stem in first]
    pages = [name for name in files if _PAGE.fullmatch(name) and name not in names]
    ordered += [name for name in pages if not _FORMALITY.fullmatch(Path(name).stem)][:_MOST_PAGES]
    guides = dict.fromkeys(g for g in (_resolve_guide(root, name) for name in ordered) if g)
    hidden = [name for name in _DOT_GUIDES if (root / name).is_file()]
    if not guides:
        return
    kept = [PurePath(name) for name in hidden]
    yield Proposal(
        id="overview",
        title="Overview",
        introduction="What this project is, and the rules for changing it.",
        subjects=".",
        description=" ".join(
            f"The rules for {_DOT_GUIDES[name]} are in the subject `{name[1:]}`." for name in hidden
        ),
        ignore=_keep_only([*guides, *kept]),
    )


def _resolve_guide(root: Path, name: str) -> PurePath | None:
    """Return the file that a guide is, below the root: a link to it would not be a subject."""
    path, top = Path(os.path.realpath(root / name)), os.path.realpath(root)
    guide = path.relative_to(top) if path.is_relative_to(top) else None
    # A hidden file is not listed, under whatever name.
    if guide is None or any(part.startswith(".") for part in guide.parts):
        return None
    return guide if path.is_file() else None


def _keep_only(paths: Iterable[PurePath]) -> tuple[str, ...]:
    """Return the patterns that ignore everything but some files."""
    lines = ["/*"]
    for path in paths:
        for directory in reversed(path.parents[:-1]):
            place = _escape(directory.as_posix())
            lines += [f"!/{place}/", f"/{place}/*"]
        lines.append(f"!/{_escape(path.as_posix())}")
    return tuple(dict.fromkeys(lines))


def _escape(path: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", path)


def _propose_documentation(root: Path) -> Iterator[Proposal]:
    seen: set[str] = set()
    for place in (*_DOCUMENTATION, *_NOTES):
        real = os.path.realpath(root / place)
        inside = [r.partition("/")[2] for r in _RECORDS if r.startswith(f"{place}/")]
        records = [name for name in inside if (root / place / name).is_dir()]
        if real in seen or not _is_topic(root, place, [r for r in records if "/" not in r]):
            continue
        seen.add(real)
        is_documentation = place in _DOCUMENTATION
        yield Proposal(
            id="docs" if is_documentation else place,
            title="Documentation" if is_documentation else _title(place),
            introduction=(
                "How this project is used and how it works."
                if is_documentation
                else f"The {place} of this project."
            ),
            subjects=place,
            ignore=(*(f"/{name}/" for name in records), *_find_ignored(root / place)),
        )


def _propose_records(root: Path) -> Iterator[Proposal]:
    for place in _RECORDS:
        if _is_topic(root, place):
            yield Proposal(
                id="decisions",
                title="Architecture Decisions",
                introduction="What was decided, and why.",
                subjects=place,
                ignore=_find_ignored(root / place),
            )


def _propose_skills(root: Path) -> Iterator[Proposal]:
    seen: set[str] = set()
    for place in _SKILLS:
        real = os.path.realpath(root / place)
        is_new = real not in seen  # they are often links to one another
        if not (is_new and _is_inside(root, place)) or find_layout(root / place) is Layout.FILES:
            continue
        owner = Path(place).parent.name.lstrip(".")
        yield Proposal(
            id="skills" if not seen else f"{owner or 'project'}-skills",
            title="Skills",
            introduction="Step-by-step instructions for particular tasks.",
            subjects=place,
            layout=Layout.SKILLS,
        )
        seen.add(real)


def _propose_tool_directories(root: Path) -> Iterator[Proposal]:
    """Propose the rules and commands that people wrote for coding agents, by tool."""
    for place, (tool, entries) in _TOOL_DIRECTORIES.items():
        if not _is_inside(root, place):
            continue
        there = [name for name in entries if _is_file_or_holds_text(root / place / name)]
        if there:
            yield Proposal(
                id=place[1:],
                title=f"For {tool}",
                introduction=f"Rules and instructions that were written for {tool}.",
                subjects=place,
                ignore=("/*", *(f"!/{name}" for name in there)),
            )


def _is_file_or_holds_text(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and _holds_text(path))


def _propose_packages(root: Path) -> Iterator[Proposal]:
    """Propose the documentation of each package of a repository with several."""
    for parent in _PACKAGES:
        for name in _list_directories(root / parent):
            place = f"{parent}/{name}/docs"
            if TOPIC_ID.fullmatch(name) and _is_topic(root, place):
                yield Proposal(
                    id=f"{name}-docs",
                    title=f"{_title(name)} Documentation",
                    introduction=f"How {name} is used and how it works.",
                    subjects=place,
                    ignore=_find_ignored(root / place),
                )


def _propose_readmes(root: Path) -> Iterator[Proposal]:
    """Propose the README files of directories, of which there may be many."""
    found = []
    for parent, directories, names in _walk(root):
        is_near = len(parent.relative_to(root).parts) < _README_DEPTH
        skipped = _BUILT if parent != root else {*_BUILT, "kb", *_DOCUMENTATION, *_NOTES, *_SKILLS}
        directories[:] = [name for name in directories if is_near and name.lower() not in skipped]
        found += [parent / n for n in names if n.lower() in {"readme.md", "readme.rst"}]
    readmes = sorted(path.relative_to(root) for path in found if path.parent != root)
    if readmes:
        yield Proposal(
            id="readmes",
            title="Directories",
            introduction="What the directories of this project hold.",
            subjects=".",
            ignore=_keep_only(readmes[:_MOST_READMES]),
            is_likely=False,
        )


def _find_ignored(directory: Path) -> tuple[str, ...]:
    """Return patterns for the files that tools keep in a documentation."""
    return (*_find_sphinx(directory), *_find_tool_files(directory), *_find_no_text(directory))


def _find_tool_files(directory: Path) -> Iterator[str]:
    """Yield patterns for hidden entries, which are settings, and for files of package managers."""
    found: set[str] = set()
    has_hidden = False
    for parent, directories, names in _walk(directory):
        # `_walk` leaves out hidden directories, so they are looked for here.
        has_hidden = has_hidden or any(parent.glob(".*"))
        directories[:] = [name for name in directories if name not in _BUILT]
        found |= _TOOL_FILES.intersection(names)
    yield from sorted(found)
    if has_hidden:
        yield ".*"


def _find_sphinx(docs: Path) -> Iterator[str]:
    """Yield patterns for what Sphinx keeps beside the texts, and will build there."""
    for source, built in (("", "_build/"), ("source/", "build/")):
        if (docs / source / "conf.py").is_file():
            yield f"/{built}"
            found = (name for name in _SPHINX_PARTS if (docs / source / name).exists())
            yield from (f"/{source}{name}" for name in found)
            yield from (f"/{name}" for name in _SPHINX_TOOLS if (docs / name).is_file())
            return


def _find_no_text(directory: Path, besides: Collection[str] = ()) -> tuple[str, ...]:
    """Return a pattern for each kind of file in a directory that is not text."""
    suffixes = {Path(name).suffix for names in _iter_names(directory, besides) for name in names}
    return tuple(f"*{suffix}" for suffix in sorted(suffixes) if suffix and not _is_text(suffix))


def _holds_text(directory: Path, besides: Collection[str] = ()) -> bool:
    return any(map(_has_text, _iter_names(directory, besides)))


def _has_text(names: Iterable[str]) -> bool:
    """Tell whether one of some file names may be the name of a text."""
    return any(map(_is_text, names))


def _is_text(name: str) -> bool:
    """Tell whether a file may be there to be read, by the end of its name."""
    suffix = Path(name).suffix or name
    return is_readable(f"a{suffix}") and suffix.lower() != ".css"


def _iter_names(directory: Path, besides: Collection[str] = ()) -> Iterator[list[str]]:
    """Yield the names of the files that are not hidden, directory by directory.

    Links to directories count as files, as they are not followed.
    """
    for parent, directories, names in _walk(directory):
        if parent == directory:
            directories[:] = [name for name in directories if name not in besides]
        links = [name for name in directories if (parent / name).is_symlink()]
        yield [*links, *names]


def _walk(directory: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield what `os.walk` does, without hidden entries and up to a bound."""
    looked_at = 0
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith((".", "_")))
        yield Path(parent), directories, [name for name in names if not name.startswith(".")]
        looked_at += len(names) + len(directories)
        if looked_at > _MOST_LOOKED_AT:
            return


def _is_topic(root: Path, place: str, besides: Collection[str] = ()) -> bool:
    """Tell whether a place is a directory inside the root that has something to learn."""
    return _is_inside(root, place) and _holds_text(root / place, besides)


def _is_inside(root: Path, place: str) -> bool:
    """Tell whether a directory exists and, links resolved, lies inside the root."""
    path = root / place
    return path.is_dir() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _list_directories(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    except OSError:
        return []


def _list_files(directory: Path) -> Sequence[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(e.name for e in entries if e.is_file() and not e.name.startswith("."))
    except OSError:
        return []


def _title(id_: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in id_.replace("_", "-").split("-"))
