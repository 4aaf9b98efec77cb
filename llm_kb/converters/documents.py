"""A program that reads a document on standard input and writes it as Markdown.

    python -m llm_kb.converters.documents pdf < guide.pdf

Documents come from strangers, and their libraries are not made for hostile ones. So each is
converted in a separate process with limits on memory and time, started by `files`.
Needs the extra `documents` for PDF and DOCX.
"""

from __future__ import annotations

import io
import posixpath
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from llm_kb.converters import MAX_BYTES
from llm_kb.converters.html import html_to_markdown
from llm_kb.errors import KbError

if TYPE_CHECKING:
    from pypdf import PdfReader

MEMORY_BYTES = 2_000_000_000
PROCESSOR_SECONDS = 60
MOST_UNPACKED = 200_000_000
"""Bytes that a packed document may unpack to."""

MOST_PARTS = 20_000


class BadDocumentError(KbError):
    """A document that cannot be converted."""


def main() -> None:
    """Convert standard input; the first argument names its kind. Errors go to standard error."""
    _limit()
    kind, data = sys.argv[1], sys.stdin.buffer.read()
    try:
        text = CONVERTERS[kind](data)
        if not text.strip():
            raise BadDocumentError("it has no text, perhaps only pictures of it")  # noqa: TRY301
        written = text.encode("utf-8", "replace")
        if len(written) > MAX_BYTES:  # who reads it holds all of it
            raise BadDocumentError(f"its text is larger than {MAX_BYTES // 1_000_000} MB")  # noqa: TRY301
    except BaseException as error:  # noqa: BLE001 - whatever a library raises on hostile content
        reason = str(error) if isinstance(error, BadDocumentError) else type(error).__name__
        sys.stderr.write(f"\n{reason}")
        sys.stderr.flush()
        sys.exit(2)
    sys.stdout.buffer.write(written)


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
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    parts = [f"# {title}"] if title else []
    has_text = False
    for number, page in enumerate(reader.pages):
        text = words = _read_page(page)
        if bookmarks:
            text = f"<!-- page {number + 1} -->\n\n{_set_headings(text, bookmarks.get(number, ()))}"
        elif text:
            text = f"## Page {number + 1}\n\n{text}"
        parts.append(text.strip())
        has_text = has_text or bool(words)
    return "\n\n".join(filter(None, parts)) + "\n" if has_text else ""


def _read_page(page: Any) -> str:
    text = str(page.extract_text()).strip()
    # Join words divided at line ends, and escape lines that would become headings.
    text = re.sub(r"(?<=[a-z])-\n(?=[a-z])", "", text)
    return re.sub(r"^(?=#{1,6} )", r"\\", text, flags=re.MULTILINE)


def _iter_bookmarks(
    reader: PdfReader, outline: Sequence[Any], level: int = 1
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
        found = next(
            (at for at in range(start, len(lines)) if _letters(lines[at]).endswith(wanted)
             and len(_letters(lines[at])) <= len(wanted) + 8), None,
        ) if wanted else None  # fmt: skip
        if found is None:
            above.append(heading)
        else:
            lines[found] = f"\n{heading}\n"
            start = found + 1
    return "\n\n".join([*above, "\n".join(lines)])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def convert_docx(data: bytes) -> str:
    """Return the text of a DOCX with headings, lists and tables; pictures are left out."""
    import mammoth  # noqa: PLC0415 - an extra

    _open_packed(data)
    without = mammoth.images.img_element(lambda _: {})
    html = mammoth.convert_to_html(io.BytesIO(data), convert_image=without).value
    return html_to_markdown(f"<main>{html}</main>", "")


_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def convert_pptx(data: bytes) -> str:
    """Return the slides of a PPTX, each under its title, with tables and notes."""
    parts = _open_packed(data)
    root = _parse(parts, "ppt/presentation.xml")
    targets = _read_relations(parts, "ppt/presentation.xml")
    slides = [targets[each.get(_RELATION, "")] for each in root.iter(f"{_SLIDES}sldId")]
    return "\n\n".join(_convert_slide(parts, path, n) for n, path in enumerate(slides, 1)) + "\n"


def _convert_slide(parts: zipfile.ZipFile, path: str, number: int) -> str:
    title, blocks = "", []
    for shape in _parse(parts, path).iter():
        if shape.tag == f"{_SLIDES}sp":
            text = _read_paragraphs(shape)
            place = shape.find(f".//{_SLIDES}ph")
            if place is not None and place.get("type") in {"title", "ctrTitle"} and not title:
                title = " ".join(text)
            elif place is None or place.get("type") not in {"sldNum", "dt", "ftr"}:
                blocks.append("\n".join(f"- {line}" for line in text))
        elif shape.tag == f"{_DRAWING}tbl":
            blocks.append(_convert_table(shape))
    notes = next((p for p in _read_relations(parts, path).values() if "/notesSlide" in p), None)
    if notes:
        shapes = _parse(parts, notes).iter(f"{_SLIDES}sp")
        bodies = (s for s in shapes if s.find(f".//{_SLIDES}ph[@type='body']") is not None)
        said = [line for shape in bodies for line in _read_paragraphs(shape)]
        blocks += ["Notes: " + " ".join(said)] if said else []
    return "\n\n".join([f"## {title or f'Slide {number}'}", *filter(None, blocks)])


def _read_paragraphs(shape: ET.Element) -> list[str]:
    lines = (
        " ".join("".join(run.text or "" for run in p.iter(f"{_DRAWING}t")).split())
        for p in shape.iter(f"{_DRAWING}p")
    )
    return list(filter(None, lines))


def _convert_table(table: ET.Element) -> str:
    rows = [
        [" ".join(_read_paragraphs(cell)).replace("|", "\\|") for cell in row.iter(f"{_DRAWING}tc")]
        for row in table.iter(f"{_DRAWING}tr")
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines[:1], "|" + " --- |" * len(rows[0]), *lines[1:]]) if rows else ""


def convert_epub(data: bytes) -> str:
    """Return the chapters of an EPUB in the order of its spine."""
    parts = _open_packed(data)
    container = _parse(parts, "META-INF/container.xml")
    package = next(e.get("full-path", "") for e in container.iter() if _name(e) == "rootfile")
    root = _parse(parts, package)
    files = {
        e.get("id"): posixpath.normpath(
            posixpath.join(posixpath.dirname(package), unquote(e.get("href", "")))
        )
        for e in root.iter()
        if _name(e) == "item" and "html" in e.get("media-type", "")
    }
    spine = [e.get("idref") for e in root.iter() if _name(e) == "itemref"]
    known = set(parts.namelist())
    chapters = [
        html_to_markdown(parts.read(files[id_]).decode("utf-8", "replace"), "").strip()
        for id_ in dict.fromkeys(spine)
        if id_ in files and files[id_] in known
    ]
    return "\n\n".join(filter(None, chapters)) + "\n" if any(chapters) else ""


def _open_packed(data: bytes) -> zipfile.ZipFile:
    """Open a packed document; raise BadDocumentError if it would unpack to too much.

    No more is read from a member than its stated size.
    """
    try:
        parts = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile as error:
        raise BadDocumentError("it is damaged, or not of the kind that its name says") from error
    members = parts.infolist()
    if len(members) > MOST_PARTS or sum(each.file_size for each in members) > MOST_UNPACKED:
        raise BadDocumentError(f"it unpacks to more than {MOST_UNPACKED // 1_000_000} MB")
    return parts


def _parse(parts: zipfile.ZipFile, path: str) -> ET.Element:
    text = parts.read(path)
    if b"<!ENTITY" in text.replace(b"\0", b""):  # also in UTF-16
        raise BadDocumentError("it declares entities")
    return ET.fromstring(text)  # noqa: S314 - entities are refused, memory and time are bounded


def _read_relations(parts: zipfile.ZipFile, path: str) -> dict[str, str]:
    """Return the paths that a part refers to, keyed by its names for them."""
    folder, name = posixpath.split(path)
    try:
        root = _parse(parts, f"{folder}/_rels/{name}.rels")
    except KeyError:
        return {}
    return {
        each.get("Id", ""): posixpath.normpath(posixpath.join(folder, each.get("Target", "")))
        for each in root
    }


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


CONVERTERS: dict[str, Callable[[bytes], str]] = {
    "pdf": convert_pdf,
    "docx": convert_docx,
    "pptx": convert_pptx,
    "epub": convert_epub,
}

if __name__ == "__main__":
    main()
