"""The bytes sent for each way to add knowledge and each kind of request.

The table in docs/using.md shows the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from llm_kb.rendering.section import HEADER
from tests.conftest import RunLlm
from tests.openai_server import Calls, OpenAIServer, serve_openai

CONFIG = """
[kb.topic.project]
title = "General"
introduction = "How we work."
subjects = "kb/project"

[kb.topic.skills]
subjects = "kb/skills"
"""

INTRO = "The following knowledge has been pre-loaded into your system prompt:"
MENU = HEADER.strip()
TO_PROMPT = (
    "llm-kb: a continued conversation keeps its system prompt: knowledge goes into this prompt\n"
)


def make_workspace(path: Path, reviewer: str) -> Path:
    """Make a workspace whose subject `maintainers/NAME` is of this reviewer."""
    for name, text in {
        "llm-kb.toml": CONFIG,
        ".llm/config.d/maintainers.toml": '[kb.topic.project]\nlearned = ["maintainers/*"]\n',
        f"kb/project/maintainers/{reviewer}.md": f"{reviewer} reviews.\n",
        "kb/project/code-quality.md": "Short functions.\n",
        "kb/skills/ast-grep.md": "Search by structure.\n",
    }.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def server(user_dir: Path) -> Iterator[OpenAIServer]:
    """The server that the models `wire` and `wire-responses` ask."""
    with serve_openai(user_dir) as server:
        yield server


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace in which conversations begin; jean reviews."""
    path = make_workspace(tmp_path / "here", "jean")
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Another workspace with topics of the same names; alice reviews."""
    return make_workspace(tmp_path / "there", "alice")


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A directory that belongs to no workspace."""
    path = tmp_path / "nowhere"
    path.mkdir()
    return path


@pytest.fixture(params=["there", "nowhere"])
def elsewhere(request: pytest.FixtureRequest) -> Path:
    """Each place that is not the workspace in which conversations begin."""
    path: Path = request.getfixturevalue(request.param)
    return path


def write_template(user_dir: Path, name: str, text: str) -> None:
    (user_dir / "templates").mkdir(exist_ok=True)
    (user_dir / "templates" / f"{name}.yaml").write_text(text, encoding="utf-8")


Ask = Callable[..., Result]


@pytest.fixture
def ask(run_llm: RunLlm, server: OpenAIServer) -> Ask:
    """Run `llm -m wire ARGS…`, which must succeed."""

    def ask(*args: str, input: str | None = None) -> Result:
        model = () if {"-c", "--cid"} & set(args) or args[0] == "chat" else ("-m", "wire")
        result = run_llm([*model, *args], input=input)
        assert result.exit_code == 0, result.output
        return result

    return ask


@pytest.mark.parametrize("model", ["wire", "wire-responses"])
@pytest.mark.parametrize("options", [[], ["--no-stream"], ["--async"]], ids=["", "whole", "async"])
def test_protocols(
    here: Path, run_llm: RunLlm, server: OpenAIServer, model: str, options: list[str]
) -> None:
    """The section once, in the place of the system prompt; calls in parallel and in a row."""
    server.call(("learn", {"topic": "project"}), ("learn", {"topic": "skills"}))
    server.call(("learn", {"topic": "skills", "subjects": "ast-grep"}))
    result = run_llm(["-m", model, *options, "-T", "learn", "-k", "project/maintainers/*", "hi"])
    assert (result.exit_code, result.stdout.strip()) == (0, "ok"), result.output
    assert [sent.tools for sent in server.sent] == [["learn"]] * 3
    assert [sent.system.count("<knowledge>") for sent in server.sent] == [1, 1, 1]
    assert "jean reviews." in server.sent[0].system
    listed, others, loaded = server.last.outputs
    assert "- code-quality" in listed
    assert "- ast-grep" in others
    assert loaded == "Search by structure.\n"


# Every way of giving knowledge, with what stands in its system prompt: of `project` what is
# pre-loaded, and whether there is a menu, and so the tool.
WAYS = {
    "-k": (["-k", "project/maintainers/*"], True, False),
    "-T learn": (["-T", "learn"], False, True),
    "both": (["-T", "learn", "-k", "project/maintainers/*"], True, True),
    "assignment": (["--kb-cfg", 'kb.topic.project.learned+="maintainers/*"'], True, False),
    "config fragment": (["--kb-cfg", "maintainers"], True, False),
    "template, system_fragments": (["-t", "system"], True, False),
    "template, fragments": (["-t", "fragment"], True, False),
    "template, tools": (["-t", "tool"], False, True),
    "saved template": (["-t", "saved"], True, True),
    "-t kb:": (["-t", "kb:project"], False, True),
}


@pytest.fixture
def templates(user_dir: Path, here: Path, ask: Ask) -> None:
    """One template for each way."""
    write_template(user_dir, "system", 'system_fragments: ["kb:project/maintainers/*"]\nsystem: S')
    write_template(user_dir, "fragment", 'fragments: ["kb:project/maintainers/*"]\nsystem: S')
    write_template(user_dir, "tool", "tools: [learn]")
    ask("-k", "project/maintainers/*", "-T", "learn", "--save", "saved")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("templates")
def test_prompt_and_chat_send_the_same(ask: Ask, server: OpenAIServer, way: str) -> None:
    args, is_preloaded, has_menu = WAYS[way]
    ask(*args, "one")
    ask("chat", "-m", "wire", *args, input="one\ntwo\nexit\n")
    prompt, first, second = server.sent
    assert prompt.everything.count("jean reviews.") == int(is_preloaded)
    assert (prompt.everything.count(MENU), prompt.tools) == (
        int(has_menu),
        ["learn"] * has_menu,
    )
    assert (first.system, first.prompt, first.tools) == (prompt.system, prompt.prompt, prompt.tools)
    assert (second.system, second.tools) == (first.system, first.tools)
    assert second.turns[: len(first.turns)] == first.turns
    assert second.prompt == "two"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("templates")
def test_continued_in_the_same_place_nothing_is_sent_again(
    ask: Ask, server: OpenAIServer, way: str
) -> None:
    args, is_preloaded, has_menu = WAYS[way]
    ask(*args, "one")
    result = ask("-c", "two")
    assert (result.stderr, server.last.prompt) == ("", "two")
    assert server.last.tools == ["learn"] * has_menu
    # Who asks for the menu gets it, whether it was sent or not.
    server.call(("learn", {"topic": "project"}))
    ask("-c", "-T", "learn", "three")
    assert server.last.everything.count("jean reviews.") == int(is_preloaded)
    assert MENU in server.last.prompt


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("later", ["-c", "chat -c", "later turn of a chat"])
@pytest.mark.usefixtures("templates")
def test_after_the_first_turn_learn_returns_what_was_preloaded(
    ask: Ask, server: OpenAIServer, way: str, later: str
) -> None:
    """Some models get the system prompt with the first turn alone."""
    args, _, _ = WAYS[way]
    answer: Calls = [
        ("learn", {"topic": "project"}),
        ("learn", {"topic": "project", "subjects": ["maintainers/jean"]}),
    ]
    if later == "later turn of a chat":
        server.script += ("one", answer)
        ask("chat", "-m", "wire", *args, "-T", "learn", input="one\ntwo\nexit\n")
    else:
        ask(*args, "-T", "learn", "one")
        server.script.append(answer)
        if later == "-c":
            ask("-c", "two")
        else:
            ask("chat", "-c", input="two\nexit\n")
    listing, subject = server.last.outputs
    assert "- maintainers/jean" in listing
    assert "earned" not in listing
    assert subject == "jean reviews.\n"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("templates")
def test_continued_elsewhere_it_goes_on_with_what_it_has(
    ask: Ask, server: OpenAIServer, way: str, elsewhere: Path, here: Path
) -> None:
    """Nothing of another workspace is sent, and a tool nobody typed is no error."""
    args, _, has_menu = WAYS[way]
    ask(*args, "one")
    os.chdir(elsewhere)
    for command in (["-c", "two"], ["chat", "-c"]):
        result = ask(*command, input="two\nexit\n" if command[0] == "chat" else None)
        assert (server.last.prompt, server.last.tools) == ("two", [])
        assert "alice" not in server.last.everything
        found = (
            f"you are now in {elsewhere}" if elsewhere.name == "there" else "you are now in none"
        )
        assert result.stderr == has_menu * (
            f"llm-kb: learn is left out: this conversation used {here}, {found};"
            " -T learn offers what is here\n"
        )


def test_what_is_asked_for_elsewhere_is_of_there(
    here: Path, there: Path, ask: Ask, server: OpenAIServer
) -> None:
    ask("-T", "learn", "-k", "project/maintainers/*", "one")
    os.chdir(there)
    result = ask("-c", "-k", "project/code-quality", "two")
    assert result.stderr == (
        f"llm-kb: learn is left out: this conversation used {here}, you are now in {there};"
        f" -T learn offers what is here\n{TO_PROMPT}"
    )
    assert server.last.prompt.startswith(f'<knowledge>\n{INTRO}\n\n<topic "General">')
    assert "alice" not in server.last.everything


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(["-k", "project/maintainers/*"], id="-k"),
        pytest.param(["--kb-cfg", "maintainers"], id="config fragment"),
        pytest.param(["-t", "saved"], id="saved template"),
    ],
)
@pytest.mark.usefixtures("templates")
def test_who_asks_for_knowledge_again_gets_it_again(
    ask: Ask, server: OpenAIServer, again: list[str]
) -> None:
    ask("-k", "project/maintainers/*", "one")
    for _ in range(2):
        result = ask("-c", *again, "two")
        assert result.stderr == TO_PROMPT
        assert f"{INTRO}\n\n<topic" in server.last.prompt
        assert server.last.prompt.count("jean reviews.") == 1


def test_a_menu_that_changed_is_sent_again(here: Path, ask: Ask, server: OpenAIServer) -> None:
    ask("-T", "learn", "one")
    config = (here / "llm-kb.toml").read_text()
    (here / "llm-kb.toml").write_text(config.replace("How we work.", "How we work here."))
    ask("-c", "two")
    assert server.last.prompt == "two"
    ask("-c", "-T", "learn", "three")
    assert "How we work here." in server.last.prompt


EXCLUDED = {
    "disabled": 'kb.topic.project.disabled+="code-quality"',
    "disabled, replaced": 'kb.topic.project.disabled=["code-quality"]',
    "fragment": "safe",
    "path": "./safe.toml",
    "topic": "kb.topic.project.enable=false",
}


@pytest.mark.parametrize("way", EXCLUDED)
def test_what_a_turn_excluded_stays_excluded(
    here: Path, ask: Ask, server: OpenAIServer, way: str
) -> None:
    safe = '[kb.topic.project]\ndisabled = ["code-quality"]\n'
    for name in ("safe.toml", ".llm/config.d/safe.toml"):
        (here / name).write_text(safe)
    ask("--kb-cfg", EXCLUDED[way], "-T", "learn", "one")
    call = ("learn", {"topic": "project", "subjects": "code-quality"})
    for turn in (["-c", "two"], ["-c", "three"], ["-c", "-T", "learn", "-k", "skills", "four"]):
        server.call(call)
        ask(*turn)
        assert "Short functions." not in server.last.everything
        assert server.last.outputs[-1].startswith("Error: ")
    # It is what the user said last that counts.
    (here / "safe.toml").unlink()
    server.call(call)
    again = "enable=true" if way == "topic" else "disabled=[]"
    ask("-c", "--kb-cfg", f"kb.topic.project.{again}", "five")
    assert server.last.outputs[-1] == "Short functions.\n"


def test_an_exclusion_of_a_topic_that_is_gone_is_ignored(
    here: Path, ask: Ask, server: OpenAIServer
) -> None:
    ask("--kb-cfg", 'kb.topic.project.disabled+="a"', "-T", "learn", "one")
    (here / "llm-kb.toml").write_text('[kb.topic.skills]\nsubjects = "kb/skills"\n')
    ask("-c", "two")
    assert server.last.tools == ["learn"]


def test_a_fragment_of_another_topic_keeps_to_what_is_excluded(
    here: Path, run_llm: RunLlm, server: OpenAIServer
) -> None:
    args = ["-m", "wire", "-t", "kb:skills", "--kb-cfg", EXCLUDED["disabled"], "hi"]
    result = run_llm([*args, "-f", "kb:project/code-quality"])
    assert (result.exit_code, server.sent) == (1, [])
    assert "no subject of topic 'project' matches 'code-quality'" in result.stderr


def test_a_memory_does_not_depend_on_who_logged_a_text_first(
    here: Path, ask: Ask, server: OpenAIServer
) -> None:
    ask("-t", "kb:skills", "one")
    ask("-T", "learn", "-t", "kb:skills", "one")
    server.call(("learn", {"topic": "project"}))
    ask("-c", "two")
    assert server.last.outputs == ["Error: unknown topic 'project'; valid topics: skills"]


def test_a_template_of_one_topic_stays_with_it(here: Path, ask: Ask, server: OpenAIServer) -> None:
    ask("-t", "kb:project", "one")
    server.call(("learn", {"topic": "skills"}))
    result = ask("-c", "two")
    assert (result.stderr, server.last.prompt) == ("", "two")
    assert server.last.outputs == ["Error: unknown topic 'skills'; valid topics: project"]


def test_a_memory_sends_nothing(here: Path, ask: Ask, server: OpenAIServer) -> None:
    """It is a blank fragment of the system prompt, which the host leaves out."""
    ask("-k", "project/maintainers/*", "-s", "Be kind.", "one")
    assert server.last.system.endswith("</knowledge>\n\nBe kind.")
    ask("-c", "-k", "skills", "two")
    assert server.last.system.endswith("</knowledge>\n\nBe kind.")
    assert server.last.turns[0] == {"role": "user", "content": "one"}


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["-T", "learn", "-T", "learn"], id="typed twice"),
        pytest.param(["-t", "a", "-t", "b"], id="two templates"),
        pytest.param(["-t", "a", "-t", "kb:project", "-T", "learn"], id="every way"),
        pytest.param(["-t", "kb:project", "-t", "kb:skills"], id="two topics"),
    ],
)
def test_learn_is_offered_once(
    here: Path, user_dir: Path, ask: Ask, server: OpenAIServer, args: list[str]
) -> None:
    for name in "ab":
        write_template(user_dir, name, "tools: [learn, llm_version]")
    ask(*args, "hi")
    assert server.last.tools.count("learn") == 1
    assert server.last.tools.count("llm_version") == args.count("a") + args.count("b")


@pytest.mark.parametrize("options", [[], ["--no-kb"]], ids=["nowhere", "muted"])
def test_a_template_with_our_tools_works_without_them(
    nowhere: Path, user_dir: Path, ask: Ask, server: OpenAIServer, options: list[str]
) -> None:
    os.chdir(nowhere)
    write_template(user_dir, "tpl", "tools: [learn, emit_knowledge, llm_version]\nsystem: Be kind.")
    result = ask(*options, "-t", "tpl", "hi")
    assert (server.last.system, server.last.tools) == ("Be kind.", ["llm_version"])
    lines = result.stderr.splitlines()
    assert [line[:32] for line in lines] == (
        []
        if options
        else [
            "llm-kb: emit_knowledge is left o",
            "llm-kb: learn is left out: there",
        ]
    )


def test_with_auto_everywhere_a_conversation_goes_on_anywhere(
    here: Path, nowhere: Path, user_dir: Path, ask: Ask, server: OpenAIServer
) -> None:
    (user_dir / "kb.toml").write_text("[kb]\nauto = true\n")
    ask("hi")
    assert server.last.tools == ["learn"]
    os.chdir(nowhere)
    result = ask("-c", "more")
    assert server.last.tools == []
    assert result.stderr.count("\n") == 1
    assert ask("chat", "-c", input="more\nexit\n").stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        ["--kb-cfg", 'kb.topic.project.learned+="maintaners/*"'],
        ["--kb-cfg", "wrong"],
        ["-k", "project/maintaners/*"],
    ],
    ids=["assignment", "config fragment", "-k"],
)
def test_what_matches_nothing_is_an_error_before_the_model(
    here: Path, run_llm: RunLlm, server: OpenAIServer, args: list[str]
) -> None:
    (here / ".llm/config.d/wrong.toml").write_text(
        '[kb.topic.project]\nlearned = ["maintaners/*"]\n'
    )
    result = run_llm(["-m", "wire", *args, "hi"])
    assert (result.exit_code, result.stderr, server.sent) == (
        1,
        "Error: no subject of topic 'project' matches 'maintaners/*'; did you mean:"
        " maintainers/jean\n",
        [],
    )


@pytest.mark.parametrize("args", [["-T", "learn"], ["-k", "p"], ["-k", "p/*"], ["-t", "kb:p"]])
def test_a_directory_that_is_not_there_is_an_error_before_the_model(
    nowhere: Path, run_llm: RunLlm, server: OpenAIServer, args: list[str]
) -> None:
    os.chdir(nowhere)
    (nowhere / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kbb"\n')
    result = run_llm(["-m", "wire", *args, "hi"])
    assert (result.exit_code, server.sent) == (1, [])
    assert f"topic 'p' lists no subjects: {nowhere}/kbb: no such directory" in result.stderr


def test_a_topic_of_which_all_is_disabled_is_not_called_empty(
    here: Path, run_llm: RunLlm, server: OpenAIServer
) -> None:
    (here / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb"\ndisabled = ["**"]\n')
    result = run_llm(["-m", "wire", "-T", "learn", "hi"])
    assert (result.exit_code, server.sent) == (1, [])
    assert f"{here}/kb are all disabled;" in result.stderr


@pytest.mark.parametrize("command", [["prompt"], ["prompt", "--async"], ["chat"]], ids=" ".join)
def test_too_many_rounds_are_an_error_that_says_what_allows_more(
    here: Path, run_llm: RunLlm, server: OpenAIServer, command: list[str]
) -> None:
    for _ in range(5):
        server.call(("learn", {"topic": "project"}))
    args = [*command, "-m", "wire", "-T", "learn", *([] if command == ["chat"] else ["hi"])]
    result = run_llm(args, input="hi\nexit\n" if command == ["chat"] else None)
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: Chain limit of 5 exceeded."
        " --cl 10 allows more rounds of tool calls, --cl 0 any number\n",
    )


def test_a_misspelled_tool_is_told_of_ours(
    here: Path, run_llm: RunLlm, server: OpenAIServer
) -> None:
    result = run_llm(["-m", "wire", "-T", "lern", "hi"])
    assert (result.exit_code, server.sent) == (1, [])
    assert "References, emit_knowledge, learn" in result.stderr
