"""`llm kb knowledge annotate`: record an annotation of a commit."""

from __future__ import annotations

from dataclasses import asdict
from typing import BinaryIO

import click

from llm_kb.capture.annotation import annotate as write_annotation
from llm_kb.capture.annotation import parse_live_input
from llm_kb.capture.entries import dump_json
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import show_json_document


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
def annotate(file: BinaryIO) -> None:
    """
    Annotate a commit with what an agent learned while making it

    Reads a LiveInput as JSON from FILE or standard input, writes a chronicle/v3
    annotation on its commit and its knowledge to the store, and prints a
    LiveResult. When anything in it is invalid, nothing at all is written.

    \b
        llm kb knowledge annotate <<'EOF'
        {"commit": "HEAD", "summary": "Why it was done this way",
         "wisdom": [{"category": "gotcha", "content": "…", "file": "src/x.py"}],
         "knowledge": [{"type": "convention", "scope": "src/", "rule": "…"}]}
        EOF
    """
    live = parse_live_input(file.read())
    show_json_document(dump_json(asdict(write_annotation(require_cwd(), live))))
