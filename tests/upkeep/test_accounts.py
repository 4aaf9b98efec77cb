"""Every file that `init` sees is in a topic or in one line."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_kb.upkeep.accounts import MOST_LINES
from llm_kb.upkeep.first_topics import propose_topics
from tests.conftest import RunLlm

_DIRECTORY = st.sampled_from(
    [
        "docs",
        "src",
        "de",
        "en-US",
        ".claude",
        "tests",
        "My.Api",
        "skills",
        "a[b]",
        "node_modules",
        "x",
    ]
)
_NAME = st.sampled_from(
    ["README.md", "a.rst", "SKILL.md", "b.asc", "c.xyz", "d", ".cursorrules", "e.png", "f.py",
     "LICENSE", "g.pdf", "h.1", "i.de.md", "i.en.md", "j\u200bk.md", ".env",
     "l.json",
     "m.html", "n.txt", "link.md"]
)  # fmt: skip
_PATHS = st.sets(
    st.tuples(st.lists(_DIRECTORY, max_size=3), _NAME).map(
        lambda each: "/".join([*each[0], each[1]])
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(_PATHS, st.booleans(), st.sets(st.sampled_from(["tests", "languages", "formalities"])))
def test_the_sum_of_the_lines_is_the_number_of_files(
    paths: set[str], has_git: bool, rules: set[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path in paths:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if path.endswith("link.md"):
                (root / path).symlink_to("README.md")
            else:
                (root / path).write_text("x\0" if path.endswith(".xyz") else ".TH x\n\nText.\n")
        if has_git:
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        found = propose_topics(root, sorted(rules))
        counted = [
            *(path for topic in found.topics for path in topic.pages),
            *(path for left in found.left_out.values() for path in left),
            *(path for other in found.others for path in other.paths),
        ]
        seen = [p for p in paths if has_git or "node_modules/" not in p]
        assert sorted(counted) == sorted(seen)


def make(root: Path, *names: str, data: bytes = b"Some text.\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def list_lines(run_llm: RunLlm) -> list[str]:
    shown = run_llm(["kb", "init", "--dry-run"]).stderr
    return [line.strip() for line in shown.partition("Left out")[2].splitlines()[1:-1]]


def test_prose_of_unknown_formats_has_a_line_with_the_command_that_takes_it(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make(tmp_path, "README.md", *(f"book/ch{n}/x.chap" for n in range(12)))
    make(tmp_path, "a.zz", "CODEOWNERS", data=b"*.py @alice @bob # owners\n")
    make(tmp_path, *(f"tests/{n}.feature" for n in "abc"), "CHANGELOG.md", "LICENSE", "COPYING")
    make(tmp_path, "data/x.raw", data=b"\0\1\2" * 9)
    assert list_lines(run_llm) == [
        "12  text files of .chap in book (book/ch0/x.chap)",
        "llm kb add book-chap book --include '*.chap'",
        "1  changes: change logs and release notes (CHANGELOG.md)",
        "8  files of other kinds: text files (without an extension, .feature, .zz)",
        "7; pictures and other binary files 1",
    ]
    assert run_llm(["kb", "init"]).exit_code == 0
    assert run_llm(["kb", "add", "book-chap", "book", "--include", "*.chap"]).exit_code == 0
    assert len(run_llm(["kb", "list", "book-chap"]).stdout.splitlines()) == 12


def test_of_many_kinds_the_most_frequent_have_a_line(
    tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"a/{page}.z{n}" for n in range(MOST_LINES + 4) for page in "abc"]
    make(tmp_path, "README.md", *names)
    last = "12  files of other kinds: text files (.z3, .z4, .z5 and 1 more kind) 12"
    assert list_lines(run_llm)[-1] == last
    monkeypatch.setenv("COLUMNS", "65")
    assert list_lines(run_llm)[-2:] == [last.removesuffix(" more kind) 12"), "more kind) 12"]


def test_links_repositories_and_documents_are_counted(tmp_path: Path, run_llm: RunLlm) -> None:
    make(tmp_path, "README.md", "sub/x.md", "keys/.env", "out/real.md")
    root = tmp_path / "w"
    make(root, "README.md", ".env", "docs/a.md")
    for command in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-q",
                                     "--allow-empty", "-m", "x"]):  # fmt: skip
        subprocess.run(["git", *command], cwd=root, check=True)
        (root / "clone").mkdir(exist_ok=True)
        subprocess.run(["git", *command], cwd=root / "clone", check=True)
    (root / "AGENTS.md").symlink_to("../out/real.md")
    (root / "docs/b.md").symlink_to("a.md")
    (root / "latest").symlink_to("docs/a.md")
    found = propose_topics(root)
    assert [(sorted(topic.pages), topic.totals[0]) for topic in found.topics] == [
        (["README.md"], 1),
        (["docs/a.md", "docs/b.md"], 2),
    ]
    assert {other.what: list(other.paths) for other in found.others} == {
        "passwords and data of programs (never taken)": [".env"],
        "links that lead to outside or to nothing": ["AGENTS.md"],
        "links to files of the project (taken where they are)": ["latest"],
        "repositories of their own (submodules, clones, work trees)": ["clone/"],
    }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    make(tmp_path, "README.md")
    os.mkfifo(tmp_path / "pipe")
    (other,) = propose_topics(tmp_path).others
    assert (other.what, list(other.paths)) == (
        "entries that are neither files nor directories",
        ["pipe"],
    )
