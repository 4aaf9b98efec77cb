"""Hostile directories: links that lead out, loops, swaps, devices and unreadable names."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.errors import UnreadableError
from llm_kb.files import containment
from llm_kb.files.containment import Containment, resolve_links
from llm_kb.subjects.topics import Content, Layout, Skipped, Subject, slugify
from llm_kb.texts.safe import UNUSABLE, attribute
from tests.files.test_directory import catalog, found, matched, names, read, root, skipped, write

__all__ = ["root"]  # the fixture

AS_ROOT = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything"
)
OUT = "the link leads outside the topic"


def test_links_out_of_the_topic_are_skipped_and_reported(root: Path) -> None:
    write(root, "a.md")
    (root / "file.md").symlink_to("../private/key.md")
    (root / "directory").symlink_to("../private")
    (root / "absolute.md").symlink_to(root.parent / "private" / "key.md")
    (root / "chain.md").symlink_to("file.md")
    (root / "up").symlink_to("..")
    opened = catalog(root)
    links = ["absolute.md", "chain.md", "directory", "file.md", "up"]
    assert names(opened) == {"a": "a.md"}
    assert skipped(opened) == [Skipped(path=link, reason=OUT) for link in links]
    references = ["file", "file.md", "directory/key", "up/private/key", "chain", "up/topic/a"]
    assert [found(opened, reference) for reference in references] == [[]] * 6
    assert matched(opened, "directory/*") == []


def test_the_user_may_allow_links_to_lead_somewhere(root: Path) -> None:
    write(root.parent, "commons/x.md", "commons-not/y.md", "commons/deep/z.md")
    (root / "s").symlink_to("../commons")
    (root / "n").symlink_to("../commons-not")
    (root.parent / "commons" / "out.md").symlink_to("../private/key.md")
    opened = catalog(root, allow=[root.parent / "commons"])
    assert names(opened) == {"s/deep/z": "s/deep/z.md", "s/x": "s/x.md"}
    assert [s.path for s in skipped(opened)] == ["n", "s/out.md"]
    assert found(opened, "s/x") == ["s/x.md"]
    assert read(opened, "s/x.md") == Content(data=b"commons/x.md", size=12)
    assert names(catalog(root)) == {}


def test_a_linked_directory_is_listed_once_and_by_its_own_name(root: Path) -> None:
    write(root, "z/x.md", ".h/y.md")
    for link, target in {"a": "z", "b": "z", "c": ".h", "d": ".h", ".e": "z"}.items():
        (root / link).symlink_to(target)
    opened = catalog(root)
    assert names(opened) == {"z/x": "z/x.md", "c/y": "c/y.md"}
    assert matched(opened, "**") == ["c/y", "z/x"]
    assert found(opened, "a/x") == ["a/x.md"]


def test_loops_and_links_to_nothing_end(root: Path) -> None:
    write(root, "d/x.md")
    (root / "self").symlink_to("self")
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "gone").symlink_to("nowhere")
    (root / "root").symlink_to(".")
    (root / "d" / "up").symlink_to("..")
    (root / ".d").symlink_to("d")
    opened = catalog(root)
    assert names(opened) == {"d/x": "d/x.md"}
    reasons = {report.path: report.reason for report in skipped(opened)}
    loop, nowhere = "the link leads to itself", "the link has no target"
    assert reasons == {"self": loop, "a": loop, "b": loop, "gone": nowhere}
    assert found(opened, "root/root/d/x") == ["root/root/d/x.md"]
    assert found(opened, "root/" * 60 + "d/x") == []


def test_links_that_multiply_are_followed_once_a_level(root: Path) -> None:
    """Two names for one directory at each level would be 2 ** 30 ways to go."""
    write(root, "x.md")
    (root / "a").symlink_to(".")
    (root / ".a").symlink_to(".")
    assert found(catalog(root), "a/" * 30 + "x") == ["a/" * 30 + "x.md"]


def test_the_topic_may_be_a_link(root: Path) -> None:
    write(root, "a.md")
    link = root.parent / "link"
    link.symlink_to(root)
    opened = catalog(resolve_links(link))
    assert names(opened) == {"a": "a.md"}
    assert read(opened, "a.md") == Content(data=b"a.md", size=4)


def test_a_link_in_the_place_of_the_root_leads_outside(root: Path) -> None:
    """The root was resolved by the configuration; a link there now was put there since."""
    write(root, "a.md")
    opened = catalog(root)
    moved = root.with_name("moved")
    root.rename(moved)
    root.symlink_to(moved)
    assert names(opened) == {}
    assert skipped(opened) == [Skipped(path="", reason=OUT)]
    with pytest.raises(UnreadableError, match="it leads outside the topic"):
        read(opened, "a.md")


def test_a_link_to_a_file_is_a_subject_of_its_own(root: Path) -> None:
    write(root, "d/x.md")
    (root / "l.md").symlink_to("d/x.md")
    assert names(catalog(root)) == {"d/x": "d/x.md", "l": "l.md"}
    assert read(catalog(root), "l.md") == Content(data=b"d/x.md", size=6)


def test_what_is_no_file_is_reported_and_never_opened(root: Path) -> None:
    write(root, "a.md")
    os.mkfifo(root / "fifo.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(root / "sock"))
    (root / "null.md").symlink_to("/dev/null")
    (root / "to-fifo.md").symlink_to("fifo.md")
    opened = catalog(root, allow=[Path("/dev")])
    assert names(opened) == {"a": "a.md"}
    reason = "it is neither a file nor a directory"
    paths = ["fifo.md", "null.md", "sock", "to-fifo.md"]
    assert skipped(opened) == [Skipped(path=path, reason=reason) for path in paths]
    assert [found(opened, slugify(path)) for path in paths] == [[]] * 4


@pytest.mark.parametrize("path", ["fifo.md", "directory", "gone.md", "a.md/b", "x" * 300])
def test_reading_what_is_no_file_is_an_error_and_never_blocks(root: Path, path: str) -> None:
    write(root, "a.md", "directory/x")
    os.mkfifo(root / "fifo.md")
    with pytest.raises(UnreadableError) as caught:
        read(catalog(root), path)
    assert repr(path) in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="devices are made as on Linux")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_path_that_is_as_long_as_can_be_is_no_skill_and_no_error(root: Path) -> None:
    directory, most = root, os.pathconf(root, "PC_PATH_MAX") - 6
    while (left := most - len(str(directory))) > 1:
        directory /= "d" * min(200, left - 1)
    directory.mkdir(parents=True)
    (directory / "x").touch()
    assert names(catalog(root, layout=Layout.SKILLS)) == {}


def test_a_device_is_no_subject(root: Path) -> None:
    try:
        os.mknod(root / "zero.md", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices may not be made here")
    opened = catalog(root)
    assert names(opened) == {}
    with pytest.raises(UnreadableError, match="not a regular file"):
        read(opened, "zero.md")


@AS_ROOT
def test_what_may_not_be_read_is_reported(root: Path) -> None:
    write(root, "a.md", "closed/b.md")
    (root / "a.md").chmod(0)
    (root / "closed").chmod(0)
    opened = catalog(root)
    try:
        assert names(opened) == {"a": "a.md"}
        assert skipped(opened) == [Skipped(path="closed", reason="permission denied")]
        assert found(opened, "closed/b") == []
        with pytest.raises(UnreadableError, match="permission denied"):
            read(opened, "a.md")
    finally:
        (root / "closed").chmod(0o700)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"new\nline.md", "new\\nline.md"),
        (b"bell\x07.md", "bell\\x07.md"),
        (b"escape\x1b[31m.md", "escape\\x1b[31m.md"),
        (b"latin\xe9.md", "latin\\udce9.md"),
        ("line\u2028.md".encode(), "line\\u2028.md"),
        ("reversed\u202e.md".encode(), "reversed\\u202e.md"),
        ("tag\U000e0041.md".encode(), "tag\\U000e0041.md"),
        (b"...", "..."),
    ],
    ids=ascii,
)
def test_names_that_nobody_can_read_are_reported_readably(
    root: Path, name: bytes, shown: str
) -> None:
    write(root, "a.md")
    (root / "d").mkdir()
    for directory in (b"/", b"/d/"):
        try:
            os.close(os.open(os.fsencode(root) + directory + name, os.O_CREAT | os.O_WRONLY))
        except OSError as error:
            if error.errno != errno.EILSEQ:
                raise
            pytest.skip("this disk takes no such name")
    opened = catalog(root)
    assert names(opened) == {"a": "a.md"}
    assert [report.path for report in skipped(opened)] == sorted([shown, f"d/{shown}"])
    assert found(opened, os.fsdecode(name)) == []


@pytest.mark.slow
def test_what_a_tag_would_lose_of_a_name_makes_it_unusable() -> None:
    odd = [chr(code) for code in range(sys.maxunicode + 1) if not chr(code).isprintable()]
    lost = [character for character in odd if attribute(character) != character]
    assert [character for character in lost if not UNUSABLE.search(character)] == []


def test_a_directory_of_an_unreadable_name_is_not_entered(root: Path) -> None:
    (root / "new\nline").mkdir()
    write(root, "new\nline/a.md")
    (root / "linked\n").symlink_to("new\nline")
    opened = catalog(root)
    assert names(opened) == {}
    assert [s.path for s in skipped(opened)] == ["linked\\n", "new\\nline"]
    assert (found(opened, "new\nline/a"), matched(opened, "**")) == ([], [])


# What changes between a look and the next


def test_a_link_swapped_in_after_the_listing_leaks_nothing(root: Path) -> None:
    write(root, "a.md", "d/key.md")
    opened = catalog(root)
    subjects = {subject.path: subject for subject in opened.list().subjects}
    (root / "a.md").unlink()
    (root / "a.md").symlink_to("../private/key.md")
    (root / "d" / "key.md").unlink()
    (root / "d").rmdir()
    (root / "d").symlink_to("../private")
    for path in ("a.md", "d/key.md"):
        with pytest.raises(UnreadableError, match="it leads outside the topic"):
            opened.read(subjects[path])


def test_a_link_swapped_in_for_something_ignored_or_disabled_leaks_nothing(root: Path) -> None:
    write(root, "a.md", "b.md", ".git/config", "secret.md")
    opened = catalog(root, disabled=["secret"])
    for path, target in {"a.md": ".git/config", "b.md": "secret.md"}.items():
        (root / path).unlink()
        (root / path).symlink_to(target)
        with pytest.raises(UnreadableError, match="it leads to a file that is not a subject"):
            read(opened, path)


def test_what_is_swapped_between_two_reads_of_a_directory_leaks_nothing(root: Path) -> None:
    """That a directory was in the topic at one read says nothing of the next."""
    write(root, "d/key.md", "d/pipe.md", "d/x.md")
    opened = catalog(root)
    assert read(opened, "d/x.md") == Content(data=b"d/x.md", size=6)
    (root / "d" / "pipe.md").unlink()
    os.mkfifo(root / "d" / "pipe.md")
    with pytest.raises(UnreadableError, match="not a regular file"):
        read(opened, "d/pipe.md")
    (root / "d" / "x.md").unlink()
    (root / "d" / "x.md").symlink_to("../../private/key.md")
    with pytest.raises(UnreadableError, match="it leads outside the topic"):
        read(opened, "d/x.md")
    assert read(opened, "d/key.md") == Content(data=b"d/key.md", size=8)
    (root / "d").rename(root.parent / "moved")
    (root / "d").symlink_to("../private")
    with pytest.raises(UnreadableError, match="it leads outside the topic"):
        read(opened, "d/key.md")
    (root / "d").unlink()
    (root / "d").mkdir()
    (root / "d" / "key.md").write_text("new")
    assert read(opened, "d/key.md") == Content(data=b"new", size=3)


def test_a_name_that_no_pattern_can_write_is_reported(root: Path) -> None:
    write(root, "a.md", "back\\slash.md", "d\\e/x.md", "c/n\\.md", "c/m.md")
    opened = catalog(root)
    assert names(opened) == {"a": "a.md", "c/m": "c/m.md"}
    flaw = "its name contains a backslash, which no pattern may contain"
    paths = ["back\\slash.md", "c/n\\.md", "d\\e"]
    assert skipped(opened) == [Skipped(path=path, reason=flaw) for path in paths]


def test_what_is_swapped_after_the_listing_leaks_nothing(root: Path) -> None:
    write(root, *(f"d/{name}.md" for name in ("a", "fifo", "key", "gone", "long")), "e.md")
    subjects = {s.path: s for s in catalog(root).list().subjects}
    write(root.parent, "private/e.md")
    assert catalog(root).read(subjects["d/a.md"]) == Content(data=b"d/a.md", size=6)
    (root / "d" / "fifo.md").unlink()
    os.mkfifo(root / "d" / "fifo.md")
    fifo = os.open(root / "d" / "fifo.md", os.O_RDWR)  # which has a byte to be read
    os.write(fifo, b"x")
    with pytest.raises(UnreadableError, match="not a regular file"):
        catalog(root).read(subjects["d/fifo.md"])
    assert os.read(fifo, 2) == b"x"
    os.close(fifo)
    (root / "d" / "key.md").unlink()
    (root / "d" / "key.md").symlink_to("../../private/key.md")
    with pytest.raises(UnreadableError, match="it leads outside the topic"):
        catalog(root).read(subjects["d/key.md"])
    (root / "d" / "gone.md").unlink()
    with pytest.raises(UnreadableError, match="no such file or directory"):
        catalog(root).read(subjects["d/gone.md"])
    (root / "d" / "long.md").write_bytes(b"long" * 50_000)
    assert catalog(root).read(subjects["d/long.md"], 6) == Content(data=b"longlo", size=200_000)
    (root / "d").rename(root.parent / "moved")
    (root / "d").symlink_to("../private")
    assert catalog(root).read(subjects["e.md"]) == Content(data=b"e.md", size=4)
    with pytest.raises(UnreadableError, match="it leads outside the topic"):
        catalog(root).read(subjects["d/key.md"])


def test_no_directory_stays_open(root: Path) -> None:
    write(root, "a.md", "d/b.md", "e/c.md")
    opened = catalog(root)
    subjects = opened.list().subjects
    before = count_open()
    for subject in subjects:
        opened.read(subject)
    assert count_open() == before


def count_open() -> int:
    """Return how many descriptors this process has open."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def swap_for_a_link(directory: Path) -> None:
    directory.rename(directory / "../../moved")
    directory.symlink_to("../private")


@pytest.mark.parametrize(
    ("change", "skipped"),
    [(swap_for_a_link, [Skipped(path="d", reason=OUT)]), (shutil.rmtree, [])],
    ids=["swapped for a link", "gone"],
)
def test_a_directory_that_changes_while_walking_is_not_listed(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    skipped: list[Skipped],
) -> None:
    write(root, "a.md", "d/x.md")
    look = Containment.list_directory

    def look_then_change(self: Containment, path: str) -> tuple[str, list[int], dict[str, int]]:
        entries = look(self, path)
        if not path:
            change(root / "d")
        return entries

    monkeypatch.setattr(Containment, "list_directory", look_then_change)
    listing = catalog(root).list()
    assert ([s.path for s in listing.subjects], list(listing.skipped)) == (["a.md"], skipped)


def test_files_swapped_all_the_time_never_leak(root: Path) -> None:
    """A thread swaps a file and a link out of the topic while both are read."""
    write(root, "a.md")
    write(root.parent, "b.md")
    (root.parent / "link").symlink_to("private/key.md")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (root / "new").symlink_to("../private/key.md")
            (root / "new").replace(root / "a.md")
            (root / "new").write_text("a.md")
            (root / "new").replace(root / "a.md")

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[bytes] = set()
    opened = catalog(root)
    subject = Subject(slug=slugify("a.md"), name="a", path="a.md")
    try:
        for _ in range(1000):
            opened.list()
            try:
                seen.add(opened.read(subject).data)
            except UnreadableError:
                seen.add(b"")
    finally:
        done.set()
        thread.join()
    assert seen <= {b"a.md", b""}


def test_where_there_is_no_proc_containment_holds_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(containment, "_read_descriptor", refuse)
    write(root, "a.md", "d/b.md")
    (root / "out.md").symlink_to("../private/key.md")
    opened = catalog(root)
    assert names(opened) == {"a": "a.md", "d/b": "d/b.md"}
    assert read(opened, "d/b.md") == Content(data=b"d/b.md", size=6)
    with pytest.raises(UnreadableError, match="it leads outside the topic"):
        read(opened, "out.md")


# Sizes


def test_no_more_is_read_than_asked_for(root: Path) -> None:
    with (root / "big.md").open("wb") as file:
        file.write(b"start")
        file.truncate(1 << 30)
    tracemalloc.start()
    try:
        content = read(catalog(root), "big.md", 100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (content.data, content.size) == (b"start" + bytes(95), 1 << 30)
    assert peak < 1 << 20


def test_no_room_is_made_for_more_than_a_file_has(root: Path) -> None:
    write(root, "a.md")
    opened = catalog(root)
    tracemalloc.start()
    try:
        content = read(opened, "a.md", 1 << 26)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert content == Content(data=b"a.md", size=4)
    assert peak < 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is as on Linux")
@pytest.mark.parametrize("limit", [0, 1, 2, 5, 1000])
def test_a_file_with_more_than_its_size_says_is_read_up_to_the_limit(limit: int) -> None:
    """As one that grows while it is read: the system calls every file of `/proc` empty."""
    start = Path("/proc/version").read_bytes()[:limit]
    read_file = Containment(Path("/proc")).read_file
    assert read_file("version", limit) == (start, len(start), "version")


@pytest.mark.parametrize("size", [0, 1, 4096, pytest.param((1 << 26) + 1, marks=pytest.mark.slow)])
def test_a_file_is_read_whole(root: Path, size: int) -> None:
    data = bytes(size)
    (root / "a.md").write_bytes(data)
    opened = catalog(root)
    assert read(opened, "a.md") == Content(data=data, size=size)
    assert read(opened, "a.md", size) == Content(data=data, size=size)
    assert read(opened, "a.md", size + 2) == Content(data=data, size=size)
    assert read(opened, "a.md", 0) == Content(data=b"", size=size)


@pytest.mark.slow
def test_a_topic_of_100_000_files_is_listed(root: Path) -> None:
    for number in range(100):
        (root / f"{number:02}").mkdir()
        for file in range(1000):
            os.close(os.open(f"{root}/{number:02}/{file:03}.md", os.O_CREAT | os.O_WRONLY))
    opened = catalog(root)
    subjects = opened.list().subjects
    assert len(subjects) == 100_000
    assert [subjects[0].slug, subjects[-1].slug] == ["00/000", "99/999"]
    assert matched(opened, "42/99*") == [f"42/99{digit}" for digit in range(10)]
    assert found(opened, "42/007") == ["42/007.md"]


# Disks that ignore case


def test_another_case_finds_nothing_even_where_the_disk_ignores_case(root: Path) -> None:
    """Names are read from the directory, so that a slug is spelled as it is."""
    write(root, "Dir/x.md", "open/y.md")
    opened = catalog(root, disabled=["Dir/*"])
    assert [found(opened, r) for r in ("dir/x", "DIR/x", "Dir/x")] == [[]] * 3
    assert (found(opened, "open/y"), found(opened, "OPEN/y")) == (["open/y.md"], [])


def test_a_link_to_a_directory_above_is_followed_where_a_reference_spells_it(root: Path) -> None:
    write(root, "v2/a.md")
    (root / "v2" / "latest").symlink_to("../v2")
    assert found(catalog(root), "v2/latest/latest/a") == ["v2/latest/latest/a.md"]
    assert names(catalog(root)) == {"v2/a": "v2/a.md"}


# What is merely too much


def test_thousands_of_extensions_of_one_name_are_told_apart(root: Path) -> None:
    paths = [f"a.{number:04}" for number in range(3000)]
    for path in paths:
        (root / path).touch()
    opened = catalog(root)
    assert names(opened) == {path: path for path in paths}
    assert found(opened, "a") == paths
    assert found(opened, "a.2999") == ["a.2999"]


def test_a_path_longer_than_the_system_takes_is_reported(root: Path) -> None:
    write(root, "a.md")
    here = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("b.md", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    opened = catalog(root)
    assert names(opened) == {"a": "a.md"}
    assert [report.reason for report in skipped(opened)] == ["file name too long"]


def test_more_rules_than_anyone_writes_are_left_out_and_reported(root: Path) -> None:
    rules = [f"rule-{number}" for number in range(2000)]
    write(root, "a.md", "b.md", "rule-1998")
    opened = catalog(root, ignore=[*rules[:499], "a.md", "b.md", *rules])
    assert names(opened) == {"b": "b.md", "rule-1998": "rule-1998"}
    reason = "rule 501 and all after it left out: there are too many"
    assert skipped(opened) == [Skipped(path="ignore", reason=reason)]
