"""The Python API, and the arguments that a model may pass to `learn`."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import llm
import pytest

import llm_kb
from llm_kb import KbError, KnowledgeBase
from llm_kb.knowledge_base.api import SEARCHED_FROM_SUBJECTS
from tests.scripted import Script


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    """A knowledge base of one topic with two subjects."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("A\n")
    (tmp_path / "kb/b.md").write_text("B\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.t]\nsubjects = "kb"\n')
    return KnowledgeBase.discover(tmp_path)


@pytest.mark.parametrize("name", ["no/such/dir", "file.md", "a\0b"])
def test_what_is_no_directory_has_no_knowledge_base(
    kb: KnowledgeBase, tmp_path: Path, name: str
) -> None:
    """The project of the current directory is not opened instead."""
    (tmp_path / "file.md").write_text("A\n")
    for place in (name, Path(name)):
        with pytest.raises(KbError, match="is not a directory; name an existing one"):
            KnowledgeBase.discover(place)


def call(kb: KnowledgeBase, **arguments: object) -> str:
    implementation = kb.learn_tool().implementation
    assert implementation is not None
    return str(implementation(**arguments))


@pytest.mark.parametrize(
    "subjects",
    [
        pytest.param(["a", "b"], id="list"),
        pytest.param("*", id="pattern"),
        pytest.param('["a", "b"]', id="list-as-json"),
        pytest.param("a, b", id="commas"),
        pytest.param("a,b", id="commas-without-spaces"),
    ],
)
def test_patterns_come_in_several_forms(kb: KnowledgeBase, subjects: object) -> None:
    expected = '<subject "a">\nA\n</subject>\n\n<subject "b">\nB\n</subject>'
    assert call(kb, topic="t", subjects=subjects) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"topic": ["t"]}, id="topic-of-another-type"),
        pytest.param({"topic": True}, id="flag"),
        pytest.param({"topic": "t", "subjects": [["a"]]}, id="list-of-another-type"),
        pytest.param({"topic": "t", "subjects": {"a": 1}}, id="object"),
    ],
)
def test_wrong_arguments_are_answered_with_the_right_ones(
    kb: KnowledgeBase, arguments: dict[str, object]
) -> None:
    with pytest.raises(KbError, match=r"its arguments are topic \(required\), subjects; valid t"):
        call(kb, **arguments)


@pytest.mark.parametrize("arguments", [{}, {"topic": ""}, {"topic": None}], ids=str)
def test_a_call_without_a_topic_says_that_it_is_required(
    kb: KnowledgeBase, arguments: dict[str, object]
) -> None:
    with pytest.raises(KbError) as raised:
        call(kb, **arguments)
    assert str(raised.value) == (
        "learn: topic: missing; its arguments are topic (required), subjects; valid topics: t"
    )


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"self": "a", "reason": "b", "x" * 500: {"y": []}}, id="unknown"),
        pytest.param({"subjects": None, "subject": "a"}, id="singular"),
        pytest.param({"subject": ["a"]}, id="list in the singular"),
    ],
)
def test_other_arguments_are_ignored_or_understood(
    kb: KnowledgeBase, others: dict[str, object]
) -> None:
    meant = "a" if "subject" in others else None
    assert call(kb, topic="t", **others) == kb.learn("t", meant)


def test_a_number_is_taken_for_a_name(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/2024.md").write_text("The year.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.7]\nsubjects = "kb"\n')
    kb = KnowledgeBase.discover(tmp_path)
    for subjects in (2024, [2024], "[2024]"):
        assert call(kb, topic=7, subjects=subjects) == "The year.\n"


def test_a_name_may_hold_a_comma(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a, b.md").write_text("Both.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.t]\nsubjects = "kb"\n')
    kb = KnowledgeBase.discover(tmp_path)
    assert call(kb, topic="t", subjects="a, b") == "Both.\n"
    assert call(kb, topic="t", subjects=["a, b"]) == "Both.\n"


@pytest.mark.parametrize("subjects", ["", " ", [], [""], ["", " "], "[]", '[""]', None], ids=repr)
def test_subjects_that_are_empty_list_the_topic(kb: KnowledgeBase, subjects: object) -> None:
    assert call(kb, topic="t", subjects=subjects) == kb.learn("t")


@pytest.mark.parametrize(
    "subjects", [pytest.param('["a', id="open"), pytest.param('["a",' + "[" * 2_000, id="deep")]
)
def test_text_that_only_begins_like_a_list_is_a_pattern(kb: KnowledgeBase, subjects: str) -> None:
    with pytest.raises(KbError, match="no subject of topic 't' matches"):
        call(kb, topic="t", subjects=subjects)


def test_schema_is_that_of_every_configuration(kb: KnowledgeBase) -> None:
    assert kb.learn_tool().input_schema == {
        "type": "object",
        "properties": {
            "topic": {
                "type": "string",
                "description": "The topic ID or title to learn about.",
            },
            "subjects": {
                "type": "array",
                "items": {"type": "string"},
                "description": (
                    "Glob pattern(s) for subjects to load. Use * for current level, ** for"
                    " recursive. Omit to list available subjects."
                ),
            },
        },
        "required": ["topic"],
        "additionalProperties": False,
    }


def test_package_offers_no_more_than_it_says() -> None:
    assert dir(llm_kb) == ["KbError", "KnowledgeBase", "__version__"]
    assert llm_kb.KnowledgeBase is KnowledgeBase
    with pytest.raises(AttributeError, match="no attribute 'Nope'"):
        _ = llm_kb.Nope


@pytest.fixture
def topics(tmp_path: Path) -> KnowledgeBase:
    """Two topics; the second has a title."""
    for name in ("project/code-quality", "project/maintainers/jean", "skills/ast-grep"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.md").write_text(f"{name}\n")
    (tmp_path / "project" / ".hush.md").write_text("hush\n")
    (tmp_path / "llm-kb.toml").write_text(
        '[kb.topic.project]\nsubjects = "project"\n\n'
        '[kb.topic.skills]\ntitle = "Good Skills"\nsubjects = "skills"\n'
    )
    return KnowledgeBase.discover(tmp_path)


@pytest.mark.parametrize("topic", ["Project", " project ", "PROJECT"])
def test_ids_match_without_case_and_outer_spaces(topics: KnowledgeBase, topic: str) -> None:
    assert call(topics, topic=topic) == topics.learn("project")


@pytest.mark.parametrize(
    ("topic", "hint"),
    [
        pytest.param("projct", "; did you mean 'project'?", id="id"),
        pytest.param("Good Skill", "; did you mean 'skills'?", id="title"),
        pytest.param(
            "ast-grep", "; 'ast-grep' names subjects, not a topic: write skills/ast-grep", id="slug"
        ),
        pytest.param("hush", "", id="hidden slug"),
        pytest.param("zzz", "", id="nothing near"),
    ],
)
def test_an_unknown_topic_says_what_is_near(topics: KnowledgeBase, topic: str, hint: str) -> None:
    with pytest.raises(KbError) as raised:
        call(topics, topic=topic)
    assert str(raised.value) == f"unknown topic {topic!r}; valid topics: project, skills{hint}"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"topic": "project/code-quality"}, id="topic"),
        pytest.param({"topic": "project", "subjects": "project/code-quality"}, id="subjects"),
    ],
)
def test_a_subject_with_its_topic_is_understood(
    topics: KnowledgeBase, arguments: dict[str, object]
) -> None:
    assert call(topics, **arguments) == "project/code-quality\n"


@pytest.mark.parametrize(
    ("topic", "subjects"),
    [
        ("project/guide", ["L3"]),
        ("project/guide", ["#L3-L3"]),
        ("project/guide", ["guide#L3"]),
        ("project/guide", ["project/guide#L3"]),
        ("project/guide", ["l3"]),
        ("project/guide#L3", []),
        ("project/guide#L3", ["L3"]),
        ("guide", ["project/guide#L3"]),
    ],
)
def test_an_address_is_understood_however_it_is_split(
    topics: KnowledgeBase, tmp_path: Path, topic: str, subjects: list[str]
) -> None:
    (tmp_path / "project/guide.md").write_text("One\n\nThree\n\nFive\n")
    answer = call(topics, topic=topic, subjects=subjects)
    assert "Three" in answer
    assert "One" not in answer
    assert "Five" not in answer


def test_a_part_beside_a_subject_is_its_part_unless_it_is_a_subject(
    topics: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "project/guide.md").write_text("One\n\nThree\n\nFive\n")
    both = call(topics, topic="project/guide#L1", subjects=["L5"])
    assert ("One" in both, "Three" in both, "Five" in both) == (True, False, True)
    for subjects in (["code-quality"], ["L3"]):
        assert "One" in call(topics, topic="project/guid*", subjects=subjects)
    (tmp_path / "project/L3.md").write_text("Another\n")
    whole = call(topics, topic="project/guide", subjects=["L3"])
    assert "One" in whole
    assert "Another" in whole


@pytest.mark.parametrize(
    ("topic", "subjects"),
    [
        ("project/guide", ["L1"] + [f"L{n}" for n in range(9_999)]),
        (f"project/{'x' * 10**6}", ["L1"]),
    ],
    ids=["many", "long"],
)
def test_no_split_address_has_more_parts_than_a_call_may_have(
    topics: KnowledgeBase, topic: str, subjects: list[str]
) -> None:
    with pytest.raises(KbError, match="in one call; at most"):
        call(topics, topic=topic, subjects=subjects)


def test_of_an_unknown_topic_each_subject_is_in_its_own(
    topics: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "project/skills").mkdir()
    (tmp_path / "project/skills/ast-grep.md").write_text("not this\n")
    for subjects in (["project/code-quality", "skills/ast-grep"], ["skills/ast-grep"]):
        answer = call(topics, topic="x", subjects=subjects)
        assert "skills/ast-grep\n" in answer
        assert "not this" not in answer
        assert "# Topic: Good Skills" in answer


def test_an_unknown_topic_is_an_error_unless_all_subjects_name_theirs(
    topics: KnowledgeBase,
) -> None:
    with pytest.raises(KbError, match="unknown topic 'x'"):
        call(topics, topic="x", subjects=["project/code-quality", "maintainers/jean"])
    both = ["project/code-quality", "skills/ast-grep"]
    assert call(topics, topic="x", subjects=both) == call(topics, topic="project", subjects=both)
    more = call(topics, topic="project/code-quality", subjects=["maintainers/jean"])
    assert "project/code-quality" in more
    assert "project/maintainers/jean" in more


def test_a_subject_of_another_topic_comes_under_its_heading(topics: KnowledgeBase) -> None:
    assert topics.learn("skills", ["project/code-quality"]) == (
        '# Topic: project\n\n<subject "code-quality">\nproject/code-quality\n</subject>'
    )


def test_one_call_loads_subjects_of_several_topics(topics: KnowledgeBase) -> None:
    subjects = ["code-quality", "skills/ast-grep", "maintainers/*", "skills/nope", "nope"]
    assert call(topics, topic="project", subjects=subjects) == (
        "# Topic: project\n\n"
        '<subject "code-quality">\nproject/code-quality\n</subject>\n\n'
        '<subject "maintainers/jean">\nproject/maintainers/jean\n</subject>\n\n'
        "## Not found:\n\n- no subject of topic 'project' matches 'nope'\n\n"
        "# Topic: Good Skills (skills)\n\n"
        '<subject "ast-grep">\nskills/ast-grep\n</subject>\n\n'
        "## Not found:\n\n- no subject of topic 'skills' matches 'nope'"
    )


def test_subjects_of_several_topics_share_the_limit(tmp_path: Path, topics: KnowledgeBase) -> None:
    kb = KnowledgeBase.discover(tmp_path, fragments=["kb.max_result_chars=50"])
    answer = call(kb, topic="project", subjects=["code-quality", "skills/ast-grep"])
    assert answer.count("(note: cut here; ") == 2
    assert "skills/ast-grep\n</subject>" not in answer


def test_subjects_are_those_that_are_listed(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "kb/.hidden.md").write_text("H\n")
    assert kb.subjects("T") == ["a", "b"]
    with pytest.raises(KbError, match="unknown topic 'nope'"):
        kb.subjects("nope")


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_model_finds_and_reads_with_the_tools_of_add_to(
    kb: KnowledgeBase, tmp_path: Path, script: Script, is_async: bool
) -> None:
    (tmp_path / "llm-kb.toml").write_text('[kb]\nsearch = true\n[kb.topic.t]\nsubjects = "kb"\n')
    (tmp_path / "kb/b.md").write_text("# Reviews\n\nTwo people read each change.\n")
    kb = KnowledgeBase.discover(tmp_path)
    script.call("search_knowledge", question="how many review a change")
    script.call("learn", topic="t", subjects="b").say("Two.")
    if is_async:
        chain = llm.get_async_model("scripted").chain("How many?", **kb.add_to("Be brief."))
        text = asyncio.run(chain.text())
    else:
        text = llm.get_model("scripted").chain("How many?", **kb.add_to("Be brief.")).text()
    assert text == "Two."
    asked, found, read = script.requests
    assert asked.tool_names == ("learn", "search_knowledge")
    assert asked.system.startswith("Be brief.\n\n<knowledge>\n")
    assert "`search_knowledge`" in asked.system
    assert found.outputs[0].startswith('<passage "t/b#reviews')
    assert read.outputs == ("# Reviews\n\nTwo people read each change.\n",)


def test_what_is_not_searched_is_told_to_a_model(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "kb/large.md").touch()
    os.truncate(tmp_path / "kb/large.md", 20_000_001)
    answer = kb.answer_search({"question": "reviews"})
    assert "not searched: t/large.md" in answer


def test_a_search_quotes_the_best_passage_and_a_sentence_of_others(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    filler = "Nothing is said here.\n\n" * 80
    (tmp_path / "kb/best.md").write_text(f"# Walrus\n\nA walrus has tusks.\n\n{'Tusk. ' * 90}\n")
    (tmp_path / "kb/more.md").write_text(f"# More\n\n{filler}\nThe walrus swims.\n\n{filler}")

    def answer(**arguments: object) -> str:
        return kb.answer_search({"question": "walrus tusks", **arguments})

    quoted, _, named = answer().partition("\n<also>\n")
    assert quoted.startswith('<passage "t/best#walrus (lines 1-5)"')
    assert named.endswith(" (line 164): The walrus swims.\n</also>\n")
    assert "<also>" not in answer(limit=2)
    read = KnowledgeBase.discover(tmp_path, knowledge=["t/best"])
    rest = read.answer_search({"question": "walrus tusks"})
    assert "t/best#walrus (lines 1-5): already in your system prompt" in rest
    assert len(rest.partition("<passage ")[2]) > 500


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_lines_that_an_answer_names_are_those_of_the_file(
    kb: KnowledgeBase, tmp_path: Path, end: str
) -> None:
    filler = "Nothing is said here, and nothing is said there either.\n\n" * 12
    best = f"# Animals\n\nZoo.\n\nA walrus swims.\n\n{filler}It has\nlong tusks.\n\n{filler}"
    other = f"# Others\n\n{filler}A seal is no walrus,\nit is a seal.\n\n{filler}"
    for name, text in (("best", best), ("more", other)):
        (tmp_path / f"kb/{name}.md").write_text(text, encoding="utf-8", newline=end)

    answer = kb.answer_search({"question": "walrus tusks"})

    heading, _, _ = answer.partition("\n")
    first, last = map(int, re.findall(r"\d+(?=[-)])", heading)[-2:])
    lines = answer.splitlines()
    assert lines[1:3] == ["under: Animals", f"[… {first - 2} lines before: t/best#L1-L{first - 2}]"]
    assert lines[3 : 4 + last - first] == best.splitlines()[first - 1 : last]
    (after,) = re.findall(r"(?m)^\[… \d+ lines more: t/best#L(\d+)-L\d+\]$", answer)
    assert best.splitlines()[last : int(after) - 1] == [""]
    (named,) = re.findall(r"^t/more#\S+ \(line (\d+)\): (.*)$", answer, re.MULTILINE)
    line = other.splitlines().index("A seal is no walrus,") + 1
    assert named == (str(line), "A seal is no walrus,")


def test_the_search_is_added_where_there_is_much_to_learn(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    assert [tool.name for tool in kb.add_to()["tools"]] == ["learn"]
    for number in range(SEARCHED_FROM_SUBJECTS):
        (tmp_path / f"kb/{number}.md").write_text("x\n")
    added = kb.add_to()
    assert [tool.name for tool in added["tools"]] == ["learn", "search_knowledge"]
    assert "search_knowledge" in added["system"]
    none = KnowledgeBase.discover(tmp_path, knowledge=["t"]).add_to()
    assert none["tools"] == []
    assert "search_knowledge" not in none["system"]
