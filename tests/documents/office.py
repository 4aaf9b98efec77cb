"""Makes small documents of each kind that is converted."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import pypdf
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from llm_kb.documents.addon import converters

NOTEBOOK, PDF, DOCX = converters()

M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RELS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def pack(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a packed document of these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path, text in parts.items():
            packed.writestr(path, text)
    return file.getvalue()


def make_pdf(
    pages: Sequence[str],
    bookmarks: Sequence[tuple[str, int]] = (),
    *,
    title: str = "",
    password: str = "",
    owner: str = "",
    algorithm: str = "RC4-128",
) -> bytes:
    """Return a PDF whose pages have these lines, with bookmarks as title and page from 0."""
    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(600, 800)
        lines = " ".join(f"({line}) Tj 0 -20 Td" for line in text.split("\n")) if text else ""
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 50 700 Td {lines} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)  # noqa: SLF001 - the only way
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
    for name, number in bookmarks:
        writer.add_outline_item(title=name, page_number=number)
    if title:
        writer.add_metadata({"/Title": title})
    if password or owner:
        writer.encrypt(password, owner or None, algorithm=algorithm)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def make_docx(paragraphs: Sequence[tuple[str, str]]) -> bytes:
    """Return a DOCX of paragraphs, each with its style (`Heading1`, or none) and text."""
    return pack_docx(
        "".join(
            f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
            for style, text in paragraphs
        )
    )


def pack_docx(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    """Return a DOCX of the XML of its body, and of other `parts` by their paths."""
    links = "".join(
        f'<Relationship Id="r{path}" Type="{OFFICE}/{path[5:-4]}" Target="{path[5:]}"/>'
        for path in parts or ()
    )
    return pack(
        {
            **(parts or {}),
            "word/_rels/document.xml.rels": f"<Relationships {RELS}>{links}</Relationships>",
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
            'content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
            "_rels/.rels": f'<Relationships {RELS}><Relationship Id="a" Type="{OFFICE}/'
            'officeDocument" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f"<w:document {W} {M}><w:body>{body}</w:body></w:document>",
        }
    )
