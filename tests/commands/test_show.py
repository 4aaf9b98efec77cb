"""`llm kb show`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.workspaces import write_files
from tests.conftest import RunLlm

BYTES = b"\xff\0 not text, no line feed"

PARTS = b"# Top\r\n## Sub\r\n\xff\r\n"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """A topic with text, bytes, a hidden subject and one that cannot be loaded."""
    write_files(
        tmp_path,
        {
            "llm-kb.toml": '[kb.topic.a]\nsubjects = "kb"\ndisabled = ["off"]\n',
            "kb/one.md": "One </subject>\r\n",
            "kb/deep/two.toml": "a = 2\n",
            "kb/image.png": BYTES,
            "kb/.hidden.md": "Hidden.\n",
            "kb/off.md": "Off.\n",
            "kb/parts.md": PARTS,
        },
    )
    return tmp_path


@pytest.mark.parametrize(
    ("names", "output"),
    [
        pytest.param(["a/one"], b"One </subject>\r\n", id="exact"),
        pytest.param(["a/image"], BYTES, id="bytes"),
        pytest.param(["a/hidden"], b"Hidden.\n", id="hidden"),
        pytest.param(["a/parts#sub", "a/parts#L1"], b"## Sub\r\n\xff\r\n# Top\r\n", id="parts"),
        pytest.param(["a/deep/*", "a/one.md"], b"a = 2\nOne </subject>\r\n", id="several"),
        pytest.param(["a"], b"a = 2\n" + b"One </subject>\r\n" + PARTS, id="a whole topic"),
    ],
)
def test_files_are_shown_byte_for_byte(run_llm: RunLlm, names: list[str], output: bytes) -> None:
    result = run_llm(["kb", "show", *names])
    assert (result.exit_code, result.stdout_bytes) == (0, output)


def test_nothing_is_shown_unless_all_is_found(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "show", "a/one", "a/nope"])
    assert (result.exit_code, result.stdout) == (1, "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("b/one", "unknown topic 'b'; valid topics: a"),
        ("a/on", "no subject of topic 'a' matches 'on'; did you mean: one"),
        ("a/off", "no subject of topic 'a' matches 'off'"),
        ("a//one", "invalid pattern"),
    ],
)
def test_what_cannot_be_shown(run_llm: RunLlm, name: str, message: str) -> None:
    result = run_llm(["kb", "show", name])
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_the_command_that_lists_the_parts_is_named_for_a_part_that_is_not_there(
    run_llm: RunLlm,
) -> None:
    result = run_llm(["kb", "show", "a/parts#su"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: subject 'parts' of topic 'a' has no part '#su'; did you mean: parts#sub;"
        " `llm kb show 'a/parts#' --as-model` lists them\n",
    )
    listed = run_llm(["kb", "show", "--as-model", "a/parts#"])
    assert (listed.exit_code, "parts#sub" in listed.stdout) == (0, True)


def test_a_model_gets_each_of_several_patterns_in_tags_and_one_long_line_whole(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/one.md").write_text("word " * 6_000)
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.t]\nsubjects = "t"\n')
    assert run_llm(["kb", "show", "--as-model", "t/one"]).stdout == "word " * 6_000 + "\n"
    for addresses in (["t/*"], ["t/*", "t/one"], ["t/one", "t/*"]):
        shown = run_llm(["kb", "show", "--as-model", *addresses]).stdout
        assert shown.startswith("# Topic: t (t)") or '<subject "one">' in shown
        assert '<subject "one">' in shown


def test_a_listing_of_skills_has_their_descriptions_whole(run_llm: RunLlm, tmp_path: Path) -> None:
    described = "Use it when a walrus asks. " * 12
    (tmp_path / "s/walrus").mkdir(parents=True)
    text = f"---\nname: walrus\ndescription: {described}\n---\nText.\n"
    (tmp_path / "s/walrus/SKILL.md").write_text(text)
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.s]\nsubjects = "s"\nlayout = "skills"\n')
    listing = run_llm(["kb", "show", "--as-model", "s"]).stdout
    assert f"- walrus: {described.strip()}\n" in listing
