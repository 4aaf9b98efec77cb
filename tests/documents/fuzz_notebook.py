"""A notebook: any JSON is Markdown whose fences hold, or not a notebook."""

from __future__ import annotations

import json
from contextlib import suppress

from markdown_it import MarkdownIt

from llm_kb.documents.notebook import read_notebook


def fuzz(data: bytes) -> None:
    """Read the bytes as a notebook, then their lines as the values of a cell and an output."""
    assert isinstance(read_notebook(data), bytes)  # what is not a notebook stays as it is
    values = [_read_value(piece.decode("utf-8", "surrogateescape")) for piece in data.split(b"\n")]
    value, other = values[0], values[-1]
    output = {"output_type": other, "text": value, "ename": value, "data": {"text/plain": other}}
    cell = {"cell_type": "code", "source": value, "outputs": [output, value]}
    text = read_notebook(json.dumps({"cells": [cell, value], "metadata": other}).encode())
    assert text is not None
    tokens = MarkdownIt().parse(text.decode())
    assert {token.type for token in tokens} <= {"fence"}, "what is in a fence closes it"


def _read_value(text: str) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text
