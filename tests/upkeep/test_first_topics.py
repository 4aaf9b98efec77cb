"""Every file that `init` sees is in a topic, left out for a reason, or counted."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.subjects.topics import Layout, TopicConfig
from llm_kb.upkeep.first_topics import Topic, propose_topics
from tests.cost import at_most

_DIRECTORY = st.sampled_from(
    ["docs", "src", "de", "en-US", ".claude", "tests", "My.Api", "skills", "a[b]", "node_modules",
     "kb", "examples", "v1", "v2", "#x"]
)  # fmt: skip
_NAME = st.sampled_from(
    ["README.md", "a.rst", "SKILL.md", "b.asc", "c.xyz", "d", ".cursorrules", "e.png", "f.py",
     "LICENSE", "g.pdf", "h.1", "i.de.md", "i.en.md", "j\u200bk.md", ".env", "l.json", "AGENTS.md",
     "m.html", "n.txt", "link.md", "o .md", "!p.md"]
)  # fmt: skip
_PATHS = st.sets(
    st.tuples(st.lists(_DIRECTORY, max_size=3), _NAME).map(
        lambda each: "/".join([*each[0], each[1]])
    ),
    max_size=25,
)


def list_topic(root: Path, topic: Topic) -> list[str]:
    """Return what the topic lists as it would be configured, by paths in the project."""
    place = root / topic.fields["subjects"]
    config = TopicConfig(
        id="x",
        root=Path(os.path.realpath(place)),
        include=tuple(topic.fields["include"]),
        ignore=tuple(topic.fields["ignore"]),
        layout=Layout(topic.fields["layout"] or "files"),
    )
    found = DirectoryTopic(config).list().subjects
    return sorted((place / subject.path).relative_to(root).as_posix() for subject in found)


@settings(max_examples=60, deadline=None)
@given(_PATHS, st.booleans())
def test_the_sum_is_the_number_of_files_and_each_topic_lists_its_own(
    paths: set[str], has_git: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path in paths:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if path.endswith("link.md"):
                (root / path).symlink_to("README.md")
            else:
                (root / path).write_text("x\0" if path.endswith(".xyz") else f".TH x\n\n{path}\n")
        if has_git:
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        found = propose_topics(root)
        counted = [
            *(path for topic in found.topics for path in topic.pages),
            *(path for left in found.left_out.values() for path in left),
        ]
        seen = [path for path in paths if has_git or "node_modules/" not in path]
        assert len(counted) == len({*counted})
        assert len(counted) + found.others == len(seen)
        assert {*counted} <= {*seen}
        for topic in found.topics:
            assert list_topic(root, topic) == sorted(topic.pages)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["docs/{}/a.md", "a/{}/docs/b.md", "kb/{}/a.md", ".x{}/a.md", "skills/{}/SKILL.md",
     "docs/a.{}.de.md", "docs/v{}.0/a.md", "{}/tests/a.md"],
)  # fmt: skip
def test_many_directories_do_not_multiply(tmp_path: Path, name: str) -> None:
    for number in range(3_000):
        path = tmp_path / name.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# A page\n")
    with at_most(1.5):
        propose_topics(tmp_path)
