"""The selection of topics and subjects; the rendered texts have their own tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from llm_kb.config.settings import Config
from llm_kb.errors import KbError, NoMatchError, UnknownTopicError
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import Topic
from llm_kb.subjects.topics import Layout, TopicConfig
from tests.memory import MemoryTopic, make_topic, make_topics


def make_kb(
    *pairs: tuple[TopicConfig, Topic], config: Config | None = None, **more: object
) -> KnowledgeBase:
    return KnowledgeBase(config or Config(), make_topics(*pairs), **more)  # type: ignore[arg-type]  # test data


PROJECT = make_topic("project", title="The Project")


def project(**files: str | None) -> tuple[TopicConfig, MemoryTopic]:
    return PROJECT, MemoryTopic({f"{name}.md": text for name, text in files.items()})


def test_topic_is_found_by_id_then_by_title() -> None:
    named = make_topic("the-project", title="project")
    kb = make_kb((named, MemoryTopic({})), project(a="A"))
    assert kb.find_topic("project").config.id == "project"
    assert kb.find_topic("THE PROJECT").config.id == "project"
    with pytest.raises(UnknownTopicError, match="valid topics: the-project, project"):
        kb.find_topic("Project X")


def test_topic_without_listed_subjects_is_not_in_the_menu() -> None:
    kb = make_kb((make_topic("empty"), MemoryTopic({".hidden.md": ""})))
    assert (kb.section(), kb.left) == (None, [])


def test_topic_learned_whole_is_not_in_the_menu() -> None:
    topic = make_topic("project", learned=("**",))
    kb = make_kb((topic, MemoryTopic({"a.md": "A\n"})))
    section = kb.section()
    assert section is not None
    assert "available to learn" not in section
    assert not kb.left
    assert kb.describe_learn() == "Learn about knowledge base topics and subjects."


def test_a_subject_reached_in_two_ways_is_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.md").write_text("X\n")
    (tmp_path / "a" / "y.md").write_text("Y\n")
    (tmp_path / "b").symlink_to("a")
    topic = TopicConfig(id="t", root=tmp_path)
    catalog = DirectoryTopic(topic)
    kb = make_kb((topic, catalog), knowledge=[("t", "b/x")])
    listing = kb.learn("t")
    assert ("- a/x" in listing, "- a/y" in listing, "- b/x" in listing) == (False, True, True)
    assert kb.learn("t", ["a/x", "**/x"]) == "## Already learned (in system prompt):\n\n- a/x"
    loaded = make_kb((topic, catalog)).learn("t", ["b/x", "a/y", "**/x"])
    assert re.findall(r'<subject "(.*)">', loaded) == ["b/x", "a/y"]


def test_knowledge_that_does_not_exist_is_an_error_at_once() -> None:
    with pytest.raises(UnknownTopicError):
        make_kb(project(a="A"), knowledge=[("nope", "**")])
    with pytest.raises(NoMatchError, match="did you mean: abc"):
        make_kb(project(abc="A"), knowledge=[("project", "abd")])
    with pytest.raises(UnknownTopicError):
        make_kb(project(a="A"), only=["nope"])


def test_only_keeps_topics_and_those_of_the_knowledge() -> None:
    others = [(make_topic(name), MemoryTopic({"x.md": ""})) for name in ("one", "two")]
    kb = make_kb(project(a="A"), *others, knowledge=[("one", "x")], only=["project"])
    assert list(kb.topics) == ["project", "one"]


def test_configured_pattern_that_matches_nothing_is_no_error() -> None:
    topic = make_topic("project", learned=("gone/*",))
    assert make_kb((topic, MemoryTopic({"a.md": "A"}))).preloaded == []


def test_subjects_that_cannot_be_read_are_named_with_the_reason() -> None:
    kb = make_kb(project(good="G\n", bad=None))
    answer = kb.learn("project", ["**"])
    assert "permission denied" in answer
    assert '<subject "good">\nG\n</subject>' in answer


def test_one_missing_pattern_of_several_comes_after_the_text() -> None:
    answer = make_kb(project(good="G\n")).learn("project", ["good", "godo"])
    assert answer.startswith('<subject "good">\nG\n</subject>')
    assert "no subject of topic 'project' matches 'godo'; did you mean: good" in answer


def test_all_patterns_missing_is_an_error_that_names_each() -> None:
    with pytest.raises(NoMatchError, match=r"matches 'x'.*matches 'y'"):
        make_kb(project(a="A")).learn("project", ["x", "y"])


def test_empty_list_of_subjects_lists_them() -> None:
    kb = make_kb(project(a="A"))
    assert kb.learn("project", []) == kb.learn("project")


@pytest.mark.parametrize("pattern", ["", "/a", "a\\b", "..", "a\0"])
def test_malformed_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(KbError, match="invalid pattern"):
        make_kb(project(a="A")).learn("project", pattern)


def test_no_more_of_a_subject_is_read_than_there_is_room_for() -> None:
    files = {f"s{n}.md": "x" * 100 for n in range(4)} | {"s4.md": "x"}
    catalog = MemoryTopic(files)
    kb = make_kb((PROJECT, catalog), config=Config(max_result_chars=160))
    answer = kb.learn("project", "**")
    room = 160 - len(f'<subject "s0">\n{"x" * 100}\n</subject>')
    assert [limit for _, limit in catalog.reads] == [640, *[room * 4] * 4]
    assert '<subject "s4">\nx\n</subject>' in answer
    assert "3 left out, 300 bytes" in answer


def test_a_preloaded_subject_is_whole_up_to_a_bound() -> None:
    topic = make_topic("project", learned=("big",))
    config = Config(max_result_chars=100)
    kb = make_kb((topic, MemoryTopic({"big.md": "line\n" * 1000})), config=config)
    assert "line\n" * 1000 in (kb.section() or "")

    kb = make_kb((topic, MemoryTopic({"big.md": "x" * 20_000_009})), config=config)
    section = kb.section() or ""
    assert "9 of 20,000,009 bytes are not shown" in section
    assert len(section) < 20_000_500


def test_summaries_are_not_read_when_they_would_find_no_room() -> None:
    catalog = MemoryTopic({f"subject-{n:04}.md": f"# Title {n}\n" for n in range(1000)})
    make_kb((PROJECT, catalog), config=Config(menu="subjects")).section()
    assert catalog.reads == []


def test_menu_of_subjects_summarizes_what_is_left() -> None:
    topic = make_topic("project", learned=("b",))
    catalog = MemoryTopic({"a.md": "# About a\n", "b.md": "B", ".c.md": "C"})
    menu = make_kb((topic, catalog), config=Config(menu="subjects")).menu()
    assert menu.lines.splitlines()[1:] == ["  - a — About a"]


def test_section_is_the_same_each_time() -> None:
    def section() -> str | None:
        return make_kb(project(b="B", a="A"), knowledge=[("project", "b")]).section()

    assert section() == section()


def test_topic_out_of_the_menu_is_read_by_whoever_names_it() -> None:
    kb = make_kb((make_topic("old", is_offered=False), MemoryTopic({"a.md": "A\n"})))
    assert (kb.section(), kb.left) == (None, [])
    assert kb.describe_learn() == "Learn about knowledge base topics and subjects."
    assert kb.learn("old", "a") == "A\n"


GUIDE = "# Guide\n\nIntroduction.\n\n## Install\n\nRun it.\n\n## Use\n\nUse it.\n"


def guide(over: int = 24_000, *, learned: tuple[str, ...] = ()) -> KnowledgeBase:
    topic = make_topic("t", learned=learned)
    catalog = MemoryTopic({"guide.md": GUIDE, ".secret.md": GUIDE, "other.md": "Other\n"})
    return make_kb((topic, catalog), config=Config(outline_over=over))


def test_a_part_is_loaded_by_its_anchor() -> None:
    kb = guide()
    assert kb.learn("t", "guide#install") == (
        "(note: lines 5-8 of 11)\n\n## Install\n\nRun it.\n\n"
    )
    assert kb.learn("t", "secret#use").endswith("## Use\n\nUse it.\n")
    assert re.findall(r'<subject "(.*)">', kb.learn("t", ["guide#use", "guide#L1-L2"])) == [
        "guide#use",
        "guide#L1-L2",
    ]


def test_parts_of_one_subject_do_not_repeat_each_other() -> None:
    loaded = guide().learn("t", ["guide#install", "other", "guide#guide"])
    assert re.findall(r'<subject "(.*)">', loaded) == ["guide#guide", "other"]
    whole = guide().learn("t", ["guide#install", "guide"])
    assert re.findall(r'<subject "(.*)">', whole) == ["guide"]


def test_a_subject_whose_name_holds_the_sign_wins() -> None:
    catalog = MemoryTopic({"a.md": "# B\n", "a#b.md": "its own\n"})
    kb = make_kb((make_topic("t"), catalog))
    assert kb.learn("t", "a#b") == "its own\n"
    assert kb.learn("t", "a#b#L1").endswith("\n\nits own\n")


def test_an_unknown_part_is_an_error_with_the_nearest() -> None:
    with pytest.raises(NoMatchError, match=r"no part '#instal'; did you mean: guide#install; 'g"):
        guide().learn("t", "guide#instal")
    answer = guide().learn("t", ["guide#use", "guide#instal"])
    assert answer.startswith('<subject "guide#use">')
    assert "has no part '#instal'" in answer
    with pytest.raises(NoMatchError, match="no subject of topic 't' matches 'nope#a'"):
        guide().learn("t", "nope#a")


def test_an_anchor_is_looked_for_in_every_file_of_a_slug() -> None:
    catalog = MemoryTopic({"a.md": "# One\n", "a.rst": "Two\n===\n"})
    kb = make_kb((make_topic("t"), catalog))
    assert "# One" in kb.learn("t", "a#one")
    assert "# One" in (
        make_kb((make_topic("t"), catalog), knowledge=[("t", "a#one")]).section() or ""
    )
    with pytest.raises(NoMatchError, match="has no part '#three'"):
        kb.learn("t", "a#three")


def test_a_large_subject_answers_with_its_outline() -> None:
    kb = guide(over=40)
    answer = kb.learn("t", "guide")
    assert answer == GUIDE + (
        "\n## Outline of guide (11 lines, ~16 tokens)\n\n"
        "- #guide (~16 tokens)\n  - #install (~6 tokens)\n  - #use (~4 tokens)\n\n"
        'Load parts or lines with learn("t", ["guide#install", "guide#L1-L11"]),'
        ' or all of it with "guide#*".'
    )
    assert kb.learn("t", "guide#*") == GUIDE
    assert guide(over=0).learn("t", "guide") == GUIDE
    assert guide(over=len(GUIDE)).learn("t", "guide") == GUIDE
    assert guide(over=0).learn("t", "guide#") == answer


def test_what_is_preloaded_is_whole_and_may_be_a_part() -> None:
    kb = guide(over=40, learned=("guide", "other#L1"))
    section = kb.section() or ""
    assert GUIDE in section
    assert '<subject "other#L1">\n(note: lines 1-1 of 1)\n\nOther\n</subject>' in section
    listing = kb.learn("t")
    assert "- other\n" in listing
    assert listing.endswith("## Already learned (in system prompt):\n\n- guide\n- other#L1")
    assert kb.learn("t", "guide#use") == "## Already learned (in system prompt):\n\n- guide#use"


def test_knowledge_may_name_parts_that_are_there() -> None:
    topic, catalog = make_topic("t"), MemoryTopic({"guide.md": GUIDE})
    assert "Run it." in (
        make_kb((topic, catalog), knowledge=[("t", "guide#install")]).section() or ""
    )
    with pytest.raises(NoMatchError, match="has no part '#nope'"):
        make_kb((topic, catalog), knowledge=[("t", "guide#nope")])


def test_raw_pieces_are_the_bytes_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf# A\r\n\xff\r\n## B\r\n\xfe\x80\r\n")
    topic = TopicConfig(id="t", root=tmp_path)
    kb = make_kb((topic, DirectoryTopic(topic)))
    opened = kb.find_topic("t")
    assert list(kb.read_raw(opened, kb.require("t", "a#b"))) == [b"## B\r\n\xfe\x80\r\n"]
    assert b"".join(kb.read_raw(opened, kb.require("t", "a"))).startswith(b"\xef\xbb\xbf# A")
    assert "2 bytes not valid in UTF-8" in kb.learn("t", "a#b")


def make_files(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def open_directory(root: Path, config: Config | None = None, **topic: object) -> KnowledgeBase:
    opened = TopicConfig(id="t", root=root, **topic)  # type: ignore[arg-type]  # test data
    return make_kb((opened, DirectoryTopic(opened)), config=config)


def test_a_listing_gives_the_size_of_large_subjects_alone(tmp_path: Path) -> None:
    make_files(tmp_path, {"a.md": "# A\n", "b.md": "# B\n## C\n" + "x" * 200, "c.json": "1" * 300})
    kb = open_directory(tmp_path, Config(outline_over=100, menu="subjects"))
    assert "- a\n- b (~53 tokens)\n- c (~75 tokens)\n" in kb.learn("t")
    assert "  - a — A\n  - b (~53 tokens) — xxx" in (kb.section() or "")


def test_files_that_are_never_text_are_not_offered_but_answer(tmp_path: Path) -> None:
    make_files(tmp_path, {"a.md": "A\n", "logo.png": "\0", "font.woff2": "\0", "x.xls": "x"})
    kb = open_directory(tmp_path, Config(menu="subjects"))
    assert "## Available subjects:\n\n- a\n\n" in kb.learn("t")
    assert "logo" not in (kb.section() or "")
    assert kb.learn("t", "logo") == "(note: binary file, 1 byte, skipped)"
    make_files(tmp_path / "none", {"logo.png": "\0"})
    assert not open_directory(tmp_path / "none").left


def test_a_notebook_is_read_as_markdown(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Plot\n\n## Data"},
        {"cell_type": "code", "source": "plot()", "outputs": [{"data": {"image/png": "aaa="}}]},
    ]
    make_files(tmp_path, {"n.ipynb": json.dumps({"cells": cells, "pad": "x" * 9_000})})
    kb = open_directory(tmp_path, Config(menu="subjects"))
    text = "# Plot\n\n## Data\n\n```\nplot()\n```\n\n```output\n(image/png: not shown)\n```\n"
    assert kb.learn("t", "n") == text
    assert kb.learn("t", "n#data").endswith(text.partition("# Plot\n\n")[2])
    assert "  - n — Plot\n" in (kb.section() or "")
    opened = kb.find_topic("t")
    assert b"".join(kb.read_raw(opened, kb.require("t", "n#data"))).decode() == text[8:]


SKILLS = {
    "pdf/SKILL.md": f"---\nname: pdf\ndescription: {'Work with PDF files. ' * 20}\n---\n# PDF\n",
    "pdf/FORMS.md": "# Forms\n",
    "pdf/scripts/Fill.py": "print()\n",
    "pdf/.secret.md": "Hush.\n",
    "pdf/inner/SKILL.md": "---\nname: inner\ndescription: Inner.\n---\n",
    "pdf/inner/note.md": "Note.\n",
    "docx/SKILL.md": "---\nname: docx\ndescription: Word.\n---\n",
    "docx/NOTE.md": "Other note.\n",
}


def test_menus_have_the_whole_descriptions_of_skills(tmp_path: Path) -> None:
    make_files(tmp_path, SKILLS)
    kb = open_directory(tmp_path, Config(menu="subjects"), layout=Layout.SKILLS)
    description = ("Work with PDF files. " * 20).strip()
    assert f"- pdf: {description}\n" in kb.learn("t")
    assert f"  - pdf — {description}\n" in (kb.section() or "")


def test_a_skill_ends_with_its_files(tmp_path: Path) -> None:
    make_files(tmp_path, SKILLS)
    kb = open_directory(tmp_path, layout=Layout.SKILLS)
    assert kb.learn("t", "pdf").endswith(
        "# PDF\n\n## Files of this skill, to be learned by these names:\n\n"
        "- pdf/FORMS\n- pdf/scripts/Fill"
    )
    assert kb.learn("t", ["pdf/FORMS", "pdf/scripts/Fill"]).count("<subject") == 2
    assert kb.learn("t", "docx").count("Files of this skill") == 1


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("pdf/FORMS.md", "# Forms\n"),
        ("pdf/forms.md", "# Forms\n"),
        ("pdf/forms", "# Forms\n"),
        ("FORMS.md", "# Forms\n"),
        ("forms", "# Forms\n"),
        ("scripts/fill.py", "```python\nprint()\n```"),
        ("FORMS.md#forms", "(note: lines 1-1 of 1)\n\n# Forms\n"),
    ],
)
def test_files_of_a_skill_are_found_as_it_writes_them(
    tmp_path: Path, asked: str, found: str
) -> None:
    make_files(tmp_path, SKILLS)
    assert open_directory(tmp_path, layout=Layout.SKILLS).learn("t", asked) == found


def test_a_name_that_several_skills_have_is_that_of_the_skill_beside_it(tmp_path: Path) -> None:
    make_files(tmp_path, SKILLS)
    kb = open_directory(tmp_path, layout=Layout.SKILLS)
    with pytest.raises(NoMatchError):
        kb.learn("t", "note.md")
    assert "Other note." in kb.learn("t", ["docx", "note.md"])
    for hidden in ("secret", "Secret.md", "SECRET"):
        with pytest.raises(NoMatchError):
            kb.learn("t", hidden)
    disabled = open_directory(tmp_path, layout=Layout.SKILLS, disabled=("pdf/FORMS",))
    with pytest.raises(NoMatchError):
        disabled.learn("t", "forms.md")
    assert "FORMS" not in disabled.learn("t", "pdf")


def test_a_glob_with_a_number_sign_lists_what_it_would_load() -> None:
    files = {f"ref/{n:03}.md": "Text.\n" for n in range(600)} | {"how-to/a.md": "x" * 30_000}
    kb = make_kb((PROJECT, MemoryTopic(files)))

    narrowed = kb.learn("project")
    assert "\n- `how-to/**`: 1 subject\n" in narrowed
    assert "to a pattern to list its subjects, as `how-to/**#`; without it, it loads" in narrowed

    assert kb.learn("project", ["how-to/**#", "ref/01?#"]) == (
        "# Topic: The Project (project)\n\n## Available subjects:\n\n"
        + "\n".join(["- how-to/a (~7,500 tokens)", *(f"- ref/01{n}" for n in range(10))])
        + "\n\nUse the `learn` tool with the `subjects` argument to learn specific subjects."
    )
    with pytest.raises(NoMatchError, match=r"'no/\*'"):
        kb.learn("project", "no/*#")


def test_a_slug_that_ends_in_a_number_sign_is_no_listing() -> None:
    kb = make_kb((PROJECT, MemoryTopic({"C#.md": "Sharp.", "a.md": "A"})))

    assert kb.learn("project", "C#") == "Sharp."
    assert kb.learn("project", "a#").endswith('"a#*".')
