"""Versions and languages are recognized by the paths of pages alone."""

from __future__ import annotations

import pytest

from llm_kb.subjects.editions import (
    find_editions,
    find_language,
    find_translations,
    rank_versions,
)


@pytest.mark.parametrize(
    ("paths", "left_out"),
    [
        pytest.param("a b 1.x/a v2/a", "1.x/ v2/", id="below the pages themselves"),
        pytest.param("stable/a latest/a 1.0/a", "1.0/ latest/", id="the stable one stays"),
        pytest.param("1.9/a 1.10/a dev/a", "1.9/ dev/", id="the newest stays"),
        pytest.param("d/i.md d/v1/i.md d/v1/a.md d/v1/b.md d/v2/i.md d/v2/a.md d/v2/b.md",
                     "d/v1/", id="the newest stays though one page is above it"),
        pytest.param("2023/01/a 2024/01/a", "", id="years"),
        pytest.param("release/1.0 release/1.1", "", id="pages, not directories"),
        pytest.param("api/v1/users api/v2/orders", "", id="other pages"),
        pytest.param("en/a fr/a zh-cn/a", "fr/ zh-cn/", id="English stays"),
        pytest.param("en/a en/b en/c ja/a zh-cn/a", "ja/ zh-cn/", id="few pages are translated"),
        pytest.param("docs/a docs/next/a fr/docs/a fr/docs/next/a",
                     "docs/next/ fr/ fr/docs/next/", id="versions and languages"),
        pytest.param("cs/lexer cs/parser py/lexer", "", id="code, half of it twice"),
        pytest.param("go/ is/ id/index.html", "", id="front pages say nothing"),
        pytest.param("uv-auth/a uv-fs/a is-odd/a de-core/a", "", id="packages"),
        pytest.param("docs/a.md docs/b.md docs/zh-CN/a.md docs/zh-CN/b.md", "docs/zh-CN/",
                     id="below the documentation"),
        pytest.param("docs/a.md docs/b.md docs/go/a.md docs/go/b.md", "",
                     id="a language for programs"),
        pytest.param("docs/de/a.md docs/de/b.md docs/fr/a.md docs/fr/b.md", "docs/de/",
                     id="one of two stays"),
        pytest.param("en-GB/a.md en/a.md en/b.md zh/a.md", "en-GB/ zh/", id="one English of two"),
        pytest.param("EN_US/a sr@latin/a pt-br/a zh_Hant_TW/a CN/a",
                     "CN/ pt-br/ sr@latin/ zh_Hant_TW/", id="spellings"),
        pytest.param("a.md b.md en/a.md en/b.md fr/a.md", "fr/",
                     id="English beside pages in another language"),
        pytest.param("docs/a.md i18n/fr/x/current/b.md i18n/en/c.md", "i18n/fr/",
                     id="a directory for translations"),
        pytest.param("README.md i18n/fr/a.md", "i18n/fr/", id="no English there"),
        pytest.param("en/one.md de/eins.md fr/un.md cs/tri.md go/y.md", "cs/ de/ fr/",
                     id="names are translated too"),
        pytest.param("en/a.md de/b.md go/c.md cs/d.md", "", id="few of them"),
        pytest.param("a b de/a de/b fr/a fr/b ja/a tr/b es/uno go/c", "de/ es/ fr/ ja/ tr/",
                     id="beside several translations"),
        pytest.param("README.md README.de.md README-fr.md README.zh-CN.md",
                     "README-fr.md README.de.md README.zh-CN.md", id="a page in languages"),
        pytest.param("index.en-US.md index.zh-CN.md", "index.zh-CN.md", id="English of a region"),
        pytest.param("a.de.md a.fr.md", "a.de.md", id="no page without a language"),
        pytest.param("log-in.md log.md TIME_OUT_MS.md TIME_OUT.md", "",
                     id="names that end like one"),
        pytest.param("pages/a.md pages/b.md pages.de/a.md", "pages.de/", id="named directories"),
    ],
)  # fmt: skip
def test_editions_repeat_pages(paths: str, left_out: str) -> None:
    assert sorted(find_editions(paths.split())) == left_out.split()


def test_translations_are_those_of_prose() -> None:
    pages = ["de/a.md", "a.md", "de/b.md", "b.md", "de/c.png", "v1/a.md"]
    code = ["src/it/a.py", "src/a.py", "src/it/b.py", "src/b.py"]
    assert find_translations([*pages, *code]) == {"de/": ("language", "de")}


@pytest.mark.parametrize(
    ("name", "language"),
    [("pt-BR", "pt"), ("zh_Hans", "zh"), ("sr@latin", "sr"), ("EN-us", "en"), ("es-419", "es"),
     ("jp", "ja"), ("zh-Hant-TW", "zh"), ("uv-auth", ""), ("is-odd", ""), ("docs", ""), ("v1", "")],
)  # fmt: skip
def test_a_language_has_many_names(name: str, language: str) -> None:
    assert find_language(name) == language


def test_pages_are_ranked_by_the_versions_in_their_paths() -> None:
    pages = ["v23.2/a.md", "dev/a.md", "v26.10/a.md", "a.md", "v26.3/a.md", "stable/a.md"]
    assert sorted(pages, key=rank_versions) == [
        "dev/a.md", "v23.2/a.md", "v26.3/a.md", "v26.10/a.md", "stable/a.md", "a.md",
    ]  # fmt: skip
