"""Proposes topics for guides: README, CONTRIBUTING, and files for coding agents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from llm_kb.subjects.names import find_extension
from llm_kb.upkeep.check import PROSE
from llm_kb.upkeep.places import escape, has_text, is_inside, keep_only
from llm_kb.upkeep.proposal import Proposal

_GUIDE_NAMES = (
    *("readme", "agents", "claude", "gemini", "contributing"),
    *("architecture", "design", "development", "hacking"),
)
_GUIDE = re.compile(
    rf"({'|'.join(_GUIDE_NAMES)})(\.(?:md|markdown|mdx|rst|adoc|txt|org))?", re.IGNORECASE
)
_PAGE = re.compile(r"[^.].*\.(?:md|markdown|mdx|rst|adoc)", re.IGNORECASE)
_CHANGES = r"(change.?log|changes|release.?notes|releases|news|history)([._-].*)?"
FORMALITY = re.compile(
    r"(licen[cs]e|copying|notices?|third.party.notices?|authors|contributors|maintainers|credits"
    r"|thanks|sponsors|backers|conduct|code.of.conduct|support|funding|todo)([._-].*)?"
    rf"|readme([._-][a-z]{{2}}([._-][a-z]+)?)?|{_CHANGES}",
    re.IGNORECASE,
)
"""Names of pages that say little about how the project works, and of translated READMEs."""
_CHANGE_LOG = re.compile(_CHANGES, re.IGNORECASE)
_DOT_GUIDES = {".cursorrules": "Cursor", ".windsurfrules": "Windsurf", ".clinerules": "Cline"}
"""Hidden guides: no listing names them, so the description of their topic does."""

_COPILOT = "copilot-instructions.md"
_TOOL_DIRECTORIES = {
    ".claude": ("Claude", ("claude.md", "commands", "agents", "rules")),
    ".cursor": ("Cursor", ("rules",)),
    ".github": ("GitHub Copilot", (_COPILOT, "instructions", "prompts")),
}
"""Directories of tools: the tool's name, and the entries that are knowledge.

The entries are in lower case here, and in any case on disk.
"""

_MOST_PAGES = 20


def propose_guides(root: Path) -> Iterator[Proposal]:
    """Propose one topic for the README, the guides for contributors and agents, and other pages."""
    files = sorted(path.name for path in root.glob("[!.]*") if path.is_file())
    names = [name for name in files if _GUIDE.fullmatch(name)]
    # Of README.md and README.rst one is enough: they would share a slug.
    first = {name.partition(".")[0].lower(): name for name in sorted(names, reverse=True)}
    ordered = [first[stem] for stem in _GUIDE_NAMES if stem in first]
    pages = [name for name in files if _PAGE.fullmatch(name) and name not in names]
    formal = [name for name in pages if FORMALITY.fullmatch(Path(name).stem)]
    pages = [name for name in pages if name not in formal]
    many = len(pages) > _MOST_PAGES  # as in a wiki
    ordered += [] if many else pages
    guides = dict.fromkeys(g for g in (_resolve_guide(root, name) for name in ordered) if g)
    hidden = [name for name in _DOT_GUIDES if (root / name).is_file()]
    ignore = keep_only([*guides, *map(PurePath, hidden)])
    if many:
        kinds = sorted({f"!/*{Path(name).suffix}" for name in pages})
        ignore = (*ignore, *kinds, *(f"/{escape(name)}" for name in formal))
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
    """Return the real file of a guide, below the root, since a link might not be a subject."""
    path, top = Path(os.path.realpath(root / name)), os.path.realpath(root)
    if not path.is_file() or not path.is_relative_to(top):
        return None
    guide = path.relative_to(top)
    # A hidden file is not listed, under whatever name.
    return None if any(part.startswith(".") for part in guide.parts) else guide


def propose_tool_directories(root: Path) -> Iterator[Proposal]:
    """Propose the rules and commands that people wrote for coding agents, by tool."""
    for place, (tool, entries) in _TOOL_DIRECTORIES.items():
        if not is_inside(root, place):
            continue
        inner = sorted((root / place).iterdir())
        pages = [path for path in inner if place == ".github" and _is_rule(path)]
        paths = [path for path in inner if path in pages or path.name.lower() in entries]
        files = [path.name for path in paths if path.is_file()]
        there = [*files, *(f"{path.name}/" for path in paths if has_text(path))]
        if there:
            yield Proposal(
                id=place[1:],
                title="Contributing" if pages else f"For {tool}",
                introduction="How to contribute, and the rules for it."
                if pages
                else f"Rules and instructions that were written for {tool}.",
                subjects=place,
                ignore=("/*", *(f"!/{escape(name)}" for name in there)),
            )


def _is_rule(path: Path) -> bool:
    """Tell whether a file of `.github` is a page for contributors, and not a form to fill in."""
    is_other = FORMALITY.fullmatch(path.stem) or "template" in path.stem.lower()
    return bool(
        _PAGE.fullmatch(path.name)
        and not is_other
        and path.name.lower() != _COPILOT
        and path.is_file()
    )


def propose_changes(root: Path) -> Iterator[Proposal]:
    """Propose one topic for the lists of changes beside the README."""
    files = sorted(path.name for path in root.glob("[!.]*") if path.is_file())
    names = [n for n in files if _CHANGE_LOG.fullmatch(Path(n).stem) and find_extension(n) in PROSE]
    found = dict.fromkeys(g for g in (_resolve_guide(root, name) for name in names) if g)
    if found:
        yield Proposal(
            id="changes",
            title="Changes",
            introduction="What changed in each version of this project.",
            subjects=".",
            ignore=keep_only(list(found)[:_MOST_PAGES]),
            is_likely=False,
        )
