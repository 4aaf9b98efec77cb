"""A program that reads a document on standard input and writes it as Markdown.

    python -m llm_kb.files.converters.documents pdf < guide.pdf

Documents come from strangers, and their libraries are not made for hostile ones. So each is
converted in a separate process with limits on memory and time, started by `files`.
Needs the extra `documents`.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from llm_kb.errors import KbError
from llm_kb.files.converters import MAX_BYTES, NO_TEXT
from llm_kb.search.word_vectors import is_word
from llm_kb.texts.formats import INSTALL
from llm_kb.texts.html.to_markdown import html_to_markdown

MEMORY_BYTES = 2_000_000_000
PROCESSOR_SECONDS = 60
MOST_UNPACKED = 200_000_000
"""Bytes that a packed document may unpack to."""


class BadDocumentError(KbError):
    """A document that cannot be converted."""


def main() -> None:
    """Convert standard input; the first argument names its kind. Errors go to standard error."""
    _limit()
    logging.disable()  # the libraries warn at length, and quote the document
    kind, data = sys.argv[1], sys.stdin.buffer.read()
    try:
        text = CONVERTERS[kind](data)
        if not text.strip():
            raise BadDocumentError(NO_TEXT)  # noqa: TRY301
        written = text.encode("utf-8", "replace")
        if len(written) > MAX_BYTES:  # who reads it holds all of it
            raise BadDocumentError(f"its text is larger than {MAX_BYTES // 1_000_000} MB")  # noqa: TRY301
    except BaseException as error:  # noqa: BLE001 - whatever a library raises on hostile content
        reason = _explain(error)
        sys.stderr.write(f"\n{reason}")
        sys.stderr.flush()
        sys.exit(2)
    sys.stdout.buffer.write(written)


def _explain(error: BaseException) -> str:
    """Return the reason of a failure: ours, what to install, or the name of a library's error."""
    if isinstance(error, BadDocumentError):
        return str(error)
    name = type(error).__name__
    is_missing = isinstance(error, ImportError) or name == "DependencyError"
    return f"a library is missing; to read it: {INSTALL}" if is_missing else name


def _limit() -> None:
    with suppress(OSError, ValueError):  # not over a harder limit
        import resource  # noqa: PLC0415 - as above

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


def convert_pdf(data: bytes) -> str:
    """Return the pages of a PDF; the headings are its bookmarks, else one for each page."""
    import pypdf  # noqa: PLC0415 - an extra

    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise BadDocumentError("it needs a password")
    bookmarks: dict[int, list[tuple[int, str]]] = {}
    with suppress(Exception):  # a broken outline costs the headings alone
        for at, level, title in _iter_bookmarks(reader, reader.outline):
            bookmarks.setdefault(at, []).append((level, title))
    pages = [_read_page(page) for page in reader.pages]
    if not any(pages):
        return ""
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    parts = [f"# {title}"] if title else []
    for number, text in enumerate(pages):
        if bookmarks:
            marked = _set_headings(text, bookmarks.get(number, ()))
            parts.append(f"<!-- page {number + 1} -->\n\n{marked}".strip())
        elif text:
            parts.append(f"## Page {number + 1}\n\n{text}")
    return "\n\n".join(parts) + "\n"


def _read_page(page: Any) -> str:
    text = str(page.extract_text()).strip()
    text = _join_divided(text)
    # Lines that would become headings are escaped.
    return re.sub(r"^(?=#{1,6} )", r"\\", text, flags=re.MULTILINE)


_DIVIDED = re.compile(r"(?<![\w./-])([^\W\d_]{1,40})-\n([a-z][^\W\d_]{0,40})")
_HYPHEN = re.compile(r"(?<=\w)-\n(?=[a-z])")


def _join_divided(text: str) -> str:
    """Join what is divided at line ends: a word without its hyphen, `well-known` with it."""

    def join(found: re.Match[str]) -> str:
        before, after = found.groups()
        whole = before + after
        if not is_word(whole) and is_word(before) and is_word(after):
            return f"{before}-{after}"
        return whole

    # The other hyphens are those of names, such as `--no-cache`.
    return _HYPHEN.sub("-", _DIVIDED.sub(join, text))


def _iter_bookmarks(
    reader: Any, outline: Sequence[Any], level: int = 1
) -> Iterator[tuple[int, int, str]]:
    for each in outline:
        if isinstance(each, list):
            yield from _iter_bookmarks(reader, each, level + 1)
            continue
        number = reader.get_destination_page_number(each)
        title = " ".join(str(each.title).split())
        if title and number is not None:
            yield number, level, title


def _set_headings(text: str, bookmarks: Sequence[tuple[int, str]]) -> str:
    """Return a page with a heading for each bookmark: in place of its line, or above the page."""
    lines = text.split("\n")
    above = []
    start = 0
    for level, title in bookmarks:
        heading = f"{'#' * min(level + 1, 6)} {title}"
        wanted = _letters(title)
        for at in range(start, len(lines)):
            line = _letters(lines[at])
            if wanted and line.endswith(wanted) and len(line) <= len(wanted) + 8:
                lines[at] = f"\n{heading}\n"
                start = at + 1
                break
        else:
            above.append(heading)
    return "\n\n".join([*above, "\n".join(lines)])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def convert_docx(data: bytes) -> str:
    """Return the text of a DOCX with headings, lists and tables; pictures are left out."""
    import mammoth  # noqa: PLC0415 - an extra

    _check_archive(data)
    without = mammoth.images.img_element(lambda _: {})
    html = mammoth.convert_to_html(io.BytesIO(data), convert_image=without).value
    return html_to_markdown(f"<main>{html}</main>", "")


def _check_archive(data: bytes) -> None:
    """Raise BadDocumentError for a document that is not an archive, or unpacks to too much."""
    try:
        members = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except zipfile.BadZipFile as error:
        raise BadDocumentError("it is damaged, or not of the kind that its name says") from error
    if sum(each.file_size for each in members) > MOST_UNPACKED:
        raise BadDocumentError(f"it unpacks to more than {MOST_UNPACKED // 1_000_000} MB")


CONVERTERS: dict[str, Callable[[bytes], str]] = {"pdf": convert_pdf, "docx": convert_docx}

if __name__ == "__main__":
    main()
