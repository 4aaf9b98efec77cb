"""`LiveInput`: any bytes give an input or InvalidAnnotationError."""

from __future__ import annotations

from llm_kb.capture.annotation import InvalidAnnotationError, parse_live_input
from llm_kb.capture.entries import dump_json


def fuzz(data: bytes) -> None:
    """Parse the bytes and write what was read."""
    try:
        live = parse_live_input(data)
    except InvalidAnnotationError:
        return
    dump_json([live.summary, *live.wisdom, *(entry.fields for entry in live.knowledge)])
