"""Topics are complete at any moment, with killed processes and several writers."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.files.atomic import WriteError
from llm_kb.references import library as store_module
from llm_kb.references.errors import TopicFileError, UnknownReferenceError
from llm_kb.references.fetch import sources
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.settings import References
from llm_kb.references.topic.topic_directory import read_provenance
from tests.preloaded import Process
from tests.references.churn import FILES, TOPIC, fetch_version, request, write_version

Shut = Callable[[Path], None]

KILLS = int(os.environ.get("LLM_KB_KILLS", "8"))
from tests.references.requests import differences


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetch versions as the program does."""
    monkeypatch.setattr(sources, "_fetch_source", fetch_version)


CHURN = "from tests.references.churn import main; main()"


def start(action: str, root: Path, source: Path, *times: str) -> Process:
    """Start a process that churns, and wait until it does."""
    process = Process([action, str(root), str(source), *times], program=CHURN)
    assert process.stdout.readline() == "ready\n"
    return process


def contents(library: Library) -> set[str]:
    root = library.directory(TOPIC)
    return {path.read_text() for path in root.rglob("*.md") if path.name != "topic.md"}


def leftovers(root: Path) -> list[str]:
    places = (root / name for name in (".staging", ".old"))
    return [entry.name for place in places if place.is_dir() for entry in place.iterdir()]


def check_whole(library: Library) -> None:
    """One version of all files, as recorded, and nothing left behind."""
    assert len(library.read(TOPIC).files) == FILES
    assert library.verify(TOPIC) == differences()
    assert len(contents(library)) == 1
    assert leftovers(library.root) == []


@pytest.mark.slow
@pytest.mark.parametrize("action", ["refresh", "create"])
def test_a_process_killed_at_any_moment_leaves_the_old_topic_or_the_new(
    tmp_path: Path, action: str
) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    create_topic(library, request(source), lambda plan: True)
    chance = random.Random(KILLS)
    turns = 0
    for kill in range(KILLS):
        process = start(action, library.root, source)
        if kill % 2:
            turns += len(process.stdout.readline().split())
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.communicate()
        library.clean()
        if action == "refresh" or library.exists(TOPIC):
            check_whole(library)
        assert leftovers(library.root) == []
    assert turns == KILLS // 2
    if not library.exists(TOPIC):
        create_topic(library, request(source), lambda plan: True)
    refresh_topic(library, TOPIC, lambda reason: True)
    check_whole(library)


@pytest.mark.slow
def test_two_processes_that_refresh_one_topic_do_no_harm(tmp_path: Path) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    create_topic(library, request(source), lambda plan: True)
    processes = [start("refresh", library.root, source, "6") for _ in range(2)]
    reads = 0
    while any(process.poll() is None for process in processes):
        # A reader takes no lock, and finds the topic there whenever it looks.
        assert library.ids() == [TOPIC]
        assert library.read(TOPIC).title == "Churn"
        reads += 1
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0, 0]
    assert reads > 10
    check_whole(library)


@pytest.mark.parametrize("find", [lambda store: store.ids(), lambda store: store.exists(TOPIC)])
def test_a_topic_is_found_while_a_swap_begins_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find: Callable[[Library], object]
) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    write_version(tmp_path / "src", "first")
    create_topic(library, request(tmp_path / "src"), lambda plan: True)
    current, away = library.directory(TOPIC), tmp_path / "away"
    looks: list[Path] = []

    def look(directory: Path) -> bool:
        looks.append(directory)
        if len(looks) > 1:
            return is_topic(directory)
        current.rename(away)
        found = is_topic(directory)
        away.rename(current)
        return found

    is_topic = store_module._is_topic  # noqa: SLF001 - the swap is between two of its calls
    monkeypatch.setattr(store_module, "_is_topic", look)
    assert find(library)
    assert len(looks) == 3


@pytest.mark.parametrize("stage", ["between the renames", "before the old one is gone"])
def test_a_swap_cut_short_is_put_right_by_whoever_looks_next(tmp_path: Path, stage: str) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    create_topic(library, request(source), lambda plan: True)
    root = library.root
    (root / ".old").mkdir()
    current = root / TOPIC
    if stage == "between the renames":
        current.rename(root / ".old" / TOPIC)
        (root / ".staging" / f"{TOPIC}.0123abcd").mkdir(parents=True)
    else:
        (root / ".old" / TOPIC).mkdir()
    assert library.ids() == [TOPIC]
    assert library.read(TOPIC).title == "Churn"
    library.clean()
    check_whole(library)


def test_a_swap_that_nobody_can_put_right_is_told_of(tmp_path: Path, shut: Shut) -> None:
    library = made(tmp_path)
    add_topic(library.root, "topic-a")
    (library.root / ".old").mkdir()
    (library.root / TOPIC).rename(library.root / ".old" / TOPIC)
    (tmp_path / "any").mkdir()
    shut(tmp_path / "any")  # from here on permissions count for root too
    library.root.chmod(0o555)
    topics, problems = library.topics()
    library.root.chmod(0o755)
    assert [topic.id for topic in topics] == ["topic-a"]
    assert problems == [f"cannot write '{library.root}/.old/{TOPIC}': Permission denied"]
    check_whole(library)


def test_a_file_is_no_topic(tmp_path: Path) -> None:
    (tmp_path / "topic-a").write_text("")
    with pytest.raises(UnknownReferenceError):
        Library(root=tmp_path).read("topic-a")


def test_cleaning_passes_over_names_that_no_topic_has(tmp_path: Path) -> None:
    for place, name in (
        (".old", ".DS_Store"),
        (".staging", "a b.0123abcd"),
        (".index", "~.sqlite3"),
    ):
        (tmp_path / place).mkdir()
        (tmp_path / place / name).write_text("")
    Library(root=tmp_path).clean()
    assert (tmp_path / ".index" / "~.sqlite3").is_file()


def test_cleaning_leaves_alone_what_another_process_is_making(tmp_path: Path) -> None:
    store = Library(root=tmp_path)
    with store.scratch() as directory:
        Library(root=tmp_path).clean()
        assert directory.is_dir()
    assert not directory.exists()


def test_a_topic_under_another_name_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "topic-b").mkdir()
    (tmp_path / "topic-b" / "topic.md").write_text(
        '+++\nid = "topic-a"\ntitle = "A"\ntype = "ReferenceTopic"\n+++\n'
    )
    with pytest.raises(TopicFileError, match=r"topic-b/topic.md: its id 'topic-a' is not"):
        Library(root=tmp_path).read("topic-b")


def test_a_link_in_the_place_of_a_fetched_file_is_a_difference(tmp_path: Path) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    create_topic(library, request(source), lambda plan: True)
    path = library.directory(TOPIC) / "d0" / "0.md"
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert library.verify(TOPIC) == differences(unreadable=["d0/0.md"])


def made(tmp_path: Path) -> Library:
    """A library with one topic."""
    library = Library(root=tmp_path / "refs", settings=References())
    source = tmp_path / "src"
    write_version(source, "first")
    create_topic(library, request(source), lambda plan: True)
    return library


def add_topic(root: Path, topic_id: str) -> Path:
    """Put another topic beside it, without files."""
    directory = root / topic_id
    directory.mkdir(parents=True)
    (directory / "topic.md").write_text(
        f'+++\nid = "{topic_id}"\ntitle = "T"\ntype = "ReferenceTopic"\n+++\n'
    )
    return directory


def break_topic(shut: Shut, directory: Path, way: str) -> None:
    """Make a topic one that cannot be read."""
    path = directory / "topic.md"
    if way == "a directory nobody may enter":
        shut(directory)
    elif way == "a file nobody may read":
        shut(path)
    elif way == "no text":
        path.write_bytes(b"\xff")
    else:
        path.unlink()
        if way == "a FIFO":
            os.mkfifo(path)
        elif way == "a directory":
            path.mkdir()
        elif way == "a link to itself":
            path.symlink_to("topic.md")
        elif way == "a link to nothing":
            path.symlink_to("gone")
        elif way == "a record alone":
            (directory / ".provenance.json").write_text("{}")


BREAKS = {
    "a directory nobody may enter": "Permission denied",
    "a file nobody may read": "Permission denied",
    "no text": "it is not in UTF-8",
    "a FIFO": "not a regular file",
    "a directory": "not a regular file",
    "a link to itself": "Too many levels of symbolic links",
    "a link to nothing": "it is missing; restore it, or delete what is left of the topic: "
    "llm kb references delete topic-b",
    "a record alone": "it is missing; restore it, or delete what is left of the topic: "
    "llm kb references delete topic-b",
}


def test_a_staging_directory_that_is_a_link_to_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".staging").symlink_to(tmp_path / "gone")
    with pytest.raises(WriteError, match=r"cannot write .*\.staging.*File exists"):
        Library(root=tmp_path).scratch().__enter__()


@pytest.mark.parametrize("way", BREAKS)
def test_a_topic_that_cannot_be_read_is_told_of_and_hides_no_other(
    tmp_path: Path, shut: Shut, way: str
) -> None:
    for topic_id in ("topic-a", "topic-b", "topic-c"):
        add_topic(tmp_path, topic_id)
    break_topic(shut, tmp_path / "topic-b", way)
    library = Library(root=tmp_path)
    assert library.ids() == ["topic-a", "topic-b", "topic-c"]
    assert library.exists("topic-b")
    with pytest.raises(TopicFileError) as failed:
        library.read("topic-b")
    assert str(failed.value) == f"{tmp_path}/topic-b/topic.md: {BREAKS[way]}"
    topics, problems = library.topics()
    assert ([t.id for t in topics], problems) == (["topic-a", "topic-c"], [str(failed.value)])


def test_a_directory_of_topics_that_cannot_be_read_is_told_of(tmp_path: Path, shut: Shut) -> None:
    add_topic(tmp_path / "refs", "topic-a")
    shut(tmp_path / "refs")
    library = Library(root=tmp_path / "refs")
    assert library.ids() == []
    assert library.topics() == ([], [f"{tmp_path}/refs: Permission denied"])


@pytest.mark.parametrize("way", ["a FIFO", "a link to itself"])
def test_a_record_that_is_no_file_is_an_error_at_once(tmp_path: Path, way: str) -> None:
    path = add_topic(tmp_path, "topic-a") / ".provenance.json"
    if way == "a FIFO":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name)
    with pytest.raises(TopicFileError, match=r"^.*topic-a/.provenance.json: .* delete it"):
        read_provenance(tmp_path / "topic-a")


def test_line_ends_are_read_as_they_are(tmp_path: Path) -> None:
    directory = add_topic(tmp_path, "topic-a")
    text = (directory / "topic.md").read_text().replace("\n", "\r\n") + "One\r\nTwo\n"
    (directory / "topic.md").write_bytes(text.encode())
    store = Library(root=tmp_path)
    assert store.read_text("topic-a") == text
    assert store.read("topic-a").body == "One\nTwo\n"


def test_files_that_are_none_differ_and_nothing_is_waited_for(tmp_path: Path, shut: Shut) -> None:
    library = made(tmp_path)
    root = library.directory(TOPIC)
    for path in ("d0/0.md", "d1/1.md", "d2/2.md"):
        (root / path).unlink()
    os.mkfifo(root / "d0" / "0.md")
    (root / "d1" / "1.md").mkdir()
    os.mkfifo(root / "pipe")
    (root / "outside").symlink_to("/etc")
    (root / "dangling").symlink_to("gone")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("")
    (root / os.fsdecode(b"\xff.md")).write_text("")
    assert library.verify(TOPIC) == differences(
        missing=["d1/1.md", "d2/2.md"],
        unknown=[".git/config", "\udcff.md"],
        unreadable=["d0/0.md", "dangling", "outside", "pipe"],
    )


@pytest.mark.parametrize("path", ["d0/3.md", "d0"])
def test_what_cannot_be_read_is_said_to_be_so(tmp_path: Path, shut: Shut, path: str) -> None:
    library = made(tmp_path)
    shut(library.directory(TOPIC) / path)
    unreadable = path if path.endswith(".md") else f"{path}/"
    assert library.verify(TOPIC) == differences(unreadable=[unreadable])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("topic.md", "topic.md: it has no front matter between +++ lines"),
        (".provenance.json", ".provenance.json: it is not a record of files: Expecting value"),
    ],
)
def test_verify_tells_what_kept_it_from_comparing(tmp_path: Path, name: str, problem: str) -> None:
    library = made(tmp_path)
    (library.directory(TOPIC) / name).write_text("broken")
    found = library.verify(TOPIC)
    assert [text.partition(f"{TOPIC}/")[2].startswith(problem) for text in found["problems"]] == [
        True
    ]
    assert found == differences(problems=found["problems"])
    with pytest.raises(UnknownReferenceError):
        library.verify("topic-gone")


@pytest.mark.parametrize("kind", ["a directory", "a file", "a link"])
def test_what_is_no_topic_is_never_replaced(tmp_path: Path, kind: str) -> None:
    library = Library(root=tmp_path / "refs", settings=References())
    place = library.root / TOPIC
    (tmp_path / "precious").mkdir()
    notes = tmp_path / "precious" / "notes.txt"
    if kind == "a directory":
        notes = place / "notes.txt"
        place.mkdir(parents=True)
    elif kind == "a file":
        notes = place
        library.root.mkdir()
    else:
        library.root.mkdir()
        place.symlink_to(tmp_path / "precious")
    notes.write_text("precious")
    source = tmp_path / "src"
    write_version(source, "first")

    def nobody(_: object) -> bool:
        raise AssertionError("nobody should be asked")

    with pytest.raises(TopicFileError, match=f"refs/{TOPIC}: it is not a reference topic"):
        create_topic(library, request(source), nobody)
    with library.lock(TOPIC), library.scratch() as staged, pytest.raises(TopicFileError):
        library.publish(TOPIC, staged)
    assert notes.read_text() == "precious"
    assert (library.ids(), leftovers(library.root)) == ([], [])


@pytest.mark.parametrize("way", [way for way in BREAKS if way != "a directory nobody may enter"])
def test_a_broken_topic_can_be_deleted_and_made_anew(tmp_path: Path, shut: Shut, way: str) -> None:
    library = made(tmp_path)
    break_topic(shut, library.root / TOPIC, way)
    with pytest.raises(TopicFileError, match=r"topic\.md: "):
        create_topic(library, request(tmp_path / "src"), lambda plan: True)
    library.delete(TOPIC)
    assert (library.ids(), leftovers(library.root)) == ([], [])
    create_topic(library, request(tmp_path / "src"), lambda plan: True)
    check_whole(library)


def test_a_topic_that_is_a_link_is_replaced_and_what_it_led_to_stays(tmp_path: Path) -> None:
    library = made(tmp_path)
    place, elsewhere = library.root / TOPIC, tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    write_version(tmp_path / "src", "second")
    refresh_topic(library, TOPIC, lambda reason: True)
    assert (place.is_symlink(), (elsewhere / "topic.md").is_file()) == (False, True)
    check_whole(library)


def test_a_link_that_is_deleted_leaves_what_it_led_to(tmp_path: Path) -> None:
    library = made(tmp_path)
    place, elsewhere = library.root / TOPIC, tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    library.delete(TOPIC)
    assert (library.ids(), leftovers(library.root)) == ([], [])
    assert (elsewhere / "topic.md").is_file()


def test_a_repository_that_a_killed_process_left_goes_with_the_next_look(tmp_path: Path) -> None:
    store = Library(root=tmp_path)
    with store.scratch() as running:
        left = running.with_name("new-0123456789abcdef.01234567")
        (left / "objects").mkdir(parents=True)
        store.clean()
        assert list(running.parent.iterdir()) == [running]
