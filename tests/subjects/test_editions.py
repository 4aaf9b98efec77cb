"""Versions and languages are recognized by the paths of pages alone."""

from __future__ import annotations

import pytest

from llm_kb.subjects.editions import find_editions, find_language, find_translations


@pytest.mark.parametrize(
    ("paths", "editions"),
    [
        pytest.param(["a", "b", "1.x/a", "v2/a"], {"1.x/": "version", "v2/": "version"}, id="old"),
        pytest.param(["stable/a", "latest/a", "1.0/a"], {"latest/": "version", "1.0/": "version"},
                     id="the stable one"),
        pytest.param(["1.9/a", "1.10/a"], {"1.9/": "version"}, id="the newest"),
        pytest.param(["en/a", "fr/a", "zh-cn/a"], {"fr/": "language", "zh-cn/": "language"},
                     id="English"),
        pytest.param(["en/a", "en/b", "en/c", "ja/a", "zh-cn/a"],
                     {"ja/": "language", "zh-cn/": "language"}, id="few pages are translated"),
        pytest.param(["docs/a", "docs/next/a", "fr/docs/a", "fr/docs/next/a"],
                     {"docs/next/": "version", "fr/": "language", "fr/docs/next/": "version"},
                     id="both"),
        pytest.param(["cs/lexer", "cs/parser", "py/lexer"], {}, id="code, half of it twice"),
        pytest.param(["go/", "", "is/", "id/index.html"], {}, id="front pages say nothing"),
        pytest.param(["pt-BR/a", "zh-Hans/a", "pt/a"], {"pt-BR/": "language", "pt/": "language"},
                     id="regions and scripts"),
        pytest.param(["uv-auth/a", "uv-fs/a", "is-odd/a", "de-core/a"], {}, id="packages"),
        pytest.param(["2023/01/a", "2024/01/a"], {}, id="years"),
        pytest.param(["release/1.0", "release/1.1"], {}, id="pages, not directories"),
    ],
)  # fmt: skip
def test_an_edition_repeats_pages(paths: list[str], editions: dict[str, str]) -> None:
    assert find_editions(paths) == editions


@pytest.mark.parametrize(
    ("paths", "languages"),
    [
        pytest.param(["docs/en/docs/a.md", "docs/en/b.md", "docs/es/docs/a.md", "docs/em/b.md"],
                     ["docs/em/", "docs/es/"], id="beside English"),
        pytest.param(["docs/a.md", "docs/b.md", "docs/zh-CN/a.md", "docs/zh-CN/b.md"],
                     ["docs/zh-CN/"], id="below the documentation"),
        pytest.param(["docs/a.md", "docs/b.md", "docs/go/a.md", "docs/go/b.md"], [],
                     id="a language for programs"),
        pytest.param(["examples/README.md", "examples/pl/README.md", "examples/go/README.md"], [],
                     id="a README alone"),
        pytest.param(["docs/de/a.md", "docs/de/b.md", "docs/fr/a.md", "docs/fr/b.md"], ["docs/de/"],
                     id="one of two stays"),
        pytest.param([f"docs/{name}/{page}.md" for page in "ab"
                      for name in ("de-DE", "es_419", "fr", "ja-JP", "zh-Hans")],
                     ["docs/de-DE/", "docs/es_419/", "docs/fr/", "docs/ja-JP/"],
                     id="never all of them"),
        pytest.param([f"docs/{name}/{page}.md" for name in ("en-US", "es-ES", "fr-FR", "ja-JP",
                      "zh-CN") for page in "ab"],
                     ["docs/es-ES/", "docs/fr-FR/", "docs/ja-JP/", "docs/zh-CN/"],
                     id="English of a region"),
        pytest.param(["en-GB/a.md", "en/a.md", "en/b.md", "zh/a.md"], ["en-GB/", "zh/"],
                     id="one English of two"),
        pytest.param(["EN_US/a.md", "sr@latin/a.md", "pt-br/a.md", "zh_Hant_TW/a.md", "fil/a.md",
                      "em/a.md", "CN/a.md"],
                     ["CN/", "em/", "fil/", "pt-br/", "sr@latin/", "zh_Hant_TW/"], id="spellings"),
        pytest.param([f"src/main/resources/assets/mod/doc/{name}/{page}.md"
                      for name in ("en_us", "de_de") for page in "ab"],
                     ["src/main/resources/assets/mod/doc/de_de/"], id="any depth"),
        pytest.param(["a.md", "b.md", "en/a.md", "en/b.md", "fr/a.md"], ["fr/"],
                     id="English beside pages in another language"),
        pytest.param(["README.md", *(f"i18n/{name}/{page}.md" for name in ("fr", "ja")
                                     for page in "abc")], ["i18n/fr/"], id="only translations"),
        pytest.param(["docs/a.md", "i18n/fr/x/current/b.md", "i18n/en/c.md", "i18n/fr.json"],
                     ["i18n/fr/"], id="a directory for translations"),
        pytest.param(["en/one.md", "de/eins.md", "fr/un.md", "cs/tri.md", "es/x.md", "go/y.md"],
                     ["cs/", "de/", "es/", "fr/", "go/"], id="names are translated too"),
        pytest.param(["en/a.md", "de/b.md", "go/c.md", "cs/d.md"], [], id="few of them"),
        pytest.param(["a.md", "b.md", *(f"{name}/{page}" for name in ("de", "fr", "ja", "tr")
                                        for page in ("a.md", "b.md")), "es/uno.md", "go/c.md"],
                     ["de/", "es/", "fr/", "ja/", "tr/"], id="beside translations of the top"),
        pytest.param(["src/it/a.py", "src/a.py", "src/it/b.py", "src/b.py"], [], id="code"),
        pytest.param(["de/a.md", "a.md", "de/b.md", "b.md", "de/img/c.png"], ["de/"], id="the top"),
    ],
)  # fmt: skip
def test_a_translation_is_told_from_the_paths_of_a_repository(
    paths: list[str], languages: list[str]
) -> None:
    assert list(find_translations(paths)) == languages


@pytest.mark.parametrize("preferred", ["de", "pt"])
def test_without_english_the_preferred_language_stays(preferred: str) -> None:
    paths = [f"docs/{name}/{page}.md" for name in ("de", "fr", "pt-BR", "zh") for page in "ab"]
    names = {find_language(path.split("/")[1]) for path in find_translations(paths, preferred)}
    assert names == {"de", "fr", "pt", "zh"} - {preferred}


@pytest.mark.parametrize(
    ("name", "language"),
    [("pt-BR", "pt"), ("zh_Hans", "zh"), ("sr@latin", "sr"), ("EN-us", "en"), ("de_AT.UTF-8", "de"),
     ("jp", "ja"), ("zh-Hant-TW", "zh"), ("uv-auth", ""), ("is-odd", ""), ("docs", ""), ("v1", "")],
)  # fmt: skip
def test_a_language_has_many_names(name: str, language: str) -> None:
    assert find_language(name) == language
