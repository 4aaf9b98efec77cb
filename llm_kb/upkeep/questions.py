"""A project's questions, kept beside its knowledge: read, asked, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from llm_kb.errors import ConfigError, KbError
from llm_kb.files.fields import BadValueError, Fields, describe, read_line
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.rendering.parts import decode_exactly, find_line_numbers, find_spans
from llm_kb.rendering.passages import Passages
from llm_kb.rendering.plain_text import count, visible_line
from llm_kb.rendering.presentation import read_as_markdown
from llm_kb.search.chunking.outline import find_outline
from llm_kb.subjects.patterns import split_knowledge

FILE = "questions.toml"
"""The name of the file, which is beside the workspace's configuration."""

LONGEST = 1_000
"""The most characters of a search that is added as a question."""

AMONG = 4
"""Number of passages that a search returns by default."""


class Question(NamedTuple):
    """A question, and the subjects or parts of which each answers it, as TOPIC/SUBJECT#PART."""

    text: str
    answers: tuple[str, ...] | None
    """Empty if nothing answers it; None if nobody has said yet what does."""


class Questions(NamedTuple):
    """The questions of a file, and the percentages of them that it demands."""

    questions: tuple[Question, ...]
    first: int = 0
    """How many of 100 must be answered by the first passage."""
    among_four: int = 100
    """How many of 100 must be answered by one of the first four."""


def read_questions(table: Mapping[str, object], path: Path) -> Questions:
    """Read the document of a questions file. Raises ConfigError."""
    fields = Fields(table)
    first = fields.count("first", 0, most=100)
    among_four = fields.count("among_four", 100, most=100)
    asked = fields.list_of_fields("question")
    questions = tuple(map(_read_question, asked))
    fields.reject_unknown()
    fields.raise_problems(lambda problems: ConfigError(str(path), problems))
    return Questions(questions=questions, first=first, among_four=among_four)


def _read_question(fields: Fields) -> Question:
    text = fields.line("ask")
    answers = fields.get("answer", _read_answers)
    fields.reject_unknown()
    return Question(text, answers)


def _read_answers(value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise BadValueError(describe(value), "TOPIC/SUBJECT, TOPIC/SUBJECT#PART, or a list of them")
    return tuple(map(read_line, values))


Places: TypeAlias = "list[tuple[str, str, tuple[int, int]]]"


def find_all_places(kb: OpenTopics, questions: Iterable[Question], path: Path) -> list[Places]:
    """Return the places that the answers of each question name.

    Raises ConfigError for the answers in the file at `path` that are not there.
    """
    found: list[Places] = []
    problems: list[str] = []
    for number, question in enumerate(questions, 1):
        found.append([])
        for answer in question.answers or ():
            try:
                found[-1] += find_places(kb, answer)
            except KbError as error:
                problems.append(f"question {number}: {error}")
    if problems:
        raise ConfigError(str(path), problems)
    return found


def ask(
    demanded: Questions, places: Sequence[Places], search: Callable[[str], Passages]
) -> dict[str, Any]:
    """Return the results of all questions, and whether they are what the file demands.

    `places` are those that answer each question.
    """
    asked = zip(demanded.questions, places, strict=True)
    results = [_ask(question, wanted, search) for question, wanted in asked]
    # Those of which somebody said what answers them.
    ranks = [each["rank"] for each in results if each["answer"] is not None]
    first, total = ranks.count(1), len(ranks)
    among_four = sum(rank is not None and rank <= AMONG for rank in ranks)
    is_first_enough = 100 * first >= demanded.first * total
    return {
        "questions": total,
        "first": first,
        "among_four": among_four,
        "enough": is_first_enough and 100 * among_four >= demanded.among_four * total,
        "results": results,
    }


def _ask(question: Question, wanted: Places, search: Callable[[str], Passages]) -> dict[str, Any]:
    """Return the result of a question: the addresses found, and the rank of the one that answers.

    If nothing was to be found, and nothing was, the rank is 1.
    """
    found = search(question.text)
    ranks = [
        rank
        for rank, each in enumerate(found.passages, 1)
        for topic, path, (first, last) in wanted
        if (each.topic, each.path) == (topic, path)
        and each.first_line <= last
        and first <= each.last_line
    ]
    # Passages with a note that the answer is weak are not taken for one.
    is_refused = question.answers == () and (not found.passages or bool(found.counts))
    return {
        "question": question.text,
        "answer": question.answers,
        "rank": 1 if is_refused else min(ranks, default=None),
        "found": [f"{each.topic}/{each.address}" for each in found.passages],
    }


def find_places(kb: OpenTopics, answer: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield the topic, the path and the lines of each place that an answer names.

    Raises KbError for an answer that is not there.
    """
    topic, pattern = split_knowledge(answer)
    selection = kb.require(topic, pattern)
    opened = kb.find_topic(topic)
    for subject in selection.subjects:
        anchors = [anchor for anchor in selection.asked_of(subject) if anchor]
        if not anchors:
            yield opened.topic.id, subject.path, (1, 10**9)
            continue
        content = read_as_markdown(subject, opened.catalog.read(subject))
        text = decode_exactly(content.data)
        for span in find_spans(find_outline(subject.path, text), anchors)[0]:
            lines = find_line_numbers(text, span.start, span.end)
            yield opened.topic.id, subject.path, lines


def render_report(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table: where each answer was found, and what was found instead."""
    for each in report["results"]:
        answers, rank = each["answer"], each["rank"]
        place = "?" if answers is None else str(rank) if rank and rank <= AMONG else "not"
        yield f"{'-' if answers == () and rank else place:>3}  {visible_line(each['question'])}"
        if place not in {"1", "?"}:
            wanted = " or ".join(answers) or "nothing"
            instead = next(iter(each["found"]), "nothing")
            yield f"     {visible_line(f'answered by {wanted}; first is {instead}')}"


def render_total(report: Mapping[str, Any], demanded: Questions) -> str:
    """Return the last line: how many are found, and how many are demanded."""
    total = report["questions"]
    first, among = (
        f"{number} ({100 * number // (total or 1)} %) {place} (demanded: {least} %)"
        for number, place, least in (
            (report["first"], "found first", demanded.first),
            (report["among_four"], "among four", demanded.among_four),
        )
    )
    left = len(report["results"]) - total
    parts = [count(total, "question"), first, among]
    return ", ".join([*parts, f"{left} without an answer in the file"] if left else parts)


def render_new(texts: Sequence[str], known: Iterable[Question]) -> str:
    """Return tables for the questions that a file does not have, to be answered by somebody."""
    have = {question.text for question in known}
    lines = [" ".join(text.split())[:LONGEST] for text in texts]
    new = [line for line in dict.fromkeys(lines) if line and line not in have]
    return "".join(
        f"\n[[question]]\nask = {json.dumps(visible_line(line), ensure_ascii=False)}\n"
        '# answer = "TOPIC/SUBJECT#PART"    # [] if nothing should be found\n'
        for line in new
    )
