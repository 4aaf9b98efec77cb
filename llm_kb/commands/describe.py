"""`llm kb describe`: let a model write introductions and missing summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._editing import edit_file, file_of_topic
from llm_kb.commands._model import load_model, open_log, resolve_key
from llm_kb.commands._options import complete_topic
from llm_kb.commands._output import confirm, say, show
from llm_kb.config.changes import set_text
from llm_kb.errors import KbError
from llm_kb.host.terminal import draw_progress
from llm_kb.rendering.plain_text import count
from llm_kb.upkeep.describe import SYSTEM, Question, find_questions, write_summary

if TYPE_CHECKING:
    import llm


@click.command()
@click.argument("topic", required=False, shell_complete=complete_topic)
@click.option("model_id", "-m", "--model", help="Model to ask  [default: llm's default model]")
@click.option(
    "-n", "--count", "most", default=50, show_default=True, help="Maximum number of questions"
)
@click.option("--dry-run", is_flag=True, help="Show what would be asked, and how much is sent")
@click.option("yes", "-y", "--yes", is_flag=True, help="Ask the model and write without asking")
def describe(topic: str | None, model_id: str | None, most: int, dry_run: bool, yes: bool) -> None:
    """
    Let a model write the introduction of TOPIC, and missing summaries

    Without TOPIC, the model writes introductions for all topics that have none. It writes
    summaries for Markdown subjects that have none, or whose heading only repeats their
    name. You see all texts before they are written: introductions into the configuration,
    summaries into the front matter of the files.

    \b
        llm kb describe -m gpt-4o-mini
        llm kb describe project --dry-run
    """
    kb = KnowledgeBase.discover()
    configured = {t.id for t in kb.config.topics}
    chosen = (
        [kb.find_topic(topic)]
        if topic
        else [opened for id_, opened in kb.topics.items() if id_ in configured]
    )
    found = [
        question
        for opened in chosen
        for question in find_questions(
            opened, introduction=topic is not None or not opened.topic.introduction
        )
    ]
    questions = found[:most]
    if not questions:
        say("Every topic has an introduction, and every subject a summary")
        return
    tokens = sum(len(question.prompt) + len(SYSTEM) for question in questions) // 4
    asked = f"{count(len(questions), 'question')}, ~{tokens:,} tokens"
    if len(found) > most:
        say(f"{len(found) - most:,} more are left for later; --count raises the limit")
    if dry_run:
        for question in questions:
            show(question.name)
        say(f"Would ask {asked}")
        return
    model = load_model(model_id, with_tools=False)
    confirm(f"Ask {model.model_id} {asked}?", yes=yes)
    answers = _ask(model, questions)
    for question, answer in answers:
        show(f"{question.name}: {answer}")
    confirm("Write them?", yes=yes)
    for question, answer in answers:
        _write(question, answer)


def _ask(model: llm.Model, questions: list[Question]) -> list[tuple[Question, str]]:
    """Ask each question and return the answers, without the empty ones."""
    progress = draw_progress("describing")
    answers = []
    with open_log() as log:
        for number, question in enumerate(questions, start=1):
            try:
                response = model.prompt(
                    question.prompt, system=SYSTEM, key=resolve_key(model, None), stream=False
                )
                answer = question.clean(response.text())
            except Exception as error:  # a model's plugin may raise anything
                raise click.ClickException(f"{model.model_id} failed: {error}") from error
            log(response)
            if answer:
                answers.append((question, answer))
            if progress:
                progress(number, len(questions))
    return answers


def _write(question: Question, answer: str) -> None:
    """Write an answer into its file, or print the reason why it cannot be written."""
    id_ = question.topic.topic.id
    try:
        if question.subject is not None:
            write_summary(question.topic, question.subject, answer)
        else:
            file = file_of_topic(id_)
            edit_file(file, lambda document: set_text(document, id_, "introduction", answer))
    except KbError as error:
        say(str(error))
        return
    say(f"Wrote {question.name}")
