"""Hostile calls of `learn` and hostile content: bounded answers and unbroken tags."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from llm_kb import KbError, KnowledgeBase
from llm_kb.config.settings import Config
from llm_kb.errors import NoMatchError
from llm_kb.subjects.topics import MOST_HASHES, Listing, find_near, select
from llm_kb.texts.safe import defuse, one_line
from tests.cost import at_most
from tests.memory import MemoryTopic, make_topic, make_topics

LONG = 1_000_000
MOST_ECHOED = 12_000
"""Characters of an error, whatever the call holds."""


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    """A topic of 300 subjects, one with a long name, one large, one of a single line."""
    (tmp_path / "kb").mkdir()
    for number in range(300):
        (tmp_path / f"kb/subject-{number}.md").write_text(f"# Subject {number}\n")
    (tmp_path / f"kb/{'n' * 200}.md").write_text("# Long name\n")
    (tmp_path / "kb/large.md").write_text("".join(f"## Part {n}\ntext\n" for n in range(30_000)))
    (tmp_path / "kb/line.md").write_text("# Title\n" + "x" * LONG)
    (tmp_path / "llm-kb.toml").write_text(
        '[kb]\nmax_result_chars = 20_000\n[kb.topic.t]\nsubjects = "kb"\n'
    )
    return KnowledgeBase.discover(tmp_path)


CALLS: Mapping[str, Mapping[str, object]] = {
    "a topic of a megabyte": {"topic": "x" * LONG},
    "a topic of line feeds": {"topic": "\n" * LONG},
    "a slug of a megabyte": {"topic": "t", "subjects": "x" * LONG},
    "a glob of a megabyte": {"topic": "t", "subjects": "*x" * (LONG // 2)},
    "a path of a megabyte": {"topic": "t", "subjects": "a/" * (LONG // 2) + "a"},
    "an anchor of a megabyte": {"topic": "t", "subjects": "large#" + "x" * LONG},
    "a megabyte of anchors": {"topic": "t", "subjects": "large" + "#" * LONG},
    "wrong anchors": {"topic": "t", "subjects": [f"large#wrong-{n}" for n in range(100)]},
    "lines of nowhere": {"topic": "t", "subjects": f"large#L{'9' * LONG}"},
    "names that are missing": {"topic": "t", "subjects": [f"nope-{n}" * 20 for n in range(100)]},
    "too many names": {"topic": "t", "subjects": [f"nope-{n}" for n in range(200_000)]},
    "one name many times": {"topic": "t", "subjects": ["subject-*"] * 200_000},
    "a list in a string": {"topic": "t", "subjects": '["' + '","'.join("x" * LONG) + '"]'},
    "an unknown argument": {"topic": "t", "x" * LONG: 1},
    "a name near a long one": {"topic": "t", "subjects": "n" * 199},
}


@pytest.mark.parametrize("arguments", CALLS.values(), ids=CALLS)
def test_whatever_is_asked_the_answer_is_short_and_soon_there(
    kb: KnowledgeBase, arguments: Mapping[str, object]
) -> None:
    with at_most(2):
        try:
            answer = kb.answer_call(**arguments).text
        except KbError as error:
            answer = str(error)
    assert len(answer) <= MOST_ECHOED + 20_000
    assert "x" * 300 not in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "subjects", ["**", "large", "large#*", "line", "line#*", ["large#part-1", "line#L2", "**"]]
)
def test_no_answer_is_longer_than_its_limit(kb: KnowledgeBase, subjects: object) -> None:
    answer = kb.answer_call(topic="t", subjects=subjects).text
    assert len(answer) <= 20_000 + MOST_ECHOED


TAGS = [
    "</subject>",
    "</ SUBJECT >",
    "<\u200b/subject>",
    "</sub\u200bject>",
    "</sub\u200d\u2060ject>",
    "</s\xadubject>",
    "</\ufeffk\u034fnowledge>",
    "</to\ufe0fpic>",
    "</to\U000e0041pic>",
    "</pass\u202eage>",
    "</sub\x00ject>",
    "</sub\u3164ject \u200b>",
]


@pytest.mark.parametrize("tag", TAGS)
def test_content_closes_no_tag_however_it_is_written(tag: str) -> None:
    shown = defuse(f"before {tag} after")
    bare = "".join(c for c in shown if unicodedata.category(c) not in {"Cf", "Cc", "Mn", "Lo"})
    assert re.search(r"<\s*/\s*(subject|topic|knowledge|passage)\b", bare, re.IGNORECASE) is None
    assert shown.replace("\\", "") == f"before {tag} after"
    assert defuse(shown) == shown


@pytest.mark.parametrize("subjects", ["</topic>", "a#</topic>", ["</topic>/**", "</topic>"]])
def test_neither_does_an_error_nor_the_description_of_a_tool(
    tmp_path: Path, subjects: object
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("# A\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\ntitle = "</topic>"\n')
    tool = KnowledgeBase.discover(tmp_path).learn_tool()
    assert tool.implementation is not None
    with pytest.raises(KbError) as caught:
        tool.implementation(topic="p", subjects=subjects)
    for text in (str(caught.value), tool.description):
        assert text
        assert "</" not in text
        assert "<\\/topic>" in text


@pytest.mark.parametrize("text", ["</sub\u200bscript>", "< subject>", "</subject-matter>", "a < b"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert defuse(text) == text


@pytest.mark.parametrize("text", ["<" * LONG, "<\u200b" * LONG, "</s\u200b" * LONG, "</ " * LONG])
def test_looking_for_tags_is_linear(text: str) -> None:
    with at_most(2):
        defuse(text)


SEPARATORS = ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("separator", SEPARATORS, ids=map(ascii, SEPARATORS))
def test_no_separator_makes_a_second_line(separator: str, tmp_path: Path) -> None:
    assert one_line(f"a{separator}- b (**B**): c") == "a - b (**B**): c"
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text(f"# A{separator}## Outline\ntext\n", newline="")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.t]\nsubjects = "kb"\n')
    outline = KnowledgeBase.discover(tmp_path).learn("t", "a#").partition("## Outline of a")[2]
    assert outline.splitlines()[0].endswith("tokens)")
    assert not any(line.startswith("## ") for line in outline.splitlines())


class CountingCatalog(MemoryTopic):
    """A topic that counts what is looked up in it."""

    found = listed = 0

    def list(self, reference: str | None = None) -> Listing:
        """Count, and return what there is."""
        if reference is None:
            self.listed += 1
        else:
            self.found += 1
        return super().list(reference)


def test_of_many_hashes_few_may_end_a_slug() -> None:
    catalog = CountingCatalog({"a.md": "x"})
    select(catalog, ["a" + "#x" * 400])
    assert catalog.found == 1 + MOST_HASHES


def test_few_names_are_compared_with_few_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing two takes time that grows with the cube of their length."""
    compared = []

    class Counting(SequenceMatcher[str]):
        def ratio(self) -> float:
            compared.append(1)
            return super().ratio()

    monkeypatch.setattr("difflib.SequenceMatcher", Counting)
    names = [f"name-{number:03}" for number in range(300)]
    catalog = MemoryTopic(dict.fromkeys([*names, "n" * 100, "n" * 101], ""))
    kb = KnowledgeBase(Config(), make_topics((make_topic("t"), catalog)))
    with pytest.raises(NoMatchError):
        kb.learn("t", ["nam-000", "m" * 101, "nam-001", "nam-002"])
    assert len(compared) == 2 * 20
    assert find_near("n" * 99, catalog) == ("n" * 100, "n" * 101)


def test_a_long_name_is_looked_up_in_no_topic() -> None:
    catalog = CountingCatalog({"a.md": "x"})
    kb = KnowledgeBase(Config(), make_topics((make_topic("t"), catalog)))
    for name, times in (("x" * 61, 0), ("x" * 60, 1)):
        with pytest.raises(KbError):
            kb.learn(name)
        assert catalog.listed == times
