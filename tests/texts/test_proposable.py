"""The formats that models may propose."""

from __future__ import annotations

from llm_kb.texts.formats import FORMATS


def test_every_row_that_may_be_proposed() -> None:
    assert [(row.name, row.extensions) for row in FORMATS if row.proposable] == [
        ("Markdown", ("md", "markdown", "mdx")),
        ("reStructuredText", ("rst",)),
        ("AsciiDoc", ("adoc", "asciidoc")),
        ("Org", ("org",)),
    ]
