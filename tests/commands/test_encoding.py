"""Texts in other charsets: shown, searched, checked, and not edited."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import RunLlm

WORD = "# Überblick\n\nDer Flughafen öffnet früh.\n"
CONFIG = '[kb.topic.kb]\nsubjects = "kb"\nintroduction = "x"\n'


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """A topic with a text in UTF-16, one that says its charset, an unknown one, and a binary."""
    (tmp_path / "llm-kb.toml").write_text(CONFIG)
    directory = tmp_path / "kb"
    directory.mkdir()
    (directory / "wide.md").write_bytes(WORD.encode("utf-16"))
    (directory / "said.txt").write_bytes(b"# -*- coding: latin-1 -*-\n" + WORD.encode("latin-1"))
    (directory / "mac.md").write_bytes(b"# Old\r\r## Kangaroo\r\rIt jumps.\r")
    return directory


def test_they_are_read_with_a_note(kb: Path, run_llm: RunLlm) -> None:
    assert kb.is_dir()
    shown = run_llm(["kb", "show", "--as-model", "kb/wide"]).stdout
    assert shown == f"(note: read as UTF-16LE)\n\n{WORD}"
    said = run_llm(["kb", "show", "--as-model", "kb/said"]).stdout
    assert said.startswith("(note: read as windows-1252)\n\n# -*-")
    assert "jumps" in run_llm(["kb", "show", "--as-model", "kb/mac#kangaroo"]).stdout
    assert run_llm(["kb", "show", "--as-model", "kb/wide#berblick"]).exit_code != 0
    assert "Flughafen" in run_llm(["kb", "show", "--as-model", "kb/wide#überblick"]).stdout


def test_they_are_found(kb: Path, run_llm: RunLlm) -> None:
    assert kb.is_dir()
    found = run_llm(["kb", "search", "Flughafen"]).stdout
    assert "wide" in found
    assert "said" in found


def test_check_names_what_cannot_be_read(kb: Path, run_llm: RunLlm) -> None:
    assert "nothing wrong" in run_llm(["kb", "check"]).stdout
    (kb / "bad.md").write_bytes(b"# A\n\ncaf\xe9\n")
    (kb / "odd.md").write_bytes(b"# A\n\0\1\2\n")
    report = run_llm(["kb", "check"]).stdout
    assert "it is not UTF-8; to convert it: iconv -f CHARSET -t UTF-8" in report
    assert "it is binary: a NUL byte is in its first 8,192 bytes" in report
    assert report.count("encoding") == 2


@pytest.mark.parametrize(("name", "charset"), [("wide", "UTF-16LE"), ("said", "windows-1252")])
def test_they_are_not_edited(kb: Path, run_llm: RunLlm, name: str, charset: str) -> None:
    files = {path: path.read_bytes() for path in kb.iterdir()}
    result = run_llm(["kb", "edit", f"kb/{name}"], input="new\n")
    assert result.exit_code == 1
    assert f"it is {charset}, not UTF-8; to convert it: iconv -f {charset}" in result.stderr
    assert {path: path.read_bytes() for path in kb.iterdir()} == files


def test_what_we_write_into_is_named_with_its_charset(kb: Path, run_llm: RunLlm) -> None:
    guide = kb.parent / "AGENTS.md"
    subprocess.run(["git", "init", "-q"], cwd=kb.parent, check=True)  # entries are kept in it
    guide.write_bytes("# Größe\n".encode("utf-16"))
    for arguments in (["knowledge", "export", "--to", "AGENTS.md"], ["connect", "agents"]):
        result = run_llm(["kb", *arguments])
        assert result.exit_code == 1
        assert "it is UTF-16LE, not UTF-8; to convert it: iconv -f UTF-16LE" in result.stderr
    assert guide.read_bytes() == "# Größe\n".encode("utf-16")
