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


FORMS = """
    status/statuses; alias/aliases; canvas/canvases; lens/lenses; bias/biases; radius/radiuses;
    bus/buses; virus/viruses; bonus/bonuses; corpus/corpora; index/indices; matrix/matrices;
    vertex/vertices; axis/axes; appendix/appendices; criterion/criteria; child/children;
    half/halves; leaf/leaves; knife/knives; shelf/shelves; person/people; foot/feet; datum/data;
    medium/media; phenomenon/phenomena; run/ran; write/wrote; write/written; send/sent;
    build/built; choose/chosen; begin/began; break/broken; hide/hidden; freeze/frozen;
    throw/thrown; bind/bound; lose/lost; get/got; go/went; buy/bought; teach/taught;
    catch/caught; keep/kept; forget/forgotten; steal/stolen; wake/woke; dependency/dependencies;
    deny/denies; deny/denied; quiz/quizzes; process/processing; configure/configuration;
    authenticate/authentication; deploy/deployment; migrate/migrations; permit/permission;
    decide/decision; delete/deletion; retry/retries; retry/retrying; try/tried; die/dying;
    lie/lying; tie/tying; panic/panicked; log/logged; commit/committed; cancel/cancelled;
    label/labelled; travel/travelling; color/colour; optimize/optimise; behavior/behaviour;
    center/centre; license/licence; analyze/analyse; gray/grey; catalog/catalogue;
    dialog/dialogue; email/e-mail; online/on-line; filename/file-name; filename/filename;
    timestamp/time-stamp; setup/set-up; login/log-in; website/web-site; database/data-base;
    plugin/plug-in; codebase/code-base; iso8601/ISO-8601; utf8/UTF-8; sha256/SHA-256;
    http2/HTTP|2; ipv6/IPv6; oauth2/OAuth-2.0; python3/Python-3; k8s/Kubernetes; don't/dont;
    can't/cannot; user's/users; naive/naïve; café/cafe; 1,000/1000; 1.0/1; 10ms/10-ms; 5GB/5-GB
"""
"""Words and other forms of them, both with `_` for a space and `|` for a slash."""


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


def test_forms_of_a_word_meet(tmp_path: Path) -> None:
    words = [each.strip().split("/") for each in FORMS.replace("_", " ").split(";")]
    pairs = [[each.replace("|", "/") for each in pair] for pair in words]
    looked_up = [pair for one, other in pairs for pair in ((one, other), (other, one))]
    missed = []
    for number, (text, word) in enumerate(looked_up):
        place = tmp_path / f"kb{number}"
        place.mkdir()
        (place / "a.md").write_text(f"# x\n\nHere is {text} in it.\n", encoding="utf-8")
        hits = search([place], word).hits
        missed += [] if hits else [(text, word)]
    assert missed == [("can't", "cannot"), ("cannot", "can't")]


def test_a_word_that_several_texts_have_is_found_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    for number in range(3):
        (tmp_path / f"kb/{number}.md").write_text(f"# x{number}\n\nan alias {number}\n")
    (tmp_path / "kb/other.md").write_text("# y\n\nsome aliases\n")
    (tmp_path / "kb/file.md").write_text("# z\n\nthe file-name\n")
    found = {
        word: search([tmp_path / "kb"], word).hits for word in ("alias", "aliases", "filename")
    }
    assert {word: sorted(hit.path for hit in hits) for word, hits in found.items()} == {
        "alias": ["0.md", "1.md", "2.md"],
        "aliases": ["0.md", "1.md", "2.md", "other.md"],
        "filename": ["file.md"],
    }
