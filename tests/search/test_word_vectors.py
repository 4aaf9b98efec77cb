"""What is near in meaning, by the vectors of words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.question import STOP_WORDS, parse_question
from llm_kb.search.ranking import Hit, Rarities, rank
from llm_kb.search.roles import Role
from llm_kb.search.word_vectors import DIMENSIONS, FILE, Meaning
from llm_kb.texts.folding import fold


def ask(question: str) -> Meaning:
    return Meaning(parse_question(question).words)


from tests.commands.workspaces import write_files
from tests.search.folders import search


@pytest.mark.parametrize(
    ("text", "nearer", "farther"),
    [
        ("delete a directory", "removing folders from the disk", "the colours of a chart"),
        ("sign in with a password", "authentication of users", "how pages are rendered"),
        ("the server is slow", "performance of requests, latency", "license of the logo"),
        ("send mail", "SMTP messages and their recipients", "unit tests of a parser"),
    ],
)
def test_other_words_for_the_same_are_nearer(text: str, nearer: str, farther: str) -> None:
    near, far = (ask(text).compare(each) for each in (nearer, farther))
    assert near is not None
    assert far is not None
    assert near > far + 0.2


@pytest.mark.parametrize("text", ["zzyzx qwxyz", "設定を変える", "1234 5678", "of the and"])
def test_what_has_no_known_word_is_not_compared(text: str) -> None:
    assert ask(text).compare("delete a directory") is None
    assert ask("delete a directory").compare(text) is None
    assert ask("delete a directory").compare("") is None


def test_a_question_of_which_most_words_are_unknown_is_not_compared() -> None:
    assert ask("passwort login vergessen").compare("The login page.") is None
    assert ask("raise the maximum xqjobmax").compare("The login page.") is not None


def test_tags_entities_and_addresses_are_no_words() -> None:
    meaning = ask("delete a directory")
    plain = meaning.compare("Remove folders.")
    marked = '<div class="table row">Remove&nbsp;folders.</div> https://example.org/server/login'
    assert meaning.compare(marked) == pytest.approx(plain)
    assert meaning.compare("Vec<folders> removed") == pytest.approx(
        meaning.compare("Vec folders removed")
    )


@given(st.text(), st.text())
def test_a_cosine_is_one_for_any_texts(one: str, other: str) -> None:
    cosine = ask(f"server {one}").compare(f"server {other}")
    assert cosine is None or -1.001 <= cosine <= 1.001


def test_a_long_text_is_added_up_without_overflow() -> None:
    assert ask("server").compare("server " * 100_000) == pytest.approx(1.0)


def test_the_file_has_a_vector_for_each_word_and_no_stop_word() -> None:
    words, _, vectors = FILE.read_bytes().partition(b"\0")
    listed = words.decode().split("\n")
    assert len(vectors) == DIMENSIONS * len(listed)
    assert 0 not in vectors
    assert listed == sorted(set(listed))
    assert not STOP_WORDS["en"].intersection(listed)
    assert all(word == fold(word) and word.isalpha() for word in listed)


def test_a_page_in_other_words_comes_before_one_that_shares_a_word(tmp_path: Path) -> None:
    pages = {
        "a.md": "# Colours\n\nThe theme of the chart may be changed for a file.\n",
        "b.md": "# Clean up\n\nTo remove directories and each file in them, run prune.\n",
    }
    write_files(tmp_path / "pages", pages)
    assert search([tmp_path / "pages"], "how to delete a folder or file").hits[0].path == "b.md"


@pytest.mark.parametrize(
    ("asked", "role", "first"),
    [
        ("how to delete a folder or file", Role.DOCS, "b"),
        ("how to delete a folder or file", Role.CODE, "a"),
        ("wie kann ich folder und file entfernen", Role.DOCS, "a"),
    ],
)
def test_code_and_questions_in_other_languages_are_ordered_by_words_alone(
    asked: str, role: Role, first: str
) -> None:
    texts = {"a": "The theme of the chart of a file.", "b": "To remove directories and each file."}
    hits = [Hit("t", path, 1, 1, "", "", text, bm25=1.0, role=role) for path, text in texts.items()]
    found = rank(hits, parse_question(asked), Rarities({"file": {"file": 2}}, {"file": "file"}, 9))
    assert found[0].path == first
