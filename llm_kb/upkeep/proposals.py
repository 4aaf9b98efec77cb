"""Propose topics for what a directory holds already."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from llm_kb.config.keys import TOPIC_ID
from llm_kb.subjects.topics import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A topic that a first configuration defines."""

    id: str
    title: str
    introduction: str
    subjects: str
    ignore: tuple[str, ...] = ()
    layout: Layout = Layout.FILES


RECORDS = ("docs/adr", "doc/adr", "docs/decisions", "doc/decisions")
SKILLS = (".agents/skills", ".claude/skills")
GUIDES = ("AGENTS.md", "CONTRIBUTING.md")

_SPHINX_PARTS = ("_static/", "_templates/", "conf.py")
_SPHINX_TOOLS = ("Makefile", "make.bat", "requirements.txt")
_PICTURES = (".avif", ".bmp", ".drawio", ".gif", ".ico", ".jpeg", ".jpg", ".png", ".svg", ".webp")
_DOCUMENTS = (".docx", ".gz", ".pdf", ".pptx", ".psd", ".xlsx", ".zip")
_PAGES = (".css", ".eot", ".mov", ".mp3", ".mp4", ".ttf", ".webm", ".woff", ".woff2")
_NO_TEXT = frozenset((*_PICTURES, *_DOCUMENTS, *_PAGES))
"""Extensions of what is looked at rather than read, or cannot be read as text."""
_WHOLE = ("project", "kb", "general")
"""Ids for the whole of `kb`, of which the first that none of its directories has is taken."""
_SPECIAL = re.compile(r"[\\*?\[\]]|\s\Z")
"""What stands for itself in a pattern only after a backslash."""
_LOOK_AT = 5000
"""How many files of a directory are looked at, more or less: a proposal must come at once."""


def propose_topics(root: Path) -> list[Proposal]:
    """Return a topic for each place where people keep knowledge, nothing else."""
    proposals = [
        *_propose_knowledge(root),
        *_propose_guides(root),
        *_propose_documentation(root),
        *_propose_records(root),
        *_propose_skills(root),
    ]
    unique: dict[str, Proposal] = {}
    for proposal in proposals:
        unique.setdefault(proposal.id, proposal)
    return list(unique.values())


def find_passed_over(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place that would be a topic but for what it holds, with the reason."""
    below = [f"kb/{name}" for name in _list_directories(root / "kb")]
    for place in dict.fromkeys((*(below or ["kb"]), "docs", *RECORDS, *SKILLS)):
        if not (root / place).is_dir():
            continue
        if not _is_inside(root, place):
            yield place, "leads out of this directory"
        elif not _holds_text(root / place):
            yield place, "holds no text yet"


def _propose_knowledge(root: Path) -> Iterator[Proposal]:
    """Propose each directory in `kb`, and `kb` itself for what is in none of these."""
    places = [name for name in _list_directories(root / "kb") if _is_topic(root, f"kb/{name}")]
    names = [name for name in places if TOPIC_ID.fullmatch(name)]
    for name in names:
        ignore = _find_no_text(root / "kb" / name)
        yield _propose_directory(name, f"kb/{name}", ignore)
    # A directory whose name can be no id is no topic, but its files are subjects of `kb`.
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
    found = (_resolve_guide(root, name) for name in GUIDES)
    guides = dict.fromkeys(guide for guide in found if guide is not None)
    if guides:
        keep = (pattern for guide in guides for pattern in _keep(guide))
        yield Proposal(
            id="contributing",
            title="Working on This Project",
            introduction="The rules for whoever changes something here.",
            subjects=".",
            ignore=tuple(dict.fromkeys(("/*", *keep))),
        )


def _resolve_guide(root: Path, name: str) -> PurePath | None:
    """Return the file that a guide is, below the root: a link to an ignored one is no subject."""
    if not (root / name).is_file():
        return None
    path, top = Path(os.path.realpath(root / name)), os.path.realpath(root)
    guide = path.relative_to(top) if path.is_relative_to(top) else None
    # What is hidden is not listed, under whatever name.
    return guide if guide and not any(part.startswith(".") for part in guide.parts) else None


def _keep(guide: PurePath) -> Iterator[str]:
    """Yield the patterns that keep a file where all else is ignored, its directories first."""
    for directory in reversed(guide.parents[:-1]):
        place = _SPECIAL.sub(r"\\\g<0>", directory.as_posix())
        yield f"!/{place}/"
        yield f"/{place}/*"
    yield "!/" + _SPECIAL.sub(r"\\\g<0>", guide.as_posix())


def _propose_documentation(root: Path) -> Iterator[Proposal]:
    docs = root / "docs"
    places = (place for place in RECORDS if place.startswith("docs/"))
    records = [Path(place).name for place in places if (root / place).is_dir()]
    if _is_topic(root, "docs", records):
        yield Proposal(
            id="docs",
            title="Documentation",
            introduction="How this project is used and how it works.",
            subjects="docs",
            ignore=(
                *(f"/{name}/" for name in records),
                *_find_sphinx(docs),
                *_find_no_text(docs),
            ),
        )


def _propose_records(root: Path) -> Iterator[Proposal]:
    for place in RECORDS:
        if _is_topic(root, place):
            yield Proposal(
                id="decisions",
                title="Architecture Decisions",
                introduction="What was decided, and why.",
                subjects=place,
                ignore=_find_no_text(root / place),
            )


def _propose_skills(root: Path) -> Iterator[Proposal]:
    seen: set[str] = set()
    for place in SKILLS:
        real = os.path.realpath(root / place)
        if not _is_topic(root, place) or real in seen:
            continue  # the two are often links to one another
        yield Proposal(
            id="skills" if not seen else f"{Path(place).parent.name.lstrip('.')}-skills",
            title="Skills",
            introduction="Step-by-step instructions for particular tasks.",
            subjects=place,
            layout=Layout.SKILLS,
        )
        seen.add(real)


def _find_sphinx(docs: Path) -> Iterator[str]:
    """Yield what Sphinx keeps beside the texts, as patterns; what it builds even before it has."""
    for source, built in (("", "_build/"), ("source/", "build/")):
        if (docs / source / "conf.py").is_file():
            yield f"/{built}"
            found = (name for name in _SPHINX_PARTS if (docs / source / name).exists())
            yield from (f"/{source}{name}" for name in found)
            yield from (f"/{name}" for name in _SPHINX_TOOLS if (docs / name).is_file())
            return


def _find_no_text(directory: Path, besides: Collection[str] = ()) -> tuple[str, ...]:
    """Return a pattern for each kind of file in a directory that holds no text to be learned."""
    found: set[str] = set()
    for names in _iter_names(directory, besides):
        suffixes = (Path(name).suffix for name in names)
        found.update(suffix for suffix in suffixes if suffix.lower() in _NO_TEXT)
    return tuple(f"*{suffix}" for suffix in sorted(found))


def _holds_text(directory: Path, besides: Collection[str] = ()) -> bool:
    return any(map(_has_text, _iter_names(directory, besides)))


def _has_text(names: Iterable[str]) -> bool:
    """Tell whether one of some file names may be that of a text."""
    return any(Path(name).suffix.lower() not in _NO_TEXT for name in names)


def _iter_names(directory: Path, besides: Collection[str] = ()) -> Iterator[list[str]]:
    """Yield the names of the files that are not hidden, directory by directory.

    Links to directories count as files: what they lead to is not looked at.
    """
    looked_at = 0
    for parent, directories, names in os.walk(directory):
        seen = [name for name in directories if not name.startswith((".", "_"))]
        if parent == str(directory):
            seen = [name for name in seen if name not in besides]
        links = [name for name in seen if os.path.islink(f"{parent}/{name}")]  # noqa: PTH114 - fast
        directories[:] = seen
        yield [*links, *(name for name in names if not name.startswith("."))]
        looked_at += len(names)
        if looked_at > _LOOK_AT:
            return


def _is_topic(root: Path, place: str, besides: Collection[str] = ()) -> bool:
    """Tell whether a place is a directory inside the root that has something to learn."""
    return _is_inside(root, place) and _holds_text(root / place, besides)


def _is_inside(root: Path, place: str) -> bool:
    """Tell whether a directory is there and, links resolved, inside the root."""
    path = root / place
    return path.is_dir() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _list_directories(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    except OSError:
        return []


def _list_files(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(e.name for e in entries if e.is_file() and not e.name.startswith("."))
    except OSError:
        return []


def _title(id_: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in id_.replace("_", "-").split("-"))


def render_workspace(proposals: Sequence[Proposal]) -> str:
    """Render a workspace's first configuration: valid at once, with notes on what may follow."""
    tables = "\n".join(map(_render_proposal, proposals))
    return _WORKSPACE_HEAD + (tables or _EXAMPLE)


def render_user() -> str:
    """Render the user layer's first configuration, in which everything is a comment."""
    return _USER


def _render_proposal(proposal: Proposal) -> str:
    name = proposal.id if "." not in proposal.id else f'"{proposal.id}"'
    lines = [
        f"[kb.topic.{name}]",
        f"title = {json.dumps(proposal.title)}",
        f"introduction = {json.dumps(proposal.introduction)}",
        f"subjects = {json.dumps(proposal.subjects)}",
    ]
    if proposal.ignore:
        lines.append(f"ignore = {json.dumps(list(proposal.ignore))}")
    if proposal.layout is not Layout.FILES:
        lines.append(f"layout = {json.dumps(proposal.layout.value)}")
    return "\n".join([*lines, ""])


_WORKSPACE_HEAD = """\
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

_EXAMPLE = """\
# [kb.topic.project]
# title = "General Project Knowledge"
# introduction = "How this project is built, and by whom."
# subjects = "kb/project"
"""

_USER = """\
# Your own settings and topics, for every directory. A workspace's llm-kb.toml adds
# to them.

[kb]
# auto = true                      # as if every prompt had -T learn
# menu = "subjects"                # list every subject with a summary
# allow_links_to = ["~/shared"]    # links in topics may lead there

# [kb.topic.notes]
# title = "My Notes"
# introduction = "What I want to remember across projects."
# subjects = "~/notes"             # anywhere; a relative one is beside this file

# [kb.references]
# allow_hosts = ["wiki.corp"]      # private addresses that may be fetched from
# allow_protocols = ["file"]       # git over file:// URLs
# max_files = 50_000               # per fetch
# max_bytes = 500_000_000
"""
