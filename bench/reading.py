"""What a model reads until it has the answer: with `learn` alone, with parts, with search.

    python bench/reading.py          a scripted reader; no model is asked
    python bench/reading.py --write  only write the workspace and the questions, for a model

See reading.md. The documentation is that of pytest; each question comes with a pattern that
only an answer has, and counts as answered when that was read. The scripted reader
knows no more than the tools' texts: it picks subjects by the words that their slugs share
with the question, parts by the words of their anchors, and takes searches as they come. A
model does better than it in every row, and needs as many characters for what it reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from known_items import CACHE, fetch

from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError
from llm_kb.host.search_tool import answer_search
from llm_kb.search.question import parse_question

QUESTIONS = {
    "How do I stop the run after the first failing test?": "stop after first failure",
    "Which scope does a fixture have when none is given?": "the default scope",
    "Which exit code says that no tests were collected?": "No tests were collected",
    "How do I list the slowest tests that take over a second?": "--durations",
    "How do I run only the tests that failed last time?": "--lf|--last-failed",
    "How do I disable a plugin by its name on the command line?": "-p no:",
    "Which files does pytest collect as tests by default?": r"\*_test\.py",
    "How do I turn a warning into an error on the command line?": "-W error|filterwarnings = error",
    "How do I set an environment variable for one test?": "setenv",
    "How do I request a temporary directory that only one test uses?": "tmp_path",
    "How do I compare floating point numbers?": "pytest.approx",
    "Which option runs doctests in all modules?": "--doctest-modules",
    "Where does pytest write a report in JUnit XML?": "junit-xml",
    "How do I skip tests when a module cannot be imported?": "importorskip",
    "How do I require a minimum version of pytest in the configuration?": "minversion",
    "How can one fixture run for every test without being requested?": "autouse",
    "How do I check the message of an exception that is raised?": "match=",
    "How do I run tests whose names contain a word?": "pytest -k|``-k|`-k",
    "How do I drop into the debugger when a test fails?": "pytest --pdb",
    "How do I parametrize a test with several sets of arguments?": "@pytest.mark.parametrize",
}
MOST_CALLS = 6

MOST_TOKENS = 3000
"""A part of more tokens is not loaded: one below it will do."""


class Reading(NamedTuple):
    """What one question took."""

    is_answered: bool
    calls: int
    characters: int


def write_workspace(place: Path) -> None:
    """Write the documentation, a configuration and the questions."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(fetch("pytest==9.2.0") / "doc" / "en", place / "docs")
    (place / "llm-kb.toml").write_text(
        '[kb.topic.pytest]\ntitle = "pytest"\nintroduction = "Its documentation."\n'
        'subjects = "docs"\nignore = ["img/", "_*/", "*.py"]\n'
    )
    rows = [{"question": question, "answer": answer} for question, answer in QUESTIONS.items()]
    (place / "questions.json").write_text(json.dumps(rows, indent=2))


def words_of(text: str) -> set[str]:
    return {word[:5] for word in parse_question(text.replace("-", " ").replace("_", " "))}


def rank_names(question: str, names: list[str]) -> list[str]:
    """Return names, those first that share most words with a question, for their length."""
    wanted = words_of(question)
    return sorted(names, key=lambda name: (-len(wanted & words_of(name)), len(name), name))


def learn(kb: KnowledgeBase, *subjects: str) -> str:
    try:
        return kb.learn("pytest", list(subjects) or None)
    except KbError as error:
        return str(error)


def read_whole(kb: KnowledgeBase, question: str) -> Iterator[str]:
    """List the subjects, then load the likeliest one after the other."""
    listing = learn(kb)
    yield listing
    for name in rank_names(question, re.findall(r"^- (\S+)", listing, re.MULTILINE)):
        yield learn(kb, name)


def read_parts(kb: KnowledgeBase, question: str) -> Iterator[str]:
    """Read the same, but of a subject that answers with its outline the likeliest parts."""
    listing = learn(kb)
    yield listing
    for name in rank_names(question, re.findall(r"^- (\S+)", listing, re.MULTILINE)):
        text = learn(kb, name)
        yield text
        parts = re.findall(r"^\s*- (#\S+) \(~([\d,]+) tokens\)", text, re.MULTILINE)
        small = [anchor for anchor, size in parts if int(size.replace(",", "")) <= MOST_TOKENS]
        for anchor in rank_names(question, small)[:2]:
            yield learn(kb, f"{name}{anchor}")


def read_search(kb: KnowledgeBase, question: str) -> Iterator[str]:
    """Search, then load the parts the answer names, then look for subjects."""
    answer = answer_search(kb, question)
    yield answer
    for address in re.findall(r'^<passage "pytest/(\S+)', answer, re.MULTILINE):
        yield learn(kb, address)
    yield from read_whole(kb, question)


def ask(
    kb: KnowledgeBase, read: Callable[[KnowledgeBase, str], Iterator[str]], question: str
) -> Reading:
    characters = calls = 0
    for text in read(kb, question):
        calls += 1
        characters += len(text)
        if re.search(QUESTIONS[question], text):
            return Reading(True, calls, characters)
        if calls == MOST_CALLS:
            break
    return Reading(False, calls, characters)


def main(arguments: list[str]) -> None:
    place = CACHE / "reading"
    write_workspace(place)
    if "--write" in arguments:
        print(f"wrote {place}: ask {len(QUESTIONS)} questions as reading.md says")
        return
    os.environ["LLM_USER_PATH"] = str(CACHE / "reading-user")
    ways = {
        "learn, whole subjects": ("kb.outline_over=0", read_whole),
        "learn, with parts": ("kb.outline_over=24000", read_parts),
        "search_knowledge, then learn": ("kb.outline_over=24000", read_search),
    }
    print("| tools | answered | calls | characters | characters an answer |\n|---|---|---|---|---|")
    for title, (setting, read) in ways.items():
        kb = KnowledgeBase.discover(place, fragments=[setting])
        found = [ask(kb, read, question) for question in QUESTIONS]
        answered = sum(each.is_answered for each in found)
        characters = sum(each.characters for each in found)
        print(
            f"| {title} | {answered} of {len(found)} | {sum(each.calls for each in found)} |"
            f" {characters:,} | {characters // max(1, answered):,} |"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
