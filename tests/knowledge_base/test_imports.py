"""What a guide imports as `@path`: pre-loaded with it, named by `learn`, or reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.scripted import Script

CONFIG = '[kb.topic.t]\nintroduction = "T."\nsubjects = "kb"\ndisabled = ["secret"]\n'
LOST = "which is not a subject of t"


def test_a_guide_is_followed_by_what_it_imports(
    tmp_path: Path, run_llm: RunLlm, script: Script
) -> None:
    files = {
        "CLAUDE.md": "@AGENTS.md and @docs/x.md, `@docs/code.md`, a@docs/more.md, @team.\n",
        "AGENTS.md": "Tabs, see @CLAUDE.md (@docs/more.md).\n<!-- @docs/comment.md -->\n",
        "docs/more.md": "More.\n",
        "docs/x.md": "X.\n",
        "docs/code.md": "Code.\n",
        "note.md": "@docs/x.md is a note's.\n",
    }
    write_files(
        tmp_path, {"llm-kb.toml": CONFIG, **{f"kb/{name}": text for name, text in files.items()}}
    )
    run_llm(["-m", "scripted", "-k", "t/CLAUDE", "-k", "t/docs/x", "Hi"])
    names = [line for line in script.last.system.splitlines() if line.startswith("<subject")]
    order = ("CLAUDE", "AGENTS", "docs/x", "docs/more")
    assert names == [f'<subject "{name}">' for name in order]
    assert run_llm(["kb", "learn", "t", "CLAUDE"]).stdout == files["CLAUDE.md"] + (
        "\n(note: it imports other subjects; load them with"
        ' learn("t", ["AGENTS", "docs/x", "docs/more"]))\n'
    )
    assert run_llm(["kb", "learn", "t", "note"]).stdout == files["note.md"]
    listed = run_llm(["kb", "learn", "t", "-k", "t/CLAUDE"]).stdout
    assert "- docs/more\n" in listed.partition("## Already learned")[2]


@pytest.mark.usefixtures("script")
def test_an_import_that_leads_to_no_subject_is_said(tmp_path: Path, run_llm: RunLlm) -> None:
    text = "@docs/missing.md @../outside.md @~/mine.md\n@secret.md @/etc/hosts.md @unknown\n"
    text += "@CLAUDE.local.md\n"  # of one's own, so that others lack it
    write_files(tmp_path, {"llm-kb.toml": CONFIG, "kb/AGENTS.md": text, "outside.md": "# Out\n"})
    write_files(tmp_path, {"kb/secret.md": "Hush.\n"})
    targets = ("docs/missing.md", "../outside.md", "~/mine.md", "secret.md", "/etc/hosts.md")
    lines = [f"t/AGENTS imports @{target}, {LOST}" for target in targets]
    for arguments in (
        ["kb", "prompt", "-k", "t/AGENTS"],
        ["-m", "scripted", "-f", "kb:t/AGENTS", "Hi"],
    ):
        said = run_llm(arguments).stderr
        assert [line for line in lines if line not in said] == []
        assert "local" not in said
    found = run_llm(["kb", "check"]).stdout
    assert [t for t in targets if f"no subject of t: @{t} [dead-link]" not in found] == []
    assert "unknown" not in found
    assert "local" not in found


def test_at_most_five_come_with_a_guide(tmp_path: Path, run_llm: RunLlm) -> None:
    pages = {f"kb/p{number}.md": f"@p{number + 1}.md\n" for number in range(9)}
    write_files(tmp_path, {"llm-kb.toml": CONFIG, "kb/AGENTS.md": "@p0.md\n", **pages})
    shown = run_llm(["kb", "prompt", "-k", "t/AGENTS", "--preloaded"])
    assert shown.stdout.count("<subject") == 6
    assert "t/AGENTS imports @p5.md as well, beyond 5" in shown.stderr
