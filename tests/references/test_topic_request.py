"""Requests of models and operators are checked before they have any effect."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.errors import TopicFileError
from llm_kb.references.topic.topic_file import parse_changes, parse_request, read_body


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        pytest.param("# A\n\n\tb\r\nc", "# A\n\n\tb\nc", id="line ends and tabs"),
        pytest.param("a\x1b[31mb", "a[31mb", id="ESC"),
        pytest.param("a\x7fb", "ab", id="DEL"),
        pytest.param("a\x9b2Jb", "a2Jb", id="CSI"),
        pytest.param("gpj\u202eexe\u2066.\u061c", "gpjexe.", id="what turns text round"),
        pytest.param("a\u200bb\ufeff\U000e0041", "ab", id="what nobody sees"),
        pytest.param("a\u2028b\u2029c\x85d", "a\nb\nc\nd", id="other ends of a line"),
        pytest.param("a\ud800b", "ab", id="no character"),
        pytest.param("\u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f4bb",
                     "\u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f4bb",
                     id="the joiners of scripts and emoji"),
    ],
)  # fmt: skip
def test_a_description_keeps_what_can_be_read(body: str, kept: str) -> None:
    assert read_body(body) == kept


@given(st.text())
def test_a_description_can_be_shown_and_written(body: str) -> None:
    cleaned = read_body(body)
    assert cleaned.encode().decode() == cleaned
    left = {c for c in cleaned if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}}
    assert left <= {"\n", "\t", "\u200c", "\u200d"}
    assert read_body(cleaned) == cleaned


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "url", "paths", "role"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = ["title", "body", "sources", "tags", "max_age_days", "trust_score", "status", "mine"]


@given(st.sampled_from(KEYS), values)
def test_any_value_makes_a_request_or_an_error(key: str, value: object) -> None:
    asked = {"title": "T", "body": "", "sources": [{"type": "web", "url": "https://e.org/"}]}
    try:
        request = parse_request({**asked, key: value}, created_by={"ghost": "test"})
    except TopicFileError as error:
        assert str(error).startswith("reference topic: ")  # noqa: PT017 - it may come
    else:
        assert len(request.digest) == 64
    try:
        changes, _ = parse_changes({"status": "active", key: value})
    except TopicFileError:
        return
    assert changes["status"] in {"active", "stale", "obsolete"}


@pytest.mark.parametrize("number", [0, 31])
def test_a_request_of_too_few_or_too_many_sources_is_refused(number: int) -> None:
    asked = {"title": "T", "body": "b", "sources": [{"type": "web", "depth": 1}] * number}
    with pytest.raises(TopicFileError) as raised:
        parse_request(asked, created_by={})
    assert str(raised.value) == f"reference topic: sources: found {number}; allowed: 1 to 30"
