"""Directories of topics that somebody else made: copied, or pulled from a repository."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.references.fetch.create import create_topic
from llm_kb.references.fetch.refresh import refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.records import WebSource
from tests.conftest import RunLlm
from tests.references.requests import PAGE, files_of, request, yes
from tests.references.sites import Site

NAME = "topic-frob"


@pytest.fixture
def copied(library: Library, site: Site, user_dir: Path) -> Path:
    """The directory of a topic that was copied into the user's references."""
    create_topic(library, request(WebSource(url=site.put("/a", PAGE))), yes)
    directory = user_dir / "kb" / "references" / NAME
    shutil.copytree(library.root / NAME, directory)
    return directory


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("max_age_days", "9000000000000000000", id="days without end"),
        pytest.param("fetched_at", "0001-01-01T00:00:00+14:00", id="before time"),
        pytest.param("fetched_at", "9999-12-31T23:59:59-14:00", id="after time"),
        pytest.param("trust_score", "9000000000000000000", id="trusted without end"),
        pytest.param("tags", '["\\u001b[2J", "\\u202e", "</knowledge>"]', id="tags"),
        pytest.param("created_by", '{ghost = "\\u001b[2J"}', id="its author"),
        pytest.param("id", "'topic-../../x'", id="an id that leads out"),
        pytest.param("title", "'\\u202e'", id="a title that shows nothing"),
    ],
)
def test_whatever_a_topic_says_of_itself_commands_go_on(
    copied: Path, run_llm: RunLlm, key: str, value: str
) -> None:
    lines = (copied / "topic.md").read_text().splitlines()
    lines = [line for line in lines if not line.startswith(f"{key} ")]
    (copied / "topic.md").write_text("\n".join([lines[0], f"{key} = {value}", *lines[1:]]))
    for command in (
        ["references", "list"],
        ["references", "show", NAME],
        ["references", "search", "hooks"],
        ["references", "refresh", "--stale"],
        ["list"],
        ["prompt", "-k", f"{NAME}/**"],
    ):
        result = run_llm(["kb", *command])
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        assert "Traceback" not in result.stderr


def test_what_is_new_of_a_copied_topic_is_asked_about_once(
    library: Library, site: Site, tmp_path: Path
) -> None:
    """Who made the copy chose its hosts."""
    create_topic(library, request(WebSource(url=site.put("/a", PAGE))), yes)
    other = replace(library, root=tmp_path / "other")
    shutil.copytree(library.root / NAME, other.root / NAME)
    reasons: list[str] = []

    def approve(_: object, reason: str) -> bool:
        reasons.append(reason)
        return True

    for text in ("<p>second", "<p>third"):
        site.put("/a", text)
        refresh_topic(other, NAME, approve)
    host = site.url.removeprefix("http://")
    assert reasons == [f"no approval of its hosts is recorded here: {host}"]
    assert list(files_of(other).values()) == ["third\n"]
