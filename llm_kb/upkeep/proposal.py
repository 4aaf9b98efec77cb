"""A topic that `llm kb init` may write, and the subjects it would list."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from llm_kb.files.directory import NO_SKILL, DirectoryCatalog
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.subjects.names import UNUSABLE
from llm_kb.subjects.topics import SNIFFED_BYTES, Layout, Skipped, Subject, Topic, is_binary
from llm_kb.upkeep.check import PROSE
from llm_kb.upkeep.places import escape, list_directories
from llm_kb.upkeep.subject_list import Totals, list_topic

_MOST_SKIPPED = 20
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
    """Whether it is written by default."""
    left_out: tuple[Skipped, ...] = ()
    """Files that no topic can hold, which it therefore ignores."""

    @property
    def place(self) -> str:
        """Its directory, or the files that are chosen from the workspace itself."""
        kept = [line[2:] for line in self.ignore if line.startswith("!/") and line[-1] != "/"]
        return ", ".join(kept) if self.subjects == "." and kept else self.subjects


FIRST_TOPIC = Proposal(
    id="project",
    title="Project",
    introduction="How we work on this project, and why.",
    subjects="kb/project",
)
"""The proposal for an empty workspace; its directory must be created."""


def measure(directory: Path, layout: Layout, ignore: tuple[str, ...] = ()) -> Totals:
    """Return the number and size of the subjects that a directory would list as a topic."""
    topic = _make_topic(directory, layout, ignore)
    return list_topic(OpenTopic(topic, DirectoryCatalog(topic))).totals


def find_layout(directory: Path) -> Layout:
    """Return the layout of a directory: skills if one of its directories has a SKILL.md."""
    is_skills = any((path / SKILL_FILE).is_file() for path in list_directories(directory))
    return Layout.SKILLS if is_skills else Layout.FILES


def _make_topic(directory: Path, layout: Layout, ignore: tuple[str, ...]) -> Topic:
    root = Path(os.path.realpath(directory))
    return Topic(id="proposed", root=root, ignore=ignore, layout=layout)


def leave_out_built(proposals: Iterable[Proposal], built: Collection[str]) -> Iterator[Proposal]:
    """Yield the proposals that are not a built book, each without those in it."""
    for proposal in proposals:
        place = PurePath(proposal.subjects)
        if any(place.is_relative_to(each) for each in built):
            continue
        inner = () if proposal.subjects == "." else sorted(built)
        paths = (PurePath(each) for each in inner if PurePath(each).is_relative_to(place))
        lines = (f"/{escape(path.relative_to(place).as_posix())}/" for path in paths)
        yield replace(proposal, ignore=(*proposal.ignore, *lines))


def settle(root: Path, proposal: Proposal) -> Proposal:
    """Return a proposal that also ignores the files that `check` would report."""
    # A line for a name that no topic can hold is not needed, and might not be valid TOML.
    usable = tuple(line for line in proposal.ignore if not UNUSABLE.search(line))
    topic = _make_topic(root / proposal.subjects, proposal.layout, usable)
    listing = DirectoryCatalog(topic).list()
    skipped = [s for s in listing.skipped if s.path and s.reason != NO_SKILL][:_MOST_SKIPPED]
    slugs = Counter(subject.slug for subject in listing.subjects)
    others = [s for s in listing.subjects if s.extension not in PROSE]
    # Next to a page of the same name, or to one another: `install.json`, `install.tsx`.
    code = [s.path for s in others if slugs[s.slug] > 1]
    binary = [s.path for s in others if proposal.layout is Layout.FILES and _is_binary(topic, s)]
    paths = [*(s.path for s in skipped), *code[:_MOST_SKIPPED], *binary[:_MOST_SKIPPED]]
    ignore = (*usable, *(f"/{escape(path)}" for path in paths))
    totals = measure(topic.root, proposal.layout, ignore)
    return replace(proposal, ignore=ignore, totals=totals, left_out=tuple(skipped))


def _is_binary(topic: Topic, subject: Subject) -> bool:
    try:
        with (topic.root / subject.path).open("rb") as file:
            return is_binary(file.read(SNIFFED_BYTES))
    except OSError:
        return False  # deleted since it was listed, or unreadable
