"""What documents bring: PDF, Word documents and notebooks are read as Markdown."""

from __future__ import annotations

from llm_kb.hookspecs import hookimpl
from llm_kb.texts.formats import Format, Kind, Proposed

PROGRAM = "llm_kb.documents.office"
NEEDS = "llm install 'llm-kb[documents]'"


@hookimpl
def converters() -> list[Format]:
    """Return the formats of documents."""
    return [
        Format(
            name="Jupyter notebook",
            extensions=("ipynb",),
            kind=Kind.PROSE,
            markup="markdown",
            is_fenced=False,
            proposed=Proposed.EVERYWHERE,
            converter="notebook",
            convert=_convert_notebook,
        ),
        _document("PDF", "pdf", "pypdf", "application/pdf"),
        _document(
            "Word document",
            "docx",
            "mammoth",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
    ]


def _document(name: str, extension: str, package: str, media_type: str) -> Format:
    """Return the format of a document, which a process of its own converts."""
    return Format(
        name=name,
        extensions=(extension,),
        kind=Kind.PROSE,
        markup="markdown",
        is_fenced=False,
        is_page=True,
        is_built=True,
        proposed=Proposed.DOCUMENTATION,
        media_type=media_type,
        converter=extension,
        program=PROGRAM,
        package=package,
        needs=NEEDS,
    )


def _convert_notebook(data: bytes) -> bytes:
    from llm_kb.documents.notebook import read_notebook

    return read_notebook(data)
