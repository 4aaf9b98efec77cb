"""Proposes topics for guides: README, CONTRIBUTING, and files for coding agents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

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
FORMALITY = re.compile(
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
        paths = sorted(path for path in (root / place).iterdir() if path.name.lower() in entries)
        files = [path.name for path in paths if path.is_file()]
        there = [*files, *(f"{path.name}/" for path in paths if has_text(path))]
        if there:
            yield Proposal(
                id=place[1:],
                title=f"For {tool}",
                introduction=f"Rules and instructions that were written for {tool}.",
                subjects=place,
                ignore=("/*", *(f"!/{escape(name)}" for name in there)),
            )
