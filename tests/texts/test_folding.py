"""The letters that an index and a question share."""

from __future__ import annotations

import sqlite3
import sys
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.texts.folding import MARKS, WORD, compose, find_sources, fold
from tests.conftest import RunLlm

# Language, a word that must be found in either form, and one that must not meet another.
WORDS = [
    ("de", "Größenänderung", ("Fenster", "Finsternis")),
    ("fr", "déploiement", ("pécheur", "pêchons")),
    ("es", "configuración", ("camión", "camisa")),
    ("vi", "tiếng", ("tiếng", "tường")),
    ("el", "εγκατάσταση", ("έκδοση", "έκθεση")),
    ("ru", "йод", ("йод", "иод")),
    ("ko", "설치가", ("가다", "나다")),
    ("ja", "ガイド", ("かぎ", "がき")),
    ("hi", "हिन्दी", ("कम", "काम")),
]
Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")


@pytest.mark.parametrize(("language", "word", "pair"), WORDS, ids=[each[0] for each in WORDS])
def test_forms_meet_and_other_words_do_not(
    language: str, word: str, pair: tuple[str, str], tmp_path: Path, run_llm: RunLlm
) -> None:
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.kb]\nsubjects = "kb"\nintroduction = "x"\n')
    (tmp_path / "kb").mkdir()
    for form in FORMS:
        text = unicodedata.normalize(form, f"# P\n\n{word}\n")
        (tmp_path / f"kb/{form}.md").write_text(text, encoding="utf-8")
        text = unicodedata.normalize(form, f"# Q\n\n{pair[0]}\n")
        (tmp_path / f"kb/other-{form}.md").write_text(text, encoding="utf-8")
    for form in FORMS:
        found = run_llm(["kb", "search", unicodedata.normalize(form, word)]).stdout
        # Both are one text for readers, but two for a search.
        assert "kb/NFC" in found, language
        assert "kb/NFD" in found, language
        missed = run_llm(["kb", "search", unicodedata.normalize(form, pair[1])])
        assert "other" not in missed.stdout, language


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        pytest.param("Straße", "strasse", id="sharp s"),
        pytest.param("con\ufb01gure the of\ufb01ce", "configure the office", id="ligatures"),
        pytest.param("Ａｐａｃｈｅ ２", "apache 2", id="full width"),
        pytest.param("docu\xadment data\u200bbase\ufeff", "document database", id="unseen"),
        pytest.param("\x1b[1;31mkookaburra\x1b[0m", "kookaburra", id="colours"),
        pytest.param("Ύδωρ ΟΔΟΣ ὕδωρ", "υδωρ οδοσ υδωρ", id="Greek"),
        pytest.param("Йод їжак", "йод їжак", id="Cyrillic keeps its marks"),
        pytest.param("Ёлка", "елка", id="Russian without its dots"),
        pytest.param("IŞIK ışık İş", "isik isik is", id="Turkish"),
        pytest.param(
            "Łącznik Đorđe størrelse Œuvre", "lacznik dorde storrelse oeuvre", id="strokes"
        ),
        pytest.param("أحمد إلى آلة مؤسسة قائمة", "احمد الي اله موسسه قايمه", id="Arabic letters"),
        pytest.param("کتاب‌های فارسی", "كتابهاي فارسي", id="Persian letters"),
        pytest.param("١٢ ۱۲ १२ ๑๒", "12 12 12 12", id="digits"),
        pytest.param("за\u0301мок \u0439 \u0453 \u045d", "замок й ѓ ѝ", id="Cyrillic stress"),
        pytest.param("עִבְרִית שָׁלוֹם", "עברית שלום", id="Hebrew points"),
        pytest.param("العربيّة مـــرحبا آلة أَمر", "العربيه مرحبا اله امر", id="Arabic vowels"),
        pytest.param("ｶﾞｲﾄﾞ", "ガイド", id="half width"),
        pytest.param("Java™ x² ½", "java™ x² ½", id="signs stay"),
        pytest.param("C++, C# and F#", "cplusplus, csharp and fsharp", id="names with signs"),
        pytest.param("C++17 in .NET 8", "cplusplus 17 in dotnet 8", id="versions of them"),
        pytest.param(
            "c #x ASP.NET page.c#L1 libc++ c++++",
            "c #x asp.net page.c#l1 libc++ c++++",
            id="others",
        ),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded
    assert fold(folded) == folded


@given(st.text())
def test_every_form_of_a_text_folds_alike(text: str) -> None:
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))
    assert fold(compose(text)) == fold(text)


@given(st.text(st.sampled_from("aA ßéо\u0301\u0306йｶﾞ\xadC+#.net\x1b[0m1क\u093f\ufb01")))
def test_every_letter_has_a_source_in_order(text: str) -> None:
    folded = fold(text)
    sources = find_sources(text, folded)
    assert len(sources) == len(folded)
    assert list(sources) == sorted(sources)
    assert all(0 <= at < len(text) for at in sources)


def test_sources_are_exact_around_what_changes_its_length() -> None:
    text = "Die Straße und das Of\ufb01ce: C++11 und c++a war cafe\u0301 dort"
    folded = fold(text)
    sources = find_sources(text, folded)
    for word in ("die", "und", "das", "war", "cafe", "dort"):
        at = sources[folded.index(word)]
        assert text[at : at + len(word)].lower() == word
    assert text[sources[folded.index("cplusplus")]] == "C"


def test_words_are_those_of_the_index() -> None:
    """Of each script a word with all its marks is one word for both."""
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (word, tokenize ="
        " \"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'\")"
    )
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row')")
    texts = ["हिन्दी", "ภาษาไทย", "தமிழ்", "العربيّة", "עִבְרִית", "မြန်မာ", "ខ្មែរ", "বাংলা", "తెలుగు"]
    connection.executemany("INSERT INTO words VALUES (?)", [(fold(text),) for text in texts])
    terms = {term for (term,) in connection.execute("SELECT term FROM terms")}
    connection.close()
    assert terms == set(map(fold, texts))
    assert [WORD.findall(fold(text)) for text in texts] == [[fold(text)] for text in texts]


def test_marks_are_marks() -> None:
    marks = {c for c in map(chr, range(sys.maxunicode)) if WORD.fullmatch(f"a{c}")}
    assert "\u0964" not in marks
    assert len(MARKS) < 600
