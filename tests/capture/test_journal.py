"""The record of the commits that were looked at."""

from __future__ import annotations

import pytest

from llm_kb.capture.commits import Journal, JournalError, Record, choose_commits
from llm_kb.capture.notes import find_repository
from tests.capture.repositories import Repo


def journal_of(repo: Repo) -> Journal:
    repository = find_repository(repo.path)
    assert repository is not None
    return Journal(repository)


def test_what_was_recorded_is_read_again(repo: Repo) -> None:
    assert journal_of(repo).read() == {}
    journal_of(repo).append("aaa", model="m", written=1, duplicates=0)
    journal_of(repo).append("bbb", model="m", written=0, duplicates=0, failed="timeout")
    journal_of(repo).append("ccc", model="m", written=2, duplicates=0, failed="filter")
    journal_of(repo).append("ccc", model="m", written=1, duplicates=2)
    assert journal_of(repo).read() == {
        "aaa": Record(written=1),
        "bbb": Record(failed="timeout"),
        "ccc": Record(written=3),
    }


def test_a_run_that_stopped_adds_to_what_was_written_and_finishes_nothing(repo: Repo) -> None:
    for commit, failed in (("aaa", None), ("bbb", "timeout")):
        journal_of(repo).append(commit, model="m", written=1, duplicates=0, failed=failed)
    for commit in ("aaa", "bbb", "ccc", "ccc", "ddd"):
        journal_of(repo).append(commit, model="m", written=2, duplicates=0, stopped="interrupted")
    journal_of(repo).append("ddd", model="m", written=1, duplicates=0)
    records = journal_of(repo).read()
    assert records == {
        "aaa": Record(written=3),
        "bbb": Record(written=3, failed="timeout"),
        "ccc": Record(written=4, is_finished=False),
        "ddd": Record(written=3),
    }
    assert choose_commits(["aaa", "bbb", "ccc", "ddd", "eee"], records) == (["ccc", "eee"], 2, 1)


def test_a_line_cut_short_is_passed_over(repo: Repo) -> None:
    journal = journal_of(repo)
    journal.append("aaa", model="m", written=0, duplicates=0)
    with journal.path.open("a") as file:
        file.write('{"commit": "bb\n[]\n{"commit": 7}\n')
    journal.append("ccc", model="m", written=0, duplicates=0)
    assert journal.read().keys() == {"aaa", "ccc"}


def test_it_is_no_part_of_the_work_tree(repo: Repo) -> None:
    journal_of(repo).append("aaa", model="m", written=0, duplicates=0)
    assert repo.git("status", "--porcelain") == ""


def test_a_record_that_cannot_be_kept_is_an_error(repo: Repo) -> None:
    journal = journal_of(repo)
    journal.path.parent.write_text("a file where the directory goes")
    with pytest.raises(JournalError, match="cannot be used"):
        journal.append("aaa", model="m", written=0, duplicates=0)
    with pytest.raises(JournalError, match=r"captured\.jsonl"):
        journal.read()
