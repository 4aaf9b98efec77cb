"""Runs `llm` with the plugins of real providers against a fake model, and checks what is sent.

    python -m tests.field.run                     all plugins
    python -m tests.field.run llm-ollama ...      these
    python -m tests.field.run --write FILE        also write the table into a document

Needs the group `field` of pyproject.toml; `make field` installs it. Ends with status 1 if a check
fails that is not in KNOWN, or if one of KNOWN no longer does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import click
import llm
import sqlite_utils
from click.testing import CliRunner
from llm.cli import cli
from llm.migrations import migrate

from llm_kb.capture.tools import EMIT
from llm_kb.knowledge_base.tool_text import LEARN, SEARCH_KNOWLEDGE
from llm_kb.proposals.tool import PROPOSE
from llm_kb.references.calls import ALL
from llm_kb.rendering.section import HEADER
from tests.field.fake_models import Calls, FakeModel, Seen, Turn
from tests.field.page_server import make_repository, serve

PLUGINS = {
    "llm-ollama": "llm_ollama",
    "llm-gemini": "llm_gemini",
    "llm-anthropic": "llm_anthropic",
    "llm (chat)": "llm",
    "llm (responses)": "llm",
    "llm-mistral": "llm_mistral",
    "llm-openrouter": "llm_openrouter",
    "llm-groq": "llm_groq",
    "llm-deepseek": "llm_deepseek",
}
"""The plugins by the module of their models; `llm` itself brings those of OpenAI."""

PREFERRED = {"llm (chat)": "gpt-4o-mini", "llm (responses)": "gpt-5-mini"}
"""The models of plugins whose first one is not the one that is meant."""

NO_TOOLS = "The plugin does not support tools; `llm` says so, and `-k` and `-f` work."
SYSTEM = "the system prompt of the first turn, with `-c`"
KNOWN = {
    ("llm-gemini", SYSTEM): (
        "llm-gemini sends the system prompt of the current turn only. So `learn` returns what was"
        " pre-loaded, and `-c -k` sends it again."
    ),
    ("llm-groq", SYSTEM): "llm-groq sends no earlier turn with `-c`.",
}
"""The checks that fail for a reason that is not ours."""

FILES = {
    "llm-kb.toml": (
        '[kb.topic.project]\ntitle = "Working here"\nintroduction = "Rules and reasons."\n'
        'subjects = "kb"\n\n[kb.topic.other]\nsubjects = "other"\n'
    ),
    "kb/architecture.md": "# Architecture\n\nA pure core; edges do input and output.\n",
    "kb/review.md": "# Review\n\nTwo people read each change before it lands.\n",
    "other/notes.md": "# Notes\n\nThe walrus has tusks.\n",
    "page.html": "<html><head><title>Frob</title></head><body><h1>Frob</h1><p>Hooks.</p></body>",
}
ARCHITECTURE, REVIEW = FILES["kb/architecture.md"], FILES["kb/review.md"]
MENU = HEADER.strip()


class Outcome(NamedTuple):
    """What a command printed, and the requests it made."""

    exit_code: int
    stdout: str
    stderr: str
    seen: Sequence[Seen]


class CheckError(Exception):
    """A check that failed."""


def expect(condition: object, what: str) -> None:
    """Raise CheckError unless a condition holds."""
    if not condition:
        raise CheckError(what)


class Field:
    """One plugin, and the commands run with its model."""

    def __init__(self, plugin: str, model: FakeModel, directory: Path) -> None:
        self.plugin = plugin
        self.fake = model
        self.directory = directory
        self.model_id, self.has_tools = _choose_model(plugin)
        self.validate = VALIDATORS.get(plugin, _validate_as_given)

    def start(self) -> None:
        """Begin with no conversation and no configuration of the user."""
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "user").mkdir(parents=True)
        log = self.directory.parent / "empty.db"
        if log.exists():
            shutil.copyfile(log, self.directory / "user" / "logs.db")
        for name, text in FILES.items():
            path = self.directory / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        os.environ["LLM_USER_PATH"] = str(self.directory / "user")
        os.chdir(self.directory / "work")

    def ask(self, *args: str, script: Sequence[Turn] = (), input: str = "") -> Outcome:
        """Run `llm ARGS`, whose model answers by the script; check each declaration of a tool."""
        self.fake.reset(*script)
        is_named = "-c" in args
        model = [] if is_named else ["-m", self.model_id]
        is_command = args[0] in {"chat", "code"}
        given = [args[0], *model, *args[1:]] if is_command else [*model, *args]
        result = CliRunner().invoke(cli, given, input=input)
        if result.exception and not isinstance(result.exception, SystemExit):
            lines = traceback.format_exception_only(result.exception)
            raise CheckError(f"traceback: {lines[-1].strip()}")
        for seen in self.fake.seen:
            for name in seen.tools.keys() & _schemas().keys():
                self.validate(name, seen.tools[name])
        return Outcome(result.exit_code, result.stdout, result.stderr, self.fake.seen)

    def succeed(self, *args: str, script: Sequence[Turn] = (), input: str = "") -> Outcome:
        """Run `llm ARGS`, which must end well and play the whole script."""
        found = self.ask(*args, script=script, input=input)
        error = (found.stderr or found.stdout).strip().splitlines()
        expect(found.exit_code == 0, f"exit status {found.exit_code}: {error[-1:]}")
        expect(not self.fake.script, f"{len(self.fake.script)} answers were not asked for")
        return found


def _choose_model(plugin: str) -> tuple[str, bool]:
    models = [entry.model for entry in llm.get_models_with_aliases()]
    module = PLUGINS[plugin]
    ours = [model for model in models if type(model).__module__.split(".")[0] == module]
    wanted = PREFERRED.get(plugin)
    ours = [model for model in ours if wanted in (None, model.model_id)]
    expect(ours, f"{plugin} registers no model")
    chosen = next((model for model in ours if model.supports_tools), ours[0])
    return chosen.model_id, bool(chosen.supports_tools)


# What the provider may be sent


def _schemas() -> dict[str, dict[str, Any]]:
    return {text.name: text.schema for text in (LEARN, SEARCH_KNOWLEDGE, PROPOSE, EMIT, *ALL)}


def _validate_as_given(name: str, declaration: Mapping[str, Any]) -> None:
    """Require the schema as the tool has it."""
    sent = declaration.get("parameters") or declaration.get("input_schema") or {}
    expect(sent == _schemas()[name], f"the schema of {name} is not ours: {sent}")


def _validate_ollama(name: str, declaration: Mapping[str, Any]) -> None:
    """Require what the client derives from signature and docstring to say what the schema does."""
    schema, sent = _schemas()[name], declaration["parameters"]
    expect(declaration.get("description"), f"{name} has no description")
    expect(sorted(sent["required"]) == sorted(schema["required"]), f"required of {name}: {sent}")
    for field, given in schema["properties"].items():
        found = sent["properties"][field]
        expect(found["type"] == given["type"], f"{name}.{field} is {found['type']}")
        expect(found["description"] == given["description"], f"description of {name}.{field}")


def _validate_gemini(name: str, declaration: Mapping[str, Any]) -> None:
    """Require what Google's published definition of the API can read."""
    # Imported here: slow, and only one plugin needs it.
    from google.ai.generativelanguage_v1beta.types import FunctionDeclaration  # noqa: PLC0415
    from google.protobuf.json_format import ParseError  # noqa: PLC0415

    try:
        FunctionDeclaration.from_json(_upper_types(declaration), ignore_unknown_fields=False)
    except ParseError as error:
        raise CheckError(f"Google's definition refuses {name}: {error}") from error


def _upper_types(declaration: Mapping[str, Any]) -> str:
    """Return a declaration as JSON with the type names of the definition, as the API takes both."""
    text = json.dumps(declaration)
    return re.sub(r'("type": )"(\w+)"', lambda m: f'{m[1]}"{m[2].upper()}"', text)


VALIDATORS: Mapping[str, Callable[[str, Mapping[str, Any]], None]] = {
    "llm-ollama": _validate_ollama,
    "llm-gemini": _validate_gemini,
}


# The checks

LISTING = ("learn", {"topic": "project"})
READING = ("learn", {"topic": "Working here", "subjects": ["architecture"]})


def check_learn(field: Field, *options: str) -> None:
    """A listing, then a subject; the menu in every round."""
    found = field.succeed(*options, "-T", "learn", "hi", script=[[LISTING], [READING], "done"])
    expect(found.stdout.strip() == "done", f"printed {found.stdout!r}")
    expect(len(found.seen) == 3, f"{len(found.seen)} requests")
    for seen in found.seen:
        expect(seen.system.count(MENU) == 1, "the menu is not in the system prompt of each round")
        expect(list(seen.tools) == ["learn"], f"tools: {list(seen.tools)}")
        expect("project (Working here)" in seen.tools["learn"]["description"], "no topics named")
        expect(seen.prompt == "hi", f"prompt {seen.prompt!r}")
    listing, text = found.seen[2].outputs
    expect("- architecture" in listing and "- review" in listing, f"listing {listing!r}")
    expect(text == ARCHITECTURE, f"subject {text!r}")


def check_chat(field: Field) -> None:
    """Two turns; the second reads what the first one pre-loaded."""
    call = ("learn", {"topic": "project", "subjects": "review"})
    found = field.succeed(
        "chat", "-T", "learn", "-k", "project/review",
        input="one\ntwo\nexit\n", script=["first", [call], "done"],
    )  # fmt: skip
    first, second, third = found.seen
    expect(MENU in first.system and REVIEW in first.system, "the first turn lacks the section")
    expect((first.prompt, second.prompt) == ("one", "two"), "prompts")
    expect(list(second.tools) == ["learn"], "the second turn lacks the tool")
    expect(third.outputs == (REVIEW,), f"answered {third.outputs}")


def check_template(field: Field) -> None:
    """`-t kb:project`: its menu alone, and its tool."""
    (seen,) = field.succeed("-t", "kb:project", "hi").seen
    expect(MENU in seen.system and "- other" not in seen.system, f"system {seen.system!r}")
    expect(list(seen.tools) == ["learn"], f"tools {list(seen.tools)}")


def check_auto(field: Field) -> None:
    """`auto = true`: menu and tool unasked; for a model without tools, nothing."""
    user = Path(os.environ["LLM_USER_PATH"])
    (user / "kb.toml").write_text("[kb]\nauto = true\n")
    found = field.succeed("hi")
    (seen,) = found.seen
    expect((MENU in seen.system) == field.has_tools, f"system {seen.system!r}")
    expect(list(seen.tools) == ["learn"] * field.has_tools, f"tools {list(seen.tools)}")


def check_code(field: Field) -> None:
    """`llm code` with `auto`: the menu names commands, and the model runs them."""
    user = Path(os.environ["LLM_USER_PATH"])
    (user / "kb.toml").write_text("[kb]\nauto = true\n")
    command = {"command": "llm-kb show --as-model project/review"}
    found = field.succeed(
        "code", "--allow", "llm-kb show *", "Who reviews?",
        script=[[("CodingTools_execute_command", command)], "done"],
    )  # fmt: skip
    first, second = found.seen
    expect(MENU in first.system, f"system {first.system!r}")
    expect(
        "Run `llm-kb show --as-model TOPIC/SUBJECT`" in first.system, "the menu names no command"
    )
    expect("learn" not in first.tools, f"tools {list(first.tools)}")
    expect(REVIEW.strip() in second.outputs[0], f"answered {second.outputs}")


def check_knowledge(field: Field) -> None:
    """`-k` alone: the text in the system prompt, and no tool."""
    (seen,) = field.succeed("-k", "project/review", "hi").seen
    expect(REVIEW in seen.system and MENU not in seen.system, f"system {seen.system!r}")
    expect((seen.prompt, not seen.tools) == ("hi", True), "prompt or tools")


def check_search_fragment(field: Field) -> None:
    """`-f kb-search:` puts passages into the prompt."""
    (seen,) = field.succeed("-f", "kb-search:walrus tusks", "hi").seen
    expect("The walrus has tusks." in seen.prompt, f"prompt {seen.prompt!r}")


def check_continued(field: Field) -> None:
    """`-c` offers the tool again, which returns what the first turn pre-loaded."""
    field.succeed("-T", "learn", "-k", "project/review", "one")
    call = ("learn", {"topic": "project", "subjects": ["review"]})
    found = field.succeed("-c", "two", script=[[call], "done"])
    expect(found.stderr == "", f"said {found.stderr!r}")
    expect(list(found.seen[0].tools) == ["learn"], "the tool is gone")
    expect(found.seen[0].prompt == "two", f"prompt {found.seen[0].prompt!r}")
    expect(found.seen[1].outputs == (REVIEW,), f"answered {found.seen[1].outputs}")


def check_continued_knowledge(field: Field) -> None:
    """`-c -k` sends the text again, in the prompt."""
    field.succeed("-k", "project/review", "one")
    (seen,) = field.succeed("-c", "-k", "project/review", "two").seen
    expect(REVIEW in seen.prompt, f"prompt {seen.prompt!r}")
    expect(seen.prompt.endswith("two"), f"prompt {seen.prompt!r}")


def check_system_kept(field: Field) -> None:
    """With `-c`, the system prompt of the first turn is sent again."""
    field.succeed("-k", "project/review", "one")
    (seen,) = field.succeed("-c", "two").seen
    expect(REVIEW in seen.system, "it is not sent")


def check_references(field: Field) -> None:
    """A model asks for a topic; nothing is fetched before somebody approves it."""
    user = Path(os.environ["LLM_USER_PATH"])
    (user / "kb.toml").write_text('[kb.references]\nallow_hosts = ["127.0.0.1"]\n')
    with serve(Path("page.html").read_bytes()) as url:
        source = {"type": "web", "url": f"{url}/page.html"}
        arguments = {"title": "Frob", "body": "Hooks of Frob.", "sources": [source]}
        found = field.succeed(
            "-T", "References", "hi", script=[[("reference_topic_create", arguments)], "done"]
        )
    first, second = found.seen
    expect(len(first.tools) == 5, f"tools {list(first.tools)}")
    (answer,) = second.outputs
    expect(re.search(r"llm kb review --yes \S+", answer), f"answered {answer!r}")
    expect("kb review" in found.stderr, f"said {found.stderr!r}")
    expect(not list(user.glob("kb/references/topic-*")), "something was fetched")


def check_search_tool(field: Field) -> None:
    """`search_knowledge` is offered, and answers with passages."""
    call = ("search_knowledge", {"question": "walrus tusks", "limit": 2})
    found = field.succeed(
        "-T", "learn", "--kb-cfg", "kb.search=true", "hi", script=[[call], "done"]
    )
    expect(sorted(found.seen[0].tools) == ["learn", "search_knowledge"], "tools")
    expect("The walrus has tusks." in found.seen[1].outputs[0], f"{found.seen[1].outputs}")


def check_proposal(field: Field) -> None:
    """`propose_subject` lets a text wait, white space kept, and a person keeps it."""
    user = Path(os.environ["LLM_USER_PATH"])
    (user / "kb.toml").write_text("[kb.topic.project]\nproposals = true\n")
    new = "# Walrus care\n\n    feed --daily\n"
    page = {"topic": "project", "subject": "care", "reason": "the user", "new": new}
    found = field.succeed("-T", "learn", "hi", script=[[("propose_subject", page)], "done"])
    expect(sorted(found.seen[0].tools) == ["learn", "propose_subject"], "tools")
    answer = found.seen[1].outputs[0]
    expect(answer.startswith("proposed "), f"{answer!r}")
    kept = CliRunner().invoke(cli, ["kb", "review", "--yes", answer[9:17]])
    expect(kept.exit_code == 0 and Path("kb/care.md").read_text() == new, f"kept {kept.output!r}")


def check_capture(field: Field) -> None:
    """`emit_knowledge` records an entry in a repository."""
    make_repository(Path.cwd())
    entry = {"entry_type": "convention", "scope": "kb/", "rule": "Short lines."}
    found = field.succeed(
        "-T", "emit_knowledge", "hi", script=[[("emit_knowledge", entry)], "done"]
    )
    expect(found.seen[1].outputs[0].startswith("recorded convention"), f"{found.seen[1].outputs}")


def check_error(field: Field) -> None:
    """The error of a tool is an answer, and the conversation goes on."""
    found = field.succeed(
        "-T", "learn", "hi", script=[[("learn", {"topic": "nope"})], [READING], "done"]
    )
    failed, text = found.seen[2].outputs
    expect(failed.startswith("Error: unknown topic 'nope'; valid topics: "), f"{failed!r}")
    expect(text == ARCHITECTURE, f"{text!r}")


def check_ten_calls(field: Field) -> None:
    """Ten calls in one answer, answered in order."""
    calls: Calls = [READING, LISTING] * 5
    found = field.succeed("-T", "learn", "hi", script=[calls, "done"])
    outputs = found.seen[1].outputs
    expect(len(outputs) == 10, f"{len(outputs)} answers")
    expect(outputs[::2] == (ARCHITECTURE,) * 5, "they are out of order")


def check_limit(field: Field) -> None:
    """Too many rounds are an error that names the option."""
    found = field.ask("-T", "learn", "--cl", "2", "hi", script=[[LISTING]] * 2)
    expect(found.exit_code == 1, f"exit status {found.exit_code}")
    expect("--cl 4 allows more rounds" in found.stderr, f"said {found.stderr!r}")


def check_arguments(field: Field) -> None:
    """Arguments as models write them are understood."""
    calls: list[tuple[str, dict[str, object]]] = [
        ("learn", {"topic": "project", "subjects": given})
        for given in ("architecture", '["architecture"]', ["architecture"])
    ]
    calls.append(("learn", {"topic": "project", "subjects": None, "reason": "none"}))
    found = field.succeed("-T", "learn", "hi", script=[calls, "done"])
    *texts, listing = found.seen[1].outputs
    expect(texts == [ARCHITECTURE] * 3, f"{texts}")
    expect("- architecture" in listing, f"{listing!r}")


class Check(NamedTuple):
    """A row of the table."""

    run: Callable[[Field], None]
    needs_tools: bool = True


CHECKS: Mapping[str, Check] = {
    "`-T learn`": Check(check_learn),
    "`-T learn --async`": Check(lambda field: check_learn(field, "--async")),
    "`-T learn --no-stream`": Check(lambda field: check_learn(field, "--no-stream")),
    "`llm chat`, two turns": Check(check_chat),
    "`-t kb:project`": Check(check_template),
    "`auto = true`": Check(check_auto, needs_tools=False),
    "`llm code` with `auto`": Check(check_code),
    "`-k`": Check(check_knowledge, needs_tools=False),
    "`-f kb-search:`": Check(check_search_fragment, needs_tools=False),
    "`-c`": Check(check_continued),
    "`-c -k`": Check(check_continued_knowledge, needs_tools=False),
    SYSTEM: Check(check_system_kept, needs_tools=False),
    "`search_knowledge`": Check(check_search_tool),
    "`-T References`, up to the approval": Check(check_references),
    "`propose_subject`, kept": Check(check_proposal),
    "`-T emit_knowledge`": Check(check_capture),
    "an error of a tool": Check(check_error),
    "ten calls in one answer": Check(check_ten_calls),
    "too many rounds": Check(check_limit),
    "arguments as models write them": Check(check_arguments),
}

PASSED, FAILED, WITHOUT = "yes", "no", "–"


def run_check(field: Field, check: Check) -> tuple[str, str]:
    """Return the cell of one check, and the reason if it did not pass."""
    field.start()
    if check.needs_tools and not field.has_tools:
        found = field.ask("-T", "learn", "hi")
        is_clear = found.exit_code == 1 and found.stderr.startswith("Error: ")
        return (WITHOUT, NO_TOOLS) if is_clear else (FAILED, f"no clear error: {found.stderr!r}")
    try:
        check.run(field)
    except CheckError as error:
        return FAILED, str(error)
    except Exception as error:  # noqa: BLE001 - an answer without what the check looks for
        return FAILED, f"{type(error).__name__}: {error}"
    return PASSED, ""


def describe(plugin: str) -> str:
    """Return the name and version of a plugin."""
    name, _, kind = plugin.partition(" ")
    return f"{name} {version(name)}{f' {kind}' if kind else ''}"


def render_table(cells: Mapping[str, Mapping[str, tuple[str, str]]]) -> str:
    """Return the table of all results, with a note for each reason."""
    notes: dict[str, int] = {}
    head = ["", *map(describe, cells)]
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for name in CHECKS:
        row = [name]
        for plugin, results in cells.items():
            cell, reason = results[name]
            reason = KNOWN.get((plugin, name), reason)
            number = notes.setdefault(reason, len(notes) + 1) if reason else 0
            row.append(f"{cell} ({number})" if reason else cell)
        lines.append(" | ".join(row))
    table = "\n".join(f"| {line} |" for line in lines)
    return "\n".join([table, "", *(f"{number}. {note}" for note, number in notes.items())])


def write_table(path: Path, table: str) -> None:
    """Replace the table between the two marks of a document."""
    text = path.read_text(encoding="utf-8")
    start, end = "<!-- field -->\n", "<!-- end of field -->"
    before, rest = text.split(start)
    path.write_text(f"{before}{start}\n{table}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run the checks; return the exit status."""
    document = None
    given = list(arguments)
    if "--write" in given:
        place = given.index("--write")
        document = Path(given[place + 1]).resolve()
        del given[place : place + 2]
    for name in ("MISTRAL", "GROQ", "DEEPSEEK", "GEMINI"):
        os.environ[f"LLM_{name}_KEY"] = "none"
    for name in ("OPENAI", "ANTHROPIC", "GROQ"):
        os.environ[f"{name}_API_KEY"] = "none"
    os.environ["OPENROUTER_KEY"] = "none"
    scripts = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([scripts, os.environ["PATH"]])
    fake = FakeModel()
    fake.intercept()
    failed = 0
    cells: dict[str, dict[str, tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HOME"] = directory
        os.environ["LLM_USER_PATH"] = directory
        _make_log(Path(directory) / "empty.db")
        for plugin in given or PLUGINS:
            field = Field(plugin, fake, Path(directory) / "field")
            click.echo(f"{describe(plugin)}: {field.model_id}")
            results = cells.setdefault(plugin, {})
            for name, check in CHECKS.items():
                cell, reason = results[name] = run_check(field, check)
                is_known = (plugin, name) in KNOWN
                is_wrong = (cell == FAILED) != is_known
                failed += is_wrong
                if is_wrong:
                    reason = reason or "passed, but KNOWN says it does not"
                    click.echo(f"  {name}: {reason}")
        os.chdir("/")
    passed = sum(cell == PASSED for results in cells.values() for cell, _ in results.values())
    click.echo(f"{passed} checks passed, {failed} did not as expected")
    if document:
        write_table(document, render_table(cells))
    return 1 if failed else 0


def _make_log(path: Path) -> None:
    """Make an empty log once: its migrations take longer than a check."""
    database = sqlite_utils.Database(path)
    migrate(database)
    database.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
