"""Hostile configurations, made to take long or to fill a terminal.

Reading one takes at most two seconds of processor time, and an error lists at most 50 problems.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.config.load import load_config
from llm_kb.config.workspace import MAX_BYTES
from llm_kb.errors import MAX_MESSAGE, MAX_PROBLEMS, ConfigError, KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.subject_list import list_topics
from llm_kb.upkeep.check import find_problems
from tests.cost import at_most, cases

SECONDS = 2
SIZE = MAX_BYTES
TOPIC = '[kb]\nauto = true\n[kb.topic.p]\nsubjects = "kb"\n'


def repeat(unit: str, start: str = "", end: str = "") -> str:
    """Repeat a numbered unit up to the largest configuration that is read."""
    longest = len(unit.format(SIZE))
    body = "".join(unit.format(n) for n in range((SIZE - len(start) - len(end)) // longest))
    return f"{start}{body}{end}"


DOCUMENTS = {
    "patterns": repeat('"p{}",', TOPIC + "learned = [", "]"),
    "disabled": repeat('"p{}",', TOPIC + "disabled = [", "]"),
    "repeated patterns": repeat('"p",', TOPIC + "learned = [", "]"),
    "bad patterns": repeat('"/{}",', TOPIC + "learned = [", "]"),
    "rules": repeat('"p{}",', TOPIC + "ignore = [", "]"),
    "topics": repeat('[kb.topic.p{}]\nsubjects="kb"\n'),
    "many topics of one kind": repeat("[kb.topic.p{}]\nx=1\n"),
    "unknown keys": repeat("k{}=1\n", "[kb]\n"),
    "unknown tables": repeat("[a{}.b.c.d]\n"),
    "near keys": repeat("learnd{}=1\n", TOPIC),
    "long keys": repeat("a" * 5_000 + "{}=1\n", TOPIC),
    "long text": 'a = "' + "x" * (SIZE - 10) + '"',
    "deep arrays": repeat("1,", "a = " + "[" * 90, "]" * 90),
    "inline tables": repeat("{{a=1}},", "a = [", "]"),
    "comments": "#" * SIZE,
    "long headers": repeat("[" + "h." * 20 + "k{}]\n"),
    "long keys below a long header": repeat("a." * 19 + "k{}=1\n", "[" + "h." * 19 + "h]\n"),
    "keys below a long header": repeat("k{}=1\n", "[" + "h." * 19 + "h]\n"),
    "arrays of tables": repeat("[[a]]\n"),
    "a deep directory": '[kb.topic.p]\nsubjects = "' + "a/" * 20_000 + '"',
    "deep directories": repeat("[kb.topic.p{}]\nsubjects = '" + "a/" * 2_000 + "'\n"),
}


@pytest.mark.parametrize(
    "document",
    cases(
        DOCUMENTS,
        *("long keys below a long header", "keys below a long header"),
        *("inline tables", "deep arrays", "repeated patterns"),
    ),
)
def test_a_configuration_takes_at_most_two_seconds(tmp_path: Path, document: str) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "llm-kb.toml").write_text(document)
    message = ""
    with at_most(SECONDS):
        try:
            load_config(tmp_path, user_dir=tmp_path / "user", environ={})
        except KbError as error:
            message = str(error)
    assert message.count("\n") <= MAX_PROBLEMS + 1
    assert len(message) < 20_000


@pytest.mark.parametrize("target", ["a/" * 2_000, "a" * 200 + "/" + "b/" * 99])
def test_a_link_to_a_deep_directory_is_no_topic(tmp_path: Path, target: str) -> None:
    (tmp_path / "kb").symlink_to(target)
    (tmp_path / "llm-kb.toml").write_text(TOPIC)
    with pytest.raises(KbError, match="allowed: at most 100 levels"):
        load_config(tmp_path, user_dir=tmp_path / "user", environ={})


def test_no_larger_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "llm-kb.toml").write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(KbError, match="is larger than 1,000,000 bytes, the most allowed"):
        load_config(tmp_path, user_dir=tmp_path / "user", environ={})


LONG = "y" * 100_000
WORDS = "why " * 25_000


@pytest.mark.parametrize(
    "assignment",
    [
        f"kb.a={LONG}",
        f"kb.{LONG}=1",
        f'kb.topic.{LONG}.subjects="kb"',
        f"kb.topic.p.layout={LONG}",
        f"kb.topic.p.learned+={LONG}",
        f"kb.auto={WORDS}",
        f"kb.menu={WORDS}",
        f"{LONG}.toml",
        WORDS,
    ],
    ids=lambda text: text[:30],
)
def test_an_error_repeats_little_of_an_assignment(tmp_path: Path, assignment: str) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    with pytest.raises(KbError) as caught:
        load_config(tmp_path, user_dir=tmp_path / "user", environ={}, fragments=[assignment])
    assert len(str(caught.value)) < 1_500


@pytest.mark.parametrize("text", [LONG, WORDS, "\n" * 100_000])
def test_no_error_is_long_whoever_wrote_what_it_repeats(text: str) -> None:
    message = str(KbError(f"{text}: what to do about it"))
    assert len(message) <= MAX_MESSAGE
    assert message.endswith(": what to do about it")


def test_a_megabyte_with_a_thousand_topics_is_read(tmp_path: Path) -> None:
    text = "word " * 150
    document = "".join(
        f'[kb.topic.t{n}]\nsubjects = "kb/{n}"\ndescription = "{text}"\nlearned = ["a/*", "b"]\n'
        for n in range(1_000)
    )
    (tmp_path / "llm-kb.toml").write_text(document)
    assert 800_000 < len(document) < MAX_BYTES
    with at_most(SECONDS):
        config = load_config(tmp_path, user_dir=tmp_path / "user", environ={})
    assert len(config.topics) == 1_000


def test_a_workspace_does_not_show_the_references_of_the_user(
    tmp_path: Path, user_dir: Path
) -> None:
    """Neither by a key, nor by a list of its own that is like that of the user."""
    (tmp_path / "llm-kb.toml").write_text("[kb]\n")
    library = user_dir / "kb/references/topic-private"
    library.mkdir(parents=True)
    (library / "topic.md").write_text(
        '+++\nid = "topic-private"\ntitle = "Private"\ntype = "ReferenceTopic"\n'
        "fetched_at = 2026-01-01T00:00:00Z\n+++\nSecret.\n"
    )
    shutil.copytree(user_dir / "kb", tmp_path / "kb")
    kb = KnowledgeBase.discover(tmp_path)
    assert ("topic-private" in kb.topics, kb.menu_ids) == (True, [])
    (tmp_path / "llm-kb.toml").write_text("[kb.references]\nmenu = true\n")
    with pytest.raises(ConfigError, match="unknown key"):
        KnowledgeBase.discover(tmp_path)


def test_a_workspace_does_not_turn_on_what_the_user_turned_off(
    tmp_path: Path, user_dir: Path
) -> None:
    (user_dir / "kb.toml").write_text("[kb.topic.repo-knowledge]\nenable = false\n")
    (tmp_path / "llm-kb.toml").write_text("[kb.topic.repo-knowledge]\nenable = true\n")
    config = KnowledgeBase.discover(tmp_path).config
    assert config.withheld == ("kb.topic.repo-knowledge.enable",)
    assert [topic.enable for topic in config.adjustments] == [False]


def make_topics(number: int) -> str:
    """Return topics of one directory, each with a rule of its own."""
    return "".join(f'[kb.topic.t{n}]\nsubjects = "kb"\nignore = ["x{n}"]\n' for n in range(number))


def make_list(key: str, unit: str) -> Callable[[int], str]:
    """Return a function that makes a topic with a list of so many values."""
    return lambda number: (
        f'[kb.topic.t0]\nsubjects = "kb"\n{key} = ['
        + ",".join(f'"{unit.format(n)}"' for n in range(number))
        + "]\n"
    )


PRODUCTS = {
    "topics": (make_topics, 19),
    "nested topics": (lambda n: make_topics(n).replace('"kb"', '"."', n // 2), 19),
    "names to learn": (make_list("learned", "p{}"), 470),
    "parts to learn": (make_list("learned", "f0#p-{}"), 230),
    "hashes to learn": (make_list("learned", "#" * 60 + "{}"), 52),
    "names that are disabled": (make_list("disabled", "p{}"), 1_180),
    "globs that are disabled": (make_list("disabled", "*q*{}*"), 290),
    "rules": (make_list("ignore", "/p{}"), 4_700),
    "long rules": (make_list("ignore", "x" * 985 + "{}"), 225),
    "patterns of files": (make_list("include", "*{}.md"), 2_370),
}
"""Two lists that multiply with the files of a directory, and the longest that is accepted."""


def count_work(directory: Path, files: int) -> int:
    """Return the number of calls of all functions that everything takes with so many files."""
    (directory / "kb").mkdir(exist_ok=True)
    for number in range(files):
        (directory / f"kb/f{number}.md").write_text("# P 0\n\nWalrus.\n\n# P 1\n\nAlpha.\n")
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event.endswith("call")

    sys.setprofile(count)
    try:
        kb = KnowledgeBase.discover(directory)
        kb.section()
        list(kb.find_passages("walrus").passages)
        find_problems(kb)
        list(list_topics(kb, everything=True))
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(("make", "most"), PRODUCTS.values(), ids=PRODUCTS)
def test_the_lists_of_a_configuration_and_files_do_not_multiply(
    tmp_path: Path, make: Callable[[int], str], most: int
) -> None:
    """The longest list costs each file so much, and one of twice the length is refused."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "llm-kb.toml").write_text(make(2 * most))
    with pytest.raises(ConfigError, match="for each file"):
        KnowledgeBase.discover(tmp_path)
    (tmp_path / "llm-kb.toml").write_text(make(most))
    count_work(tmp_path, 1)  # what is compiled or imported once
    few, twice = count_work(tmp_path, 5), count_work(tmp_path, 10)
    assert twice - few < 5 * 25_000
