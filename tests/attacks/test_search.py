"""Hostile questions, files and indexes: each search ends soon, and no file hides the others."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.documents.notebook import read_notebook
from llm_kb.errors import KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.passages import render_passages
from llm_kb.search.question import (
    MAX_CHARACTERS,
    MAX_WORDS,
    build_match,
    is_correctable,
    parse_question,
)
from llm_kb.subjects.editions import find_editions
from tests.cost import at_most, peak_of
from tests.fuzz.chunking import fuzz
from tests.search.folders import taken_as_current

QUESTIONS = {
    "50,000 distinct words": " ".join(f"word{number}" for number in range(50_000)),
    "one word of 300 kB": "x" * 300_000,
    "identifiers": " ".join(f"getDefault{number}Value" for number in range(20_000)),
    "compounds": "a.b" + ".c" * 150_000,
    "quotes": '"' * 300_000 + " walrus",
    "operators": "NEAR( AND NOT * ^ -" * 10_000 + " walrus",
    "a lone dash": "walrus - - - -",
    "one letter": "a " * 100_000,
    "Han": "部署" * 100_000,
    "controls": "\0\x1b[2J\u202e" * 50_000 + " walrus",
    "misspelled": " ".join(f"walrusq{chr(97 + n % 26)}z" for n in range(30_000)),
}


ENDS = b"\n" * 5_000
"""Empty lines behind a long one, without which code and data are not searched, as minified."""


def notebook(source: str) -> bytes:
    """Return a notebook of one cell."""
    return json.dumps({"cells": [{"cell_type": "code", "source": source}]}).encode()


def test_the_name_of_a_language_and_the_cells_of_a_notebook_do_not_multiply() -> None:
    cells = [{"cell_type": "code", "source": "x"}] * 500
    info = {"language_info": {"name": "a" * 10_000}}
    data = json.dumps({"metadata": info, "cells": cells}).encode()
    assert len(read_notebook(data)) < len(data)


def test_the_directories_of_pages_and_their_lengths_do_not_multiply() -> None:
    paths = [f"{n}{'/en' * 600}" for n in range(300)]
    assert peak_of(lambda: find_editions(paths)) < 2_000_000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A topic of 300 files, one of which answers."""
    directory = tmp_path / "kb"
    directory.mkdir()
    for number in range(300):
        (directory / f"{number}.md").write_text(f"# Page {number}\n\nA page of the zoo.\n")
    (directory / "walrus.md").write_text("# Walrus\n\nA large animal.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.zoo]\nsubjects = "kb"\n')
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_any_question_takes_at_most_two_seconds(workspace: Path, question: str) -> None:
    kb = KnowledgeBase.discover(workspace)
    kb.find_passages("walrus")
    with at_most(2):
        try:
            text = render_passages(kb.find_passages(question))
        except KbError as error:
            text = str(error)

    assert len(text) < 8000


def test_what_is_looked_up_for_a_question_is_bounded() -> None:
    """Each bound by itself: they stand behind each other."""
    words = [f"w{number}" for number in range(50_000)]
    assert len(parse_question("x " * 50_000).text) <= MAX_CHARACTERS + 1
    match = build_match(words, dict.fromkeys(words, 1))
    assert match.count('"') == 2 * MAX_WORDS
    assert not is_correctable("x" * 31)


def test_names_are_looked_for_in_linear_time() -> None:
    with at_most(0.05):
        assert parse_question("x" * MAX_CHARACTERS).words == ("x" * MAX_CHARACTERS,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep.md", b"> " * 200_000 + b"x\n"),
        ("lists.md", b"\n".join(b" " * n + b"- x" for n in range(2000))),
        ("headings.md", b"# h\n" * 100_000),
        ("heading.md", b"# " + b"h " * 500_000),
        ("brackets.json", b"[" * 1_000_000 + ENDS),
        ("brackets.py", b"(" * 300_000 + ENDS),
        ("indent.py", b"\n".join(b" " * n + b"def f():" for n in range(1500))),
        ("directives.rst", b"\n".join(b"   " * n + b".. class:: A\n" for n in range(800))),
        ("lines.txt", b"\n" * 2_000_000),
        ("line.js", b"a" * 5_000_000 + ENDS),
        ("nul.txt", b"walrus\0" * 100),
        ("utf8.txt", b"\xff\xfe\xed\xa0\x80" * 100_000),
        ("tags.html", b"<h1><!-- <script>" * 50_000),
        ("ticks.ipynb", notebook("`" * 1_000_000)),
        ("spaced.ipynb", notebook("` " * 500_000)),
        ("surrogate.ipynb", notebook("\ud800")),
        ("nested.ipynb", b'{"cells": ' + b"[" * 100_000),
        ("escape.md", b"# \x1b[2J\x9b31m\xe2\x80\xae walrus\n"),
    ],
)
def test_no_file_hides_the_others_or_takes_for_ever(
    workspace: Path, name: str, content: bytes
) -> None:
    (workspace / "kb" / name).write_bytes(content)
    os.utime(workspace / "kb" / name, ns=(10**19, 10**19))

    with at_most(30):
        found = KnowledgeBase.discover(workspace).find_passages("large animal")

    assert [passage.name for passage in found.passages] == ["walrus"]


def test_an_index_that_lies_shows_nothing_that_is_hidden(workspace: Path, user_dir: Path) -> None:
    (workspace / "kb" / ".secret.md").write_text("The secret walrus.\n")
    kb = KnowledgeBase.discover(workspace)
    kb.find_passages("walrus")
    (index,) = (user_dir / "kb" / "index").glob("*.sqlite3")
    with closing(sqlite3.connect(index)) as connection, connection:
        for path in (".secret.md", "../llm-kb.toml", "/etc/passwd"):
            connection.execute(
                "UPDATE documents SET path = ? WHERE path IN ('walrus.md', '.secret.md',"
                " '../llm-kb.toml')",
                (path,),
            )
    connection.close()

    for _ in range(2):
        with taken_as_current():
            found = kb.find_passages("walrus")
        assert {passage.path for passage in found.passages} <= {"walrus.md"}


@given(st.binary(max_size=2000))
def test_any_bytes_are_cut_whole(data: bytes) -> None:
    fuzz(data)


LINES = {
    "headings.html": "<h2>walrus</h2>" * 66_000,
    "paragraphs.html": "<h2>walrus</h2><p>A walrus of alpha.</p>" * 25_000,
    "sentences.md": "A walrus alpha. " * 60_000,
    "words.txt": "walrus alpha " * 75_000,
    "letters.txt": "walrus" * 160_000 + " alpha walrus",
    "code.py": "walrus(alpha); " * 60_000 + ENDS.decode(),
    "row.md": "| walrus | alpha " * 60_000,
    "items.md": "- walrus alpha\n" * 60_000,
    "announced.rst": "walrus alpha::\n\n" * 60_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_what_is_shown_costs_by_its_length_and_not_by_that_of_a_line(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / name).write_text(LINES[name])
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.zoo]\nsubjects = "kb"\n')
    kb = KnowledgeBase.discover(tmp_path)
    kb.find_passages("walrus")  # indexed here

    with at_most(2):
        found = kb.find_passages("walrus alpha")

    assert found.passages
    assert all(len(passage.text) < 3_000 for passage in found.passages)


def test_a_topic_that_links_to_itself_ends_no_search(workspace: Path) -> None:
    (workspace / "loop").symlink_to("loop")
    config = workspace / "llm-kb.toml"
    config.write_text(f'{config.read_text()}[kb.topic.loop]\nsubjects = "loop"\n')
    found = KnowledgeBase.discover(workspace).find_passages("walrus")
    assert [passage.path for passage in found.passages] == ["walrus.md"]
