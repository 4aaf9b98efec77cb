"""What commands print, what `llm` sends and what an MCP client gets, compared to the byte.

`python -m tests.test_recorded` records them anew; a commit that changes one on purpose names it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import llm_kb
from tests.conftest import RunLlm
from tests.preloaded import LLM_KB
from tests.recorded.projects import PROJECTS, Project
from tests.scripted import Script

OUTPUTS = Path(__file__).parent / "recorded"

_DATE = re.compile(r"\b20(?!24-01-01)\d\d-\d\d-\d\d(?:[T ][\d:.]+(?:Z|\+00:00)?)?")


@pytest.mark.parametrize("name", PROJECTS)
def test_the_output_is_as_recorded(  # noqa: PLR0917 - fixtures
    name: str,
    tmp_path: Path,
    user_dir: Path,
    run_llm: RunLlm,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    for each in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(each, "2024-01-01T00:00:00Z")
    project = PROJECTS[name]
    project.make(tmp_path, user_dir)
    text = "".join(
        [
            *_run_commands(project, run_llm),
            *_send(project, run_llm, script),
            *_serve(project, tmp_path),
        ]
    )
    for place, stands_for in ((tmp_path, "PROJECT"), (user_dir, "USER"), (user_dir.parent, "HOME")):
        text = text.replace(str(place), stands_for)
    text = _DATE.sub("DATE", text).replace(llm_kb.__version__, "VERSION")
    path = OUTPUTS / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def _run_commands(project: Project, run_llm: RunLlm) -> Iterator[str]:
    topic, subject, question = project.topic, project.subject, project.question
    address = f"{topic}/{subject}"
    commands = (
        ("kb", "list"),
        ("kb", "list", "--json"),
        ("kb", "list", topic),
        ("kb", "list", "no-such-topic"),
        ("kb", "show", address),
        ("kb", "show", f"{topic}/no-such-subject"),
        ("kb", "show", "--as-model", topic),
        ("kb", "show", "--as-model", address),
        ("kb", "prompt"),
        ("kb", "prompt", "--preloaded"),
        ("kb", "prompt", "--tokens"),
        ("kb", "search", question),
        ("kb", "search", "--json", question),
        ("kb", "search", "xyzzy"),
        ("kb", "check"),
        ("kb", "config"),
        ("-m", "scripted", "--no-log", "-k", f"{topic}/no-such-subject", "hi"),
        ("-m", "scripted", "--no-log", "-k", "no-such-topic", "hi"),
        *project.commands,
    )
    for command in commands:
        result = run_llm(command)
        yield f"$ llm {' '.join(command)}\n{result.output}(exit {result.exit_code})\n\n"


def _send(project: Project, run_llm: RunLlm, script: Script) -> Iterator[str]:
    topic, subject = project.topic, project.subject
    requests = (
        ("-T", "learn"),
        ("-k", f"{topic}/{subject}"),
        ("-T", "learn", "-k", f"{topic}/{subject}"),
        ("-f", f"kb:{topic}/{subject}"),
        ("-f", f"kb-search::{project.question}"),
        ("-t", f"kb:{topic}"),
        (),
    )
    for options in requests:
        yield from _ask(options, run_llm, script)
    calls: tuple[dict[str, Any], ...] = (
        {"topic": topic},
        {"topic": topic, "subjects": [subject]},
        {"topic": topic, "subjects": ["**"]},
        {"topic": topic, "subjects": ["no-such-subject"]},
        {"topic": "no-such-topic"},
    )
    for call in calls:
        script.call("learn", **call)
        yield f"= learn {json.dumps(call)}\n"
        result = run_llm(["-m", "scripted", "--no-log", "-T", "learn", "hi"])
        script.turns.clear()
        outputs = script.last.outputs if script.requests else ()
        yield "\n".join((*outputs, result.stderr, f"(exit {result.exit_code})\n\n"))


def _ask(options: tuple[str, ...], run_llm: RunLlm, script: Script) -> Iterator[str]:
    script.requests.clear()
    result = run_llm(["-m", "scripted", "--no-log", *options, "hi"])
    yield f"= llm {' '.join(options)} hi\n{result.stderr}(exit {result.exit_code})\n"
    for each in script.requests:
        for role, text in each.messages:
            yield f"{role}: {text}\n"
        for tool in each.tools:
            yield f"tool {tool.name}: {tool.description}\n{json.dumps(tool.input_schema)}\n"
    yield "\n"


def _serve(project: Project, root: Path) -> Iterator[str]:
    topic, subject = project.topic, project.subject
    client = {"name": "test", "version": "1"}
    hello: dict[str, Any] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": client,
    }
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("initialize", hello),
        ("tools/list", {}),
        *(
            ("tools/call", {"name": name, "arguments": arguments})
            for name, arguments in (
                ("learn", {"topic": topic}),
                ("learn", {"topic": topic, "subjects": [subject]}),
                ("learn", {"topic": topic, "subjects": ["no-such-subject"]}),
                ("learn", {"topic": "no-such-topic"}),
                ("search_knowledge", {"question": project.question}),
                ("search_knowledge", {"question": "xyzzy"}),
                ("no_such_tool", {}),
            )
        ),
    )
    messages = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(calls)
    ]
    done = subprocess.run(
        [sys.executable, "-c", LLM_KB, "mcp"],
        input="".join(f"{json.dumps(each)}\n" for each in messages),
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    answers = {each.get("id"): each for each in map(json.loads, done.stdout.splitlines())}
    for message in messages:
        answer = json.dumps(answers.get(message["id"]), indent=1, ensure_ascii=False)
        yield f"> {message['method']} {json.dumps(message['params'])}\n{answer}\n\n"
    yield f"{done.stderr}(exit {done.returncode})\n"


if __name__ == "__main__":
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", __file__, "--update-golden"]))
