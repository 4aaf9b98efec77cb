"""Jupyter notebooks as Markdown: their cells with what these printed. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

LONGEST_OUTPUT = 2_000
"""Most characters of one output; a note replaces the rest."""

_BACKTICKS = re.compile("`+")


def read_notebook(data: bytes) -> bytes:
    """Return the Markdown of a notebook; the data as it is if that is not a notebook.

    Outputs are kept as text; images and other encoded data are named, not shown.
    """
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return data
    cells = notebook.get("cells") if isinstance(notebook, Mapping) else None
    if not isinstance(cells, list):
        return data
    language = _find_language(notebook)
    text = "\n\n".join(
        block for cell in cells if isinstance(cell, Mapping) for block in _render(cell, language)
    )
    text += "\n" if cells else ""
    return text.encode("utf-8", "replace")  # JSON can name half surrogate pairs


def _find_language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, Mapping) else None
    name = info.get("name") if isinstance(info, Mapping) else None
    return name if isinstance(name, str) and name.isidentifier() else ""


def _render(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    source = _join(cell.get("source"))
    if cell.get("cell_type") == "code":
        if source.strip():
            yield _fence(source, language)
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            text = _read_output(output).strip("\n") if isinstance(output, Mapping) else ""
            if text:
                yield _fence(text, "output")
    elif source.strip():
        yield source.strip("\n")


def _read_output(output: Mapping[str, Any]) -> str:
    """Return the text of an output, or the names of the types that it holds instead."""
    if output.get("output_type") == "error":
        text = f"{_join(output.get('ename'))}: {_join(output.get('evalue'))}"
    elif "text" in output:
        text = _join(output["text"])
    else:
        held = output.get("data")
        kinds = held if isinstance(held, Mapping) else {}
        text = _join(kinds.get("text/markdown") or kinds.get("text/plain"))
        if not text and kinds:
            text = f"({', '.join(map(str, list(kinds)[:5]))}: not shown)"
    left = len(text) - LONGEST_OUTPUT
    return f"{text[:LONGEST_OUTPUT]}\n({left:,} more characters)" if left > 0 else text


def _join(source: object) -> str:
    """Return a text, which a notebook may split into a list of lines."""
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _fence(text: str, language: str) -> str:
    marks = "`" * max(3, 3, *(len(run) + 1 for run in _BACKTICKS.findall(text)))
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"
