"""A person's first session, typed into a real terminal, from an empty directory on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from scripts.demo import read_answers

PROMPT = "session> "

REVIEW = """# Review

Two pairs of eyes, after learn("project", "checklist").
"""

EDITOR = f"""#!/bin/sh
cat > "$1" <<'END'
{REVIEW}END
"""

ECHO_CALLS = (
    """'{"tool_calls": [{"name": "learn", "arguments": {"topic": "project"}},"""
    """ {"name": "learn", "arguments": {"topic": "project", "subjects": ["review"]}}]}'"""
)

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Session:
    """A shell in a terminal of 80 columns."""

    def __init__(self, shell: pexpect.spawn[str]) -> None:
        self._shell = shell
        self.wait()

    def wait(self) -> str:
        """Wait for the prompt; return what was printed before it."""
        self._shell.expect_exact(PROMPT)
        return str(self._shell.before or "").replace("\r\n", "\n")

    def run(self, command: str) -> str:
        """Run a command that must succeed; return what it printed, without colours."""
        printed = self.run_raw(command)
        assert self.exit_code() == 0, printed
        return _COLOUR.sub("", printed)

    def run_raw(self, command: str) -> str:
        """Run a command; return what it printed, as the terminal got it."""
        self._shell.sendline(command)
        return self.wait()

    def exit_code(self) -> int:
        """Return the exit code of the last command."""
        return int(self.run_raw("echo $?").strip())


@pytest.fixture
def session(tmp_path: Path, home: Path) -> Iterator[Session]:
    """A session in an empty directory, with the installed `llm` on the path."""
    editor = home / "editor"
    editor.write_text(EDITOR, encoding="utf-8")
    editor.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "EDITOR": str(editor),
        "PS1": PROMPT,
        "TERM": "xterm",
    }
    shell = pexpect.spawn(
        "/bin/sh",
        cwd=str(tmp_path),
        env=environment,
        encoding="utf-8",
        echo=False,
        dimensions=(40, 80),
        timeout=60,
    )
    yield Session(shell)
    shell.close(force=True)


@pytest.mark.slow
def test_from_an_empty_directory_to_a_model_that_learns(session: Session, tmp_path: Path) -> None:
    assert session.run("llm kb list") == (
        "llm-kb: there is no knowledge base here: neither this directory nor one above it has"
        " an llm-kb.toml. Run 'llm kb init' to write one.\n"
    )
    session.run("llm kb init")
    config = (tmp_path / "llm-kb.toml").read_text(encoding="utf-8")
    assert '[kb.topic.project]\ntitle = "Project"\n' in config

    session.run("llm kb new project/review")
    review = tmp_path / "kb" / "project" / "review.md"
    assert review.read_text(encoding="utf-8") == REVIEW

    listing = session.run("llm kb list project")
    assert re.fullmatch(r"review +~\d+ tokens\n", listing)

    problems = session.run_raw("llm kb check")
    assert session.exit_code() == 1
    assert "kb/project/review.md:3: error: " in _COLOUR.sub("", problems)

    session.run("printf 'Read it twice.\\n' > kb/project/.checklist.md")
    session.run("llm kb check")

    section = session.run("llm kb prompt -k project/review --preloaded")
    assert section == (
        "<knowledge>\n"
        "The following knowledge has been pre-loaded into your system prompt:\n\n"
        '<topic "Project">\n\n'
        f'<subject "review">\n{REVIEW}</subject>\n</topic>\n</knowledge>\n'
    )

    answer = session.run(f"llm -m echo -T learn --no-stream {ECHO_CALLS} | cat > answer")
    assert answer == ""
    _, answered = read_answers((tmp_path / "answer").read_text(encoding="utf-8"))
    listed, loaded = (result["output"] for result in answered["tool_results"])
    assert listed.startswith("# Topic: Project (project)\n\n## Available subjects:\n\n- review\n")
    assert loaded == REVIEW
