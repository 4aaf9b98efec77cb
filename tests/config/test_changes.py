"""Edits of a person's file: one place changes, the rest stays to the byte."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.config.changes import (
    define_topic,
    drop_topic,
    edit_config,
    edit_patterns,
)
from llm_kb.config.layers import LayerSource
from llm_kb.config.settings import Layer, Origin
from llm_kb.errors import ConfigError, KbError, UnknownTopicError
from llm_kb.files.atomic import WriteError
from llm_kb.files.fields import decode_toml
from tests.preloaded import Process

Change = Callable[[str], str]


def add_topic(id_: str, fields: Mapping[str, str]) -> Change:
    return partial(define_topic, id_=id_, fields=fields)


def remove_topic(id_: str) -> Change:
    return partial(drop_topic, id_=id_)


posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def add_to(id_: str, name: str, *patterns: str) -> Change:
    return partial(edit_patterns, id_=id_, name=name, patterns=patterns)


def take_from(id_: str, name: str, *patterns: str) -> Change:
    return partial(edit_patterns, id_=id_, name=name, patterns=patterns, remove=True)


WRITTEN = """\
# Head
[kb]
menu = "topics"  # keep

# The project
[kb.topic.project]
subjects = "kb/project"   # where
learned = [
    "a",  # first
    "b",  # second
]

# Skills
[ kb . topic . "skills" ]  # odd, and valid
subjects = "kb/skills"
description = '''
Two
lines
'''

# end
"""


def edit(path: Path, change: Change) -> None:
    origin = Origin(layer=Layer.WORKSPACE, place=str(path))
    root = path.parent
    edit_config(LayerSource(origin=origin, base=root, bounds=root, owned_below=root), change)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A configuration file with comments and an order of its own."""
    path = tmp_path / "llm-kb.toml"
    path.write_text(WRITTEN)
    return path


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        pytest.param(
            add_to("project", "learned", "b", "c", "c"),
            '    "b",  # second\n',
            '    "b",  # second\n    "c",\n',
            id="extend a list of many lines",
        ),
        pytest.param(
            take_from("project", "learned", "a"),
            '    "a",  # first\n',
            "",
            id="reduce it",
        ),
        pytest.param(
            add_to("project", "disabled", "x/**"),
            "]\n\n# Skills",
            ']\ndisabled = ["x/**"]\n\n# Skills',
            id="a new list comes last in its table",
        ),
        pytest.param(
            add_to("skills", "learned", "x"),
            "'''\n\n# end",
            "'''\nlearned = [\"x\"]\n\n# end",
            id="below a text of many lines",
        ),
        pytest.param(
            add_topic("v1.2", {"title": 'A "B" \\ é', "subjects": "kb/x"}),
            "# end\n",
            '# end\n\n[kb.topic."v1.2"]\ntitle = "A \\"B\\" \\\\ é"\nsubjects = "kb/x"\n',
            id="a new topic comes last",
        ),
        pytest.param(
            remove_topic("project"),
            WRITTEN[WRITTEN.index("[kb.topic.project]\n") : WRITTEN.index("\n# Skills")],
            "",
            id="a topic goes, the comments around it stay",
        ),
        pytest.param(
            remove_topic("skills"),
            WRITTEN[WRITTEN.index("[ kb") : WRITTEN.index("\n# end")],
            "",
            id="a topic with a long text",
        ),
    ],
)
def test_one_place_changes(path: Path, change: Change, old: str, new: str) -> None:
    assert WRITTEN.count(old) == 1
    edit(path, change)
    assert path.read_text() == WRITTEN.replace(old, new)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        pytest.param(
            "", add_topic("p", {"subjects": "a"}), '[kb.topic.p]\nsubjects = "a"\n', id="empty file"
        ),
        pytest.param(
            '[kb.topic.p]\nsubjects="a"',
            add_to("p", "learned", "x"),
            '[kb.topic.p]\nsubjects="a"\nlearned = ["x"]\n',
            id="no newline at the end",
        ),
        pytest.param('[kb.topic.p]\nsubjects="a"', remove_topic("p"), "", id="nothing is left"),
        pytest.param(
            '[kb.topic.p]\r\nsubjects="a"\r\n',
            add_to("p", "learned", "x"),
            '[kb.topic.p]\r\nsubjects="a"\r\nlearned = ["x"]\r\n',
            id="CRLF",
        ),
        pytest.param(
            '[kb]\ntopic = {p = {subjects = "a", learned = ["x"]}}\n',
            take_from("p", "learned", "x"),
            '[kb]\ntopic = {p = {subjects = "a", learned = []}}\n',
            id="inline table",
        ),
        pytest.param(
            "[kb]\n",
            add_to("repo-knowledge", "learned", "x"),
            '[kb]\n\n[kb.topic.repo-knowledge]\nlearned = ["x"]\n',
            id="a topic that has no table",
        ),
        pytest.param(
            'kb.topic.p.subjects = "a"\n',
            add_topic("q", {"subjects": "b"}),
            'kb.topic.p.subjects = "a"\n\n[kb.topic.q]\nsubjects = "b"\n',
            id="a table after dotted keys",
        ),
        pytest.param(
            '[kb.topic.p]\nlearned = ["x"]\n[kb.topic.q]\nsubjects = "b"\n',
            take_from("p", "learned", "x"),
            '[kb.topic.p]\nlearned = []\n[kb.topic.q]\nsubjects = "b"\n',
            id="a list is emptied",
        ),
        pytest.param(
            '[kb.topic.p]\nlearned = ["x", "x", "y"]\n',
            take_from("p", "learned", "y"),
            '[kb.topic.p]\nlearned = ["x", "x"]\n',
            id="another is there twice",
        ),
        pytest.param(
            '[kb.topic.p]\nlearned = ["x", "x"]\n',
            add_to("p", "learned", "x", "y"),
            '[kb.topic.p]\nlearned = ["x", "x", "y"]\n',
            id="one is there twice already",
        ),
    ],
)
def test_other_ways_of_writing_it(tmp_path: Path, before: str, change: Change, after: str) -> None:
    path = tmp_path / "llm-kb.toml"
    path.write_bytes(before.encode())
    edit(path, change)
    assert path.read_bytes() == after.encode()


@pytest.mark.parametrize(
    ("text", "change"),
    [
        pytest.param('[kb]\ntopic = {p = {subjects = "a"}}\n', remove_topic("p"), id="inline"),
        pytest.param(
            '[kb]\ntopic = {p = {subjects = "a"}}\n', add_topic("q", {}), id="one more inline"
        ),
        pytest.param('kb.topic.p.subjects = "a"\n', remove_topic("p"), id="dotted keys"),
        pytest.param('kb.topic.p.subjects = "a"\n', add_to("p", "learned", "x"), id="dotted list"),
        pytest.param(
            "[kb.topic.p]\ndescription = '''\n[kb]\n'''\n", remove_topic("p"), id="a text"
        ),
    ],
)
def test_a_change_that_would_touch_other_parts_is_refused(text: str, change: Change) -> None:
    with pytest.raises(KbError, match=r"cannot change kb\.topic.* by hand"):
        change(text)


names = st.text("abcxyz09._-", min_size=1, max_size=4).map(lambda text: "a" + text)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
documents = st.dictionaries(names, st.fixed_dictionaries({"subjects": texts}), max_size=4)


@given(documents, names, texts, st.lists(texts, max_size=3, unique=True))
def test_every_change_reads_back_as_what_was_wanted(
    topics: Mapping[str, Mapping[str, str]], id_: str, title: str, patterns: list[str]
) -> None:
    text = ""
    for name, fields in topics.items():
        text = define_topic(text, name, fields)
    text = define_topic(text, id_ + "Z", {"title": title})
    text = edit_patterns(text, id_ + "Z", "learned", patterns)
    expected = {**topics, id_ + "Z": {"title": title, "learned": patterns}}
    assert decode_toml(text) == {"kb": {"topic": expected}}
    for name in topics:
        text = drop_topic(text, name)
    assert decode_toml(text)["kb"] == {"topic": {id_ + "Z": expected[id_ + "Z"]}}


def test_what_cannot_be_decided_is_told() -> None:
    text = '[kb.topic.p]\nlearned = ["x", "y"]\n'
    with pytest.raises(KbError, match="topic 'p' exists already"):
        define_topic(text, "p", {})
    with pytest.raises(UnknownTopicError, match="unknown topic 'q'; valid topics: p"):
        drop_topic(text, "q")
    with pytest.raises(KbError, match=r"'z' is not in kb\.topic\.p\.learned; it holds: x, y"):
        edit_patterns(text, "p", "learned", ["z"], remove=True)


def test_a_result_that_is_no_valid_layer_is_not_written(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"left as it is: kb\.topic\.x\.subjects: found '/etc'"):
        edit(path, add_topic("x", {"subjects": "/etc"}))
    assert path.read_text() == WRITTEN


def test_a_broken_file_is_not_edited(path: Path) -> None:
    path.write_text("[kb\n")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        edit(path, add_topic("x", {"subjects": "y"}))
    assert path.read_text() == "[kb\n"


def test_a_file_that_is_not_there_is_written(tmp_path: Path) -> None:
    edit(tmp_path / "a" / "b" / "x.toml", add_topic("p", {"subjects": "a"}))
    assert (tmp_path / "a" / "b" / "x.toml").read_text() == '[kb.topic.p]\nsubjects = "a"\n'


@posix_only
def test_a_file_of_someone_else_is_not_edited(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(path, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to another user"):
        edit(path, add_topic("p", {"subjects": "a"}))
    assert path.read_text() == WRITTEN


@posix_only
def test_mode_owner_and_link_stay(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real.toml"
    path.rename(real)
    real.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(real, 12345, 12345)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)  # as under sudo, in a user's place
    before = real.stat()
    path.symlink_to(real)
    edit(path, add_topic("p", {"subjects": "a"}))
    assert path.is_symlink()
    after = real.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert "[kb.topic.p]" in real.read_text()


@posix_only
def test_a_directory_that_cannot_be_written_is_told(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="cannot write"):
        edit(tmp_path / "file" / "x.toml", add_topic("p", {"subjects": "a"}))


def _add_one(arguments: tuple[int, Path]) -> None:
    number, path = arguments
    edit(path, add_topic(f"t{number}", {"subjects": "a"}))


@posix_only
def test_many_editors_at_once_lose_nothing(path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_add_one, [(number, path) for number in range(20)]))
    topics = decode_toml(path.read_text())["kb"]["topic"]  # type: ignore[index]
    assert {f"t{number}" for number in range(20)} < set(topics)


ENDLESS = """
import itertools, sys
from pathlib import Path
from llm_kb.files.atomic import replace_file
path = Path(sys.argv[1])
print("ready", flush=True)
for number in itertools.count():
    replace_file(path, (f"# {number}\\n" * 20_000).encode())
"""


@posix_only
def test_a_writer_killed_at_any_moment_leaves_a_whole_file(path: Path) -> None:
    for pause in (0.0, 0.01, 0.03, 0.07, 0.1):
        writer = Process([str(path)], program=ENDLESS)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(pause)
        writer.kill()
        writer.communicate()
        text = path.read_text()
        lines = set(text.splitlines())
        assert text == WRITTEN or (len(lines), text.count("\n")) == (1, 20_000)
