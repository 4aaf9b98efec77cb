"""Fuzz `.provenance.json`: any bytes are a record, which can be written again, or an error."""

from __future__ import annotations

from llm_kb.references.errors import TopicFileError
from llm_kb.references.topic.topic_directory import parse_provenance, render_provenance


def fuzz(data: bytes) -> None:
    """Read a record of files; write and read it again if it is valid."""
    try:
        record = parse_provenance(data, ".provenance.json")
    except TopicFileError:
        return
    assert parse_provenance(render_provenance(record), ".provenance.json") == record
