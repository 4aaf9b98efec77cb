"""Files are replaced whole, created once, and written by one at a time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.files.atomic import (
    BusyError,
    WriteError,
    create_below,
    locked,
    replace_below,
    replace_file,
)
from tests.isolation import no_room
from tests.preloaded import Process

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert (path.read_bytes(), names(path.parent)) == (b"two", ["x"])


@posix_only
def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", b"")
        replace_file(tmp_path / "b", b"", new_mode=0o600)
        create_below(tmp_path, "c", b"")
    finally:
        os.umask(before)
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in "abc"] == [
        "0o640",
        "0o600",
        "0o640",
    ]


@posix_only
def test_what_replaces_a_private_file_is_private_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.touch(mode=0o600)
    modes = []
    monkeypatch.setattr(os, "fsync", lambda fd: modes.append(oct(os.fstat(fd).st_mode & 0o777)))
    replace_file(path, b"new")
    assert (modes, oct(path.stat().st_mode & 0o777)) == (["0o600"], "0o600")


@posix_only
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with no_room():
        with pytest.raises(WriteError, match="File too large"):
            replace_file(path, b"new")
        with pytest.raises(WriteError, match="File too large"):
            create_below(tmp_path, "y", b"new")
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["x"])


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(WriteError):
        replace_file(tmp_path / "x", b"")
    assert names(tmp_path) == ["x"]


def test_a_file_is_created_once(tmp_path: Path) -> None:
    create_below(tmp_path, "a/x", b"one")
    with pytest.raises(FileExistsError):
        create_below(tmp_path, "a/x", b"two")
    assert ((tmp_path / "a" / "x").read_bytes(), names(tmp_path / "a")) == (b"one", ["x"])


@pytest.mark.parametrize("write", [create_below, replace_below], ids=["new", "replaced"])
def test_a_kill_leaves_all_or_nothing(
    tmp_path: Path, write: Callable[[Path, str, bytes], None]
) -> None:
    """What it leaves is hidden, and the next run removes it once no process can be writing it."""
    code = (
        "import os, signal; from pathlib import Path; from llm_kb.files import atomic\n"
        "def kill(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.link = os.replace = kill\n"
        f"atomic.{write.__name__}(Path({str(tmp_path)!r}), 'page.md', b'text')"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.startswith(".page.md.")
    (tmp_path / ".page.md.draft~").write_text("mine")
    write(tmp_path, "page.md", b"text")
    assert names(tmp_path) == sorted([left, ".page.md.draft~", "page.md"])
    os.utime(tmp_path / left, (0, 0))
    replace_below(tmp_path, "page.md", b"other")
    assert names(tmp_path) == [".page.md.draft~", "page.md"]


def test_a_file_is_created_once_where_a_file_has_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    create_below(tmp_path, "page.md", b"text")
    with pytest.raises(WriteError):
        create_below(tmp_path, "page.md", b"other")
    assert [(each, (tmp_path / each).read_text()) for each in names(tmp_path)] == [
        ("page.md", "text")
    ]


def test_a_lock_that_is_held_for_too_long_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with locked(path):
        for seconds in (0, 0.1):
            with pytest.raises(BusyError, match="is writing here"), locked(path, seconds=seconds):
                pytest.fail("two held the lock")
    with locked(path):
        assert names(tmp_path) == ["x.lock"]
    assert names(tmp_path) == []


@posix_only
def test_a_file_system_without_locks_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", refuse)
    with locked(tmp_path / "x"), locked(tmp_path / "x"):
        pass


WRITER = """
import sys
from pathlib import Path
from llm_kb.files.atomic import locked
counter = Path(sys.argv[1])
for _ in range(20):
    with locked(counter.with_suffix(".lock"), seconds=60):
        number = int(counter.read_text())
        counter.write_text(str(number + 1))
"""


def test_writers_take_turns_though_the_lock_file_is_removed_each_time(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    writers = [Process([str(counter)], program=WRITER) for _ in range(4)]
    assert [writer.communicate() for writer in writers] == [("", "")] * 4
    assert (counter.read_text(), names(tmp_path)) == ("80", ["counter"])


@posix_only
def test_a_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from llm_kb.files.atomic import locked\n"
        "with locked(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "x.lock"
    Process([str(path)], program=code).communicate()
    assert names(tmp_path) == ["x.lock"]
    with locked(path, seconds=1):
        pass
    assert names(tmp_path) == []


def test_a_file_in_the_directorys_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(WriteError, match="File exists"), locked(tmp_path / "x" / "lock"):
        pytest.fail("locked a file")
