"""`llm kb test`: ask a project's questions, and report which are answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click

from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_json
from llm_kb.config.workspace import decode_bytes, read_bytes
from llm_kb.errors import ConfigError, KbError
from llm_kb.files.atomic import replace_below
from llm_kb.files.fields import BadValueError, Fields, read_line
from llm_kb.host.log import list_missed, read_turns
from llm_kb.host.terminal import draw_progress
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.parts import decode_exactly, find_line_numbers, find_spans
from llm_kb.rendering.passages import Passages
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.patterns import split_knowledge
from llm_kb.texts.outlines.outline import find_outline
from llm_kb.texts.safe import visible_line
from llm_kb.upkeep.usage import count_uses

FILE = "questions.toml"
"""The name of the file, which is beside the workspace's configuration."""

LONGEST = 1_000
"""The most characters of a search that is added as a question."""


Place: TypeAlias = "tuple[str, str, tuple[int, int]]"
"""A topic, the path of a subject, and the lines of a part of it."""


@click.command()
@click.option(
    "--from-used",
    is_flag=True,
    help="Add searches that found nothing, models' and yours, to be answered",
)
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@kb_cfg_option
def test(*, from_used: bool, json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Ask the questions of questions.toml, and report the answers

    The file is beside the configuration. It lists questions, each with the subject or
    part that answers it, and how many of 100 must be found. Each question is searched
    for as search_knowledge does. The exit status is 1 if fewer are found than the file
    demands, so it can be a check in CI.

    \b
        [[question]]
        ask = "how many approvals does a change need?"
        answer = "project/review#approvals"

    \b
        llm kb test
        llm kb test --from-used
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    root = kb.config.workspace
    if root is None:
        raise KbError("there is no workspace here; `llm kb init` writes its configuration")
    path = root / FILE
    data = read_bytes(path) if path.exists() else b""
    known, demanded = read_questions(kb, decode_bytes(data, path), path)
    if from_used:
        missed = list_missed(root)
        uses = count_uses(kb, read_turns(required=not missed), missed)
        new = render_new([each["question"] for each in uses["found_nothing"]], known)
        if new:
            replace_below(root, FILE, data + new.encode())
        say(f"llm-kb: {count(new.count('[[question]]'), 'question')} added to {path}")
        return
    if not known:
        raise KbError(
            f"{str(path)!r} has no questions; `llm kb test --help` shows how to write one, and"
            " --from-used adds the searches that found nothing"
        )
    search = partial(kb.find_passages, progress=draw_progress("Indexing"))
    report = ask(known, demanded, search)
    if json_:
        show_json(report)
    else:
        show("".join(f"{line}\n" for line in render_report(report)), nl=False)
    say(f"llm-kb: {render_total(report, demanded)}")
    if not report["enough"]:
        raise SystemExit(1)


MOST_QUESTIONS = 1_000
MOST_ANSWERS = 100
"""The most answers of one question: each has to be found."""


class Question(NamedTuple):
    """A question, and the subjects or parts of which each answers it, as TOPIC/SUBJECT#PART."""

    text: str
    answers: tuple[str, ...] | None
    """Empty if nothing answers it; None if nobody has said yet what does."""
    places: Sequence[Place] = ()
    """The places that the answers name."""


def read_questions(
    kb: KnowledgeBase, table: Mapping[str, object], path: Path
) -> tuple[Sequence[Question], int]:
    """Return the questions of a file, and how many of 100 must be answered.

    Raises ConfigError, also for answers that are not there.
    """
    fields = Fields(table)
    demanded = fields.count("among_four", 100, most=100)
    tables = fields.list_of_fields("question")
    if len(tables) > MOST_QUESTIONS:
        fields.report("question", f"found {len(tables):,}; allowed: at most {MOST_QUESTIONS:,}")
        tables = ()
    questions = [_read_question(kb, each) for each in tables]
    fields.reject_unknown()
    fields.raise_problems(partial(ConfigError, str(path)))
    return questions, demanded


def _read_question(kb: KnowledgeBase, fields: Fields) -> Question:
    text, answers = fields.text("ask", read=read_line), fields.get("answer", _read_answers)
    places: list[Place] = []
    for answer in answers or ():
        try:
            places += _find_places(kb, answer)
        except KbError as error:
            fields.report("answer", str(error))
    fields.reject_unknown()
    return Question(text, answers, places)


def _read_answers(value: object) -> tuple[str, ...]:
    answers = value if isinstance(value, list) else [value]
    if len(answers) > MOST_ANSWERS:
        raise BadValueError(f"{len(answers):,} answers", f"at most {MOST_ANSWERS}")
    return tuple(map(read_line, answers))


def ask(
    questions: Iterable[Question], demanded: int, search: Callable[[str], Passages]
) -> dict[str, Any]:
    """Return the results of all questions, and whether enough are among the first four."""
    results = [_rank(question, search(question.text)) for question in questions]
    # Those of which somebody said what answers them.
    ranks = [each["rank"] for each in results if each["answer"] is not None]
    among_four = sum(rank is not None for rank in ranks)
    return {
        "questions": len(ranks),
        "first": ranks.count(1),
        "among_four": among_four,
        "enough": 100 * among_four >= demanded * len(ranks),
        "results": results,
    }


def _rank(question: Question, found: Passages) -> dict[str, Any]:
    """Return the result of a question: the addresses found, and the rank of the one that answers.

    If nothing was to be found, and nothing was, the rank is 1.
    """
    ranks = [
        rank
        for rank, each in enumerate(found.passages, 1)
        for topic, path, (first, last) in question.places
        if (each.topic, each.path) == (topic, path)
        and each.first_line <= last
        and first <= each.last_line
    ]
    # Passages with a note that the answer is weak are not taken for one.
    if question.answers == () and (not found.passages or found.counts):
        ranks = [1]
    return {
        "question": question.text,
        "answer": question.answers,
        "rank": min(ranks, default=None),
        "found": [f"{each.topic}/{each.address}" for each in found.passages],
    }


def _find_places(kb: KnowledgeBase, answer: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield the topic, the path and the lines of each place that an answer names.

    Raises KbError for an answer that is not there.
    """
    topic, pattern = split_knowledge(answer)
    selection = kb.require(topic, pattern)
    opened = kb.find_topic(topic)
    for subject in selection.subjects:
        anchors = [anchor for anchor in selection.asked_of(subject) if anchor]
        if not anchors:
            yield opened.config.id, subject.path, (1, 10**9)
            continue
        text = decode_exactly(opened.topic.read(subject).data)
        for span in find_spans(find_outline(subject.path, text), anchors)[0]:
            lines = find_line_numbers(text, span.start, span.end)
            yield opened.config.id, subject.path, lines


def render_report(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table: where each answer was found, and what was found instead."""
    for each in report["results"]:
        answers, rank = each["answer"], each["rank"]
        place = "?" if answers is None else "-" if rank and not answers else str(rank or "not")
        yield f"{place:>3}  {visible_line(each['question'])}"
        if answers is not None and rank != 1:
            wanted = " or ".join(answers) or "nothing"
            instead = next(iter(each["found"]), "nothing")
            yield f"     {visible_line(f'answered by {wanted}; first is {instead}')}"


def render_total(report: Mapping[str, Any], demanded: int) -> str:
    """Return the last line: how many are found, and how many are demanded."""
    total = report["questions"]
    first, among = (
        f"{number} ({100 * number // (total or 1)} %)"
        for number in (report["first"], report["among_four"])
    )
    left = len(report["results"]) - total
    more = f", {left} without an answer in the file" if left else ""
    found = f"{first} found first, {among} among four (demanded: {demanded} %)"
    return f"{count(total, 'question')}, {found}{more}"


def render_new(texts: Sequence[str], known: Iterable[Question]) -> str:
    """Return tables for the questions that a file does not have, to be answered by somebody."""
    have = {question.text for question in known}
    lines = [visible_line(" ".join(text.split()))[:LONGEST] for text in texts]
    new = [line for line in dict.fromkeys(lines) if line and line not in have]
    return "".join(
        f"\n[[question]]\nask = {json.dumps(line, ensure_ascii=False)}\n"
        '# answer = "TOPIC/SUBJECT#PART"    # [] if nothing should be found\n'
        for line in new
    )
