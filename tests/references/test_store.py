"""Topics are whole at any moment: processes are killed, and several write at once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llm_kb.references.errors import TopicFileError
from llm_kb.references.library import Library
from llm_kb.references.provenance import Differences
from llm_kb.references.store import Store
from llm_kb.topics import References
from tests.references.churn import FILES, TOPIC, request, write_version

KILLS = int(os.environ.get("LLM_KB_KILLS", "8"))
REPOSITORY = Path(__file__).parents[2]


def start(action: str, root: Path, source: Path, *times: str) -> subprocess.Popen[str]:
    """Start a process that churns, and wait until it does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.references.churn", action, str(root), str(source), *times],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def contents(library: Library) -> set[str]:
    root = library.store.directory(TOPIC)
    return {path.read_text() for path in root.rglob("*.md") if path.name != "topic.md"}


def leftovers(root: Path) -> list[str]:
    places = (root / name for name in (".staging", ".old", ".trash"))
    return [entry.name for place in places if place.is_dir() for entry in place.iterdir()]


def check_whole(library: Library) -> None:
    """One version of all files, as recorded, and nothing left behind."""
    assert len(library.store.read(TOPIC).files) == FILES
    assert library.verify(TOPIC) == Differences()
    assert len(contents(library)) == 1
    assert leftovers(library.root) == []


@pytest.mark.parametrize("action", ["refresh", "create"])
def test_a_process_killed_at_any_moment_leaves_the_old_topic_or_the_new(
    tmp_path: Path, action: str
) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    library.create(request(source), lambda plan: True)
    chance = random.Random(KILLS)
    seen = set()
    for _ in range(KILLS):
        process = start(action, library.root, source)
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.communicate()
        library.store.clean()
        if action == "refresh" or library.store.exists(TOPIC):
            check_whole(library)
            seen |= contents(library)
        assert leftovers(library.root) == []
    assert seen
    if not library.store.exists(TOPIC):
        library.create(request(source), lambda plan: True)
    library.refresh(TOPIC, lambda plan, reason: True)
    check_whole(library)


def test_two_processes_that_refresh_one_topic_do_no_harm(tmp_path: Path) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    library.create(request(source), lambda plan: True)
    processes = [start("refresh", library.root, source, "6") for _ in range(2)]
    reads = 0
    while any(process.poll() is None for process in processes):
        # A reader takes no lock, and finds the topic there whenever it looks.
        assert library.store.ids() == [TOPIC]
        assert library.store.read(TOPIC).title == "Churn"
        reads += 1
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0, 0]
    assert reads > 10
    check_whole(library)


@pytest.mark.parametrize("stage", ["between the renames", "before the old one is gone"])
def test_a_swap_cut_short_is_put_right_by_whoever_looks_next(tmp_path: Path, stage: str) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    library.create(request(source), lambda plan: True)
    root = library.root
    (root / ".old").mkdir()
    current = root / TOPIC
    if stage == "between the renames":
        current.rename(root / ".old" / TOPIC)
        (root / ".staging" / f"{TOPIC}.0123abcd").mkdir(parents=True)
    else:
        (root / ".old" / TOPIC).mkdir()
    assert library.store.ids() == [TOPIC]
    assert library.store.read(TOPIC).title == "Churn"
    library.store.clean()
    check_whole(library)


def test_cleaning_leaves_alone_what_another_process_is_making(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.lock(TOPIC), store.staging(TOPIC) as directory:
        Store(tmp_path).clean()
        assert directory.is_dir()
    assert not directory.exists()


def test_a_topic_under_another_name_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "topic-b").mkdir()
    (tmp_path / "topic-b" / "topic.md").write_text(
        '+++\nid = "topic-a"\ntitle = "A"\ntype = "ReferenceTopic"\n+++\n'
    )
    with pytest.raises(TopicFileError, match=r"topic-b/topic.md: its id 'topic-a' is not"):
        Store(tmp_path).read("topic-b")


def test_a_link_in_the_place_of_a_fetched_file_is_a_difference(tmp_path: Path) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    library.create(request(source), lambda plan: True)
    path = library.store.directory(TOPIC) / "d0" / "0.md"
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert library.verify(TOPIC) == Differences(modified=("d0/0.md",))
