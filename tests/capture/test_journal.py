"""The record of the commits that were looked at."""

from __future__ import annotations

import pytest

from llm_kb.capture.commits import Journal
from llm_kb.capture.notes import find_repository
from tests.capture.repositories import Repo


def journal_of(repo: Repo) -> Journal:
    repository = find_repository(repo.path)
    assert repository is not None
    return Journal(repository)


def test_what_was_recorded_is_read_again_and_no_part_of_the_work_tree(repo: Repo) -> None:
    assert journal_of(repo).read() == frozenset()
    journal_of(repo).append("aaa")
    journal_of(repo).append("bbb")
    assert journal_of(repo).read() == {"aaa", "bbb"}
    assert repo.git("status", "--porcelain") == ""


def test_a_record_that_cannot_be_kept_is_an_error(repo: Repo) -> None:
    journal = journal_of(repo)
    journal.path.parent.write_text("a file where the directory goes")
    with pytest.raises(OSError, match="llm-kb"):
        journal.append("aaa")
