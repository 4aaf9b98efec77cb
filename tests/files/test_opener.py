"""Only regular files are read: nothing waits for a FIFO or follows a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_kb.files.containment import read_regular


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\r\n")
    assert read_regular(tmp_path / "a") == b"a\r\n"


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "nothing"])
def test_whatever_is_no_file_is_an_error_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        (tmp_path / "b").write_text("b")
        path.symlink_to("b")
    elif kind == "directory":
        path.mkdir()
    with pytest.raises(OSError, match=str(path)):
        read_regular(path)
