"""What a model reads until it has the answer: with `learn` alone, with parts, with search.

    python bench/reading.py          a scripted reader; no model is asked
    python bench/reading.py --write  only write the workspaces and the questions, for a model

See reading.md. Each question comes with a pattern that only an answer has, and counts as answered
when that was read. The scripted reader knows no more than the tools' texts: it chooses what shares
most words with the question. A model chooses better, and knows when it has read an answer.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import CACHE, fetch

from llm_kb.errors import KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.search.question import STOP_WORDS
from llm_kb.texts.folding import fold

DJANGO = {
    "What is the default value of CONN_HEALTH_CHECKS?": (
        r"CONN_HEALTH_CHECKS``\s+~+\s+Default: ``False``"
    ),
    "How long does a session cookie last by default?": "1209600|[Tt]wo weeks|2 weeks",
    "How do I serve files uploaded by a user during development?": r"static\(settings\.MEDIA_URL",
    "Where does GZipMiddleware belong in the order of middleware?": (
        r"[Bb]efore any (?:other )?middleware that (?:may change or use|need to\s+read or write)"
    ),
    "How do I run only the tests with a certain tag?": "--tag",
    "How do I avoid a query per object for a many-to-many relation?": "prefetch_related",
    "How do I create the test database without running migrations?": "MIGRATE",
    "How can I lock rows until the end of a transaction?": "select_for_update",
    "How do I make a field unique regardless of case?": r"UniqueConstraint\(\s*Lower",
    "How does a management command take its own arguments?": "add_arguments",
    "How large may an upload be to be kept in memory?": r"2\.5 megabytes|2621440|2\.5 MB",
    "How do I set the name of a model's database table?": "db_table",
    "How do I run a function only after the transaction was committed?": "on_commit",
    "How do I change how many rows a page of the admin shows?": "list_per_page",
    "Where is a user sent after logging in when no next page is given?": "LOGIN_REDIRECT_URL",
    "How do I send an HTML email with a plain text version?": (
        "EmailMultiAlternatives|attach_alternative|html_message"
    ),
    "How do I leave a field out of a ModelForm?": "exclude = |``exclude``",
    "Which password hasher is used by default?": "PBKDF2",
    "How do I link to a view by its name in a template?": "{% url",
    "How do I insert many objects at once and skip those that exist?": "ignore_conflicts",
}
PYTEST = {
    "How do I stop the run after the first failing test?": (
        "stop after first failure|--exitfirst|pytest -x"
    ),
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
DOCUMENTATIONS = {
    "django==5.2.19": ("docs", DJANGO),
    "pytest==9.2.0": ("doc/en", PYTEST),
}
_PIECE = re.compile(r'^<passage "docs/(\S+)#.*, more: (L[-L\d]+)[^<]*', re.MULTILINE)
"""A passage that is less than its section: its subject and the lines beside it."""

_NAMED = re.compile(r"^docs/(\S+) \(line \d+\): (.*)$", re.MULTILINE)
"""A passage that is not quoted: its address and a sentence."""

MOST_CALLS = 4
"""After so many a question counts as not answered."""


CACHED, WRITTEN = 0.1, 5
"""The price of a token that was sent before, and of one that a model writes; one that is sent the
first time costs 1."""

PROMPT, CALL, ANSWER = 400, 40, 80
"""Tokens of a system prompt with its tools and the question, of a call, and of the answer."""


class Reading(NamedTuple):
    """What one question took."""

    is_answered: bool
    calls: int
    characters: int
    cost: float
    """In tokens that are sent the first time."""


def find_cost(answers: Sequence[int]) -> float:
    """Return the cost of a conversation with tools that answered with so many characters each.

    Each turn sends all turns before again.
    """
    cost, sent, new = 0.0, 0.0, float(PROMPT)
    for characters in answers:
        cost += new + CACHED * sent + WRITTEN * CALL
        sent, new = sent + new, CALL + characters / 4
    return cost + new + CACHED * sent + WRITTEN * ANSWER


def write_workspace(place: Path, requirement: str, directory: str) -> None:
    """Write a documentation, a configuration and the questions."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(fetch(requirement) / directory, place / "docs")
    (place / "llm-kb.toml").write_text(
        '[kb.topic.docs]\nintroduction = "The documentation."\nsubjects = "docs"\n'
        'ignore = ["img/", "_*/", "*.py"]\n'
    )
    questions = DOCUMENTATIONS[requirement][1]
    rows = [{"question": question, "answer": answer} for question, answer in questions.items()]
    (place / "questions.json").write_text(json.dumps(rows, indent=2))


def words_of(text: str) -> set[str]:
    words = re.findall(r"[^\W_]+", fold(text))
    return {word[:5] for word in words if word not in STOP_WORDS["en"]}


def rank_names(question: str, texts: Mapping[str, str]) -> list[str]:
    """Return names, those first whose texts share most words with a question, for their length."""
    wanted = words_of(question)
    return sorted(texts, key=lambda n: (-len(wanted & words_of(texts[n])), len(texts[n]), n))


def learn(kb: KnowledgeBase, *subjects: str) -> str:
    try:
        return kb.learn("docs", list(subjects) or None)
    except KbError as error:
        return str(error)


def read_menu(kb: KnowledgeBase, question: str) -> list[str]:
    """Return the subjects of the menu, the likeliest first: it is in the prompt, not in a call."""
    entries = re.findall(r"^  - (\S+)(?: \(~[^)]*\))?(.*)$", kb.section() or "", re.MULTILINE)
    return rank_names(question, {name: name + about for name, about in entries})


def read_subjects(kb: KnowledgeBase, question: str) -> Iterator[str]:
    """Load the subjects of the menu one after the other, and of outlines the likeliest part."""
    for name in read_menu(kb, question):
        address = name
        while address:
            text = learn(kb, address)
            yield text
            parts = re.findall(r"^\s*- (#\S+) \(~[\d,]+ tokens", text, re.MULTILINE)
            likeliest = rank_names(question, {part: part for part in parts})
            address = f"{name}{likeliest[0]}" if likeliest else ""


def read_search(kb: KnowledgeBase, question: str) -> Iterator[str]:
    """Search, then load the lines beside the passage and the other's part, the likeliest first."""
    answer = kb.answer_search({"question": question})
    yield answer
    beside = {f"{match[1]}#{match[2]}": match[0] for match in _PIECE.finditer(answer)}
    for address in rank_names(question, beside | dict(_NAMED.findall(answer))):
        yield learn(kb, address)


WAYS = {
    "learn, whole subjects": (read_subjects, ("kb.menu=subjects",)),
    "learn, with parts": (read_subjects, ("kb.menu=subjects",)),
    "search_knowledge, then learn": (read_search, ()),
}


def ask(
    kb: KnowledgeBase,
    read: Callable[[KnowledgeBase, str], Iterator[str]],
    question: str,
    answer: str,
) -> Reading:
    """Return what one question takes."""
    lengths: list[int] = []
    is_answered = False
    for text in read(kb, question):
        lengths.append(len(text))
        is_answered = bool(re.search(answer, text))
        if is_answered or len(lengths) == MOST_CALLS:
            break
    return Reading(is_answered, len(lengths), sum(lengths), find_cost(lengths))


def main(arguments: list[str]) -> None:
    os.environ["LLM_USER_PATH"] = str(CACHE / "reading-user")
    print(
        "| documentation | tools | answered | calls | characters | characters for ten questions"
        " | tokens' worth for ten |"
    )
    print("|---|---|---|---|---|---|---|")
    for requirement, (directory, questions) in DOCUMENTATIONS.items():
        place = CACHE / "reading" / requirement.partition("=")[0]
        write_workspace(place, requirement, directory)
        for title, (read, settings) in WAYS.items() if "--write" not in arguments else ():
            kb = KnowledgeBase.discover(place, fragments=settings)
            found = {each: ask(kb, read, each, answer) for each, answer in questions.items()}
            characters = sum(each.characters for each in found.values())
            cost = 10 * sum(each.cost for each in found.values()) / len(found)
            print(
                f"| {requirement} | {title} |"
                f" {sum(each.is_answered for each in found.values())} of {len(found)} |"
                f" {sum(each.calls for each in found.values())} | {characters:,} |"
                f" {10 * characters // len(found):,} | {cost:,.0f} |"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
