"""The steps of the GitHub action, run as a runner would in a clone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # it comes without stubs

from tests.console import PROJECT
from tests.repositories import make_repo


def run_steps(clone: Path, tmp_path: Path) -> list[tuple[int, str]]:
    """Run the steps after the installation; return their exit codes and what they print."""
    steps = yaml.safe_load((PROJECT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    script = tmp_path / "llm-kb" / "bin" / "llm-kb"
    script.parent.mkdir(parents=True, exist_ok=True)
    call = "from llm_kb.plugin import main; main()"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{call}" "$@"\n')
    script.chmod(0o755)
    results = []
    for step in steps[1:]:
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=clone, env={**os.environ, "RUNNER_TEMP": str(tmp_path)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
        )  # fmt: skip
        results.append((done.returncode, done.stdout))
    return results


@pytest.mark.slow
def test_what_is_wrong_fails_and_what_was_captured_is_listed(tmp_path: Path) -> None:
    origin = make_repo(tmp_path / "origin")
    (origin.path / "kb").mkdir()
    (origin.path / "kb" / "style.md").write_text("Short lines.\n")
    config = '[kb.topic.team]\nintroduction = "How we write."\nsubjects = "kb"\n'
    config += (
        '[kb.topic.overview]\nintroduction = "What it is."\nsubjects = "."\ninclude = ["/*.md"]\n'
    )
    (origin.path / "llm-kb.toml").write_text(config)
    origin.record("Write short lines.")
    for words in (["add", "."], ["commit", "-qm", "knowledge"]):
        subprocess.run(["git", *words], cwd=origin.path, check=True)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(origin.path), str(clone)], check=True)
    checked, listed = run_steps(clone, tmp_path)
    assert checked == (0, "nothing wrong in 2 subjects\n")
    assert listed[0] == 0
    assert "Write short lines." in listed[1]
    (clone / "llm-kb.toml").write_text(f'{config}learned = ["stile"]\n')
    code, text = run_steps(clone, tmp_path)[0]
    assert code == 1
    assert "stile" in text
