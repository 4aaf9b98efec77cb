"""The store as JSON, in and out."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.capture.entries import (
    ANTI_PATTERN,
    BOUNDARY,
    CONVENTION,
    KINDS,
    Entry,
    KnowledgeStore,
    dump_json,
    dump_store,
    parse_store,
)
from llm_kb.capture.notes import Note
from llm_kb.capture.store import DamagedStoreError

refuse = partial(DamagedStoreError, Note(ref="ref"), "under ref")

# As git-chronicle writes it: optional fields are absent, not null.
CHRONICLE: dict[str, Any] = {
    "schema": "chronicle/knowledge-v1",
    "conventions": [
        {
            "id": "conv-1",
            "scope": "src/schema/",
            "rule": "Use parse_annotation() for everything",
            "decided_in": "abc123",
            "stability": "permanent",
        }
    ],
    "boundaries": [
        {
            "id": "bound-1",
            "module": "src/git/",
            "owns": "All git operations",
            "boundary": "Must not import from provider module",
        }
    ],
    "anti_patterns": [
        {
            "id": "ap-1",
            "pattern": "serde_json::from_str for annotations",
            "instead": "schema::parse_annotation()",
            "learned_from": "BUG-42",
        }
    ],
}


def encode(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_store_of_git_chronicle_is_read_and_written_back_to_the_byte() -> None:
    data = (json.dumps(CHRONICLE, indent=2) + "\n").encode()
    assert dump_store(parse_store(data, refuse)) == data


def test_entries_know_their_kind_place_rule_and_provenance() -> None:
    entries = parse_store(encode(CHRONICLE), refuse).entries
    assert [(e.kind, e.id, e.place, e.rule, e.provenance) for e in entries] == [
        (CONVENTION, "conv-1", "src/schema/", "Use parse_annotation() for everything", "abc123"),
        (BOUNDARY, "bound-1", "src/git/", "Must not import from provider module", None),
        (ANTI_PATTERN, "ap-1", None, "serde_json::from_str for annotations", "BUG-42"),
    ]


def test_lists_that_are_absent_are_empty() -> None:
    assert parse_store(encode({"schema": "chronicle/knowledge-v1"}), refuse) == KnowledgeStore()


def test_unknown_keys_survive_at_every_level() -> None:
    raw = json.loads(encode(CHRONICLE))
    raw["future"] = {"deep": [1, None]}
    raw["conventions"][0]["owner"] = {"team": "core"}
    raw["anti_patterns"][0]["seen"] = 3
    assert json.loads(dump_store(parse_store(encode(raw), refuse))) == raw


def test_known_fields_are_written_in_order_and_null_ones_left_out() -> None:
    raw = {"stability": "permanent", "x": 1, "decided_in": None, "rule": "r", "scope": "*"}
    entry = Entry(CONVENTION, {**raw, "id": "conv-1"})
    written = json.loads(dump_store(KnowledgeStore(entries=(entry,))))["conventions"]
    assert json.dumps(written) == (
        '[{"id": "conv-1", "scope": "*", "rule": "r", "stability": "permanent", "x": 1}]'
    )


def test_text_is_written_as_it_is_read() -> None:
    assert dump_json({"rule": "Größe – 漢字"}) == '{\n  "rule": "Größe – 漢字"\n}\n'.encode()


def test_half_a_surrogate_pair_is_kept_as_its_escape() -> None:
    assert dump_json({"rule": "\ud83d"}) == b'{\n  "rule": "\\ud83d"\n}\n'


texts = st.text(st.sampled_from('ab,:{}[]"\\\n\x9b\u202e é\U000e0041'), max_size=12)
values = st.recursive(
    texts | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
stored = st.builds(
    lambda kind, known, extra: Entry(
        kind, {**extra, **dict(zip(kind.order, known, strict=False)), "stability": "permanent"}
    ),
    st.sampled_from(KINDS),
    st.lists(texts, min_size=5, max_size=5),
    st.dictionaries(texts, values, max_size=2),
)


@given(st.lists(stored, max_size=4), st.dictionaries(texts, values, max_size=2))
def test_what_is_written_is_read_again(entries: list[Entry], extra: dict[str, object]) -> None:
    store = KnowledgeStore(extra=extra).with_entries(entries)
    data = dump_store(store)
    assert parse_store(data, refuse) == store


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        pytest.param(b"", ["not JSON: Expecting value: line 1 column 1 (char 0)"], id="empty"),
        pytest.param(
            b"[]",
            ["schema: found nothing; allowed: 'chronicle/knowledge-v1'"],
            id="list",
        ),
        pytest.param(
            b"{}", ["schema: found nothing; allowed: 'chronicle/knowledge-v1'"], id="no schema"
        ),
        pytest.param(
            encode({"schema": "chronicle/knowledge-v2"}),
            ["schema: found 'chronicle/knowledge-v2'; allowed: 'chronicle/knowledge-v1'"],
            id="newer schema",
        ),
        pytest.param(
            encode({"schema": "chronicle/knowledge-v1", "conventions": {}, "boundaries": [7]}),
            [
                "conventions: found a table; allowed: a list of tables",
                "boundaries[0]: found the number 7; allowed: a table",
            ],
            id="wrong shapes, all reported",
        ),
        pytest.param(
            encode(
                {
                    "schema": "chronicle/knowledge-v1",
                    "conventions": [{"id": "conv-1", "scope": 3, "stability": "permanent"}],
                    "anti_patterns": [
                        {"id": "ap-1", "pattern": "p", "instead": "i", "learned_from": True}
                    ],
                }
            ),
            [
                "conventions[0].scope: found the number 3; allowed: a string",
                "conventions[0].rule: found nothing; allowed: a string",
                "anti_patterns[0].learned_from: found true; allowed: a string",
            ],
            id="wrong fields, all reported",
        ),
        pytest.param(
            encode(
                {
                    "schema": "chronicle/knowledge-v1",
                    "conventions": [{"id": "c", "scope": "*", "rule": "r", "stability": "firm"}],
                }
            ),
            [
                (
                    "conventions[0].stability: found 'firm'; "
                    "allowed: permanent, provisional, experimental"
                )
            ],
            id="unknown stability",
        ),
    ],
)
def test_what_is_no_store_is_refused_with_every_path(data: bytes, problems: list[str]) -> None:
    with pytest.raises(DamagedStoreError) as caught:
        parse_store(data, refuse)
    assert list(caught.value.problems) == problems


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 100_000], ids=["bytes", "deep", "deep keys"]
)
def test_hostile_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedStoreError, match="not JSON: "):
        parse_store(data, refuse)


def test_at_most_fifty_problems_are_listed_and_the_rest_counted() -> None:
    raw = {"schema": "chronicle/knowledge-v1", "conventions": [7] * 55}
    with pytest.raises(DamagedStoreError) as caught:
        parse_store(encode(raw), refuse)
    assert (len(caught.value.problems), caught.value.problems[-1]) == (51, "and 5 more")
