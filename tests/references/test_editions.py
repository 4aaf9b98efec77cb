"""Versions and languages are told from the paths of pages alone."""

from __future__ import annotations

import pytest

from llm_kb.references.plan.editions import find_editions


@pytest.mark.parametrize(
    ("paths", "editions"),
    [
        pytest.param(["a", "b", "1.x/a", "v2/a"], {"1.x/": "version", "v2/": "version"}, id="old"),
        pytest.param(["stable/a", "latest/a", "1.0/a"], {"latest/": "version", "1.0/": "version"},
                     id="the stable one"),
        pytest.param(["1.9/a", "1.10/a"], {"1.9/": "version"}, id="the newest"),
        pytest.param(["en/a", "fr/a", "zh-cn/a"], {"fr/": "language", "zh-cn/": "language"},
                     id="English"),
        pytest.param(["docs/a", "docs/next/a", "fr/docs/a", "fr/docs/next/a"],
                     {"docs/next/": "version", "fr/": "language", "fr/docs/next/": "version"},
                     id="both"),
        pytest.param(["cs/lexer", "cs/parser", "py/lexer"], {}, id="code, half of it twice"),
        pytest.param(["go/", "", "is/", "id/index.html"], {}, id="front pages say nothing"),
        pytest.param(["2023/01/a", "2024/01/a"], {}, id="years"),
        pytest.param(["release/1.0", "release/1.1"], {}, id="pages, not directories"),
    ],
)  # fmt: skip
def test_an_edition_repeats_pages(paths: list[str], editions: dict[str, str]) -> None:
    assert find_editions(paths) == editions
