"""`llm kb test`: ask a project's questions, and report which are answered."""

from __future__ import annotations

from functools import partial

import click

from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_json
from llm_kb.config.workspace import decode_bytes, read_bytes
from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.host.log import read_turns
from llm_kb.host.terminal import draw_progress
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.plain_text import count
from llm_kb.upkeep import questions
from llm_kb.upkeep.usage import count_uses


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
    path = root / questions.FILE
    data = read_bytes(path) if path.exists() else b""
    known, demanded = questions.read_questions(kb, decode_bytes(data, path), path)
    if from_used:
        found_nothing = count_uses(kb, read_turns(None))["found_nothing"]
        new = questions.render_new([each["question"] for each in found_nothing], known)
        if new:
            replace_file(path, data + new.encode())
        say(f"llm-kb: {count(new.count('[[question]]'), 'question')} added to {path}")
        return
    if not known:
        raise KbError(
            f"{str(path)!r} has no questions; `llm kb test --help` shows how to write one, and"
            " --from-used adds the searches that found nothing"
        )
    search = partial(kb.find_passages, progress=draw_progress("Indexing"))
    report = questions.ask(known, demanded, search)
    if json_:
        show_json(report)
    else:
        show("".join(f"{line}\n" for line in questions.render_report(report)), nl=False)
    say(f"llm-kb: {questions.render_total(report, demanded)}")
    if not report["enough"]:
        raise SystemExit(1)
