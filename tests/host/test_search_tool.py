"""`search_knowledge` in a request: offered beside `learn`, never alone; and `kb-search:`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.section import SEARCH_LINE
from tests.conftest import RunLlm
from tests.scripted import Script

CONFIG = '[kb]\nsearch = {}\n[kb.topic.zoo]\ntitle = "Zoo"\nsubjects = "kb"\n'
HEADED = '<passage "zoo/walrus#walrus (lines 1-3)"'
PASSAGE = f"{HEADED}>\n# Walrus\n\nTusks.\n</passage>\n"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """One small topic, over which the search is on."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "walrus.md").write_text("# Walrus\n\nTusks.\n")
    (tmp_path / "kb" / "otter.md").write_text("# Otter\n\nSwims.\n")
    (tmp_path / "llm-kb.toml").write_text(CONFIG.format("true"))
    return tmp_path


def offered(script: Script) -> tuple[str, ...]:
    return script.last.tool_names


def test_it_comes_with_learn_and_the_menu_says_so(run_llm: RunLlm, script: Script) -> None:
    script.call("search_knowledge", question="tusks").say("done")

    result = run_llm(["-m", "scripted", "-T", "learn", "hi"])

    assert result.exit_code == 0, result.output
    assert script.requests[0].tool_names == ("learn", "search_knowledge")
    assert SEARCH_LINE.format("search_knowledge") in script.requests[0].system
    (answer,) = script.last.outputs
    assert answer.startswith(PASSAGE)


@pytest.mark.parametrize("setting", ["false", '"auto"'])
def test_a_small_topic_or_a_setting_leaves_it_out(
    run_llm: RunLlm, script: Script, workspace: Path, setting: str
) -> None:
    (workspace / "llm-kb.toml").write_text(CONFIG.format(setting))

    run_llm(["-m", "scripted", "-T", "learn", "hi"])

    assert offered(script) == ("learn",)
    assert "search_knowledge" not in script.last.system


def test_it_is_never_offered_alone(run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "-T", "search_knowledge", "hi"])

    assert offered(script) == ()


def test_no_kb_leaves_it_out(run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "--no-kb", "-T", "search_knowledge", "hi"])

    assert offered(script) == ()


def test_a_continued_conversation_keeps_it(run_llm: RunLlm, script: Script) -> None:
    script.call("search_knowledge", question="tusks").say("done")
    run_llm(["-m", "scripted", "-T", "learn", "hi"])

    result = run_llm(["-m", "scripted", "-c", "more"])

    assert result.exit_code == 0, result.output
    assert set(offered(script)) == {"learn", "search_knowledge"}


def test_what_is_preloaded_is_not_repeated(run_llm: RunLlm, script: Script) -> None:
    script.call("search_knowledge", question="tusks").say("done")

    run_llm(["-m", "scripted", "-T", "learn", "-k", "zoo/walrus", "hi"])

    (answer,) = script.last.outputs
    assert answer.startswith("zoo/walrus#walrus (lines 1-3): already in your system prompt\n")


@pytest.mark.parametrize(
    "reference",
    [
        *("zoo:tusks", ":tusks", "tusks", "Zoo:what are tusks", "zoo: tusks"),
        *(
            "error: tusks",
            "tusks:",
            "walrus has: tusks",
            "gone:tusks",
            ":error:tusks",
            "@tusks",
        ),
    ],
)
def test_a_fragment_of_passages_for_models_without_tools(
    run_llm: RunLlm, script: Script, reference: str
) -> None:
    result = run_llm(["-m", "scripted-no-tools", "-f", f"kb-search:{reference}", "hi"])

    assert result.exit_code == 0, result.output
    assert HEADED in script.last.prompt


def test_a_fragment_has_long_passages_whole(
    run_llm: RunLlm, script: Script, workspace: Path
) -> None:
    text = "# Seal\n\n" + "\n\n".join(f"Line {n} of what seals do." for n in range(80))
    (workspace / "kb" / "seal.md").write_text(text)

    run_llm(["-m", "scripted", "-f", "kb-search:zoo:seals", "hi"])

    assert text in script.last.prompt
    assert len(KnowledgeBase.discover().find_passages("seals").passages[0].text) < len(text)


@pytest.mark.parametrize("options", [[], ["--save", "long"]], ids=["asked", "saved"])
def test_a_search_longer_than_a_file_name_is_refused_with_another_way(
    run_llm: RunLlm, script: Script, options: list[str]
) -> None:
    text = f"TuskError: {'walrus tusks ' * 30}"
    result = run_llm(["-f", f"kb-search:zoo:{text}", *options, "hi"])

    assert (result.exit_code, script.requests) == (1, [])
    assert result.stderr == (
        "Error: a kb-search: fragment has at most 255 bytes; `llm kb search` takes a text of any"
        " length, and its passages can be piped into llm\n"
    )


@pytest.mark.parametrize(
    "message",
    [
        "src/main.rs:12:5: error: tusks",
        "std::tusks thrown",
        "https://x.org/tusks is down",
        "12:34:56 tusks",
        "C:\\tusks not found",
    ],
)
def test_a_message_with_colons_is_a_question(run_llm: RunLlm, script: Script, message: str) -> None:
    result = run_llm(["-m", "scripted", "-f", f"kb-search:{message}", "hi"])

    assert (result.exit_code, result.stderr) == (0, "")
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("zoo:?!", "the question has no word to look for"),
        ("zoo:xyzzy", "kb-search:zoo:xyzzy: Nothing in zoo has a word of that question."),
    ],
)
def test_a_fragment_that_cannot_be_one_says_why(
    run_llm: RunLlm, script: Script, reference: str, problem: str
) -> None:
    result = run_llm(["-m", "scripted", "-f", f"kb-search:{reference}", "hi"])

    assert result.exit_code == 1
    assert problem in result.stderr
    assert script.requests == []


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (None, "there is no knowledge base here: neither this directory nor one above it has"),
        ("", "no topics are configured; `llm kb add` makes one"),
    ],
)
def test_a_fragment_without_topics_says_what_learn_says_then(
    run_llm: RunLlm, script: Script, workspace: Path, config: str | None, reason: str
) -> None:
    if config is None:
        (workspace / "llm-kb.toml").unlink()
    else:
        (workspace / "llm-kb.toml").write_text(config)

    searched = run_llm(["-m", "scripted", "-f", "kb-search:tusks", "hi"])
    learned = run_llm(["-m", "scripted", "-T", "learn", "hi"])

    assert (searched.exit_code, script.requests) == (1, [])
    assert f"kb-search:tusks: {reason}" in searched.stderr
    assert learned.stderr.removeprefix("Error: ") in searched.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "search_knowledge: question: missing"),
        ({"question": True}, "search_knowledge: question: found true; allowed: a string"),
        ({"question": "x", "limit": 0}, "search_knowledge: limit: found the number 0; allowed: a"),
        ({"question": "?"}, "the question has no word to look for"),
        ({"question": "x", "topic": "gone"}, "unknown topic 'gone'; valid topics: zoo"),
    ],
)
def test_a_wrong_call_says_how_to_correct_it(arguments: dict[str, object], problem: str) -> None:
    tool = KnowledgeBase.discover().search_tool()
    assert tool.implementation is not None
    with pytest.raises(KbError) as raised:
        tool.implementation(**arguments)
    assert str(raised.value).startswith(problem)


def test_a_model_may_ask_for_no_more_than_20_passages(workspace: Path) -> None:
    for number in range(30):
        (workspace / "kb" / f"{number}.md").write_text(f"Tusks {number}.\n")
    tool = KnowledgeBase.discover().search_tool()
    assert tool.implementation is not None

    answer = tool.implementation(question="tusks", limit=10**9)

    assert len(re.findall(r"zoo/\d+#L1 \(line 1\)", answer)) == 20
