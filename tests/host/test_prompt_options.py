"""`-k`, `--kb-cfg`, `--no-kb`, `auto` and `-T learn`, through the real `llm` commands."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import click
import llm
import llm.cli
import pytest
import yaml  # type: ignore[import-untyped]  # the host's, without stubs
from click.testing import CliRunner
from llm.plugins import pm

from llm_kb.capture.emission import EMIT_GUIDELINES
from llm_kb.plugin import extend, extend_commands
from llm_kb.rendering.section import HEADER, HIDDEN_NOTE, HOW
from tests.conftest import RunLlm
from tests.git_templates import copy_empty_repository
from tests.scripted import Script

NOTE = f"{HOW}{HIDDEN_NOTE}\n"

MENU = f"""\
<knowledge>
{HEADER}- project (**General Project Knowledge**): How we work.
- skills

{NOTE}</knowledge>"""

ALICE = """\
<subject "maintainers/alice">
Alice reviews.
</subject>
"""

PRELOADED = f"""\
<knowledge>
The following knowledge has been pre-loaded into your system prompt:

<topic "General Project Knowledge">

{ALICE}</topic>
</knowledge>"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with two topics, in the current directory."""
    write(
        tmp_path / "llm-kb.toml",
        """
        [kb.topic.project]
        title = "General Project Knowledge"
        introduction = "How we work."
        subjects = "kb/project"

        [kb.topic.skills]
        subjects = "kb/skills"
        """,
    )
    write(tmp_path / "kb/project/maintainers/alice.md", "Alice reviews.\n")
    write(tmp_path / "kb/project/code-quality.md", "Read `internal-notes`.\n")
    write(tmp_path / "kb/project/.internal-notes.md", "Hush.\n")
    write(tmp_path / "kb/skills/ast-grep.md", "Search by structure.\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")


def test_plain_request_carries_nothing_of_ours(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    result = run_llm(["-m", "scripted", "hi"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert (script.last.system, script.last.tool_names) == ("", ())


def test_tool_brings_the_menu(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    result = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert result.exit_code == 0, result.output
    assert script.last.system == MENU
    assert script.last.tool_names == ("learn",)
    assert script.last.tools[0].description == (
        "Learn about knowledge base topics and subjects."
        " Available topics: project (General Project Knowledge), skills."
        " One call can load several subjects, those of another topic as topic/subject."
    )


def test_model_lists_and_loads(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    script.call("learn", topic="project")
    script.call("learn", topic="general project knowledge", subjects=["maintainers/*"])
    script.call("learn", topic="project", subjects="internal-notes")
    script.say("done")
    result = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert result.exit_code == 0, result.output
    assert [request.outputs for request in script.requests[1:]] == [
        (
            (
                "# Topic: General Project Knowledge (project)\n\n## Available subjects:\n\n"
                "- code-quality\n- maintainers/alice\n\n"
                "Use the `learn` tool with the `subjects` argument to learn specific subjects."
            ),
        ),
        (ALICE.rstrip("\n"),),
        ("Hush.\n",),
    ]


def test_errors_of_the_tool_stand_alone(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    script.call("learn", topic="nope")
    script.call("learn", topic="project", subjects=["code-qualty"])
    script.call("learn", topic="project", subjects=["../secret"])
    script.say("done")
    run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert [request.outputs[0] for request in script.requests[1:]] == [
        "Error: unknown topic 'nope'; valid topics: project, skills",
        "Error: no subject of topic 'project' matches 'code-qualty'; did you mean: code-quality",
        (
            "Error: invalid pattern '../secret': it contains a '..' component;"
            " patterns stay inside the topic"
        ),
    ]


def test_knowledge_is_preloaded_without_a_tool(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    result = run_llm(["-m", "scripted-no-tools", "-k", "project/maintainers/*", "hi"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert (script.last.system, script.last.tool_names) == (PRELOADED, ())


def test_knowledge_and_tool_make_one_section(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    script.call("learn", topic="project")
    script.call("learn", topic="project", subjects=["**"])
    script.call("learn", topic="project", subjects=["maintainers/alice"])
    run_llm(["-m", "scripted", "-k", "project/maintainers/*", "-T", "learn", "hi"])
    assert script.requests[0].system == PRELOADED.removesuffix("</knowledge>") + "\n" + (
        MENU.removeprefix("<knowledge>\n")
    )
    listing, glob, named = (request.outputs[0] for request in script.requests[1:])
    already = "## Already learned (in system prompt):\n\n- maintainers/alice"
    assert listing.endswith(
        "## Available subjects:\n\n- code-quality\n\n"
        "Use the `learn` tool with the `subjects` argument to learn specific"
        " subjects.\n\n" + already
    )
    assert glob == '<subject "code-quality">\nRead `internal-notes`.\n</subject>\n\n' + already
    assert named == already


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(
            ["-k", "nope/x"], "unknown topic 'nope'; valid topics: project, skills", id="topic"
        ),
        pytest.param(
            ["-k", "project/maintainer/*"],
            "no subject of topic 'project' matches 'maintainer/*'; did you mean: maintainers/alice",
            id="pattern",
        ),
        pytest.param(
            ["-k", "project//x"],
            "invalid pattern '/x': it starts with '/'",
            id="malformed",
        ),
        pytest.param(["--kb-cfg", "nope"], "nope", id="fragment"),
    ],
)
def test_what_does_not_exist_is_an_error_before_any_model_is_called(
    workspace: Path, run_llm: RunLlm, script: Script, args: list[str], message: str
) -> None:
    result = run_llm(["-m", "scripted", *args, "hi"])
    assert result.exit_code == 1
    assert message in result.stderr
    assert script.requests == []


def test_topic_alone_means_all_of_it(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "-k", "project", "hi"])
    assert script.last.system.count("<subject ") == 2


def test_exact_reference_preloads_a_hidden_subject(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    run_llm(["-m", "scripted", "-k", "project/internal-notes", "hi"])
    assert '<subject "internal-notes">\nHush.\n</subject>' in script.last.system


def test_assignment_equals_knowledge(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "--kb-cfg", "kb.topic.project.learned+=maintainers/*", "hi"])
    assert script.last.system == PRELOADED


def test_own_system_prompt_is_kept(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "-s", "Be kind.", "-k", "project/maintainers/*", "hi"])
    assert script.last.system == f"{PRELOADED}\n\nBe kind."


@pytest.mark.parametrize("tools", [("learn",), ()], ids=["a hidden subject", "nothing hidden"])
def test_where_all_that_is_listed_is_sent_a_hidden_subject_keeps_the_tool(
    workspace: Path, run_llm: RunLlm, script: Script, tools: tuple[str, ...]
) -> None:
    if not tools:
        (workspace / "kb/project/.internal-notes.md").unlink()
    result = run_llm(["-m", "scripted", "-T", "learn", "-k", "project", "-k", "skills", "hi"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert script.last.tool_names == tools
    assert "## Available" not in script.last.system
    assert "learn tool" not in script.last.system


def test_tool_without_a_knowledge_base_points_to_init(
    tmp_path: Path, run_llm: RunLlm, script: Script
) -> None:
    result = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert result.exit_code == 1
    assert "Run 'llm kb init' to write one." in result.stderr
    assert script.requests == []


def test_captured_knowledge_needs_a_repository(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    result = run_llm(["-m", "scripted", "-T", "emit_knowledge", "hi"])
    assert result.exit_code == 1
    assert "in a git repository, and there is none here" in result.stderr
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    run_llm(["-m", "scripted", "-T", "emit_knowledge", "-s", "Be kind.", "hi"])
    assert script.last.tool_names == ("emit_knowledge",)
    assert script.last.system == f"{EMIT_GUIDELINES.rstrip()}\n\nBe kind."


def test_what_a_workspace_pre_loads_goes_with_learn_and_not_with_other_tools(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    path = workspace / "llm-kb.toml"
    path.write_text(path.read_text() + 'learned = ["ast-grep"]\n')
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    for tool in ("emit_knowledge", "References"):
        run_llm(["-m", "scripted", "-T", tool, "hi"])
        assert "<knowledge>" not in (script.last.system or "")
    run_llm(["-m", "scripted", "-T", "emit_knowledge", "-T", "learn", "hi"])
    assert "Search by structure." in script.last.system
    assert "emit_knowledge" in script.last.tool_names


def test_broken_configuration_breaks_only_what_uses_it(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    (workspace / "llm-kb.toml").write_text("[kb]\nauto = true\n[kb\n")
    assert run_llm(["-m", "scripted", "hi"]).exit_code == 0
    assert run_llm(["-m", "scripted", "-T", "llm_version", "hi"]).exit_code == 0
    assert run_llm(["tools", "list"]).exit_code == 0
    asked = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert asked.exit_code == 1
    assert "llm-kb.toml" in asked.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["-T", "learn"],
        ["-k", "project"],
        ["-k", "nothing/here"],
        ["--kb-cfg", "kb.auto=true"],
        ["-f", "kb:project/*"],
        ["--sf", "kb:project/*"],
        ["-k", "project/README", "-T", "learn", "-T", "References", "-f", "kb:project/*"],
    ],
    ids=" ".join,
)
def test_no_kb_leaves_out_whatever_was_asked_for(
    workspace: Path, run_llm: RunLlm, script: Script, args: list[str]
) -> None:
    result = run_llm(["-m", "scripted", "--no-kb", *args, "hi"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert script.last.tool_names == ()
    assert (script.last.system, script.last.prompt) == ("", "hi")


def test_saved_knowledge_is_a_live_reference(
    workspace: Path, run_llm: RunLlm, script: Script, user_dir: Path
) -> None:
    saving = run_llm(
        ["-k", "project/maintainers/*", "-T", "learn", "-s", "Be kind.", "--save", "review"]
    )
    assert saving.exit_code == 0, saving.output
    saved = yaml.safe_load((user_dir / "templates/review.yaml").read_text())
    assert saved == {
        "system": "Be kind.",
        "system_fragments": ["kb:@project/maintainers/*"],
        "tools": ["learn"],
    }
    write(workspace / "kb/project/maintainers/bob.md", "Bob merges.\n")
    result = run_llm(["-m", "scripted", "-t", "review", "hi"])
    assert result.exit_code == 0, result.output
    assert script.last.system.count("<knowledge>") == 1
    assert "Bob merges." in script.last.system
    assert script.last.system.endswith("Be kind.")
    assert script.last.tool_names == ("learn",)


def test_saving_checks_that_knowledge_exists(workspace: Path, run_llm: RunLlm) -> None:
    assert run_llm(["-k", "project/nope", "--save", "x"]).exit_code == 1
    assert run_llm(["--kb-cfg", "kb.auto=true", "--save", "x"]).exit_code == 2


def test_a_template_outside_its_workspace_says_where_topics_are_looked_for(
    workspace: Path,
    run_llm: RunLlm,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    run_llm(["-k", "project/maintainers/*", "--save", "review"])
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    result = run_llm(["-m", "scripted", "-t", "review", "hi"])
    assert (result.exit_code, script.requests) == (1, [])
    assert result.stderr == (
        "Error: unknown topic 'project'; valid topics: none here ('llm kb add' makes one); "
        "neither this directory nor one above it has an llm-kb.toml\n"
    )


def test_saved_knowledge_and_more_make_one_section(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    run_llm(["-k", "project/maintainers/*", "--save", "review"])
    run_llm(["-m", "scripted", "-t", "review", "-k", "skills", "-T", "learn", "hi"])
    assert script.last.system.count("<knowledge>") == 1
    assert script.last.system.count("<subject ") == 2
    assert "- project (**General" in script.last.system


def test_template_of_one_topic(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    result = run_llm(["-m", "scripted", "-t", "kb:skills", "hi"])
    assert result.exit_code == 0, result.output
    assert "- skills\n" in script.last.system
    assert "project" not in script.last.system
    assert script.last.tool_names == ("learn",)


def test_templates_of_two_topics_offer_one_tool(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    options = [p for p in llm.cli.cli.commands["prompt"].params if p.name == "template"]
    if not options[0].multiple:
        pytest.skip("llm takes one template before 0.33")
    run_llm(["-m", "scripted", "-t", "kb:skills", "-t", "kb:project", "-T", "learn", "hi"])
    assert script.last.tool_names == ("learn",)
    assert script.last.system == MENU


def test_a_template_that_cannot_be_loaded_is_an_error_beside_one_that_can(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    options = [p for p in llm.cli.cli.commands["prompt"].params if p.name == "template"]
    if not options[0].multiple:
        pytest.skip("llm takes one template before 0.33")
    result = run_llm(["-m", "scripted", "-t", "kb:skills", "-t", "missing", "hi"])
    assert (result.exit_code, script.requests) == (1, [])
    assert "missing" in result.stderr


def test_template_of_another_loader_is_loaded_once_and_gets_the_tool(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    loads: list[str] = []

    class Loader:
        @llm.hookimpl
        def register_template_loaders(self, register: Callable[..., None]) -> None:
            register("far", self.load)

        def load(self, name: str) -> llm.Template:
            loads.append(name)
            fragments = ["kb:@project/maintainers/*"]
            return llm.Template(name=name, tools=["learn"], system_fragments=fragments)

    plugin = Loader()
    pm.register(plugin)
    try:
        result = run_llm(["-m", "scripted", "-t", "far:away", "hi"])
    finally:
        pm.unregister(plugin)
    assert result.exit_code == 0, result.output
    assert loads == ["away"]
    assert script.last.tool_names == ("learn",)
    assert script.last.system.count("Alice reviews.") == script.last.system.count(NOTE) == 1


def test_fragments_are_one_a_subject(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "-f", "kb:project/**", "hi"])
    assert script.last.prompt == "Read `internal-notes`.\n\nAlice reviews.\n\nhi"
    listed = json.loads(run_llm(["fragments", "list", "--json"]).stdout or "[]")
    sources = {row["source"] for row in listed}
    assert {source for source in sources if not source.startswith("kb:@")} == {
        "kb:project/code-quality",
        "kb:project/maintainers/alice",
    }


def test_what_is_sent_unasked_is_whole_and_a_line_says_what_much_of_it_costs(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    text = "line\n" * 100_000
    (workspace / "kb/project/big.md").write_text(text)
    for arguments in (["-f", "kb:project/big"], ["-k", "project/big"]):
        result = run_llm(["-m", "scripted", *arguments, "hi"])
        assert result.stderr == (
            "llm-kb: ~125,000 tokens of knowledge are sent, ~125,000 of them from project/big;"
            " project/big#ANCHOR sends a part of it\n"
        )
        assert text in script.last.prompt + script.last.system


def test_continued_conversation_takes_knowledge_into_its_prompt(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    run_llm(["-m", "scripted", "hi"])
    result = run_llm(["-c", "-k", "project/maintainers/*", "more"])
    assert result.exit_code == 0, result.output
    assert result.stderr == (
        "llm-kb: a continued conversation keeps its system prompt:"
        " knowledge goes into this prompt\n"
    )
    assert script.last.messages[-1] == ("user", f"{PRELOADED}\nmore") or (
        PRELOADED in script.last.messages[-1][1]
    )


def test_continued_conversation_keeps_its_tool_and_section(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    run_llm(["-m", "scripted", "-k", "project/maintainers/*", "-T", "learn", "hi"])
    script.call("learn", topic="project")
    script.say("done")
    result = run_llm(["-c", "more"])
    assert (result.exit_code, result.stderr) == (0, "")
    sent = "\n".join(text for _, text in script.last.messages)
    assert sent.count("<knowledge>") == 1
    assert "- maintainers/alice" in script.last.outputs[0]


def test_continued_conversation_forgets_what_is_gone(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    run_llm(["-m", "scripted", "-k", "project/maintainers/*", "-T", "learn", "hi"])
    (workspace / "kb/project/maintainers/alice.md").unlink()
    result = run_llm(["-c", "more"])
    assert result.exit_code == 0, result.output
    assert "Alice" not in script.last.messages[-1][1]


def test_continued_conversation_can_be_muted(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    run_llm(["-m", "scripted", "-T", "learn", "hi"])
    result = run_llm(["-c", "--no-kb", "more"])
    assert result.exit_code == 0, result.output
    assert script.last.tool_names == ()


def test_user_may_offer_it_always(
    workspace: Path, run_llm: RunLlm, script: Script, user_dir: Path
) -> None:
    write(user_dir / "kb.toml", "[kb]\nauto = true\n")
    result = run_llm(["-m", "scripted", "hi"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert (script.last.system, script.last.tool_names) == (MENU, ("learn",))
    run_llm(["-m", "scripted-no-tools", "hi"])
    assert script.last.system == ""
    run_llm(["-m", "scripted", "--no-kb", "hi"])
    assert (script.last.system, script.last.tool_names) == ("", ())


def test_workspace_may_offer_it_once_trusted(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    config = workspace / "llm-kb.toml"
    config.write_text("[kb]\nauto = true\n" + config.read_text())
    untrusted = run_llm(["-m", "scripted", "hi"])
    assert script.last.system == ""
    assert "llm-kb.toml: kb.auto. This workspace is not trusted" in untrusted.stderr
    assert run_llm(["kb", "trust", "-y"]).exit_code == 0
    run_llm(["-m", "scripted", "hi"])
    assert script.last.system == MENU
    config.write_text(config.read_text().replace("How we work", "Obey"))
    changed = run_llm(["-m", "scripted", "hi"])
    assert script.last.system == ""
    assert "This workspace is not trusted" in changed.stderr


@pytest.mark.parametrize("command", [["prompt"], ["chat"]], ids=["prompt", "chat"])
@pytest.mark.parametrize(
    "line",
    [
        pytest.param("# auto = true", id="comment"),
        pytest.param("auto = false", id="off"),
        pytest.param("auto = true", id="untrusted"),
    ],
)
def test_mention_of_auto_alone_sends_nothing(
    workspace: Path, run_llm: RunLlm, script: Script, command: list[str], line: str
) -> None:
    config = workspace / "llm-kb.toml"
    learned = 'learned = ["**"]\n[kb.topic.skills]'
    config.write_text(f"[kb]\n{line}\n" + config.read_text().replace("[kb.topic.skills]", learned))
    hi = [] if command == ["chat"] else ["hi"]
    result = run_llm([*command, "-m", "scripted", *hi], input="hi\nquit\n" if not hi else None)
    assert result.exit_code == 0, result.output
    assert (script.last.system, script.last.tool_names) == ("", ())


def test_automatic_tool_keeps_those_a_conversation_restores(
    workspace: Path, run_llm: RunLlm, script: Script, user_dir: Path
) -> None:
    run_llm(["-m", "scripted", "-T", "llm_version", "hi"])
    write(user_dir / "kb.toml", "[kb]\nauto = true\n")
    run_llm(["-c", "more"])
    assert set(script.last.tool_names) == {"llm_version", "learn"}


def test_chat_sends_the_section_once(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    script.say("one").say("two")
    result = run_llm(
        ["chat", "-m", "scripted", "-T", "learn", "-k", "project/maintainers/*"],
        input="hi\nmore\nquit\n",
    )
    assert result.exit_code == 0, result.output
    sent = "\n".join(text for _, text in script.last.messages)
    assert sent.count("<knowledge>") == 1
    assert script.last.tool_names == ("learn",)


def test_chat_takes_saved_knowledge_from_a_template(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    run_llm(["-k", "project/maintainers/*", "--save", "review"])
    script.say("one")
    result = run_llm(["chat", "-m", "scripted", "-t", "review"], input="hi\nquit\n")
    assert result.exit_code == 0, result.output
    assert script.last.system == PRELOADED


def test_asynchronous_request(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    script.call("learn", topic="skills", subjects="ast-grep")
    script.say("done")
    result = run_llm(["-m", "scripted", "--async", "-T", "learn", "hi"])
    assert result.exit_code == 0, result.output
    assert script.last.outputs == ("Search by structure.\n",)


def test_file_that_would_stand_in_for_the_section_is_refused(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    (workspace / "kb:@").write_text("Obey me.")
    result = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert result.exit_code == 1
    assert script.requests == []


def make_cli() -> tuple[click.Group, list[dict[str, object]]]:
    calls: list[dict[str, object]] = []

    @click.group()
    def cli() -> None:
        pass

    @cli.command("prompt", help="Execute a prompt")
    @click.argument("prompt", required=False)
    @click.option("system_fragments", "--sf", multiple=True)
    def prompt(**kwargs: object) -> None:
        calls.append(kwargs)

    return cli, calls


def test_extending_twice_changes_nothing() -> None:
    cli, _ = make_cli()
    extend_commands(cli)
    assert cli.get_command(click.Context(cli), "prompt") is cli.commands["prompt"]
    callback, params = cli.commands["prompt"].callback, list(cli.commands["prompt"].params)
    extend_commands(cli)
    cli.get_command(click.Context(cli), "prompt")
    extend(cli.commands["prompt"])
    assert cli.commands["prompt"].callback is callback
    assert cli.commands["prompt"].params == params
    assert cli.commands["prompt"].help == "Execute a prompt"


@pytest.mark.parametrize("ours_first", [True, False], ids=["ours-first", "theirs-first"])
@pytest.mark.parametrize("keeps_params", [True, False], ids=["keeps-params", "own-params"])
def test_survives_a_plugin_that_replaces_the_command(
    workspace: Path, run_llm: RunLlm, ours_first: bool, keeps_params: bool
) -> None:
    cli, calls = make_cli()

    def replace() -> None:
        old = cli.commands.pop("prompt")
        assert old.callback is not None
        inner = old.callback

        def callback(prompt: str, system_fragments: tuple[str, ...], **rest: object) -> None:
            inner(prompt=prompt, system_fragments=system_fragments, **rest)

        params = list(old.params) if keeps_params else old.params[:2]
        cli.add_command(click.Command("prompt", params=params, callback=callback))

    steps = [lambda: extend_commands(cli), replace]
    for step in steps if ours_first else reversed(steps):
        step()
    result = CliRunner().invoke(cli, ["prompt", "-k", "project/maintainers/*", "hi"])
    assert result.exit_code == 0, result.output
    assert [call["system_fragments"] for call in calls] == [["kb:@", "kb:@@"]]


def test_help_of_the_host_is_kept() -> None:
    for name in ("prompt", "chat"):
        command = llm.cli.cli.get_command(click.Context(llm.cli.cli), name)
        assert command is not None
        text = command.get_help(click.Context(command))
        for option in ("-k, --knowledge", "--kb-cfg", "--no-kb", "-s, --system"):
            assert option in text


def test_a_part_is_preloaded_learned_and_attached_alike(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    write(workspace / "kb/project/guide.md", "# Guide\n\n## Use\n\nUse it.\n\n## Rest\n\nRest.\n")
    part = "(note: lines 3-6 of 9)\n\n## Use\n\nUse it.\n\n"
    script.call("learn", topic="project", subjects="guide#use")
    script.say("done")
    run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert script.last.outputs == (part,)
    run_llm(["-m", "scripted", "-k", "project/guide#use", "hi"])
    assert f'<subject "guide#use">\n{part}</subject>' in script.last.system
    assert (
        run_llm(["kb", "show", "--as-model", "project/guide#use"]).stdout.rstrip() == part.rstrip()
    )
    run_llm(["-m", "scripted", "-f", "kb:project/guide#use", "hi"])
    assert part.strip() in script.last.prompt
    refused = run_llm(["-m", "scripted", "-k", "project/guide#us", "hi"])
    assert (refused.exit_code, refused.stderr) == (
        1,
        "Error: subject 'guide' of topic 'project' has no part '#us'; did you mean: guide#use;"
        " `llm kb show 'project/guide#' --as-model` lists them\n",
    )


def test_much_preloaded_text_is_announced(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    write(workspace / "kb/project/big.md", "word word word word\n" * 4_500)
    result = run_llm(["-m", "scripted", "-k", "project/*", "hi"])
    assert result.stderr == (
        "llm-kb: ~22,506 tokens of knowledge are sent, ~22,500 of them from project/big;"
        " project/big#ANCHOR sends a part of it\n"
    )
    assert "word word word word\n" * 4_500 in script.last.system


def test_an_unknown_model_is_an_error_of_the_host(workspace: Path, run_llm: RunLlm) -> None:
    """Whose message is an exception, which `str` refuses."""
    result = run_llm(["-m", "nosuch", "-T", "learn", "hi"])

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "Unknown model: nosuch" in result.stderr


@pytest.mark.parametrize("spec", ['learn("project")', "learn(topic='project')", "emit_knowledge()"])
def test_a_tool_that_takes_nothing_says_so(
    workspace: Path, run_llm: RunLlm, script: Script, spec: str
) -> None:
    copy_empty_repository(workspace)
    result = run_llm(["-m", "scripted", "-T", spec, "hi"])
    name = spec.partition("(")[0]
    assert (result.exit_code, script.requests) == (1, [])
    assert result.stderr == (
        f"Error: {spec}: {name} takes nothing here; -T {name} offers it, and -t kb:TOPIC offers"
        " learn for one topic\n"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("foo=1", "'foo'"),
        ('{"foo": 1, "ghost": "x", "bar": 2}', "'foo', 'bar'"),
    ],
)
def test_wrong_arguments_of_the_toolbox_are_answered_with_the_right_ones(
    run_llm: RunLlm, script: Script, arguments: str, problem: str
) -> None:
    for command in (["-m", "scripted", "hi", "-T"], ["tools", "list"]):
        result = run_llm([*command, f"References({arguments})"])
        assert (result.exit_code, script.requests) == (1, [])
        assert result.stderr == (
            f"Error: References: unknown argument {problem}; allowed: ghost, model, as in"
            ' References(ghost="reviewer")\n'
        )


def test_arguments_that_the_host_cannot_read_are_an_error(run_llm: RunLlm, script: Script) -> None:
    result = run_llm(["-m", "scripted", "-T", "References(foo)", "hi"])
    assert (result.exit_code, script.requests) == (1, [])
    assert result.stderr == "Error: Invalid keyword spec segment: 'foo'\n"
