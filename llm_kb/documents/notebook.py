"""Jupyter notebooks as Markdown: their cells with what these printed. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from llm_kb.texts.folding import ESCAPES

LONGEST_OUTPUT = 2_000
"""Most characters of one output; a note replaces the rest."""

LONGEST_PAGE, MOST_PAGES = 10_000, 100
"""How much of an output in HTML is read, in characters, and how many of a notebook."""

LEVELS = 6
"""Most levels of the headings that are cells of their own in format 3."""

_OLD_TYPES = tuple("html latex svg png jpeg javascript".split())  # noqa: SIM905 - not extensions
"""What an output of format 3 holds beside its text."""

LONGEST_NAME = 40
"""Most characters of the name of a language, which is above each cell."""

_BACKTICKS = re.compile("`+")


def read_notebook(data: bytes) -> bytes:
    """Return the Markdown of a notebook; the data as it is if that is not a notebook.

    Outputs are kept as text; images and other encoded data are named, not shown.
    """
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return data
    cells = _find_cells(notebook) if isinstance(notebook, Mapping) else None
    if cells is None:
        return data
    language, pages = _find_language(notebook), count()
    text = "\n\n".join(
        block
        for cell in cells
        if isinstance(cell, Mapping)
        for block in _render(cell, language, pages)
    )
    text += "\n" if cells else ""
    return text.encode("utf-8", "replace")  # JSON can name half surrogate pairs


def _find_cells(notebook: Mapping[str, Any]) -> list[Any] | None:
    """Return the cells, which formats 2 and 3 keep in worksheets; None without any."""
    sheets = notebook.get("worksheets")
    if not isinstance(sheets, list):
        sheets = [notebook]
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, Mapping)]
    found = [cells for cells in lists if isinstance(cells, list)]
    return [cell for cells in found for cell in cells] if found else None


def _find_language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, Mapping) else None
    return _find_name(info.get("name")) if isinstance(info, Mapping) else ""


def _find_name(name: object) -> str:
    is_name = isinstance(name, str) and len(name) <= LONGEST_NAME and name.isidentifier()
    return str(name) if is_name else ""


def _render(cell: Mapping[str, Any], language: str, pages: Iterator[int]) -> Iterator[str]:
    source = _join(cell.get("source", cell.get("input")))
    if cell.get("cell_type") == "code":
        if source.strip():
            yield _fence(source, language or _find_name(cell.get("language")))
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            text = _read_output(output, pages) if isinstance(output, Mapping) else ""
            if text := text.strip("\n"):
                yield _fence(text, "output")
    elif source.strip():
        level = cell.get("level") if cell.get("cell_type") == "heading" else None
        if isinstance(level, int) and 1 <= level <= LEVELS:
            source = f"{'#' * level} {' '.join(source.split())}"
        yield source.strip("\n")


def _read_output(output: Mapping[str, Any], pages: Iterator[int]) -> str:
    """Return the text of an output, or the names of the types that it holds instead.

    `pages` counts those in HTML alone.
    """
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{_join(output.get('ename'))}: {_join(output.get('evalue'))}"
    elif "text" in output:
        text = _join(output["text"])
    else:
        held = output.get("data")
        old = {name: output[name] for name in _OLD_TYPES if name in output}
        kinds = held if isinstance(held, Mapping) else old
        text = _join(kinds.get("text/markdown") or kinds.get("text/plain"))
        # Format 3 has no `text/` in it.
        htmls = (kinds[kind] for kind in kinds if f"/{kind}".endswith("/html"))
        html = "" if text else _join(next(htmls, None))
        if html and next(pages) < MOST_PAGES:
            text = _read_page(html[:LONGEST_PAGE])
        if not text and kinds:
            text = f"({', '.join(map(str, list(kinds)[:5]))}: not shown)"
    text = ESCAPES.sub("", text)
    left = len(text) - LONGEST_OUTPUT
    return f"{text[:LONGEST_OUTPUT]}\n({left:,} more characters)" if left > 0 else text


def _read_page(html: str) -> str:
    from llm_kb.texts.html.to_markdown import html_to_markdown  # noqa: PLC0415 - seldom needed
    from llm_kb.texts.html.tree import PageTooComplexError  # noqa: PLC0415 - as above

    with suppress(PageTooComplexError):
        return html_to_markdown(html, "")
    return ""


def _join(source: object) -> str:
    """Return a text, which a notebook may split into a list of lines."""
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _fence(text: str, language: str) -> str:
    marks = "`" * max(3, 3, *(len(run) + 1 for run in _BACKTICKS.findall(text)))
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"
