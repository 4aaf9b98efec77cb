"""A program that creates or refreshes one topic over and over, to be killed at it.

Its arguments are refresh|create ROOT SOURCE [TIMES].
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from llm_kb.references.fetch.topics import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.records import LocalSource
from llm_kb.references.topic.topic_file import Description
from llm_kb.subjects.topics import References

FILES = 25
TOPIC = "topic-churn"


def request(source: Path) -> Description:
    """The topic this is about."""
    return Description(id=TOPIC, title="Churn", body="", sources=(LocalSource(url=str(source)),))


def write_version(source: Path, number: str) -> None:
    """Put a new version of the source in the place of the old one, at once."""
    version = source.with_name(f"{source.name}-{number}")
    for n in range(FILES):
        path = version / f"d{n % 3}" / f"{n}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Version {number}\n" * 20)
    link = source.with_name(f"{source.name}-link-{number}")
    link.symlink_to(version)
    link.replace(source)


def churn(action: str, root: Path, source: Path, times: int | None) -> None:
    """Do it until killed, or so many times."""
    library = Library(root=root, settings=References())
    print("ready", flush=True)  # noqa: T201 - the parent waits for it
    for turn in itertools.count() if times is None else range(times):
        write_version(source, f"{os.getpid()}.{turn}")
        if action == "create":
            if library.store.exists(TOPIC):
                library.delete(TOPIC)
            create_topic(library, request(source), lambda plan: True)
        else:
            refresh_topic(library, TOPIC, lambda plan, reason: True)
        print("done", flush=True)  # noqa: T201 - as above


def main() -> None:
    """Run the program."""
    action, root, source, *times = sys.argv[1:]
    churn(action, Path(root), Path(source), int(times[0]) if times else None)
