"""Decoding TOML, also hostile TOML made to take very long."""

from __future__ import annotations

import pytest

from llm_kb.files.fields import TomlError, decode_toml

SIZE = 1_000_000
LONG = "a." * (SIZE // 2)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param(f'a = "{"." * 200}"', {"a": "." * 200}, id="dots in a string"),
        pytest.param(f"a = '{'.' * 200}'", {"a": "." * 200}, id="in a literal string"),
        pytest.param(f'a = "\\"{"." * 200}"', {"a": '"' + "." * 200}, id="after an escape"),
        pytest.param(
            f'a = """\n"x" {"." * 200}\n"""', {"a": f'"x" {"." * 200}\n'}, id="in many lines"
        ),
        pytest.param(
            f"a = '''\n'x' {'.' * 200}\n'''", {"a": f"'x' {'.' * 200}\n"}, id="literal, many lines"
        ),
        pytest.param(f"# {'.' * 200}\na = 1", {"a": 1}, id="in a comment"),
    ],
)
def test_dots_that_are_no_key_pass(text: str, document: dict[str, object]) -> None:
    assert decode_toml(text) == document


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{LONG}a = 1", id="key"),
        pytest.param(f"[{LONG}a]", id="header"),
        pytest.param(f"x = {{{LONG}a = 1}}", id="inline table"),
        pytest.param('"a".' * (SIZE // 4) + "a = 1", id="quoted key"),
        pytest.param(('"\u2028".' + "a." * 90) * 5000 + "a = 1", id="lines only to Unicode"),
        pytest.param(f"x = '''a'''\n{LONG}a = 1", id="after a string"),
    ],
)
def test_a_key_of_endless_parts_is_refused_at_once(text: str) -> None:
    with pytest.raises(TomlError, match="it has a key of more than 20 parts"):
        decode_toml(text)


@pytest.mark.parametrize(
    "unit", ['"', "'", '"""', "'''", '\\"', '"\\', "#", '"""\\', "'\"", "\"''"]
)
def test_open_strings_do_not_make_the_scan_slow(unit: str) -> None:
    text = "." * 200 + unit * (SIZE // len(unit))
    with pytest.raises(TomlError):
        decode_toml(text)


@pytest.mark.parametrize("unit", ["[", "{a = ", "a = ["])
def test_deep_nesting_is_an_error(unit: str) -> None:
    with pytest.raises(TomlError):
        decode_toml("a = " + unit * 100_000)
