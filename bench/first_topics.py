"""How much of a project's prose `llm kb init` takes or names, and puts where a person would.

    python bench/first_topics.py DIRECTORY      the clones of the projects below, by their names

Prose are the files in a markup, in a notebook or in POD that git knows; their size is in
characters. The places, and how the projects were chosen, are in first_topics.toml.
"""

from __future__ import annotations

import subprocess
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.fields import decode_toml
from llm_kb.subjects.topics import Layout, TopicConfig
from llm_kb.upkeep.first_topics import propose_topics

PROSE = (
    *(".md", ".mdx", ".markdown", ".rst", ".adoc", ".org", ".ipynb", ".pod", ".mdc"),
    *(".Rd", ".Rmd", ".cheatmd", ".livemd"),
)

GROUPS: Any = decode_toml(Path(__file__).with_suffix(".toml").read_text("utf-8"))
EVERYWHERE = GROUPS.pop("everywhere")


def measure(directory: Path, places: list[str]) -> str:
    """Return the line of one project."""
    start = time.perf_counter()
    topics, left_out = propose_topics(directory)
    seconds = time.perf_counter() - start
    topic_of: dict[str, set[str]] = {}
    for proposal in topics:
        root = (directory / proposal.subjects).resolve()
        topic = TopicConfig(
            id="x",
            root=root,
            ignore=tuple(proposal.ignore),
            layout=Layout(proposal.layout or "files"),
        )
        for subject in DirectoryTopic(topic).list().subjects:
            path = (root / subject.path).relative_to(directory.resolve()).as_posix()
            topic_of.setdefault(path, set()).add(proposal.id)
    named = {path for paths in left_out.values() for path in paths}
    rules = [rule.rsplit(" ", 1) for rule in (*EVERYWHERE, *places)]
    whole = known = right = 0
    for path in _list_prose(directory):
        size = len((directory / path).read_text("utf-8", "replace"))
        place = next(place for glob, place in rules if fnmatchcase(path, glob))
        is_known = path in named or path in topic_of
        is_right = {
            "any": is_known,
            "out": path in named and path not in topic_of,
        }.get(place, place in topic_of.get(path, ()))
        whole, known, right = whole + size, known + size * is_known, right + size * is_right
    share = f"{100 * known / whole:.1f} | {100 * right / whole:.1f}"
    return f"| {directory.name} | {whole:,} | {len(topics)} | {share} | {seconds:.1f} |"


def _list_prose(directory: Path) -> list[str]:
    command = ["git", "-C", str(directory), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return [
        path
        for path in listed.split("\0")
        if path.endswith(PROSE)
        and not (directory / path).is_symlink()
        and (directory / path).is_file()
    ]


def main() -> None:
    """Print the table of all groups; projects that are not there are left out."""
    print("| project | characters | topics | taken or named, % | in the right place, % | s |")
    print("|---|---|---|---|---|---|")
    for group in GROUPS.values():
        for name, places in group.items():
            if (Path(sys.argv[1]) / name).exists():
                print(measure(Path(sys.argv[1]) / name, places), flush=True)


if __name__ == "__main__":
    main()
