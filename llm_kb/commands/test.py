"""`llm kb test`: ask a project's questions, and report which are answered."""

from __future__ import annotations

from functools import partial

import click

from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_json
from llm_kb.config.workspace import decode_bytes, exists, read_bytes
from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.host.log import read_turns
from llm_kb.host.terminal import draw_progress
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.plain_text import count
from llm_kb.upkeep.questions import (
    AMONG,
    FILE,
    ask,
    find_all_places,
    read_questions,
    render_new,
    render_report,
    render_total,
)
from llm_kb.upkeep.usage import Usage, rank


@click.command()
@click.option(
    "--from-used",
    is_flag=True,
    help="Add the searches that found nothing, by llm's log, to be answered",
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
    data = read_bytes(path) if exists(path) else b""
    questions = read_questions(decode_bytes(data, path), path)
    if from_used:
        searches = [text for text, _ in rank(Usage(kb, read_turns(None)).found_nothing)]
        new = render_new(searches, questions.questions)
        if new:
            replace_file(path, data + new.encode())
        say(f"llm-kb: {count(new.count('[[question]]'), 'question')} added to {path}")
        return
    if not questions.questions:
        problem = "has no questions" if exists(path) else "does not exist"
        raise KbError(
            f"{str(path)!r} {problem}; `llm kb test --help` shows how to write one, and"
            " --from-used adds the searches that found nothing"
        )
    places = find_all_places(kb, questions.questions, path)
    search = partial(kb.find_passages, topics=(), limit=AMONG, progress=draw_progress("Indexing"))
    report = ask(questions, places, search)
    if json_:
        show_json(report)
    else:
        show("".join(f"{line}\n" for line in render_report(report)), nl=False)
    say(f"llm-kb: {render_total(report, questions)}")
    if not report["enough"]:
        raise SystemExit(1)
