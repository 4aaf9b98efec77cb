"""git's tree objects."""

from __future__ import annotations

import pytest

from llm_kb.capture.git.notes import BLOB, TREE, TreeEntry, format_tree, parse_tree
from llm_kb.git.read import ObjectReader
from tests.capture.repositories import Repo


def test_a_tree_of_git_is_parsed_and_written_back(repo: Repo) -> None:
    repo.commit("more", a_txt="1", a__b="2", ab="3")
    with ObjectReader(repo.path) as reader:
        tree = reader.read("HEAD^{tree}")
    assert tree is not None
    entries = parse_tree(tree.data, 20)
    assert [(entry.mode, entry.name) for entry in entries] == [
        (BLOB, b"README.md"),
        (BLOB, b"a.txt"),
        (TREE, b"a"),
        (BLOB, b"ab"),
    ]
    assert format_tree(reversed(entries)) == tree.data


def test_an_id_may_hold_any_byte() -> None:
    entries = (
        TreeEntry(mode=TREE, name=b"a\n", id=b"\n\0" + b"100644 x\0" + b" " * 9),
        TreeEntry(mode=BLOB, name=b"\xff b", id=b"\0" * 20),
    )
    assert parse_tree(format_tree(entries), 20) == entries


@pytest.mark.parametrize(
    "data",
    [b"x", b"100644 a\0short", b"100644 \0" + b"i" * 20, b"1" * 1_000_000, b"1 " * 500_000],
    ids=["letter", "short id", "no name", "a long mode", "a long name"],
)
def test_what_is_no_tree_is_refused_at_once(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^no tree: "):
        parse_tree(data, 20)
