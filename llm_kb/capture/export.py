"""Exports entries into a block of a Markdown file, where code review sees them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llm_kb.capture.entries import KINDS, Entry
from llm_kb.capture.rendering import render_plain
from llm_kb.errors import KbError
from llm_kb.rendering.plain_text import one_line

BEGIN = "<!-- llm-kb knowledge: begin, written by `llm kb knowledge export` -->"
END = "<!-- llm-kb knowledge: end -->"

_TITLE = "# Repository conventions\n\n"
_BEGIN_LINE, _END_LINE = (
    re.compile(rf"^{re.escape(mark)}\r?$", re.MULTILINE) for mark in (BEGIN, END)
)


def render_block(entries: Iterable[Entry]) -> str:
    """Return the entries as Markdown between two marks, each with its id."""
    ordered = tuple(entries)
    parts = [BEGIN]
    for kind in KINDS:
        items = [_render_line(entry) for entry in ordered if entry.kind is kind]
        if items:
            parts.append(f"## {kind.title}\n\n" + "\n".join(items))
    return "\n\n".join([*parts, END]) + "\n"


def _render_line(entry: Entry) -> str:
    """Return the line of an entry in a block."""
    return f"- {_escape(render_plain(entry))} <!-- {_escape_id(entry.id)} -->"


def _escape(text: str) -> str:
    # An entry that could begin or end a comment could imitate a mark or an id.
    return text.replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def _escape_id(id_: str) -> str:
    return re.sub(r"-(?=[->])", "_", "_".join(one_line(id_).split()))


def place_block(text: str | None, block: str, place: str) -> str:
    """Return a file's text with the block in it; None stands for a missing file.

    The text around the block stays. Raises KbError for marks that do not enclose
    one block.
    """
    if text is None:
        return _TITLE + block
    # Whole lines, since the text may quote a mark.
    begins, ends = ([*mark.finditer(text)] for mark in (_BEGIN_LINE, _END_LINE))
    if not begins and not ends:
        return f"{text.rstrip()}\n\n{block}" if text.strip() else block
    if len(begins) != 1 or len(ends) != 1 or begins[0].start() > ends[0].start():
        raise KbError(
            f"{place!r} must have one line {BEGIN!r} and below it one line {END!r}, or neither"
        )
    return text[: begins[0].start()] + block + text[ends[0].end() :].removeprefix("\n")


def has_block(text: str | None) -> bool:
    """Tell whether a file's text holds a block, or part of one."""
    return bool(text and (_BEGIN_LINE.search(text) or _END_LINE.search(text)))
