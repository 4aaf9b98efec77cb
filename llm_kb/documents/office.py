"""A program that reads a document on standard input and writes it as Markdown.

    python -m llm_kb.documents.office pdf 10 < guide.pdf

Documents come from strangers, and their libraries are not made for hostile ones. So each is
converted in a separate process with limits on memory and time, started by `files/conversion.py`.
Needs the extra `documents`.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import time
import zipfile
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import repeat, takewhile
from typing import Any
from xml.etree import ElementTree as ET

from llm_kb.documents.addon import NEEDS
from llm_kb.errors import KbError
from llm_kb.files.conversion import NO_TEXT
from llm_kb.search.word_vectors import is_word
from llm_kb.texts.html.formulas import formula_text
from llm_kb.texts.html.to_markdown import html_to_markdown
from llm_kb.texts.html.tree import Element

MEMORY_BYTES = 500_000_000
PROCESSOR_SECONDS = 10
MOST_UNPACKED, MOST_TEXT = 200_000_000, 6_000_000
"""Bytes that a packed document may unpack to, and the part of it that is its text: the library
takes 60 times as much memory."""

_SHARE = 0.8
"""The share of its time after which a conversion returns the pages that it has."""


class BadDocumentError(KbError):
    """A document that cannot be converted."""


def main() -> None:
    """Convert standard input; the arguments are its kind and the seconds that it may take.

    Errors go to standard error.
    """
    _limit()
    logging.disable()  # the libraries warn at length, and quote the document
    kind, seconds, data = sys.argv[1], float(sys.argv[2]), sys.stdin.buffer.read()
    try:
        text = convert_pdf(data, seconds) if kind == "pdf" else convert_docx(data)
        if not text.strip():
            raise BadDocumentError(NO_TEXT)  # noqa: TRY301
        written = text.encode("utf-8", "replace")
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
    return f"a library is missing; to read it: {NEEDS}" if is_missing else name


def _limit() -> None:
    with suppress(OSError, ValueError):  # not over a harder limit
        import resource  # noqa: PLC0415 - as above

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


def convert_pdf(data: bytes, seconds: float = 10) -> str:
    """Return the pages of a PDF; the headings are its bookmarks, else one for each page.

    Near the end of its time the pages so far are all, with a note; the first is always read.
    """
    import pypdf  # noqa: PLC0415 - an extra

    end = time.monotonic() + seconds * _SHARE
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise BadDocumentError("it needs a password")
    bookmarks: dict[int, list[tuple[int, str]]] = {}
    with suppress(Exception):  # a broken outline costs the headings alone
        for at, level, title in _iter_bookmarks(reader, reader.outline):
            bookmarks.setdefault(at, []).append((level, title))
    numbers = takewhile(lambda at: not at or time.monotonic() < end, range(len(reader.pages)))
    pages = [_read_page(reader.pages[at]) for at in numbers]
    title = " ".join(str((reader.metadata and reader.metadata.title) or "").split())
    parts = [f"# {title}"] if title else []
    if missing := len(reader.pages) - len(pages):
        parts.append(
            f"> The last {missing:,} of {len(reader.pages):,} pages are missing:"
            " converting it takes too long"
        )
    elif not any(pages):
        return ""
    for number, text in enumerate(pages):
        if bookmarks:
            marked = set_headings(text, bookmarks.get(number, ()))
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


_LONGEST_NUMBER = 8
_LONGEST_LINE = 1_000
"""Letters of what may be before a title in its line, and of a line that may be a title's."""


def set_headings(text: str, bookmarks: Sequence[tuple[int, str]]) -> str:
    """Return a page with a heading for each bookmark: in place of its line, or above the page."""
    lines = text.split("\n")
    places: dict[str, list[int]] = {}
    for at, line in enumerate(map(_letters, lines)):
        # Before the title may be a number, or a word such as "Chapter".
        for cut in range(min(len(line), _LONGEST_NUMBER + 1) if len(line) < _LONGEST_LINE else 0):
            places.setdefault(line[cut:], []).append(at)
    above = []
    start = 0
    for level, title in bookmarks:
        heading = f"{'#' * min(level + 1, 6)} {title}"
        found = places.get(_letters(title), [])
        following = bisect_left(found, start)
        if following == len(found):
            above.append(heading)
            continue
        lines[found[following]] = f"\n{heading}\n"
        start = found[following] + 1
    return "\n\n".join([*above, "\n".join(lines)])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def convert_docx(data: bytes) -> str:
    """Return the text of a DOCX with headings, lists, tables and formulas, without pictures."""
    import mammoth  # noqa: PLC0415 - an extra

    _check_archive(data)
    without = mammoth.images.img_element(lambda _: {})
    written = mammoth.convert_to_html(_rewrite(data), convert_image=without, style_map=_STYLES)
    html = _ITEM.sub(r'<li value="\1">', written.value)
    html = _CODE.sub(lambda found: f"<pre>{found[0].replace('</p>', '<br>')}</pre>", html)
    return html_to_markdown(f"<main>{_MARKS.sub('', html)}</main>", "")


def _check_archive(data: bytes) -> None:
    """Raise BadDocumentError for a document that is not an archive, or unpacks to too much."""
    try:
        members = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except zipfile.BadZipFile as error:
        raise BadDocumentError("it is damaged, or not of the kind that its name says") from error
    sizes = {each.filename: each.file_size for each in members}
    if sum(sizes.values()) > MOST_UNPACKED:
        raise BadDocumentError(f"it unpacks to more than {MOST_UNPACKED // 1_000_000} MB")
    if max((sizes[name] for name in sizes if name.endswith(".xml")), default=0) > MOST_TEXT:
        raise BadDocumentError(f"its text is more than {MOST_TEXT // 1_000_000} MB of XML")


def _rewrite(data: bytes) -> io.BytesIO:
    """Return a DOCX with what the library leaves out in forms that it keeps.

    Formulas become words, styles with a level of the outline those of headings; the numbers of
    items and lines of code are marked.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            is_text = name.startswith("word/") and name.endswith(".xml")
            new.writestr(name, _rewrite_part(part) if is_text else part)
    return written


_STYLES = "\n".join(
    ["p[style-name='Title'] => h1:fresh"]
    + [f"p[style-name='heading {level}'] => h6:fresh" for level in (7, 8, 9)]
)
_NUMBER, _END, _LINE = "\ue000", "\ue001", "\ue002"
"""Marks of the number of an item, of its end, and of a line of code."""
_MARKS = re.compile(f"{_NUMBER}\\d+{_END}|<p>{_LINE}|{_LINE}")
_ITEM = re.compile(f"<li>{_NUMBER}(\\d+){_END}")
_CODE = re.compile(f"(?:<p>{_LINE}(?:(?!</?p>).)*</p>)+")
_MONOSPACED = re.compile(r"mono|courier|consolas|menlo|\bcode\b", re.IGNORECASE)


def _rewrite_part(part: bytes) -> bytes:
    root = ET.fromstring(part)  # noqa: S314 - in a process of its own
    space = root.tag.rpartition("}")[0]
    _name_headings(root, f"{space}}}")
    counts: dict[str, list[int]] = {}
    for paragraph in root.iter(f"{space}}}p"):
        mark = _count_item(paragraph, f"{space}}}", counts) + _mark_code(paragraph, f"{space}}}")
        if mark:
            begin = ET.Element(f"{space}}}r")
            ET.SubElement(begin, f"{space}}}t").text = mark
            paragraph.insert(int(_name(paragraph[0]) == "pPr"), begin)
    for parent in [*root.iter()]:
        for at, child in enumerate(parent):
            if _name(child) in {"oMath", "oMathPara"}:
                parent[at] = ET.Element(f"{space}}}r")
                ET.SubElement(parent[at], f"{space}}}t").text = formula_text(_as_mathml(child))
    return ET.tostring(root)


def _name_headings(root: ET.Element, space: str) -> None:
    """Name the styles that have a level of the outline, their own or inherited, as headings."""
    styles = {each.get(f"{space}styleId", ""): each for each in root.iter(f"{space}style")}
    for each in styles.values():
        style: ET.Element | None = each
        for _ in range(10):
            level = _read(style, space, "pPr", "outlineLvl")
            name = each.find(f"{space}name")
            if level and level in "012345678" and name is not None:
                name.set(f"{space}val", f"heading {int(level) + 1}")
                break
            style = styles.get(_read(style, space, "basedOn"))


def _count_item(paragraph: ET.Element, space: str, counts: dict[str, list[int]]) -> str:
    """Return the mark of an item of a list: a list goes on after what is between its items."""
    list_ = _read(paragraph, space, "pPr", "numPr", "numId")
    level = _read(paragraph, space, "pPr", "numPr", "ilvl") or "0"
    if not list_.strip("0") or level not in "012345678":
        return ""
    numbers = counts.setdefault(list_, [])
    del numbers[int(level) + 1 :]
    numbers += [0] * (int(level) + 1 - len(numbers))
    numbers[-1] += 1
    return f"{_NUMBER}{numbers[-1]}{_END}"


def _mark_code(paragraph: ET.Element, space: str) -> str:
    """Return the mark of a line of code if all of a paragraph is in a font of one width."""
    runs = [each for each in paragraph.iter(f"{space}r") if each.find(f"{space}t") is not None]
    fonts = [each.find(f"{space}rPr/{space}rFonts") for each in runs]
    names = [each.get(f"{space}ascii", "") if each is not None else "" for each in fonts]
    is_code = names and all(map(_MONOSPACED.search, names))
    return _LINE if is_code and paragraph.find(f"{space}pPr/{space}numPr") is None else ""


def _read(element: ET.Element | None, space: str, *path: str) -> str:
    """Return the value of an element below another one; empty without it."""
    place = "/".join(f"{space}{name}" for name in path)
    found = element.find(place) if element is not None else None
    return found.get(f"{space}val", "") if found is not None else ""


def _as_mathml(node: ET.Element) -> Element:
    """Return a formula of Office, or a part of one, as MathML."""
    name = _name(node)
    inner = [_as_mathml(child) for child in node if not _name(child).endswith("Pr")]
    children: list[Element | str] = [*inner] or [node.text or ""]
    if name == "rad":
        filled = [part for part in inner if part.text().strip()]
        return Element("mroot" if len(filled) > 1 else "msqrt", {}, [*reversed(filled)])
    if name == "d":
        begin, end = _sign(node, "begChr", "("), _sign(node, "endChr", ")")
        rows = [part for pair in zip(inner, repeat(_sign(node, "sepChr", "|"))) for part in pair]
        children = [begin, *rows[:-1], end]
    elif name == "nary":
        limits = [part for part in inner if part.tag in {"sub", "sup"} and part.text().strip()]
        names = "".join(part.tag for part in limits)
        sign = Element(f"m{names}", {}, [_sign(node, "chr", "∫"), *limits])
        children = [sign, *(part for part in inner if part.tag == "e")]
    return Element(_MATHML.get(name, name), {}, children)


def _sign(node: ET.Element, name: str, default: str) -> str:
    """Return a sign that the properties of a part of a formula state."""
    properties = next(iter(node), node)
    stated = (child for child in properties if _name(child) == name)
    return next((value for child in stated for value in child.attrib.values()), default)


def _name(node: ET.Element) -> str:
    """Return the name of an element without its namespace, of which there are two."""
    return node.tag.rpartition("}")[2]


_MATHML = {
    "sSup": "msup", "sSub": "msub", "sSubSup": "msubsup", "f": "mfrac", "m": "mtable",
    "eqArr": "mtable", "mr": "mtr", "func": "mtr", "limLow": "munder", "limUpp": "mover",
}  # fmt: skip

if __name__ == "__main__":
    main()
