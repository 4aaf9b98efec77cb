"""Propose topics for the knowledge that a directory holds already."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from llm_kb.config.keys import TOPIC_ID
from llm_kb.files.directory import NO_SKILL, DirectoryCatalog
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.subjects.editions import find_translations
from llm_kb.subjects.selection import Selection
from llm_kb.subjects.topics import SNIFFED_BYTES, Layout, Skipped, Subject, Topic, is_binary
from llm_kb.upkeep.check import PROSE
from llm_kb.upkeep.places import (
    SITE_PARTS,
    SPHINX_PARTS,
    SPHINX_TOOLS,
    count_pages,
    find_names,
    has_pages,
    has_text,
    is_inside,
    is_text,
    leave_out_links,
    list_directories,
    walk,
)
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
    left_out: tuple[Skipped, ...] = ()
    """Files that no topic can hold, which it therefore ignores."""

    @property
    def place(self) -> str:
        """Its directory, or the files that are chosen from the workspace itself."""
        kept = [line[2:] for line in self.ignore if line.startswith("!/") and line[-1] != "/"]
        return ", ".join(kept) if self.subjects == "." and kept else self.subjects


_GUIDE_NAMES = (
    *("readme", "agents", "claude", "gemini", "contributing"),
    *("architecture", "design", "development", "hacking"),
)
_GUIDE = re.compile(
    rf"({'|'.join(_GUIDE_NAMES)})(\.(?:md|markdown|mdx|rst|adoc|txt|org))?", re.IGNORECASE
)
_PAGE = re.compile(r"[^.].*\.(?:md|markdown|mdx|rst|adoc)", re.IGNORECASE)
_FORMALITY = re.compile(
    r"(change.?log|changes|release.?notes|releases|news|history|licen[cs]e|copying|notices?"
    r"|third.party.notices?|authors|contributors|maintainers|credits|thanks|sponsors|backers"
    r"|conduct|code.of.conduct|security|support|funding|todo)([._-].*)?"
    r"|readme([._-][a-z]{2}([._-][a-z]+)?)?",
    re.IGNORECASE,
)
"""Names of pages that say little about how the project works, and of translated READMEs."""
_DOT_GUIDES = {".cursorrules": "Cursor", ".windsurfrules": "Windsurf", ".clinerules": "Cline"}
"""Hidden guides: no listing names them, so the description of their topic does."""

_TOOL_DIRECTORIES = {
    ".claude": ("Claude", ("claude.md", "commands", "agents", "rules")),
    ".cursor": ("Cursor", ("rules",)),
    ".github": (
        "GitHub",
        (
            *("contributing.md", "contributing.markdown", "contributing.rst"),
            *("copilot-instructions.md", "instructions", "prompts"),
        ),
    ),
}
"""Directories of tools: what the tool is called, and which of their entries are knowledge.

The entries are in lower case, whatever case they have on disk.
"""

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

_TOOL_FILES = frozenset(
    {
        *("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "tsconfig.json"),
        *("Gemfile", "Gemfile.lock", "go.sum", "uv.lock", "poetry.lock"),
    }
)
_WHOLE = ("project", "kb", "general")
"""Ids for the whole of `kb`; the first that none of its directories has is taken."""
_SPECIAL = re.compile(r"(\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[nrt])?)|[*?\[\]]|\s\Z")
"""What a pattern cannot hold as it is, the codes of `printable` first."""
_BUILT = frozenset({"build", "dist", "target", "vendor", "venv", "node_modules", "site-packages"})
_NOT_PARTS = _BUILT | {
    *("test", "tests", "testing", "fixtures", "example", "examples", "demo", "demos", "playground"),
    *("benchmark", "benchmarks", "third_party", "external", "kb", "src"),
}
"""Directories whose own documentation is not about the project."""
_MOST_READMES = 30
_MOST_PAGES = 20
_MOST_PAGE_TOPICS = 6
_README_DEPTH = 3
_MOST_SKIPPED = 20
_MOST_PARTS = 200


FIRST_TOPIC = Proposal(
    id="project",
    title="Project",
    introduction="How we work on this project, and why.",
    subjects="kb/project",
)
"""What is proposed where there is nothing yet; its directory is to be made."""


def propose_topics(root: Path) -> list[Proposal]:
    """Return a topic for each place where people keep knowledge, the likely ones first."""
    found = [
        *_propose_knowledge(root),
        *_propose_guides(root),
        *_propose_documents(root),
        *_propose_pages(root),
        *_propose_skills(root),
        *_propose_tool_directories(root),
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
    is_skills = any((path / SKILL_FILE).is_file() for path in list_directories(directory))
    return Layout.SKILLS if is_skills else Layout.FILES


def find_passed_over(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place that would be a topic but for its content, with the reason."""
    below = [f"kb/{path.name}" for path in list_directories(root / "kb")]
    places = (*(below or ["kb"]), *_DOCUMENTATION, *_NOTES, *_RECORDS, *_SKILLS)
    for place in leave_out_links(root, places):
        if not (root / place).is_dir():
            continue
        if not is_inside(root, place):
            yield place, "leads out of this directory"
        elif not has_text(root / place):
            yield place, "holds no text yet"
        elif place in _DOCUMENTATION and not has_pages(root / place):
            yield place, "holds code alone"
        elif place in _SKILLS and find_layout(root / place) is not Layout.SKILLS:
            yield place, f"holds no directory with a {SKILL_FILE}"


def _make_topic(directory: Path, layout: Layout, ignore: tuple[str, ...]) -> Topic:
    root = Path(os.path.realpath(directory))
    return Topic(id="proposed", root=root, ignore=ignore, layout=layout)


def _settle(root: Path, proposal: Proposal) -> Proposal:
    """Return a proposal that also ignores the files that `check` would report."""
    topic = _make_topic(root / proposal.subjects, proposal.layout, proposal.ignore)
    listing = DirectoryCatalog(topic).list_subjects()
    skipped = [s for s in listing.skipped if s.path and s.reason != NO_SKILL][:_MOST_SKIPPED]
    slugs = Counter(subject.slug for subject in listing.subjects)
    others = [s for s in listing.subjects if s.extension not in PROSE]
    # Beside a page of the same name, or one another: `install.json` and `install.tsx`.
    code = [s.path for s in others if slugs[s.slug] > 1]
    binary = [s.path for s in others if proposal.layout is Layout.FILES and _is_binary(topic, s)]
    paths = [*(s.path for s in skipped), *code[:_MOST_SKIPPED], *binary[:_MOST_SKIPPED]]
    ignore = (*proposal.ignore, *(f"/{_escape(path)}" for path in paths))
    totals = measure(topic.root, proposal.layout, ignore)
    return replace(proposal, ignore=ignore, totals=totals, left_out=tuple(skipped))


def _is_binary(topic: Topic, subject: Subject) -> bool:
    try:
        with (topic.root / subject.path).open("rb") as file:
            return is_binary(file.read(SNIFFED_BYTES))
    except OSError:
        return False  # gone since it was listed, or not ours to read


def _find_free_id(id_: str, taken: Collection[str]) -> str:
    numbered = (f"{id_}-{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in (id_, *numbered) if candidate not in taken)


def _propose_knowledge(root: Path) -> Iterator[Proposal]:
    """Propose each directory in `kb`, and `kb` itself for the files in none of them."""
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
                *_ignore_suffixes(find_names(root / place, inner)),
            ),
        )


def _propose_guides(root: Path) -> Iterator[Proposal]:
    """Propose one topic for the README, the guides for contributors and agents, and other pages."""
    files = sorted(path.name for path in root.glob("[!.]*") if path.is_file())
    names = [name for name in files if _GUIDE.fullmatch(name)]
    # Of README.md and README.rst one is enough: they would share a slug.
    first = {name.partition(".")[0].lower(): name for name in sorted(names, reverse=True)}
    ordered = [first[stem] for stem in _GUIDE_NAMES if stem in first]
    pages = [name for name in files if _PAGE.fullmatch(name) and name not in names]
    formal = [name for name in pages if _FORMALITY.fullmatch(Path(name).stem)]
    pages = [name for name in pages if name not in formal]
    many = len(pages) > _MOST_PAGES  # as in a wiki
    ordered += [] if many else pages
    guides = dict.fromkeys(g for g in (_resolve_guide(root, name) for name in ordered) if g)
    hidden = [name for name in _DOT_GUIDES if (root / name).is_file()]
    ignore = _keep_only([*guides, *map(PurePath, hidden)])
    if many:
        kinds = sorted({f"!/*{Path(name).suffix}" for name in pages})
        ignore = (*ignore, *kinds, *(f"/{_escape(name)}" for name in formal))
    if guides or many:
        yield Proposal(
            id="overview",
            title="Overview",
            introduction="What this project is, and the rules for changing it.",
            subjects=".",
            description=" ".join(
                f"The rules for {_DOT_GUIDES[name]} are in the subject `{name[1:]}`."
                for name in hidden
            ),
            ignore=ignore,
        )


def _resolve_guide(root: Path, name: str) -> PurePath | None:
    """Return the file that a guide is, below the root: a link to it would not be a subject."""
    path, top = Path(os.path.realpath(root / name)), os.path.realpath(root)
    if not path.is_file() or not path.is_relative_to(top):
        return None
    guide = path.relative_to(top)
    # A hidden file is not listed, under whatever name.
    return None if any(part.startswith(".") for part in guide.parts) else guide


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
    """Return the pattern of a path in which codes may stand for odd characters."""
    return _SPECIAL.sub(lambda match: "?" if match[1] else f"\\{match[0]}", path)


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
        ignore = (*apart, *_find_ignored(root / place))
        yield Proposal(
            id=id_, title=title, introduction=introduction, subjects=place, ignore=ignore
        )


def _name_documentation(root: Path) -> dict[str, tuple[str, str, str]]:
    """Return id, title and introduction for each place of documentation, there or not."""
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


def _propose_pages(root: Path) -> Iterator[Proposal]:
    """Propose other directories that hold little but pages; where there are many, as one topic."""
    places = (place for place in _name_documentation(root) if is_inside(root, place))
    taken = {*(place.partition("/")[0] for place in places), *_RECORDS}
    counts = {
        path.name: count_pages(path)
        for path in (*_list_parts(root), root / "src")
        if path.name not in taken and not _FORMALITY.fullmatch(path.name)
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
                *(f"/{_escape(name)}/" for name in others),
                *_find_ignored(root),
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
            ignore=tuple(_find_ignored(root / name)),
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


def _propose_tool_directories(root: Path) -> Iterator[Proposal]:
    """Propose the rules and commands that people wrote for coding agents, by tool."""
    for place, (tool, entries) in _TOOL_DIRECTORIES.items():
        if not is_inside(root, place):
            continue
        paths = sorted(path for path in (root / place).iterdir() if path.name.lower() in entries)
        files = [path.name for path in paths if path.is_file()]
        there = [*files, *(f"{path.name}/" for path in paths if has_text(path))]
        if there:
            yield Proposal(
                id=place[1:],
                title=f"For {tool}",
                introduction=f"Rules and instructions that were written for {tool}.",
                subjects=place,
                ignore=("/*", *(f"!/{_escape(name)}" for name in there)),
            )


def _propose_readmes(root: Path) -> Iterator[Proposal]:
    """Propose the README files of directories."""
    found: list[Path] = []
    guides = {os.path.realpath(path) for path in root.glob("[!.]*") if path.is_file()}
    for parent, directories, names in walk(root):
        depth = len(parent.relative_to(root).parts)
        paths = [parent / n for n in names if depth and n.lower() in {"readme.md", "readme.rst"}]
        found += [path for path in paths if os.path.realpath(path) not in guides]
        skipped = _BUILT if depth else {*_BUILT, "kb", *_DOCUMENTATION, *_NOTES, *_SKILLS}
        is_near = depth < _README_DEPTH
        directories[:] = [name for name in directories if is_near and name.lower() not in skipped]
    if found:
        readmes = sorted(path.relative_to(root) for path in found)
        yield Proposal(
            id="readmes",
            title="Directories",
            introduction="What the directories of this project hold.",
            subjects=".",
            ignore=_keep_only(readmes[:_MOST_READMES]),
            is_likely=False,
        )


def _find_ignored(directory: Path) -> Iterator[str]:
    """Yield patterns for the files that tools keep in a documentation."""
    for source, built in (("", "_build/"), ("source/", "build/")):
        if (directory / source / "conf.py").is_file():  # Sphinx
            yield f"/{built}"
            parts = (*(f"{source}{name}" for name in SPHINX_PARTS), *SPHINX_TOOLS)
            yield from (f"/{part}" for part in parts if (directory / part).exists())
            break
    yield from (f"/{part}" for part in SITE_PARTS if (directory / part).exists())
    paths = (
        (parent / name).relative_to(directory).as_posix()
        for parent, _, names in walk(directory)
        for name in names
    )
    yield from (f"/{_escape(place)}" for place in find_translations(paths))
    names = find_names(directory)
    yield from sorted(_TOOL_FILES & names)
    if any(name.startswith(".") for name in names):
        yield ".*"
    yield from _ignore_suffixes(names)


def _ignore_suffixes(names: Iterable[str]) -> list[str]:
    """Return a pattern for each kind of file that is not text."""
    suffixes = {Path(name).suffix for name in names if not name.startswith(".")}
    return [f"*{suffix}" for suffix in sorted(suffixes) if suffix and not is_text(suffix)]


def _title(id_: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in id_.replace("_", "-").split("-"))
