"""The output of commands for any content."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm_kb.terminal import output
from llm_kb.texts.safe import UNUSABLE

texts = st.text(st.characters(exclude_categories=[]) | st.sampled_from("\x9b\u202e\U000e0041\n"))
values = st.recursive(texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values)
def test_json_says_the_same_and_holds_no_code(
    capfdbinary: pytest.CaptureFixture[bytes], value: object
) -> None:
    for show in (output.show_json,):
        show(value)
        printed = capfdbinary.readouterr().out.decode()
        assert set(UNUSABLE.findall(printed)) == {"\n"}
        assert json.loads(printed) == json.loads(json.dumps(value))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
def test_a_document_may_have_any_encoding_of_json(
    capfdbinary: pytest.CaptureFixture[bytes], encoding: str
) -> None:
    output.show_json_document('["\x9b日本"]\n'.encode(encoding))
    assert capfdbinary.readouterr().out.decode() == '["\\u009b日本"]\n'
