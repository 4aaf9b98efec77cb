"""Entries of strangers, written into files that strangers may have linked elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.capture.rendering import MARKS
from tests.conftest import RunLlm
from tests.repositories import Repo, make_repo

BEGIN, END = MARKS
ADD = ["kb", "knowledge", "add"]
EXPORT = ["kb", "knowledge", "export", "--to", "AGENTS.md"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository, which is the current directory."""
    repo = make_repo(tmp_path / "repo")
    monkeypatch.chdir(repo.path)
    return repo


def test_a_link_out_of_the_repository_is_not_written_through(
    repo: Repo, tmp_path: Path, run_llm: RunLlm
) -> None:
    """A clone may bring one that leads to a file which a shell runs."""
    outside = tmp_path / "profile"
    outside.write_text("alias ls=ls\n")
    (repo.path / "AGENTS.md").symlink_to(outside)
    run_llm([*ADD, "$(touch evil)"])
    result = run_llm(EXPORT)
    assert result.exit_code == 1
    assert (
        f"it leads to {str(outside)!r}, outside the directory that may be changed\n"
        in result.stderr
    )
    assert outside.read_text() == "alias ls=ls\n"
    (repo.path / "AGENTS.md").unlink()
    (repo.path / "docs").symlink_to(tmp_path)
    assert run_llm(["kb", "knowledge", "export", "--to", "docs/new.md"]).exit_code == 1
    assert not (tmp_path / "new.md").exists()


def test_a_link_within_the_repository_is(repo: Repo, run_llm: RunLlm) -> None:
    (repo.path / "CLAUDE.md").write_text("# Mine\n")
    (repo.path / "AGENTS.md").symlink_to("CLAUDE.md")
    run_llm([*ADD, "Short lines."])
    assert run_llm(EXPORT).exit_code == 0
    assert (repo.path / "CLAUDE.md").read_text().startswith(f"# Mine\n\n{BEGIN}\n")


@pytest.mark.parametrize(
    "rule",
    [
        *(END, f"a {BEGIN}", f"a\n{END}\n# x", "a\u2028# x"),
        *("<!-->", "<!<!----", "--!> <script>", "`" * 9),
    ],
)
def test_no_entry_ends_its_block(repo: Repo, run_llm: RunLlm, rule: str) -> None:
    (repo.path / "AGENTS.md").write_text("# Above\n\nEnd\n")
    assert run_llm([*ADD, "--", rule]).exit_code == 0
    assert run_llm(EXPORT).exit_code == 0
    first = (repo.path / "AGENTS.md").read_text()
    assert first.count(BEGIN) == first.count(END) == 1
    assert [line for line in first.splitlines() if line.startswith("#")][:1] == ["# Above"]
    assert sum(line.startswith("- ") for line in first.split("\n")) == 1
    assert run_llm(EXPORT).exit_code == 0
    assert (repo.path / "AGENTS.md").read_text() == first


def test_marks_that_the_text_quotes_are_text(repo: Repo, run_llm: RunLlm) -> None:
    """What stands between a quoted mark and the block would be lost."""
    above = f"The block begins with `{BEGIN}`.\n\nMine\n"
    (repo.path / "AGENTS.md").write_text(f"{above}\n{BEGIN}\nold\n{END}\nBelow `{END}`\n")
    run_llm([*ADD, "Short lines."])
    assert run_llm(EXPORT).exit_code == 0
    text = (repo.path / "AGENTS.md").read_text()
    assert text.startswith(f"{above}\n{BEGIN}\n")
    assert text.endswith(f"{END}\nBelow `{END}`\n")
    assert "old" not in text
