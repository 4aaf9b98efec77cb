"""How much of what a person would take of a project `llm kb init` takes, and how much more.

    python bench/first_topics.py DIRECTORY      clones of the projects, by their names
    python bench/first_topics.py DIRECTORY -v   also each page that is missing, or more

The globs, and how the projects were chosen, are in first_topics.toml, with the commit of each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.fields import decode_toml
from llm_kb.subjects.patterns import compile_any, parse_pattern
from llm_kb.subjects.topics import Layout, TopicConfig
from llm_kb.upkeep.first_topics import Topic, propose_topics

GROUPS: Any = decode_toml(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def list_taken(root: Path, topics: Sequence[Topic]) -> Iterator[str]:
    """Yield the files that the topics list as they would be configured."""
    for topic in topics:
        place = root / topic.fields["subjects"]
        config = TopicConfig(
            id="x",
            root=Path(os.path.realpath(place)),
            include=tuple(topic.fields["include"]),
            ignore=tuple(topic.fields["ignore"]),
            layout=Layout(topic.fields["layout"] or "files"),
        )
        for subject in DirectoryTopic(config).list().subjects:
            yield (place / subject.path).relative_to(root).as_posix()


def measure(root: Path, globs: Mapping[str, Sequence[str]], *, is_verbose: bool) -> list[float]:
    """Return the numbers of one project, in the order of the table."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True)
    files = [path for path in os.fsdecode(listed.stdout).split("\0") if (root / path).is_file()]
    take, leave, either = (
        compile_any([parse_pattern(each) for each in globs.get(key, ())])
        for key in ("take", "leave", "either")
    )
    # A link leads to a page that is taken where it is.
    right = {p for p in files if take(p) and not leave(p) and not (root / p).is_symlink()}
    start = time.process_time()
    found = propose_topics(root)
    seconds = time.process_time() - start
    taken = [*list_taken(root, found.topics)]
    assert len(taken) == len({*taken}) == sum(len(topic.pages) for topic in found.topics)
    missing = sorted(path for path in right - {*taken} if not either(path))
    more = sorted(path for path in {*taken} - right if leave(path) or not either(path))
    reasons = {path: reason for reason, paths in found.left_out.items() for path in paths}
    for path in missing if is_verbose else ():
        print(f"    - {path} {reasons.get(path, '')}")
    for path in more if is_verbose else ():
        print(f"    + {path}")
    return [len(files), len(right), len(missing), len(more), len(found.topics), seconds]


def render(name: str, numbers: Sequence[float]) -> str:
    """Return a row of the table."""
    files, right, missing, more, topics, seconds = numbers
    shares = f"{100 - 100 * missing / right:.1f} | {100 * more / right:.1f}"
    return f"| {name} | {files:,} | {right:,} | {shares} | {topics} | {seconds:.2f} |"


def main() -> None:
    """Print the table of each group; projects that are not there are left out."""
    for title, group in GROUPS.items():
        print("| project | files | pages | taken, % | more, % | topics | s |")
        print("|---|---|---|---|---|---|---|")
        rows = []
        for name, globs in group.items():
            if (root := Path(sys.argv[1]).resolve() / name).exists():
                rows.append(measure(root, globs, is_verbose="-v" in sys.argv))
                print(render(name, rows[-1]), flush=True)
        print(render(f"**{title}**", [sum(each) for each in zip(*rows, strict=True)]), "\n")


if __name__ == "__main__":
    main()
