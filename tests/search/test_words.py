"""The words of texts: found in each script, wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.question import find_stems, split_identifiers, split_words
from llm_kb.texts.folding import fold
from tests.search.folders import search

# A word of each script, its first and its last letter, and others to stand beside it.
SCRIPTS = {
    "Han": ("部署", "部", "署", "请使用"),
    "hiragana": ("みかん", "み", "ん", "たべる"),
    "katakana": ("サーバー", "サ", "ー", "ノテスト"),
    "half-width katakana": ("ﾎｽﾄ", "ﾎ", "ﾄ", "ﾃｽﾄｶﾝｷｮｳ"),
    "Hangul": ("설치", "설", "치", "에서"),
    "Thai": ("ข้อมูล", "ข้", "ล", "การตั้งค่า"),
    "Lao": ("ແມ່ຂ່າຍ", "ແ", "ຍ", "ເຄື່ອງ"),
    "Khmer": ("ម៉ាស៊ីន", "ម៉ា", "ន", "មេរៀន"),
    "Burmese": ("ပရို", "ပ", "ရို", "ဂရမ်"),
}
NEIGHBOURS = ("Docker", "8080", "C++", "v2", "(", "。")
PLACES = ("{0}{1}", "{1}{0}", "{1}{0}{1}", "{0}")


def cases() -> list[tuple[str, str]]:
    """Return texts and the words that must be found in them."""
    found = []
    for word, first, last, others in SCRIPTS.values():
        for beside in (others, *NEIGHBOURS):
            for place in PLACES:
                text = place.format(word, beside)
                found += [(text, each) for each in (word, first, last)]
                if beside != "C++" and place != "{0}" and beside.isalnum():
                    found.append((text, beside))
    return found


def test_each_word_is_found_at_each_position_beside_each_neighbour(tmp_path: Path) -> None:
    texts = list(dict.fromkeys(text for text, _ in cases()))
    (tmp_path / "kb").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / f"kb/{number}.txt").write_text(f"x\n\n{text}\n", encoding="utf-8")
    found = {
        word: {hit.text for hit in search([tmp_path / "kb"], word, limit=1_000).hits}
        for word in dict.fromkeys(word for _, word in cases())
    }
    missed = [(text, word) for text, word in cases() if f"x\n\n{text}\n" not in found[word]]
    assert missed == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("怎么用 Docker", "docker"),
        ("このREADMEを読む", "readme"),
        ("GitHubのリポジトリをcloneする", "clone"),
        ("监听8080端口", "8080"),
        ("升级到v2版本", "v2"),
        ("使用C++编写", "c++"),
        ("ใช้Dockerบนเครื่อง", "docker"),
        ("ｻｰﾊﾞｰの起動", "サーバー"),
        ("サーバー", "ｻｰﾊﾞｰ"),
        ("คู่มือการตั้งค่าฐานข้อมูลสำหรับผู้เริ่มต้น", "ฐานข้อมูล"),
    ],
)
def test_words_in_sentences(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text(f"# x\n\n{text}\n", encoding="utf-8")
    assert [hit.path for hit in search([tmp_path / "kb"], word).hits] == ["a.md"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("使用Docker部署", [["使", "用"], ["docker"], ["部", "署"]]),
        ("ข้อมูล 12", [["ข้", "อ", "มู", "ล"], ["12"]]),
        ("get_default, naïve", [["get"], ["default"], ["naive"]]),
        ("", []),
    ],
)
def test_split_words(text: str, words: list[list[str]]) -> None:
    assert list(split_words(fold(text))) == words


def test_the_parts_of_identifiers() -> None:
    assert split_identifiers("getDefault of HTTPServer") == "get Default HTTP Server"


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("or Parsing", True),
        ("reparse sparse", False),
        ("reparse, parsed", True),
        ("getParser", True),
        ("HTTPParser", True),
        ("a_parse", True),
        ("SPARSE", False),
        ("İ parse", True),
        ("C++11 parsE", True),
        ("使用parse部署", True),
        ("", False),
    ],
)
def test_find_stems(text: str, *, is_found: bool) -> None:
    assert find_stems(text, ["pars", "gone"]) == (["pars"] if is_found else [])


def test_in_a_script_without_spaces_a_word_begins_anywhere() -> None:
    assert find_stems("如何部署", ["部署", "何", "署何"]) == ["部署", "何"]


@given(st.text(), st.lists(st.from_regex(r"\w+", fullmatch=True)))
def test_stems_that_are_found_are_in_the_text(text: str, stems: list[str]) -> None:
    assert all(stem in fold(text) for stem in find_stems(text, stems))
