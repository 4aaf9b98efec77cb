"""Every file below a directory: links are not followed, unreadable directories are named."""

from __future__ import annotations

from pathlib import Path

from llm_kb.files.walk import iter_files


def test_files_links_and_unreadable_directories_are_named(tmp_path: Path) -> None:
    for path in ("a", ".hidden/b", "left/out/c", "link-to/d"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "link").symlink_to("link-to", target_is_directory=True)
    asked: list[str] = []

    def enters(path: str) -> bool:
        asked.append(path)
        return path != "left/"

    assert sorted(path for path, _ in iter_files(tmp_path, enters)) == [
        ".hidden/b",
        "a",
        "link",
        "link-to/d",
    ]
    assert sorted(asked) == [".hidden/", "left/", "link-to/"]


def test_a_directory_that_cannot_be_read_has_its_error(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "a").touch()

    def enters(path: str) -> bool:
        (tmp_path / path).rmdir()
        return True

    assert [
        (path, type(entry) is FileNotFoundError) for path, entry in iter_files(tmp_path, enters)
    ] == [("a", False), ("gone/", True)]
    ((path, error),) = iter_files(tmp_path / "gone")
    assert (path, type(error)) == ("./", FileNotFoundError)
