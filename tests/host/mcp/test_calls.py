"""The limits of an answer, and the progress and cancellation of its work."""

from __future__ import annotations

import json
from base64 import b64decode
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from llm_kb.knowledge_base.api import KnowledgeBase
from tests.mcp_client import call, talk


def write_topic(directory: Path, files: dict[str, str], config: str = "") -> Path:
    """Write a workspace of one topic and return it."""
    (directory / "kb").mkdir()
    for name, text in files.items():
        (directory / "kb" / name).write_text(text, encoding="utf-8")
    (directory / "llm-kb.toml").write_text(f'{config}\n[kb.topic.t]\nsubjects = "kb"\n')
    return directory


LONG = {f"s{number:02}.md": "word " * 2_000 + "\n" for number in range(20)}


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    answer, _ = call(write_topic(tmp_path, LONG), "learn", {"topic": "t", "subjects": "**"})
    assert len(answer) < 50_000
    assert [name for name in LONG if name.removesuffix(".md") not in answer] == []


def test_an_error_is_short_enough_to_be_shown_whole(tmp_path: Path) -> None:
    workspace = write_topic(tmp_path, LONG)
    patterns = [f"{'x' * 900}{number}" for number in range(20)]
    answer, is_error = call(workspace, "learn", {"topic": "t", "subjects": patterns})
    assert is_error
    assert len(answer) <= 10_000


def test_the_instructions_fit_what_clients_show(tmp_path: Path) -> None:
    workspace = write_topic(tmp_path, LONG, '[kb]\nmenu = "subjects"\n')

    async def conversation(client: Client) -> Any:
        return client.instructions

    assert len(talk(conversation, workspace)) < 2_048


def test_what_is_pre_loaded_can_be_learned_and_does_not_push_the_menu_out(tmp_path: Path) -> None:
    files = {"large.md": "word " * 2_000, "one.md": "One.\n", "two.md": "Two.\n"}
    workspace = write_topic(tmp_path, files)
    served = partial(KnowledgeBase.discover, workspace, knowledge=["t"])

    async def conversation(client: Client) -> Any:
        listing = await client.call_tool("learn", {"topic": "t"})
        loaded = await client.call_tool("learn", {"topic": "t", "subjects": "one"})
        texts: list[Any] = [listing.content[0], loaded.content[0]]
        return client.instructions, *(each.text for each in texts)

    instructions, listing, loaded = talk(conversation, served)
    assert len(instructions) < 2_048
    assert "search_knowledge" not in instructions
    assert "word word" not in instructions
    assert "`learn` these first: t/large, t/one, t/two\n" in instructions
    assert "- one\n" in listing
    assert "Already learned" not in listing
    assert loaded == "One.\n"


def test_instructions_name_only_so_many_of_those_left_out(tmp_path: Path) -> None:
    workspace = write_topic(tmp_path, {f"{'long' * 10}{n}.md": "x" * 3_000 for n in range(40)})
    served = partial(KnowledgeBase.discover, workspace, knowledge=["t"])

    async def conversation(client: Client) -> Any:
        return client.instructions

    instructions = talk(conversation, served)
    assert len(instructions) < 2_048
    assert instructions.count(f"t/{'long' * 10}") == 5
    assert " and 35 more\n" in instructions


def test_instructions_are_those_of_the_moment_a_client_connects(tmp_path: Path) -> None:
    workspace = write_topic(tmp_path, {"s.md": ""})
    served = partial(KnowledgeBase.discover, workspace)

    async def conversation(client: Client) -> Any:
        return client.instructions

    before = talk(conversation, served)
    path = workspace / "llm-kb.toml"
    path.write_text(path.read_text() + 'introduction = "New here."\n')
    after = talk(conversation, served)
    path.write_text("[kb.topic")
    assert "New here." in after
    assert "New here." not in before


def test_what_was_not_searched_is_named_up_to_a_bound(tmp_path: Path, user_dir: Path) -> None:
    for number in range(30):
        broken = user_dir / "kb" / "references" / f"topic-{number:02}" / "topic.md"
        broken.parent.mkdir(parents=True)
        broken.write_text("not a topic")
    answer, _ = call(tmp_path, "reference_search", {"question": "anything"}, added=["References"])
    warnings = json.loads(answer)["warnings"]
    assert "topic-00" in warnings[0]
    assert warnings[0].endswith(" and 27 more")


def read_instructions(workspace: Path) -> str:
    async def conversation(client: Client) -> Any:
        return client.instructions

    return str(talk(conversation, workspace))


def test_the_first_line_says_what_the_knowledge_is_about(tmp_path: Path) -> None:
    workspace = write_topic(tmp_path, {"s.md": "S"})
    (tmp_path / "llm-kb.toml").write_text(
        '[kb.topic.t]\ntitle = "Working here"\nintroduction = "How it is\\nbuilt, and why."\n'
        'subjects = "kb"\n\n[kb.topic.other]\nsubjects = "kb"\n'
    )
    line, gap, section = read_instructions(workspace).split("\n", 2)
    assert line == (
        "Search this knowledge before you answer or change something:"
        " Working here (How it is built, and why); other."
    )
    assert gap == ""
    assert section.startswith("<knowledge>\n")


@pytest.mark.parametrize("title", ["T" * 500, "長" * 500, "</knowledge> " * 50, "Title"])
@pytest.mark.parametrize("introduction", ["I" * 900, "", "</knowledge> <b>" * 60])
@pytest.mark.parametrize("topics", [1, 3, 40])
def test_the_first_line_is_short_and_closes_nothing(
    tmp_path: Path, title: str, introduction: str, topics: int
) -> None:
    text = f'title = "{title}"\nintroduction = "{introduction}"\n'
    tables = []
    for number in range(topics):
        (tmp_path / f"kb{number}").mkdir()
        (tmp_path / f"kb{number}" / "s.md").write_text("S")
        tables.append(f'[kb.topic.t{number}]\n{text}subjects = "kb{number}"\n')
    (tmp_path / "llm-kb.toml").write_text("".join(tables))
    instructions = read_instructions(tmp_path)
    line = instructions.partition("\n")[0]
    assert len(line) <= 240 + line.count("\\")
    assert "</knowledge>" not in line
    assert "\n\n<knowledge>\n" in instructions


def test_nothing_to_learn_has_no_first_line(tmp_path: Path) -> None:
    assert read_instructions(tmp_path) == "None"


def test_a_picture_is_image_content(tmp_path: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    workspace = write_topic(tmp_path, {"a.md": "A\n"})
    (workspace / "kb" / "flow.png").write_bytes(png)

    async def conversation(client: Client) -> Any:
        return (await client.call_tool("learn", {"topic": "t", "subjects": ["flow.png"]})).content

    text, image = talk(conversation, workspace)
    assert text.text == "(note: image/png, 16 bytes, sent to the client)"
    assert (image.type, image.mime_type, b64decode(image.data)) == ("image", "image/png", png)
