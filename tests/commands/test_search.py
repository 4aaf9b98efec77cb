"""`llm kb search`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from llm_kb.rendering.plain_text import count, fold_columns
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.preloaded import Process
from tests.references.remotes import Remote
from tests.terminal import run_on_terminal

CONFIG = """
[kb.topic.project]
title = "Project"
subjects = "kb/project"
disabled = ["off"]
learned = ["review"]

[kb.topic.skills]
subjects = "kb/skills"
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """Two topics that speak of reviews, also where nobody may look."""
    write_files(
        tmp_path,
        {
            "llm-kb.toml": CONFIG,
            "kb/project/review.md": "# Review\n\nRead the tests first.\n",
            "kb/project/style.md": "Style is part of a review.\n",
            "kb/project/.secret.md": "review tests\n",
            "kb/project/off.md": "review tests\n",
            "kb/project/data.bin": b"review tests\0",
            "kb/skills/testing.md": "Write tests.\nTests are code;\nreview the tests too.\n",
        },
    )
    return tmp_path


def test_passages_are_headed_by_their_address(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "review", "tests"])
    assert result.stdout == (
        "skills/testing#L1-L3  kb/skills/testing.md:1\n"
        "Write tests.\nTests are code;\nreview the tests too.\n"
        "\nproject/review#review  kb/project/review.md:1\n# Review\n\nRead the tests first.\n"
        "\nproject/style#L1  kb/project/style.md:1\nStyle is part of a review.\n"
    )
    assert result.stderr == ""
    shown, _ = run_on_terminal(["kb", "search", "review", "tests"])
    assert shown == (
        "\x1b[36mskills/testing#L1-L3\x1b[0m\x1b[2m  kb/skills/testing.md:1\x1b[0m\n"
        "Write tests.\nTests are code;\nreview the tests too.\n"
        "\n\x1b[36mproject/review#review\x1b[0m\n  Review: Read the tests first.\n"
        "\n\x1b[36mproject/style#L1\x1b[0m\n  Style is part of a review.\n"
    )


PARAGRAPH = "A walrus rests on the ice for a while and then swims on to the next floe. " * 4
LONG = f"{'x' * 60}/{'y' * 60}"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(("page{}", "\n\n".join([PARAGRAPH] * 9), 22), id="prose"),
        pytest.param(("page{}", "\n".join(f"walrus {n}" for n in range(90)), 23), id="lines"),
        # Six lines of the first passage are shown all the same.
        pytest.param((f"{LONG}{{}}", "\n\n".join([PARAGRAPH] * 9), 27), id="long names"),
        pytest.param(("page{}", "海象在冰上休息。walrus" * 60, 23), id="wide signs"),
        pytest.param(("page{}", "A walrus.\n", 15), id="short"),
    ],
)
def test_four_hits_fit_on_a_terminal(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, int]
) -> None:
    place, text, rows = case
    for n in range(4):
        page = f"# Page {n}\n\n## Of ice {n}\n\n{text}\n"
        write_files(tmp_path, {f"kb/skills/{place.format(n)}.md": page})
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    shown, _ = run_on_terminal(["kb", "search", "walrus"])
    lines = shown.splitlines()
    assert sum(len(fold_columns(line, 80)) for line in lines) == rows
    for line in lines:
        if line.startswith("… "):
            command = line.partition(": llm ")[2]
            read = run_llm(shlex.split(command)).stdout
            assert line.startswith(f"… {count(read.count(chr(10)), 'line')} more: llm kb show ")


def test_a_pipe_names_what_was_cut_with_the_commands_that_print_it(
    run_llm: RunLlm, workspace: Path
) -> None:
    lines = [f"Line {number} is about nothing that is asked for here.\n" for number in range(150)]
    lines[80] = "The walrus has two tusks, and is asked for.\n"
    write_files(workspace, {"kb/skills/long.md": "# Long\n\n" + "\n".join(lines)})

    shown = run_llm(["kb", "search", "walrus", "tusks"]).stdout.splitlines()
    before, after = (line.split(": ", 1) for line in shown if line.startswith("… "))
    command = shlex.split(after[1])

    assert before[0].endswith(" lines before")
    assert shown.index(": ".join(before)) < shown.index(lines[80].strip())
    assert after[0] == f"… {count(len(run_llm(command[1:]).stdout.splitlines()), 'line')} more"
    assert command[:3] == ["llm", "kb", "show"]


def test_what_is_not_searched_is_one_line(run_llm: RunLlm, tmp_path: Path) -> None:
    search = ["kb", "search", "review", "tests"]
    write_files(tmp_path, {"kb/skills/long.md": "tests " * 3_400_000})
    said = "llm-kb: not searched: skills/long.md (larger than 20 MB)\n"
    assert run_llm(search).stderr == said
    write_files(tmp_path, {"kb/skills/longer.md": "tests " * 3_400_000})
    assert (
        run_llm(search).stderr == f"{said}llm-kb: 1 more thing not searched: see `llm kb check`\n"
    )


def test_other_files_with_a_text_are_named_once_and_the_file_itself_is_not(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    text = "# Zebra\n\nStripes.\n\n"
    write_files(tmp_path, {f"kb/skills/{name}.md": text * 9 for name in "abcdef"})
    shown = run_llm(["kb", "search", "zebra", "-n", "1"]).stdout
    _, *others = (f"skills/{name}.md" for name in "abcdef")
    assert shown.startswith("skills/a#")
    assert shown.splitlines()[1] == f"also in {', '.join(others[:3])}, and 2 more"
    (hit,) = json.loads(run_llm(["kb", "search", "zebra", "-n", "1", "--json"]).stdout)
    assert hit["also_in"] == others


def test_as_json(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "write tests", "--json"])
    assert json.loads(result.stdout)[0] == {
        "topic": "skills",
        "slug": "testing",
        "path": "testing.md",
        "address": "testing#L1-L3",
        "lines": "1-3",
        "title": "",
        "text": "Write tests.\nTests are code;\nreview the tests too.",
        "also_in": [],
        "origin": None,
        "preloaded": False,
    }


def test_what_is_preloaded_is_marked(run_llm: RunLlm) -> None:
    (hit,) = json.loads(run_llm(["kb", "search", "read first", "--json"]).stdout)
    assert (hit["slug"], hit["preloaded"]) == ("review", True)


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["-t", "skills"], ["skills/testing"]),
        (["-t", "PROJECT"], ["project/review", "project/style"]),
        (["-t", "skills", "-t", "project", "-n", "2"], ["project/review", "project/style"]),
    ],
)
def test_fewer(run_llm: RunLlm, arguments: list[str], places: list[str]) -> None:
    found = json.loads(run_llm(["kb", "search", "review", "--json", *arguments]).stdout)
    assert [f"{hit['topic']}/{hit['slug']}" for hit in found] == places


def test_the_files_are_followed_from_search_to_search(run_llm: RunLlm, workspace: Path) -> None:
    assert run_llm(["kb", "search", "zebra", "--json"]).stdout == "[]\n"
    write_files(workspace, {"kb/skills/zoo.md": "Zebras.\n"})
    assert "skills/zoo#L1" in run_llm(["kb", "search", "zebra"]).stdout
    write_files(workspace, {"llm-kb.toml": CONFIG + 'disabled = ["zoo"]\n'})
    assert run_llm(["kb", "search", "zebra", "--json"]).stdout == "[]\n"


def test_the_index_is_the_users_alone_and_disposable(
    run_llm: RunLlm, workspace: Path, user_dir: Path
) -> None:
    before = run_llm(["kb", "search", "review"]).stdout
    indexes = sorted((user_dir / "kb" / "index").glob("*.sqlite3"))
    assert len(indexes) == 1
    assert (user_dir / "kb" / "index").stat().st_mode & 0o777 == 0o700
    for index in indexes:
        index.write_bytes(b"damaged" * 1000)
    assert run_llm(["kb", "search", "review"]).stdout == before
    assert not list(workspace.rglob("*.sqlite3"))


def test_without_a_place_for_an_index_the_search_says_so(run_llm: RunLlm, user_dir: Path) -> None:
    (user_dir / "kb").write_text("in the way")
    result = run_llm(["kb", "search", "write", "-t", "skills"])
    assert "skills/testing#L1-L3" in result.stdout
    assert result.stderr.startswith("llm-kb: searched without an index: cannot use the index ")


def test_where_nothing_can_be_written_the_search_works_and_says_nothing(
    run_llm: RunLlm, workspace: Path, user_dir: Path, read_only: Callable[[Path], None]
) -> None:
    before = run_llm(["kb", "search", "review"])
    index = user_dir / "kb" / "index"
    read_only(index)
    state = sorted(path.name for path in index.iterdir())
    after = run_llm(["kb", "search", "review"])
    assert (after.exit_code, after.stdout, after.stderr) == (0, before.stdout, before.stderr)
    new = workspace / "kb" / "project" / "walrus.md"
    new.write_text("# Walrus\n\nIt has tusks.\n")  # what changed since is found all the same
    assert "project/walrus" in run_llm(["kb", "search", "walrus tusks"]).stdout
    assert sorted(path.name for path in index.iterdir()) == state


def test_without_an_index_where_nothing_can_be_written_the_search_says_nothing(
    run_llm: RunLlm, user_dir: Path, read_only: Callable[[Path], None]
) -> None:
    (user_dir / "kb").mkdir()
    read_only(user_dir / "kb")
    result = run_llm(["kb", "search", "write", "-t", "skills"])
    assert "skills/testing#L1-L3" in result.stdout
    assert result.stderr == ""


def test_nothing_found(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "zebra"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "llm-kb: no text that was searched has a word of that; try different or fewer words\n"
        "llm-kb: not found in any text: zebra\n"
    )


def test_a_directory_without_files_is_named(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "kb/skills").rename(tmp_path / "gone")
    gone = run_llm(["kb", "search", "tests", "-t", "skills"])

    assert gone.stderr.startswith("llm-kb: topic 'skills' lists no subjects: ")
    assert "/kb/skills: no such directory; correct that" in gone.stderr
    assert gone.stderr.count("\n") == 1


GROUPS = [["kb"]]


@pytest.fixture
def fetched(run_llm: RunLlm, tmp_path: Path, user_dir: Path) -> None:
    """A reference topic with the knobs of a machine."""
    write_files(tmp_path, {"source/a.md": "# Frob\n\nTurn the knob: --no-knob.\n"})
    source = ["--title", "Frob", "--git", Remote.of(tmp_path / "source", user_dir).url]
    assert run_llm(["kb", "references", "create", *source, "-y"]).exit_code == 0


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("arguments", [[], ["-"]], ids=["nothing", "-"])
@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_standard_input_is_searched_for(
    tmp_path: Path, group: list[str], arguments: list[str]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\xff\0\n" + b"Turn the knob\n" * 1000 + b"-" * 3_000_000)
    with log.open("rb") as file:
        run = Process([*group, "search", "-t", "topic-frob", *arguments], stdin=file.fileno())
    assert "Turn the knob" in run.communicate()[0]


@pytest.mark.usefixtures("fetched")
def test_of_a_long_input_the_end_is_searched_for_and_its_writer_ends() -> None:
    """A program whose output is not read any more would be killed."""
    numbers = "import sys\nfor n in range(500_000): print(n)\n"
    writer = numbers + "print('Turn the knob: --no-knob.')\nprint('ended', file=sys.stderr)"
    with Popen([sys.executable, "-c", writer], stdout=PIPE, stderr=PIPE) as source:
        assert source.stdout is not None
        run = Process(["kb", "search", "-t", "topic-frob"], stdin=source.stdout.fileno())
        shown = run.communicate()[0]
        source.stdout.close()
        assert source.stderr is not None
        assert source.stderr.read() == b"ended\n"
    assert "Turn the knob" in shown


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_without_a_query_or_an_input_it_is_missing(run_llm: RunLlm, group: list[str]) -> None:
    nothing = run_llm([*group, "search"], input="")
    assert nothing.exit_code == 2
    assert nothing.stderr.endswith("\nError: Missing argument 'QUERY...'.\n")
    shown, code = run_on_terminal([*group, "search"])
    assert (code, shown.splitlines()[-1]) == (2, "Error: Missing argument 'QUERY...'.")


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
@pytest.mark.parametrize("query", ["?!", "", "-"])
def test_a_query_without_a_word_is_an_error(run_llm: RunLlm, group: list[str], query: str) -> None:
    result = run_llm([*group, "search", query], input="??")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("Error: the question has no word to look for\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["x", "-n", "0"], 2), (["x", "-t", "absent"], 1)],
)
def test_bad_arguments(run_llm: RunLlm, arguments: list[str], code: int) -> None:
    result = run_llm(["kb", "search", *arguments])
    assert (result.exit_code, result.stdout) == (code, "")


def test_a_word_that_no_text_has_hides_no_answer(run_llm: RunLlm, tmp_path: Path) -> None:
    pages = {f"kb/skills/{n}.md": f"# Page {n}\n\nAbout middleware.\n" for n in range(9)}
    write_files(tmp_path, {**pages, "kb/skills/z.md": "# Other\n\nNothing.\n"})
    result = run_llm(["kb", "search", "xyzzy C++ middleware"])
    assert "About middleware." in result.stdout
    assert "not found in any text: xyzzy, c++" in result.stderr


def test_where_there_is_no_knowledge_base_the_search_says_so(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "llm-kb.toml").unlink()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "there is no knowledge base here" in run_llm(["kb", "search", "hello"]).stderr


def test_the_headings_above_a_passage_are_named(run_llm: RunLlm, tmp_path: Path) -> None:
    filler = "".join(f"Nothing is said here {n}.\n\n" for n in range(90))
    text = f"# Zoo\n\n## Seals\n\n{filler}A seal juggles.\n\n{filler}"
    write_files(tmp_path, {"kb/project/zoo.md": text})

    lines = run_llm(["kb", "search", "-n", "1", "juggles"]).stdout.splitlines()

    assert lines[0].startswith("project/zoo#L")
    assert lines[1] == "Zoo > Seals"


FETCHED = pytest.mark.usefixtures("fetched")


@FETCHED
def test_what_was_not_searched_is_named_with_a_word_that_was_not_found(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "other", {"llm-kb.toml": CONFIG, "kb/project/review.md": "Review.\n"})
    monkeypatch.chdir(tmp_path / "other")
    result = run_llm(["kb", "search", "review", "knob"])

    assert result.stderr == "llm-kb: not found here: knob; not searched: topic-frob\n"
    assert "Turn the knob" in run_llm(["kb", "search", "-t", "frob", "knob"]).stdout


@FETCHED
def test_a_topic_alone_does_not_speak_for_the_others(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "-t", "skills", "review", "xyzzy"])

    assert "llm-kb: not found here: xyzzy; not searched: project, topic-frob\n" in result.stderr


def test_that_nothing_matches_well_is_said_before_the_passages(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "review", "zebra", "walnut", "quartz", "umbrella"])

    assert result.output.startswith("llm-kb: no good match")
    assert "project/review" in result.stdout
