"""The record of fetched files: any content is a record or an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import WebSource
from llm_kb.references.topic.topic_directory import (
    FileRecord,
    Provenance,
    compare,
    parse_provenance,
    render_provenance,
)

RECORD: dict[str, Any] = {"source": 0, "url": "https://e.org/a", "hash": "sha256:1", "size": 3}
from tests.references.requests import differences


def record(**changes: Any) -> bytes:
    """Return a record of one file, with some of its fields changed."""
    return json.dumps({"version": 1, "request": "", "files": {"a.md": RECORD | changes}}).encode()


def at(path: str) -> bytes:
    """Return a record of one file at a path."""
    return json.dumps({"version": 1, "request": "", "files": {path: RECORD}}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "Expecting value", id="nothing"),
        pytest.param(b"\xff\xfe{", "decode", id="no text"),
        pytest.param(b"[" * 100_000, "recursion", id="too deep"),
        pytest.param(b"[]", "list", id="a list"),
        pytest.param(b"{}", "version: missing", id="no version"),
        pytest.param(b'{"version": 1, "files": {}}', "request: missing", id="no request"),
        pytest.param(
            b'{"version": 1, "request": [], "files": {}}', "request: found", id="the request"
        ),
        pytest.param(b'{"version": 1, "request": "", "files": []}', "list", id="no files"),
        pytest.param(record(sise=3), "sise", id="an unknown field"),
        pytest.param(record(size="x"), "a number of 'a.md'", id="a size that is a text"),
        pytest.param(record(size=True), "a number of 'a.md'", id="a size that is a boolean"),
        pytest.param(record(size=-1), "a number of 'a.md'", id="a size below zero"),
        pytest.param(record(size=1 << 64), "a number of 'a.md'", id="a size of no disk"),
        pytest.param(record(source=0.5), "a number of 'a.md'", id="a source that is half of one"),
        pytest.param(record(url=None), "a text of 'a.md'", id="no address"),
        pytest.param(record(hash=[]), "a text of 'a.md'", id="a hash that is a list"),
        pytest.param(record(etag=5), "a text of 'a.md'", id="an etag that is a number"),
        pytest.param(record(etag="\ud800"), "surrogates", id="no Unicode"),
        pytest.param(
            b'{"version": 1, "request": "\\ud800", "files": {}}',
            "surrogates",
            id="nor in a request",
        ),
        pytest.param(at("\ud800"), "surrogates", id="no Unicode in a name"),
    ],
)
def test_what_is_no_record_is_refused_with_what_to_do(data: bytes, message: str) -> None:
    with pytest.raises(TopicFileError) as failed:
        parse_provenance(data, "r.json")
    assert str(failed.value).startswith("r.json: it is not a record of files: ")
    assert message in str(failed.value)
    assert str(failed.value).endswith("; delete it and refresh the topic")


def test_a_record_of_another_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(TopicFileError) as failed:
        parse_provenance(b'{"version": 2, "pages": 5}', "r.json")
    assert str(failed.value) == (
        "r.json: its version is the number 2, not 1; delete it and refresh the topic"
    )


@pytest.mark.parametrize(
    "path",
    ["../a", "a/../../b", "..", ".", "", "/etc/passwd", "a//b", "a/", "a\\..\\b", "C:/a", "a\0b"],
)
def test_a_path_that_leads_out_of_the_topic_is_refused(path: str) -> None:
    with pytest.raises(TopicFileError, match="not a path inside the topic; delete it"):
        parse_provenance(at(path), "r.json")


@pytest.mark.parametrize(
    "path", ["a.md", ".github/b.yml", "con/aux.md", "lib:x/c d.md", "日本/é.md"]
)
def test_a_folder_may_be_called_what_its_source_was(path: str) -> None:
    assert list(parse_provenance(at(path), "r.json").files) == [path]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "url", "source", "size", "a.md", "../b"]), values, max_size=3
        )
    ),
    max_leaves=6,
)
FIELDS = ("version", "request", "files", "sources")


@given(
    st.sampled_from(FIELDS)
    | st.sampled_from(["size", "source", "url", "hash", "etag", "commit", "fetched_at"]),
    json_values,
)
def test_any_value_makes_a_record_that_can_be_written_or_an_error(key: str, value: object) -> None:
    table: dict[str, Any] = {"version": 1, "request": "", "files": {"a.md": RECORD}, "sources": []}
    table |= {key: value} if key in FIELDS else {"files": {"a.md": RECORD | {key: value}}}
    try:
        provenance = parse_provenance(json.dumps(table).encode(), "r.json")
    except TopicFileError:
        return
    assert parse_provenance(render_provenance(provenance), "r.json") == provenance


def test_a_record_is_read_back() -> None:
    provenance = Provenance(
        request="d",
        files={"a.md": FileRecord(source=0, url="https://e.org/a", etag='"\x9b"', size=3)},
        sources=(WebSource(url="https://e.org/a"),),
    )
    assert parse_provenance(render_provenance(provenance), "r.json") == provenance


def test_what_cannot_be_read_is_neither_changed_nor_missing() -> None:
    recorded = {
        path: FileRecord(source=0, url="u", hash="1")
        for path in ("same", "other", "gone", "locked", "shut/a", "shut/b/c", "shutter")
    }
    found = {"same": "1", "other": "2", "new": "1", "locked": None, "shut/": None}
    assert compare(recorded, found) | {"problems": []} == differences(
        modified=["other"],
        missing=["gone", "shutter"],
        unknown=["new"],
        unreadable=["locked", "shut/"],
    )
    assert compare(recorded, {"./": None}) | {"problems": []} == differences(unreadable=["./"])


def test_names_with_brackets_are_not_counted_as_tables() -> None:
    """As of a site with routes such as `app/[lang]/[org]/page.tsx`."""
    name = "app/[lang]/{{cookiecutter}}/[org]/[team]/[repo]/[id]"
    record_of = FileRecord(source=0, url="https://e.org/a")
    files = {f'{name}/"{number}".md': record_of for number in range(40_000)}
    data = render_provenance(Provenance(files=files))
    assert parse_provenance(data, "x").files == files


def test_a_text_without_an_end_is_counted_in_time() -> None:
    with pytest.raises(TopicFileError, match="is not a record"):
        parse_provenance(b"[" * 250_001 + b'"' + b'\\"' * 1_000_000, "x")
