"""Every format with headings, through the commands that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.texts.formats import find_extension, find_fence_language
from tests.conftest import RunLlm
from tests.texts.test_outlines import TEXTS


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A project with a page in every format; returns the texts by the paths below `docs`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    pages = {}
    for number, (path, text) in enumerate(TEXTS.items()):
        name = path if path == "readme.txt" else f"page{number}.{find_extension(path)}"
        pages[name] = f"{text}\n\nWord zebra{number} ends it.\n"
        (tmp_path / "docs" / name).write_text(pages[name], encoding="utf-8")
    return pages


@pytest.mark.slow
def test_a_format_is_proposed_listed_read_in_parts_and_found(
    run_llm: RunLlm, book: dict[str, str]
) -> None:
    assert f"{len(book)} subjects" in run_llm(["kb", "init"]).stderr
    config = Path("llm-kb.toml")
    config.write_text(config.read_text().replace('learned = ["**"]\n', ""))
    assert run_llm(["kb", "check"]).exit_code == 0
    listed = run_llm(["kb", "list", "docs"]).stdout
    for number, (name, text) in enumerate(book.items()):
        slug = name.partition(".")[0]
        assert slug in listed
        part = run_llm(["kb", "show", "--as-model", f"docs/{slug}#two-words"]).stdout
        assert f"zebra{number}" in part, name
        assert len(part) < len(text) + 200
        language = find_fence_language(name)
        assert (f"```{language}\n" in part) == (language is not None), name
        found = run_llm(["kb", "search", f"zebra{number}"]).stdout
        assert f"docs/{slug}#" in found, name
        shown = run_llm(["kb", "prompt", "-k", f"docs/{slug}"]).stdout
        assert f"zebra{number}" in shown, name
