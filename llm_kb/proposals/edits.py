"""Exact changes of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from llm_kb.errors import KbError, quote
from llm_kb.rendering.parts import find_spans
from llm_kb.texts.outlines.outline import read_document
from llm_kb.texts.safe import UNSEEN

BOM = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change, as a model proposed it."""

    reason: str
    new: str = ""
    old: str = ""
    part: str = ""
    """The anchor of the part that it is about; empty for the whole subject."""


def apply_edits(path: str, text: str | None, edits: Sequence[Edit]) -> str:
    """Return the text of a file after some edits; None is a file that does not exist.

    Line ends and a byte order mark stay as they are. Raises KbError.
    """
    mark = BOM if text and text.startswith(BOM) else ""
    ends = "\r\n" if text and "\r\n" in text else "\n"
    result = None if text is None else text.removeprefix(mark)
    for edit in edits:
        result = _apply(path, result, edit, ends)
    return f"{mark}{result}"


def _apply(path: str, text: str | None, edit: Edit, ends: str) -> str:
    """Return a text after one edit, whose line ends become `ends`."""
    new, old = (each.replace("\r\n", "\n").replace("\n", ends) for each in (edit.new, edit.old))
    part = edit.part
    if text is None:
        if old or part or not new.strip():
            raise KbError("there is no such subject: without `old` and a part, `new` makes it")
        return new if new.endswith(ends) else f"{new}{ends}"
    start, end = _find_span(path, text, part)
    if not old:
        if not new.strip():
            raise KbError("`new` is missing: it is added, or replaces `old`")
        if part and _first_line(new) == _first_line(text[start:end]):
            raise KbError("`new` is added to the part and repeats its heading; leave that out")
        return _append(text[:end], new, text[end:], ends)
    found = text.count(old, start, end)
    if found != 1 or text.find(old, start, end) != text.rfind(old, start, end):
        where = f"part {quote(f'#{part}')}" if part else "the subject"
        times = f"occurs {found:,} times in" if found else "does not occur in"
        raise KbError(f"`old` {times} {where}; it must be there exactly once, to the letter")
    place = text.index(old, start, end)
    return text[:place] + new + text[place + len(old) :]


def _find_span(path: str, text: str, part: str) -> tuple[int, int]:
    if not part:
        return 0, len(text)
    spans, unknown = find_spans(read_document(path, text), [part])
    if not spans:
        near = f"; did you mean: {', '.join(unknown[part])}" if unknown[part] else ""
        raise KbError(f"the subject has no part {quote(f'#{part}')}{near}")
    return spans[0].start, spans[0].end


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip()


def _append(before: str, new: str, after: str, ends: str) -> str:
    """Return a text with an addition, which an empty line separates from what is around it."""
    above = f"{before.rstrip()}{ends}{ends}" if before.strip() else ""
    below = f"{ends}{after.lstrip(ends)}" if after.strip() else ""
    return f"{above}{new.strip(ends)}{ends}{below}"


# What no text of a model may have

_TOKEN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20}|github_pat_\w{20}|glpat-[\w-]{20}|sk-[\w-]{20}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[a-z]-[\w-]{10}|xapp-\d-\w{10}|AIza[\w-]{30}|ya29\.[\w-]{20}"
    r"|[rs]k_(?:live|test)_\w{16}|npm_\w{30}|pypi-\w{20}|hf_[A-Za-z]{30})"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
)
"""Passwords and keys known by how they begin."""


def find_flaw(text: str) -> str:
    """Return why a text cannot be proposed; empty if it can."""
    if unseen := UNSEEN.search(text):
        return f"has a character that nobody sees, U+{ord(unseen[0]):04X}; leave it out"
    if found := _TOKEN.search(text):
        return f"seems to have a key or a password ({found[0][:6]}…); name where to find it"
    return ""
