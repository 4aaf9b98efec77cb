"""Without a usable directory of the user, reading works as before, and creates nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.workspaces import write_files
from tests.conftest import RunLlm

CONFIG = '[kb.topic.kb]\nsubjects = "kb"\nintroduction = "x"\n'


@pytest.mark.parametrize("place", ["/proc/none", "file/below", "missing/a/b"])
@pytest.mark.parametrize(
    "command",
    [
        ["list"], ["list", "kb"], ["show", "--as-model", "kb/x"], ["show", "kb/x"], ["check"],
        ["search", "walrus"], ["references", "list"], ["config"], ["prompt"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_reading_needs_no_home(
    tmp_path: Path,
    run_llm: RunLlm,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    place: str,
) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG, "kb/x.md": "# X\n\nThe walrus.\n", "file": ""})
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / place))
    result = run_llm(["kb", *command])
    assert (result.exit_code, "Error" in result.stderr) == (0, False), result.stderr
    if command != ["search", "walrus"]:  # which keeps an index where it can
        assert not (tmp_path / "missing").exists()


def test_what_is_written_creates_the_directory(
    tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"kb/x.md": "# X\n"})
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "a/b"))
    assert run_llm(["kb", "add", "kb", "kb", "--user"]).exit_code == 0
    assert (tmp_path / "a/b/kb.toml").is_file()
