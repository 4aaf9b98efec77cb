"""Plans on a real terminal: the text shown, and the effect of keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from llm_kb.references.calls import current_library
from llm_kb.references.topic.topic_file import TopicFile, render_topic_file
from scripts.demo import read_answers
from tests.conftest import RunLlm
from tests.references.remotes import Remote
from tests.references.sites import Answer, Site, serve_site
from tests.terminal import ASKS, run_on_terminal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")

KIND = "\x1b[2j\x1b[31mevil\x07\x9b1m"
"""A type of content that clears a screen, colours it and rings."""

EVIL = "\\x1b[2j\\x1b[31mevil\\x07\\x9b1m"
"""The same, shown."""

CONTROLS = re.compile(r"[^\n\x20-\x7e…]")
"""What none of our texts holds, nor any name in these tests."""


@pytest.fixture(autouse=True)
def trusting(user_dir: Path) -> None:
    """A user who lets pages come from loopback."""
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_hosts = ["127.0.0.1"]\n')


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site on loopback with one good page."""
    with serve_site() as site:
        site.put("/page", "<p>Frobnicate.</p>")
        yield site


def run(*args: str, question: str = ASKS, typed: str = "") -> tuple[str, int]:
    """Run llm on a terminal, type once it asks; return what it showed and its exit code."""
    return run_on_terminal(args, typed, question=question)


def calls(*urls: str, title: str = "Frob") -> str:
    """Return the prompt that has the echo model create a topic of pages, then list all topics."""
    arguments = {
        "title": title,
        "body": "b",
        "sources": [{"type": "web", "url": url} for url in urls],
    }
    call: dict[str, Any] = {"name": "reference_topic_create", "arguments": arguments}
    return json.dumps({"tool_calls": [call]})


def answers_in(shown: str) -> list[str]:
    """Return the outputs of tools that the echo model was sent."""
    *_, last = read_answers(shown[shown.index("{") :])
    return [result["output"] for result in last["tool_results"]]


def say_hostile(handler: BaseHTTPRequestHandler) -> None:
    """Answer with what is no status line, and would set the title of a terminal."""
    handler.wfile.write(b"\x1b]0;title\x07\x1b[31mHTTP\r\n\r\n")
    handler.close_connection = True


@pytest.fixture
def hostile(site: Site) -> tuple[str, ...]:
    """Pages of which one is good, and two say on a terminal what they should not."""
    return (
        f"{site.url}/page",
        site.answer("/kind", Answer(b"x", kind=KIND)),
        site.answer("/status", say_hostile),
    )


@pytest.mark.parametrize("answer", ["n\r", "y\r"])
def test_no_server_repaints_what_create_says(hostile: tuple[str, ...], answer: str) -> None:
    pages = [argument for url in hostile for argument in ("--web", url)]
    create = ["kb", "references", "create", "--title", "Frob", *pages]
    shown, _ = run(*create, question="Keep this? [y/N]: ", typed=answer)
    said = _without_bars(shown)
    assert (EVIL in said, "\\x1b]0;title" in said) == (True, True)
    denied = "\nAborted!\n"
    assert said.endswith(denied) == (answer == "n\r")
    assert CONTROLS.findall(said) == []


@pytest.mark.parametrize(
    ("typed", "output"),
    [
        pytest.param("n\r", "Error: the user denied fetching 'Frob'", id="no"),
        pytest.param("\x04", "Error: the user denied fetching 'Frob'", id="end of input"),
        pytest.param("y\r", '{"topic_id": "topic-frob", "file_count": 1', id="yes"),
    ],
)
def test_the_model_is_told_what_the_operator_answered(site: Site, typed: str, output: str) -> None:
    prompt = calls(f"{site.url}/page")
    shown, code = run(
        *("-m", "echo", "-T", "References", "--no-stream", prompt),
        question="Approve [y/N]: ",
        typed=typed,
    )
    assert (code, [told.startswith(output) for told in answers_in(shown)]) == (0, [True]), shown


def test_ctrl_c_at_the_question_of_a_tool_ends_the_program(site: Site) -> None:
    prompt = calls(f"{site.url}/page")
    shown, code = run(
        *("-m", "echo", "-T", "References", prompt), question="Approve [y/N]: ", typed="\x03"
    )
    assert (code, "Aborted!" in shown, "Traceback" in shown) == (1, True, False)
    assert "tool_results" not in shown
    assert current_library().ids() == []


def test_a_refresh_that_is_denied_is_told_in_words_for_the_operator(
    tmp_path: Path, user_dir: Path
) -> None:
    remote = Remote.of(tmp_path / "source", user_dir)
    remote.write({"a.md": "a"})
    run("kb", "references", "create", "--title", "Frob", "--git", remote.url, "-y")
    remote.write({"b.md": "b" * 2_000_000})
    shown, code = run(
        *("kb", "references", "refresh", "topic-frob"), question="Keep it? [y/N]: ", typed="n\r"
    )
    said = "\nAborted!\n"
    assert (code, shown.endswith(said)) == (1, True), shown


def test_what_is_said_of_a_topic_is_shown_with_codes_and_piped_as_it_is(
    user_dir: Path, run_llm: RunLlm
) -> None:
    body = "One\x1b[2J \x7f\x9b31m\u202etwo\n\nthree"
    add_topic(user_dir / "kb" / "references", body=body)
    show = ["kb", "references", "show", "topic-frob"]
    shown, _ = run(*show)
    assert shown.endswith("\nOne\\x1b[2J \\x7f\\x9b31m\\u202etwo\n\nthree\n")
    assert run_llm(show).stdout.endswith(f"\n{body}\n")
    as_json, _ = run(*show, "--json")
    assert CONTROLS.findall(as_json) == []
    assert json.loads(as_json)["body"].endswith(body)


def test_errors_show_codes(hostile: tuple[str, ...]) -> None:
    shown, code = run("kb", "references", "create", "--title", "Frob", "--web", hostile[1], "-y")
    assert (code, "Error: nothing could be" in shown, EVIL in shown) == (1, True, True)
    assert CONTROLS.findall(_without_bars(shown)) == []


@pytest.mark.parametrize("files", [150, 400, 1030])
def test_progress_is_one_line_that_never_goes_back(
    tmp_path: Path, user_dir: Path, files: int
) -> None:
    remote = Remote.of(tmp_path / "source", user_dir)
    remote.write({f"{number}.md": f"# {number}\n" for number in range(files)})
    shown, code = run("kb", "references", "create", "--title", "Many", "--git", remote.url, "-y")
    plan = f"Many: {remote.url} ({files:,} files"
    assert (code, f"\r\x1b[K{plan}" in shown) == (0, True)  # the plan begins a line
    drawn = re.findall(r"\r([^\r\n\x1b]*)\x1b\[K", shown)
    assert shown.index(plan) == len(
        "".join(f"\r{line}\x1b[K" for line in drawn[: drawn.index("")])
    ) + len("\r\x1b[K")
    for label in (str(tmp_path / "source"), "Indexing"):
        shares = [int(line[len(label) : -1]) for line in drawn if line.startswith(f"{label}  ")]
        assert (shares[-1], shares) == (100, sorted(shares))


def add_topic(root: Path, *, body: str) -> Path:
    """Put a topic on disk; return its directory."""
    directory = root / "topic-frob"
    directory.mkdir(parents=True)
    topic = TopicFile(id="topic-frob", title="Frob", body="")
    (directory / "topic.md").write_text(render_topic_file(topic) + body)
    return directory


def _without_bars(shown: str) -> str:
    """Return what was shown besides the line of progress."""
    return re.sub("\r[^\r\n\x1b]*\x1b\\[K", "", shown)
