"""The search of all topics: passages shown, joined, marked and left out."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm_kb.config.settings import Config
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.topic_documents import INDEXES, find_index
from llm_kb.files.walk import Stamps
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.passages import find_passages
from llm_kb.knowledge_base.tool_text import SEARCH_KNOWLEDGE
from llm_kb.rendering.passages import (
    Passage,
    Passages,
    find_addresses,
    find_notes,
    render_passages,
)
from llm_kb.search.question import EmptyQuestionError
from llm_kb.search.roles import Role, Scope
from llm_kb.subjects.topics import Layout, Listing, TopicConfig
from tests.files.test_watch import grow_old
from tests.search.folders import taken_as_current

SECTION = "Words about the {} that fill a paragraph and say little more than this.\n" * 12


def open_kb(root: Path, files: dict[str, str], **topic: object) -> KnowledgeBase:
    """Return a knowledge base of one topic with these files."""
    for path, text in files.items():
        (root / "kb" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "kb" / path).write_text(text)
    made = TopicConfig(id="zoo", root=root / "kb", **topic)  # type: ignore[arg-type]  # test data
    return open_each(root, made)


def open_each(root: Path, *topics: TopicConfig, workspace: Path | None = None) -> KnowledgeBase:
    """Return a knowledge base of topics that share an index."""
    index = find_index(root / "user", workspace)
    opened = {
        topic.id: DirectoryTopic(topic, index=lambda: index, workspace=workspace)
        for topic in topics
    }
    return KnowledgeBase(Config(), opened)


def find(kb: KnowledgeBase, question: str, limit: int = 4, **more: Any) -> Passages:
    return find_passages(kb.choose_topics(), question, limit, **more)


def places(found: Passages) -> list[str]:
    return [f"{each.name}:{each.first_line}-{each.last_line}" for each in found.passages]


def test_of_a_long_passage_the_lines_that_answer_are_shown(tmp_path: Path) -> None:
    filler = "Nothing here says anything about it, and goes on so for a while.\n\n" * 8
    text = f"# Zoo\n\n{filler}## Walrus\n\nIt has tusks.\n\n{filler}"
    kb = open_kb(tmp_path, {"a.md": text, "b.md": f"# Walrus tusks\n\n{filler}"})

    shown = {each.name: each for each in find(kb, "walrus tusks").passages}

    assert shown["a"].text.startswith("## Walrus\n\nIt has tusks.\n\nNothing")
    assert shown["a"].address == "a#walrus"
    assert all(len(each.text) <= 800 for each in shown.values())
    lines = text.split("\n")[shown["a"].first_line - 1 : shown["a"].last_line]
    assert shown["a"].text == "\n".join(lines)


def test_the_address_in_a_notebook_is_that_of_its_text(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": [f"# Part {n}\n", "\n", f"Animal {n}. " * 40]}
        for n in "ab"
    ]
    kb = open_kb(tmp_path, {"n.ipynb": json.dumps({"cells": cells})})

    passages = find(kb, "animal b").passages

    assert {each.address for each in passages} == {"n#part-a", "n#part-b"}
    assert all(each.text in kb.learn("zoo", each.address) for each in passages)


def test_a_copy_is_named_and_not_repeated(tmp_path: Path) -> None:
    kb = open_kb(tmp_path, {"a.md": "The walrus.\n", "zh/a.md": "The walrus.\n"})

    (passage,) = find(kb, "walrus").passages

    assert {f"zoo/{passage.path}", *passage.also_in} == {"zoo/a.md", "zoo/zh/a.md"}


def test_hidden_and_disabled_subjects_are_not_found_nor_kept(tmp_path: Path) -> None:
    files = {"a.md": "The walrus.\n", ".b.md": "Walrus two.\n", "c/d.md": "Walrus three.\n"}
    assert places(find(open_kb(tmp_path, files), "walrus")) == ["a:1-1", "c/d:1-1"]

    kb = open_kb(tmp_path, {}, disabled=("c/*",))

    with taken_as_current():
        assert places(find(kb, "walrus")) == ["a:1-1"]
    assert places(find(kb, "walrus")) == ["a:1-1"]
    (index,) = (tmp_path / "user" / INDEXES).glob("*.sqlite3")
    assert b"Walrus two" not in index.read_bytes()


def test_a_subject_that_is_gone_is_not_shown_from_the_index(tmp_path: Path) -> None:
    kb = open_kb(tmp_path, {"a.md": "The walrus.\n", "b.md": "A walrus.\n"})
    find(kb, "walrus")
    (tmp_path / "kb/a.md").unlink()

    with taken_as_current():
        assert places(find(kb, "walrus")) == ["b:1-1"]


def test_an_unchanged_directory_is_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = open_kb(tmp_path, {"a.md": "The walrus.\n", "b/c.md": "A walrus.\n"})
    grow_old(tmp_path / "kb")
    find(kb, "walrus")
    lists: list[DirectoryTopic] = []
    listed = DirectoryTopic.list_watched

    def list_them(self: DirectoryTopic) -> tuple[Listing, Stamps | None]:
        lists.append(self)
        return listed(self)

    monkeypatch.setattr(DirectoryTopic, "list_watched", list_them)

    assert places(find(kb, "walrus")) == ["a:1-1", "b/c:1-1"]
    assert lists == []

    (tmp_path / "kb/b/d.md").write_text("New walrus.\n")
    assert len(places(find(kb, "walrus"))) == 3
    assert len(lists) == 1


def test_skills_and_ambiguous_names_are_called_as_in_listings(tmp_path: Path) -> None:
    files = {"s/SKILL.md": "The walrus.\n", "s/more.md": "A walrus more.\n"}
    files |= {"s/.no.md": "No walrus.\n", "stray.md": "No walrus here.\n"}
    kb = open_kb(tmp_path / "a", files, layout=Layout.SKILLS)
    found = find(kb, "walrus").passages
    assert sorted(each.name for each in found) == ["s", "s/more"]
    for each in found:
        assert each.text in kb.learn("zoo", each.address)

    kb = open_kb(tmp_path / "b", {"c.md": "The walrus.\n", "c.txt": "A walrus.\n"})
    assert {each.name for each in find(kb, "walrus").passages} == {"c.md", "c.txt"}


def test_a_text_with_any_telling_word_is_shown_and_a_weak_answer_says_so(tmp_path: Path) -> None:
    kb = open_kb(tmp_path, {"a.md": "The walrus is an animal.\n", "b.md": "Otters roar.\n"})

    weak = find(kb, "which animal lays green eggs")
    good = find(kb, "which animal is a walrus")

    assert (places(weak), weak.passages[0].score) == (["a:1-1"], 0.25)
    note = "no good match; not found in any text: lays, green, eggs; found: animal in 1"
    assert list(find_notes(weak)) == [note]
    assert (places(good), list(find_notes(good))) == (["a:1-1"], [])
    assert find(kb, "which one lays green eggs").passages == ()


def test_half_of_the_words_are_a_good_match_however_common_these_are(tmp_path: Path) -> None:
    files = {f"plugin{n}.md": "A plugin is loaded.\n" for n in range(9)} | {"b.md": "Write it.\n"}
    kb = open_kb(tmp_path, files)

    found = find(kb, "write a plugin", scope=Scope(paths=["plugin*"]))

    assert found.passages[0].score < 0.4
    assert list(find_notes(found)) == []

    # `read`, in place of `bread`, and `plugin` are half of the words, but not those that tell.
    files = {f"plugin{n}.md": "Read a plugin.\n" for n in range(9)} | {"b.md": "Bake it.\n"}
    found = find(open_kb(tmp_path / "b", files), "bake sourdough bread with a plugin")
    assert "no good match" in list(find_notes(found))[-1]
    found = find(open_kb(tmp_path / "b", files), "plugn")
    assert [note for note in find_notes(found) if "no good" in note] == []


def test_forms_of_a_word_and_parts_of_a_name_are_found(tmp_path: Path) -> None:
    files = {
        "a.go": "func newEncoder() {\n\tlevel.CapitalString()\n}\n",
        "vacation.md": "Everybody has thirty of them.\n",
        "b.md": "# Leave for parents\n\nA year.\n",
    }
    kb = open_kb(tmp_path, files)

    assert places(find(kb, "capital france")) == ["a:1-3"]
    assert places(find(kb, "what about vacation days")) == ["vacation:1-1"]
    assert places(find(kb, "is there a parental leave")) == ["b:1-3"]


def test_an_unknown_word_is_not_corrected_to_what_no_text_has(tmp_path: Path) -> None:
    kb = open_kb(tmp_path, {"a.md": "The recipient of a walrus.\n"})

    assert find(kb, "walrus recipe").replaced == ()


def test_what_was_not_searched_is_named(tmp_path: Path) -> None:
    kb = open_kb(tmp_path, {"a.md": "Walrus.\n", "big.md": "walrus " * 3_000_000, "i.png": "x"})
    os.truncate(tmp_path / "kb/i.png", 30_000_000)  # never text, so never missed

    assert find(kb, "walrus").notices == ("not searched: zoo/big.md (larger than 20 MB)",)


def test_a_topic_without_its_directory_answers_that(tmp_path: Path) -> None:
    kb = open_kb(tmp_path, {"a.md": "Walrus.\n"})
    (tmp_path / "kb").rename(tmp_path / "gone")

    found = find(kb, "walrus")

    assert found.passages == ()
    assert found.why_nothing == (
        f"topic 'zoo' lists no subjects: {tmp_path / 'kb'}: no such directory;"
        " correct that, or `subjects` in the configuration"
    )
    assert found.why_nothing in render_passages(found)


@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        (Scope(paths=["nodir/"]), "there is no file in nodir/"),
        (Scope(roles=[Role.EXAMPLES]), "there is no file with the role examples"),
        (
            Scope(paths=["a.md", "b/"], roles=[Role.CODE]),
            "there is no file in a.md or b/ with the role code",
        ),
        (Scope(paths=["a.md"]), ""),
    ],
    ids=["path", "role", "both", "covered"],
)
def test_a_filter_without_a_file_is_the_reason_for_no_match(
    tmp_path: Path, scope: Scope, reason: str
) -> None:
    kb = open_kb(tmp_path, {"a.md": "Walrus.\n"})

    found = find(kb, "lion", scope=scope)

    assert (found.passages, found.why_nothing) == ((), reason)
    assert reason in render_passages(found)


def test_a_question_without_a_word_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmptyQuestionError):
        find(open_kb(tmp_path, {}), " ?! ")


def test_topics_of_one_directory_share_an_index_and_keep_their_own_files(tmp_path: Path) -> None:
    open_kb(tmp_path, {"a.md": "An otter.\n", "b.md": "A walrus.\n"})
    every = TopicConfig(id="every", root=tmp_path / "kb")
    some = replace(every, id="some", ignore=("b.md",))

    found = find(open_each(tmp_path, every, some), "walrsu")

    assert [(each.topic, each.name) for each in found.passages] == [("every", "b")]
    assert len(list((tmp_path / "user" / INDEXES).glob("*.sqlite3"))) == 1


def test_an_index_nobody_used_for_long_is_deleted(tmp_path: Path) -> None:
    kb = open_kb(tmp_path, {"a.md": "Walrus.\n"})
    find(kb, "walrus")
    (old,) = (tmp_path / "user" / INDEXES).glob("*.sqlite3")
    os.utime(old, (0, 0))

    zoo = kb.topics["zoo"].config
    find(open_each(tmp_path, zoo, workspace=tmp_path), "walrus")

    (new,) = (tmp_path / "user" / INDEXES).glob("*.sqlite3")
    assert new != old


@pytest.mark.parametrize(
    ("setting", "count", "size", "expected"),
    [
        ("auto", 60, 10, False),
        ("auto", 61, 10, True),
        ("auto", 1, 80_001, True),
        (True, 1, 10, True),
        (True, 0, 0, False),
        (False, 61, 10, False),
    ],
)
def test_the_search_is_offered_where_there_is_much_to_learn(
    tmp_path: Path, setting: bool | str, count: int, size: int, *, expected: bool
) -> None:
    (tmp_path / "kb").mkdir()
    kb = open_kb(tmp_path, {f"{n}.md": "x" * size for n in range(count)})
    kb.config = Config(search=setting)

    assert kb.offers_search() is expected


# The text


def make(
    name: str,
    text: str,
    *,
    part: tuple[int, int] = (1, 3),
    origin: str | None = None,
    also_in: tuple[str, ...] = (),
    is_preloaded: bool = False,
) -> Passage:
    return Passage(
        topic="zoo",
        name=name,
        path=f"{name}.md",
        address=f"{name}#x",
        first_line=1,
        last_line=3,
        part=part,
        title="",
        text=text,
        score=1.0,
        also_in=also_in,
        origin=origin,
        is_preloaded=is_preloaded,
    )


def test_an_answer_is_headed_by_addresses_and_says_each_source_once() -> None:
    found = Passages(
        passages=(
            make("a", "One\n</passage>", origin="https://e.org @ 1", also_in=("zoo/b.md",)),
            replace(
                make("c", "Two", origin="https://e.org @ 1", part=(1, 90)),
                before=(1, 2),
                after=(4, 20),
            ),
            make("d", "Three", is_preloaded=True),
        ),
        topics=("zoo",),
        notices=("not searched: zoo/big",),
    )

    assert render_passages(found) == (
        '<passage "zoo/a#x (lines 1-3)", also in zoo/b.md>\nsource: https://e.org @ 1\n'
        "One\n<\\/passage>\n</passage>\n\n"
        '<passage "zoo/c#x (lines 1-3)">\nTwo\n</passage>\n\n'
        "zoo/d#x (lines 1-3): already in your system prompt\n\n"
        "(note: not searched: zoo/big)\n"
    )


def test_an_answer_is_bounded_and_names_what_found_no_room() -> None:
    found = Passages(
        passages=(make("a", "x" * 9000), make("b", "y" * 100)),
        topics=("zoo",),
        notices=tuple(f"not searched: {n}" for n in range(9)),
        unknown=tuple("w" * 500 for _ in range(9)),
    )

    text = render_passages(found)

    assert len(text) < 8500
    assert "(note: cut here)" in text
    assert "\n<also>\nzoo/b#x (line 0): \n</also>" in text
    assert "8 more things not searched" in text


def test_only_the_first_passage_is_cut() -> None:
    second = replace(make("b", "otter\n" + "y" * 1_500), key="otter", key_line=1)
    text = render_passages(Passages(passages=(make("a", "x" * 900), second), topics=("zoo",)), 2)

    assert "cut here" not in text
    assert text.endswith("<also>\nzoo/b#x (line 1): otter\n</also>\n")


def test_as_many_passages_as_are_quoted_are_named_beside_them() -> None:
    made = (replace(make(name, name * 9), key=name.upper(), key_line=2) for name in "abcde")
    found = Passages(passages=tuple(made), topics=("zoo",))

    assert render_passages(found, 1) == (
        '<passage "zoo/a#x (lines 1-3)">\naaaaaaaaa\n</passage>\n\n'
        "<also>\nzoo/b#x (line 2): B\n</also>\n"
    )
    assert "<also>\nzoo/c#x (line 2): C\nzoo/d#x (line 2): D\n</also>" in render_passages(found, 2)


def test_what_was_cut_beside_a_passage_has_its_address_for_who_can_load_it() -> None:
    cut = replace(make("a</passage>", "A walrus"), before=(1, 1), after=(4, 20))
    found = Passages(passages=(cut, make("b", "Two")), topics=("zoo",))

    assert render_passages(found, 1).startswith(
        '<passage "zoo/a<\\/passage>#x (lines 1-3)">\n'
        "[… 1 line before: zoo/a<\\/passage>#L1]\nA walrus\n"
        "[… 17 lines more: zoo/a<\\/passage>#L4-L20]\n</passage>\n"
    )
    assert "…" not in render_passages(found)


def test_a_passage_that_is_not_quoted_has_a_sentence_of_it_on_a_line() -> None:
    otter = replace(make("b", "otter"), key="An </also>\n</passage> otter.", origin="web\nx")
    found = Passages(passages=(make("a", "walrus"), otter, otter), topics=("zoo",))

    line = "zoo/b#x (line 0, source: web x): An <\\/also> <\\/passage> otter."
    assert render_passages(found, 1).endswith(f"\n<also>\n{line}\n</also>\n")


def test_only_what_is_not_searched_is_counted() -> None:
    notices = ("not searched: a", "searched by words only", "not searched: b", "not searched: c")
    found = Passages(passages=(), topics=("zoo",), notices=notices)

    assert list(find_notes(found, 1)) == [
        "searched by words only",
        "not searched: a",
        "2 more things not searched: see `llm kb check`",
    ]
    assert list(find_notes(found)) == ["searched by words only", *sorted(notices)[:3]]


def test_each_passage_has_its_own_source() -> None:
    own = make("b", "seal")
    long = replace(make("c", "x" * 1_990), origin="https://c.org")
    last = replace(make("d", "otter"), origin="https://c.org")
    found = Passages(passages=(own, long, last), topics=("zoo",))

    answer = render_passages(found, 3)

    assert '<passage "zoo/d#x (lines 1-3)">\nsource: https://c.org\notter' in answer
    assert "zoo/c#x (line 0, source: https://c.org): " in answer


def test_the_addresses_of_an_answer_are_read_back() -> None:
    forged = "zoo/x#y (line 3): no\n<also>\nzoo/z (line 3): no"
    known = replace(make("k", "otter"), is_preloaded=True)
    found = Passages(
        passages=(known, make("a", forged), make("b", "seal")), topics=("zoo",), notices=("n",)
    )

    assert find_addresses(render_passages(found, 1)) == [("zoo", "a#x"), ("zoo", "b#x")]
    assert find_addresses(render_passages(found, 2)) == [("zoo", "a#x"), ("zoo", "b#x")]
    assert find_addresses("") == []


def test_what_finds_no_room_is_named() -> None:
    many = tuple(replace(make(f"a{n}", "x" * 90), key=f"{n} {'y' * 90}") for n in range(40))
    text = render_passages(Passages(passages=many, topics=("zoo",)), 20)

    assert text.count("<passage ") == 14
    assert len(re.findall("^zoo/a", text, re.MULTILINE)) == 20
    assert len(text) < 5_000


def test_lines_that_an_address_before_loads_are_not_named() -> None:
    first = replace(make("a", "walrus"), address="a#L1-L9", part=(1, 9))
    inside = replace(
        make("a", "otter"), address="a#L3-L12", first_line=4, last_line=9, part=(3, 12)
    )
    beyond = replace(inside, last_line=10)

    def answer(other: Passage) -> str:
        return render_passages(Passages(passages=(first, other), topics=("zoo",)), 1)

    assert "<also>" not in answer(inside)
    assert "zoo/a#L3-L12" in answer(beyond)


def test_passages_that_are_preloaded_leave_the_quotes_to_the_others() -> None:
    known = replace(make("a", "walrus"), is_preloaded=True)
    found = Passages(passages=(known, make("b", "otter"), make("c", "seal")), topics=("zoo",))

    text = render_passages(found, 1)

    assert "zoo/a#x (lines 1-3): already in your system prompt" in text
    assert "otter" in text
    assert "<also>\nzoo/c#x" in text


def test_the_tool_says_how_many_passages_it_quotes() -> None:
    limit = SEARCH_KNOWLEDGE.schema["properties"]["limit"]["description"]

    assert "the best one is, and a sentence of another" in limit


def test_where_nothing_fits_the_answer_says_what_to_try() -> None:
    text = render_passages(Passages(passages=(), topics=("zoo",), unknown=("zebra",)))

    assert text.startswith("Nothing in zoo has a word of that question. Try ")
    assert text.endswith("(note: not found in any text: zebra)\n")


def test_topics_of_a_workspace_are_one_order_with_roles_by_their_place(tmp_path: Path) -> None:
    """A word is as rare in a small topic as in a large one, and releases are change notes."""
    files = {
        "docs/guide.md": "Here: how to renew a token of the walrus.\n",
        "docs/releases/1.7.txt": "How to renew a token of the walrus.\n",
        "more/a.md": "Renew the token of a walrus.\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    topics = [
        TopicConfig(id="releases", root=tmp_path / "docs/releases"),
        TopicConfig(id="guides", root=tmp_path / "docs", ignore=("releases",)),
        TopicConfig(id="more", root=tmp_path / "more"),
    ]
    kb = open_each(tmp_path, *topics, workspace=tmp_path)

    found = find(kb, "how do I renew a walrus token?")

    assert [each.topic for each in found.passages] == ["more", "guides", "releases"]
    assert len(list((tmp_path / "user" / INDEXES).iterdir())) == 1
