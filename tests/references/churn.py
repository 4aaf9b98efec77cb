"""A program that creates or refreshes one topic over and over, to be killed at it.

Its arguments are refresh|create ROOT SOURCE [TIMES].
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llm_kb.references.fetch import sources
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.plan import PlannedSource
from llm_kb.references.settings import References
from llm_kb.references.sources.records import GitSource
from llm_kb.references.topic.topic_directory import FileRecord
from llm_kb.references.topic.topic_file import TopicFile

FILES = 25
TOPIC = "topic-churn"


def fetch_version(task: Any, source: GitSource) -> PlannedSource:
    """Fetch the version that the file of a source names: any number of files with one text."""
    number = Path(urlsplit(source.url).path).read_text()
    for n in range(FILES):
        record = FileRecord(source=task.index, url=source.url)
        task.staged.write(f"d{n % 3}/{n}.md", f"# Version {number}\n".encode() * 20, record)
    measured: PlannedSource = task.measure(source, (), ())
    return measured


def request(source: Path) -> TopicFile:
    """The topic this is about."""
    return TopicFile(id=TOPIC, title="Churn", body="", sources=(GitSource(url=source.as_uri()),))


def write_version(source: Path, number: str) -> None:
    """Put a new version of the source in the place of the old one, at once."""
    new = source.with_name(f"{source.name}-{number}")
    new.write_text(number)
    new.replace(source)


def churn(action: str, root: Path, source: Path, times: int | None) -> None:
    """Do it until killed, or so many times."""
    library = Library(root=root, settings=References())
    print("ready", flush=True)  # noqa: T201 - the parent waits for it
    for turn in itertools.count() if times is None else range(times):
        write_version(source, f"{os.getpid()}.{turn}")
        if action == "create":
            if library.exists(TOPIC):
                library.delete(TOPIC)
            create_topic(library, request(source), lambda plan: True)
        else:
            refresh_topic(library, TOPIC, lambda reason: True)
        print("done", flush=True)  # noqa: T201 - as above


def main() -> None:
    """Run the program."""
    action, root, source, *times = sys.argv[1:]
    setattr(sources, "_fetch_source", fetch_version)  # noqa: B010 - a source that is quick
    churn(action, Path(root), Path(source), int(times[0]) if times else None)
