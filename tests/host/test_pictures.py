"""Pictures: attached by an exact name if the model takes them, and never listed or matched."""

from __future__ import annotations

from pathlib import Path

import llm
import pytest

from llm_kb import KnowledgeBase
from llm_kb.knowledge_base.learning import PictureRules
from tests.conftest import RunLlm
from tests.scripted import Script

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0"
GIF = b"GIF89a\1\0\1\0\0\0\0"
WEBP = b"RIFF\x1a\0\0\0WEBPVP8 "

ATTACHED = "(note: image/png, 16 bytes, attached)"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """A workspace whose topic has a text and pictures, in the current directory."""
    (tmp_path / "kb" / "img").mkdir(parents=True)
    (tmp_path / "kb" / "a.md").write_text("About walruses.\n")
    for name, data in {"flow.png": PNG, "b.jpg": JPEG, "c.gif": GIF, "d.webp": WEBP}.items():
        (tmp_path / "kb" / "img" / name).write_bytes(data)
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    return tmp_path


@pytest.fixture(autouse=True)
def seeing(script: Script) -> None:
    """Let the scripted models take three kinds of pictures."""
    script.attachment_types = {"image/png", "image/jpeg", "image/gif"}


def ask(run_llm: RunLlm, script: Script, *subjects: str, options: tuple[str, ...] = ()) -> str:
    """Return the answer of `learn` as the model gets it."""
    script.call("learn", topic="p", subjects=list(subjects)).say("done")
    result = run_llm(["-m", "scripted", "-T", "learn", *options, "hi"])
    assert result.exit_code == 0, result.output
    (answer,) = script.last.outputs
    return answer


def list_attached(script: Script) -> list[tuple[str | None, bytes | None]]:
    """Return types and bytes of what came with the answers of the last request."""
    results = script.last.tool_results
    return [(each.type, each.content) for result in results for each in result.attachments]


@pytest.mark.parametrize("options", [(), ("--async",)], ids=["sync", "async"])
@pytest.mark.parametrize("name", ["img/flow.png", "img/flow"])
def test_exact_name_attaches_a_picture(
    run_llm: RunLlm, script: Script, name: str, options: tuple[str, ...]
) -> None:
    assert ask(run_llm, script, name, options=options) == ATTACHED
    assert list_attached(script) == [("image/png", PNG)]


def test_picture_comes_with_other_subjects(run_llm: RunLlm, script: Script) -> None:
    answer = ask(run_llm, script, "a", "img/flow.png")
    assert answer == (
        '<subject "a">\nAbout walruses.\n</subject>\n\n'
        f'<subject "img/flow">\n{ATTACHED}\n</subject>'
    )
    assert list_attached(script) == [("image/png", PNG)]


def test_globs_and_listings_have_no_pictures(run_llm: RunLlm, script: Script) -> None:
    answer = ask(run_llm, script, "**")
    assert "flow" not in answer
    assert list_attached(script) == []
    script.call("learn", topic="p").say("done")
    run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert "flow" not in script.last.outputs[0]


@pytest.mark.parametrize("pattern", ["img/*", "img"])
def test_glob_of_pictures_alone_matches_nothing(
    run_llm: RunLlm, script: Script, pattern: str
) -> None:
    answer = ask(run_llm, script, pattern)
    assert answer.startswith("Error: ")
    assert "img/**" not in answer


def test_bytes_decide_and_not_the_name(workspace: Path, run_llm: RunLlm, script: Script) -> None:
    (workspace / "kb" / "x.png").write_bytes(JPEG)
    (workspace / "kb" / "y.png").write_text("no picture\n")
    (workspace / "kb" / "z.png").write_bytes(b"\0\1")
    (workspace / "kb" / "q.txt").write_bytes(GIF)
    answer = ask(run_llm, script, "x", "y", "z", "q")
    assert [kind for kind, _ in list_attached(script)] == ["image/jpeg", "image/gif"]
    assert "no picture" in answer
    assert "(note: binary file, 2 bytes, skipped)" in answer


def test_picture_that_the_model_does_not_take_is_skipped_with_the_reason(
    run_llm: RunLlm, script: Script
) -> None:
    assert ask(run_llm, script, "img/d.webp") == (
        "(note: binary file, 16 bytes, skipped: image/webp is not taken here)"
    )
    assert list_attached(script) == []


def test_large_picture_is_skipped_with_the_reason(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    most = PictureRules().most_bytes
    (workspace / "kb" / "big.png").write_bytes(PNG.ljust(most, b"\0"))
    assert ask(run_llm, script, "big.png") == f"(note: image/png, {most:,} bytes, attached)"
    (workspace / "kb" / "big.png").write_bytes(PNG.ljust(most + 1, b"\0"))
    assert ask(run_llm, script, "big.png") == (
        f"(note: binary file, {most + 1:,} bytes, skipped: pictures of over {most:,} bytes are"
        " not attached)"
    )


def test_fifth_picture_of_a_call_is_skipped(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    names = [f"{number}.png" for number in range(5)]
    for name in names:
        (workspace / "kb" / name).write_bytes(PNG)
    answer = ask(run_llm, script, *names)
    assert len(list_attached(script)) == 4
    assert answer.count("4 pictures are attached already; load it with another call") == 1


def test_four_pictures_of_a_call_are_of_all_topics(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    (workspace / "llm-kb.toml").write_text(
        '[kb.topic.p]\nsubjects = "kb"\n[kb.topic.q]\nsubjects = "kb"\n'
    )
    names = ["img/flow", "img/b", "img/c", "q/img/flow", "q/img/b"]
    answer = ask(run_llm, script, *names)
    assert len(list_attached(script)) == 4
    assert answer.count("4 pictures are attached already") == 1


def test_text_that_has_no_room_for_the_note_has_no_picture(
    workspace: Path, run_llm: RunLlm, script: Script
) -> None:
    (workspace / "kb" / "a.md").write_text("word " * 392)
    options = ("--kb-cfg", "kb.max_result_chars=2000")
    answer = ask(run_llm, script, "a", "img/flow.png", options=options)
    assert list_attached(script) == []
    assert ATTACHED not in answer
    assert "img/flow" in answer


def test_preloaded_picture_goes_with_the_prompt(run_llm: RunLlm, script: Script) -> None:
    result = run_llm(["-m", "scripted", "-k", "p/img/flow.png", "-k", "p/a", "hi"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert ATTACHED in script.last.system
    assert [each.content for each in script.last.attachments] == [PNG]
    run_llm(["-m", "scripted-no-tools", "-k", "p/img/d.webp", "hi"])
    assert "image/webp is not taken here" in script.last.system
    assert script.last.attachments == ()


def test_preloaded_picture_goes_with_the_first_turn_of_a_chat(
    run_llm: RunLlm, script: Script
) -> None:
    result = run_llm(["chat", "-m", "scripted", "-k", "p/img/flow.png"], input="one\ntwo\nquit\n")
    assert result.exit_code == 0, result.output
    assert [len(request.attachments) for request in script.requests] == [1, 0]


def test_fragment_is_attached(run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "-f", "kb:p/img/flow.png", "-f", "kb:p/a", "hi"])
    assert [each.content for each in script.last.attachments] == [PNG]
    assert script.last.prompt == "About walruses.\n\nhi"
    run_llm(["-m", "scripted", "-f", "kb:p/img/d.webp", "hi"])
    assert script.last.attachments == ()
    assert "image/webp is not taken here" in script.last.prompt


def test_fragment_of_a_chat_is_attached(run_llm: RunLlm, script: Script) -> None:
    run_llm(["chat", "-m", "scripted"], input="!fragment kb:p/img/flow.png\nquit\n")
    assert [each.content for each in script.last.attachments] == [PNG]


def test_log_keeps_what_was_attached(run_llm: RunLlm, script: Script) -> None:
    run_llm(["-m", "scripted", "-k", "p/img/flow.png", "-T", "learn", "hi"])
    run_llm(["-c", "more"])
    assert [message for message, _ in script.last.messages].count("user") == 2
    assert run_llm(["kb", "used"]).exit_code == 0


def test_picture_outside_the_topic_is_not_read(
    workspace: Path, own_directory: Path, run_llm: RunLlm, script: Script
) -> None:
    (own_directory / "secret.png").write_bytes(PNG)
    (workspace / "kb" / "s.png").symlink_to(own_directory / "secret.png")
    assert ask(run_llm, script, "s.png").startswith("Error: ")


def test_terminal_and_python_get_the_note(run_llm: RunLlm) -> None:

    note = "(note: binary file, 16 bytes, skipped: image/png is not taken here)"
    assert run_llm(["kb", "show", "--as-model", "p/img/flow.png"]).stdout == f"{note}\n"
    assert KnowledgeBase.discover().learn("p", "img/flow.png") == note
    tool = llm.get_tools()["learn"]
    assert isinstance(tool, llm.Tool)
    assert tool.implementation is not None
    assert tool.implementation(topic="p", subjects=["img/flow.png"]) == note


def test_in_python_the_model_that_is_given_gets_the_pictures(script: Script) -> None:
    kb, model = KnowledgeBase.discover(), llm.get_model("scripted")
    for given in (model, None):
        script.call("learn", topic="p", subjects=["img/flow.png"]).say("done")
        added = KnowledgeBase.discover().add_to(model=given)
        assert model.chain("hi", **added).text() == "done"
        assert list_attached(script) == ([("image/png", PNG)] if given else [])
    assert kb.learn("p", "img/flow.png").endswith("skipped: image/png is not taken here)")
