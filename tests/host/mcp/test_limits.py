"""The bytes of an answer that a client takes whole, and how the rest is named."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from llm_kb.host.mcp.server import Server
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.references.topic.topic_file import TopicFile, render_topic_file

CODEX, OTHER = {"name": "codex-mcp-client", "version": "0.171.0"}, {"name": "x", "version": "1"}
CLIENTS = [pytest.param(CODEX, 11_000, id="codex"), pytest.param(OTHER, 20_000, id="other")]
LINES = {"ascii": f"{'word ' * 15}\n", "chinese": f"{'知识' * 25}\n", "emoji": f"{'🦭' * 15}\n"}


class Reader:
    """A client of a server in this process, which gives information about itself."""

    def __init__(self, directory: Path, client: object, **options: Any) -> None:
        self.server = Server(
            partial(KnowledgeBase.discover, directory, tools=["References"], **options)
        )
        self.ask("initialize", protocolVersion="2025-06-18", clientInfo=client)

    def ask(self, method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.server.answer(request, lambda *_: None)

    def call(self, name: str, **arguments: Any) -> str:
        """Return the text of an answer."""
        (content,) = self.ask("tools/call", name=name, arguments=arguments)["content"]
        return str(content["text"])

    def learn(self, *subjects: str, topic: str = "t") -> str:
        return self.call("learn", topic=topic, subjects=list(subjects))


def write(directory: Path, files: dict[str, str], config: str = "", layout: str = "files") -> Path:
    """Write a workspace of the topic `t`."""
    for name, text in files.items():
        path = directory / "kb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    topic = f'[kb.topic.t]\nsubjects = "kb"\nlayout = "{layout}"\n'
    (directory / "llm-kb.toml").write_text(f"{config}\n{topic}", encoding="utf-8")
    return directory


def size(text: str) -> int:
    return len(text.encode())


def sized(line: str, most: int) -> str:
    """Return lines of about so many bytes."""
    return line * (most // size(line))


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize(("client", "most"), CLIENTS)
@pytest.mark.parametrize("asked", ["one#*", "one", "one#L1-L9999", "one#part", "one#", "**"])
def test_whatever_is_asked_for_fits_and_its_rest_can_be_loaded(
    tmp_path: Path, client: object, most: int, line: str, asked: str
) -> None:
    text = f"# One\n\n## Part\n\n{sized(line, 60_000)}"
    reader = Reader(write(tmp_path, {"one.md": text, "two.md": text}), client)
    answer = reader.learn(asked)
    assert size(answer) <= most
    assert "load" in answer.casefold()


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_a_whole_subject_is_read_by_the_calls_that_each_answer_names(
    tmp_path: Path, client: object, most: int, line: str
) -> None:
    lines = [f"{number} {line}" for number in range(400)]
    reader = Reader(write(tmp_path, {"one.md": "".join(lines)}), client)
    asked: str | None = "one#*"
    seen: list[str] = []
    while asked:
        answer = reader.learn(asked)
        assert size(answer) <= most
        seen += re.findall(r"^\d+ .*\n", answer, re.MULTILINE)
        found = re.search(r"; load (one#L\d+-L\d+) for more\)", answer)
        asked = found[1] if found else None
        assert len(seen) <= len(lines)
    assert seen == lines


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_several_subjects_are_all_loaded_by_the_calls_that_each_answer_names(
    tmp_path: Path, client: object, most: int
) -> None:
    files = {f"s{number:02}.md": f"only {number:02}\n" + "word " * 600 for number in range(30)}
    reader = Reader(write(tmp_path, files), client)
    asked = ["**"]
    seen: list[str] = []
    while asked:
        answer = reader.learn(*asked)
        assert size(answer) <= most
        seen += re.findall(r"^only \d+$", answer, re.MULTILINE)
        call = re.search(r'load them with learn\("t", \[(.*)\]\)$', answer)
        left = re.findall(r"^- (s\d+) \(", answer, re.MULTILINE)
        asked = left if call else []
        assert not call or re.findall(r'"([^"]*)"', call[1]) == left[: call[1].count('"') // 2]
    assert seen == [f"only {number:02}" for number in range(30)]


def test_what_is_left_out_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    files = {
        name: f"# One\n\n## Part\n\n{sized(LINES['ascii'], 12_000)}" for name in ("a.md", "b.md")
    }
    answer = Reader(write(tmp_path, files), OTHER).learn("a", "b#*")
    assert answer.endswith(
        "## Left out (over the limit of 20,000 bytes):\n\n- b#* (11,948 bytes)\n\n"
        '1 left out, 11,948 bytes; load them with learn("t", ["b#*"])'
    )
    answer = Reader(tmp_path, OTHER).learn("a", "b#part")
    assert answer.endswith('; load them with learn("t", ["b#part"])')


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_of_a_line_too_long_to_be_loaded_the_answer_says_so(
    tmp_path: Path, client: object, most: int
) -> None:
    reader = Reader(write(tmp_path, {"one.txt": f"{'x' * 60_000}\nlast\n"}), client)
    answer = reader.learn("one#*")
    assert size(answer) <= most
    assert answer.endswith(
        "; the rest of line 1, which is too long, cannot be loaded; load one#L2-L2 for more)"
    )
    assert "last" in reader.learn("one#L2-L2")


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_text_that_has_to_be_defused_all_over_is_shown_as_far_as_it_fits(
    tmp_path: Path, client: object, most: int
) -> None:
    text = "</subject>\n" * 6_000
    answer = Reader(write(tmp_path, {"a.md": text, "b.md": text}), client).learn("a#*", "b#*")
    assert most // 5 < size(answer) <= most
    assert "; load a#L" in answer
    assert "\n- b#* (" in answer


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_subjects_of_several_topics_share_an_answer(
    tmp_path: Path, client: object, most: int
) -> None:
    config = ""
    for number in range(30):
        path = tmp_path / f"kb{number}" / "a.md"
        path.parent.mkdir()
        path.write_text(sized(LINES["chinese"], 6_000))
        config += f'[kb.topic.t{number}]\ntitle = "{"長" * 400}"\nsubjects = "kb{number}"\n'
    (tmp_path / "llm-kb.toml").write_text(config)
    reader = Reader(tmp_path, client)
    asked = [f"t{number}/a#*" for number in range(30)]
    answer = reader.learn(*asked, topic="t0")
    assert size(answer) <= most
    shown = most // 2_000
    assert answer.count("# Topic: ") == shown
    assert answer.endswith(
        f'{30 - shown} left out; load them with learn("t{shown}", ["t{shown}/a#*"])'
    )
    assert size(reader.learn("t0/a", "t1/a", "t2/nope", topic="t0")) <= most


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_what_is_not_found_is_bounded_beside_what_is(
    tmp_path: Path, client: object, most: int
) -> None:
    reader = Reader(write(tmp_path, {"a.md": sized(LINES["chinese"], 30_000)}), client)
    answer = reader.learn("a#*", *[f"{'无' * 90}{number}" for number in range(48)])
    assert size(answer) <= most
    assert "; load a#L" in answer
    assert re.search(r"\n- and \d+ more$", answer)


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_descriptions_of_skills_are_shortened_evenly_and_the_listing_says_so(
    tmp_path: Path, client: object, most: int
) -> None:
    files = {
        f"s{number}/SKILL.md": f"---\nname: s{number}\ndescription: {'用法 ' * 200}\n---\n"
        for number in range(160)
    }
    answer = Reader(write(tmp_path, files, layout="skills"), client).call("learn", topic="t")
    assert size(answer) <= most
    assert "(note: descriptions are " in answer
    assert len(re.findall(r"^- s\d+", answer, re.MULTILINE)) == 160


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_a_listing_of_long_names_is_narrowed(tmp_path: Path, client: object, most: int) -> None:
    files = {f"{letter}/{'é' * 80}{n:03}.md": "x" for letter in "abc" for n in range(150)}
    reader = Reader(write(tmp_path, files), client)
    answer = reader.call("learn", topic="t")
    assert size(answer) <= most
    assert "- `a/**`: 150 subjects" in answer
    answer = reader.learn("a/**#")
    assert size(answer) <= most
    assert re.search(r"- and \d+ more\n", answer)


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_the_files_of_a_skill_leave_room_for_it(tmp_path: Path, client: object, most: int) -> None:
    files = {f"s/{'字' * 60}{number}.md": "x" for number in range(90)}
    files["s/SKILL.md"] = f"---\nname: s\ndescription: d\n---\n{sized(LINES['ascii'], 30_000)}"
    answer = Reader(write(tmp_path, files, layout="skills"), client).learn("s#*")
    assert size(answer) <= most
    assert "; load s" not in answer or "#L" in answer
    assert "## Files of this skill" in answer
    assert "word word" in answer


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_an_error_and_a_search_fit_too(tmp_path: Path, client: object, most: int) -> None:
    reader = Reader(
        write(tmp_path, {f"{n}.md": sized(LINES["chinese"], 9_000) for n in range(30)}), client
    )
    assert size(reader.call("search_knowledge", question="知识", limit=20)) <= most
    assert size(reader.learn(*[f"{'无' * 900}{number}" for number in range(20)])) <= most
    assert size(reader.call("x" * 1_000_000)) <= most


@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_an_answer_in_json_is_cut_and_says_so(
    tmp_path: Path, user_dir: Path, client: object, most: int
) -> None:
    for number in range(60):
        topic = TopicFile(
            id=f"topic-{number}", title="海豹" * 40, body="知识" * 400, files=("a.md",)
        )
        directory = user_dir / "kb" / "references" / topic.id
        directory.mkdir(parents=True)
        (directory / "topic.md").write_text(render_topic_file(topic), encoding="utf-8")
    reader = Reader(write(tmp_path, {"one.md": "One.\n"}), client)
    listing = reader.call("reference_topic_list")
    assert most / 2 < size(listing) <= most
    assert re.search(r"\(note: cut here; [\d,]+ bytes are not shown; ask for less", listing)


USER = [
    pytest.param(None, None, 20_000, id="default"),
    pytest.param(None, "5_000", 5_000, id="a workspace lowers it"),
    pytest.param(None, "0", 20_000, id="a workspace does not remove it"),
    pytest.param(None, "150_000", 20_000, id="a workspace does not raise it"),
    pytest.param("50_000", None, 50_000, id="the user raises it"),
    pytest.param("50_000", "0", 50_000, id="and a workspace does not remove that"),
    pytest.param("50_000", "70_000", 50_000, id="nor raise it further"),
    pytest.param("0", "30_000", 30_000, id="a workspace lowers none"),
    pytest.param("0", "0", 200_000, id="the user's own none"),
]


@pytest.mark.parametrize("fragment", [False, True], ids=["file", "fragment"])
@pytest.mark.parametrize(("user", "workspace", "most"), USER)
def test_a_workspace_may_only_lower_the_users_limit(  # noqa: PLR0917 - a table's columns
    tmp_path: Path,
    user_dir: Path,
    user: str | None,
    workspace: str | None,
    most: int,
    fragment: bool,
) -> None:
    limit = "[kb]\nmax_result_chars = {}\n"
    if user:
        (user_dir / "kb.toml").write_text(limit.format(user))
    config = limit.format(workspace) if workspace else ""
    write(tmp_path, {"one.md": sized(LINES["ascii"], 120_000)}, "" if fragment else config)
    (tmp_path / "more.toml").write_text(config)
    reader = Reader(tmp_path, OTHER, fragments=["./more.toml"] if fragment else [])
    assert most * 0.6 - 4_000 <= size(reader.learn("one#*")) <= most


def test_the_command_line_may_raise_it(tmp_path: Path) -> None:
    write(tmp_path, {"one.md": sized(LINES["ascii"], 120_000)}, "[kb]\nmax_result_chars = 9_000\n")
    reader = Reader(tmp_path, CODEX, fragments=["kb.max_result_chars=60_000"])
    assert 50_000 < size(reader.learn("one#*")) <= 60_000
