"""What markups have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.texts.decoding import hide_embedded
from tests.conftest import RunLlm

PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 40


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![a](" + PICTURE + ")", "![a](data:image/png;base64,…)"),
        ("[a]: <" + PICTURE + ">\nb", "[a]: <data:image/png;base64,…>\nb"),
        ('<img src="' + PICTURE + '">', '<img src="data:image/png;base64,…">'),
        (
            ".. image:: " + PICTURE + "\n   :alt: a",
            ".. image:: data:image/png;base64,…\n   :alt: a",
        ),
        ("image::" + PICTURE + "[a]", "image::data:image/png;base64,…[a]"),
        ("a data: b", "a data: b"),
        ("data:text/plain," + "a" * 300, "data:text/plain," + "a" * 300),
        ("data:image/png;base64,iVBORw0KGgo", "data:image/png;base64,iVBORw0KGgo"),
    ],
)
def test_an_embedded_file_is_a_placeholder(text: str, shown: str) -> None:
    assert hide_embedded(text) == (shown, int(text != shown))


def test_no_command_shows_an_embedded_picture(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    page = f"# A\n\nOne zebra.\n\n## B\n\n![c]({PICTURE})\n\nTwo lions.\n"
    (tmp_path / "docs" / "a.md").write_text(page, encoding="utf-8")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.d]\nsubjects = "docs"\n', encoding="utf-8")
    for arguments in (
        ["kb", "show", "--as-model", "d/a"],
        ["kb", "show", "--as-model", "d/a#b"],
        ["kb", "search", "lions"],
        ["kb", "prompt", "-k", "d/a"],
    ):
        shown = run_llm(arguments).stdout
        assert "data:image/png;base64,…" in shown, arguments
        assert "iVBOR" not in shown
    assert (
        "(note: 1 embedded file not shown)" in run_llm(["kb", "show", "--as-model", "d/a"]).stdout
    )
