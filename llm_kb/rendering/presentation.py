"""Turns the bytes of a subject into text for a model: sniffs, decodes, fences and wraps."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, utf_8_decode
from collections.abc import Sequence
from typing import NamedTuple

from llm_kb.errors import UnreadableError
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.topics import Content, Subject
from llm_kb.texts.decoding import ESCAPED_BYTE, hide_embedded, is_binary
from llm_kb.texts.formats import find_fence_language
from llm_kb.texts.safe import TAG_CHARACTERS, attribute, defuse, one_line

# U+E0000 to U+E007F mirror ASCII invisibly: text for a model that no person sees.
_TAG_CHARACTER = re.compile(f"[{TAG_CHARACTERS}]")
_TAG_PREFIX = b"\xf3\xa0"

_END = "</subject>"

_BACKTICKS = re.compile("`{3,}")
_INFO_STRING = re.compile(r"[\w+#.-]{1,40}")


class Picture(NamedTuple):
    """A picture that goes with a text."""

    media_type: str
    data: bytes


class Presented(NamedTuple):
    """One subject as text: `head` (origin, notices, opening fence), `body`, `tail` (fence).

    Line endings of the body are the file's own. `shown` counts the bytes of the
    file that the body stands for; those from there to `size` were not read, were
    cut, or belong to a file that is not text.
    """

    name: str
    content: Content
    head: str = ""
    body: str = ""
    tail: str = ""
    shown: int = 0
    below: str = ""
    """Text below the body: an outline, or the list of a skill's files."""
    is_opening: bool = False
    """Whether only the start of the file should be shown."""
    lines: tuple[int, int] | None = None
    """The first and the last line of a piece that was asked for, if its rest can be loaded."""
    anchor: str = ""
    """What a request of the same adds to the name: `#*` for a whole subject."""
    picture: Picture | None = None
    """What the text stands for, to be attached."""

    @property
    def address(self) -> str:
        """The pattern that loads the same again."""
        return self.name + self.anchor

    @property
    def size(self) -> int:
        """The bytes of the whole file."""
        return self.content.size

    @property
    def binary(self) -> bool:
        """Whether the file is not text."""
        return is_binary(self.content.data)

    @property
    def is_cut(self) -> bool:
        """Whether only the start of the text is shown."""
        return self.shown < self.size and not self.binary

    @property
    def text(self) -> str:
        """The whole text, notices included, as one load of this subject returns it."""
        return self.head + self.body + closing(self)


def list_pictures(items: Sequence[Presented]) -> list[Picture]:
    """Return the pictures to be attached."""
    return [item.picture for item in items if item.picture]


def present(subject: Subject, content: Content, *, note: str = "") -> Presented:
    """Return a subject as a model reads it, with notices of all changes.

    `note` is an additional notice that names the piece of the subject.
    """
    data = content.data
    if not content.size:
        return _without_body(subject, content, "this file is empty")
    if is_binary(data):
        return _without_body(
            subject, content, f"binary file, {count(content.size, 'byte')}, skipped"
        )
    body, shown, notices = _decode(data, whole=len(data) >= content.size)
    head, tail = _frame(subject, body)
    notices = (*filter(None, (note, content.note)), *notices)
    head = _preamble(content.origin, notices) + head
    return Presented(subject.name, content, head, body, tail, shown)


def present_unreadable(subject: Subject, error: UnreadableError) -> Presented:
    """Return the text for a subject that cannot be read, with the reason."""
    return present_notice(subject, f"cannot be read: {one_line(error.reason)}")


def present_notice(subject: Subject, notice: str) -> Presented:
    """Return a notice in place of a subject's text."""
    return _without_body(subject, Content(data=b"", size=0), notice)


def wrap_subject(presented: Presented) -> str:
    """Return a subject between its tags, which nothing in it can close."""
    body, head = presented.body, presented.head
    end = closing(presented)
    ends_line = not end and (body or head).endswith("\n")
    opening = f'<subject "{attribute(presented.name)}">\n{defuse(head)}'
    return opening + defuse(body) + end + (_END if ends_line else f"\n{_END}")


def closing(presented: Presented) -> str:
    """Return the lines after a body: its closing fence, and a note on what is missing."""
    end = presented.tail
    if end and presented.body and not presented.body.endswith("\n"):
        end = "\n" + end
    missing = f"{presented.size - presented.shown:,} of {presented.size:,} bytes"
    note = f"(note: cut here; {missing} are not shown{_name_rest(presented)})"
    for text in (note if presented.is_cut else "", presented.below):
        above = end or presented.body or presented.head
        gap = "" if not above else "\n" if above.endswith("\n") else "\n\n"
        end += f"{gap}{text}" if text else ""
    return end


def _name_rest(presented: Presented) -> str:
    """Return how to load what was cut from a requested piece; empty if it has no lines.

    Lines are the smallest that can be loaded, so of one that was cut the rest cannot.
    """
    if not presented.lines or presented.below:
        return ""
    first, last = presented.lines
    lines = presented.body.count("\n")
    first += lines
    slug, lost = presented.name.partition("#")[0], ""
    if presented.body and not presented.body.endswith("\n"):
        lost = f"; the rest of line {first:,}, which is too long, cannot be loaded"
        first += 1
    if len(presented.content.data) < presented.size:  # nobody knows how many lines it has
        last = first + max(lines, 1) - 1
    return f"{lost}; load {slug}#L{first}-L{last} for more" if first <= last else lost


def truncate(presented: Presented, limit: int) -> Presented:
    """Return a subject with at most `limit` characters of its body, cut after a line.

    A line that is longer than half of the limit is cut within. `shown` is exact,
    whatever was replaced or removed on the way.
    """
    if len(presented.body) <= limit:
        return presented
    data = presented.content.data
    end = presented.body.rfind("\n", 0, limit) + 1
    # A line feed is a byte of its own in UTF-8, so the lines of the text are
    # those of the data, even where bytes in them were replaced or removed.
    lines = presented.body.count("\n", 0, end)
    shown = len(data) - len(data.split(b"\n", lines)[-1])
    body = presented.body[:end]
    if end < limit / 2:
        # Every character takes at least a byte, so this many bytes suffice.
        more, used, _ = _decode(data[shown : shown + limit - end], whole=False)
        body, shown = body + more, shown + used
    return presented._replace(body=body, shown=shown)


def _decode(data: bytes, *, whole: bool) -> tuple[str, int, tuple[str, ...]]:
    """Return text, the number of bytes it comes from, and notices of changes.

    If the data was cut, an incomplete character at its end is removed.
    """
    start = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
    if start:
        data = data[start:]
    notices: list[str] = []
    try:
        text, used = utf_8_decode(data, "strict", whole)
        if text.isascii() and "data:" not in text:
            return text, start + used, ()
    except UnicodeDecodeError:
        # One surrogate for each bad byte, so that they can be counted.
        text, used = utf_8_decode(data, "surrogateescape", whole)
        text, replaced = ESCAPED_BYTE.subn("\ufffd", text)
        notices.append(count(replaced, "byte") + " not valid in UTF-8, shown as \ufffd")
    if _TAG_PREFIX in data:
        text, removed = _TAG_CHARACTER.subn("", text)
        if removed:
            notices.append(count(removed, "invisible Unicode tag character") + " removed")
    text, hidden = hide_embedded(text)
    if hidden:
        notices.append(count(hidden, "embedded file") + " not shown")
    return text, start + used, tuple(notices)


def _frame(subject: Subject, body: str) -> tuple[str, str]:
    """Return the opening and closing fence, which the body cannot contain; empty for Markdown."""
    language = find_fence_language(subject.path)
    if language is None:
        return "", ""
    if not _INFO_STRING.fullmatch(language):
        language = ""
    fence = "```"
    if fence in body:
        # CommonMark: a fence is closed by a run at least as long as its own.
        fence = "`" * (max(map(len, _BACKTICKS.findall(body))) + 1)
    return f"{fence}{language}\n", fence


def _preamble(origin: str | None, notices: Sequence[str]) -> str:
    """Return the lines above a body: its source, then notices; empty without any."""
    lines = [one_line(origin)] if origin else []
    if notices:
        lines.append(f"(note: {'; '.join(notices)})")
    return "\n".join([*lines, "", ""]) if lines else ""


def _without_body(subject: Subject, content: Content, notice: str) -> Presented:
    return Presented(subject.name, content, _preamble(content.origin, [notice]).rstrip("\n"))
