"""Draw the pictures of a terminal in docs/: commands in docs/examples/weather and what they print.

Run it with the environment of `make test`: `.venv/bin/python scripts/screenshot.py`. A test
compares the words of the pictures with what the commands print. In the picture of an answer the
model is a script; what `llm` and llm-kb print is recorded.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests.console import EXAMPLES, transcript  # noqa: E402 - found by the line above
from tests.openai_server import Calls  # noqa: E402


class Picture(NamedTuple):
    """Commands, and what a model answers to them."""

    commands: tuple[str, ...]
    setup: str = ""
    turns: tuple[str | Calls, ...] = ()


PICTURES = {
    PROJECT / "docs" / "terminal.svg": Picture(
        (
            "llm kb init",
            "llm kb prompt | head -16",
            "llm kb search -n 1 when are readings moved to the archive",
        )
    ),
    PROJECT / "docs" / "answer.svg": Picture(
        ('llm -T learn --td "Readings from 2009 are missing. Where could they be?"',),
        setup="llm kb init",
        turns=(
            [("learn", {"topic": "docs"})],
            [("learn", {"topic": "docs", "subjects": ["storage#retention"]})],
            "They are in the archive. Readings older than ten years are moved there on the first\n"
            "of each month, by `jobs/archive.py`. The archive is read-only.",
        ),
    ),
}

CHARACTER, LINE, MARGIN = 8.4, 20, 22
COLUMNS = 96


def draw(text: str) -> str:
    """Return a picture of a terminal that shows `text`; commands begin with `$`."""
    lines = [line[:COLUMNS] for line in text.rstrip("\n").split("\n")]
    width, height = round(COLUMNS * CHARACTER) + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN + 18
    rows = "\n".join(
        f'<text class="{"typed" if line.startswith("$ ") else "shown"}" x="{MARGIN}"'
        f' y="{MARGIN + 30 + number * LINE}" xml:space="preserve">{escape(line)}</text>'
        for number, line in enumerate(lines)
        if line
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>llm-kb in a terminal</title>
<style>text{{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d6dae1}}
.typed{{fill:#8fd48f;font-weight:bold}}</style>
<rect width="{width}" height="{height}" rx="10" fill="#1e2229"/>
<circle cx="22" cy="20" r="6" fill="#f46b5d"/><circle cx="42" cy="20" r="6" fill="#f0bc4f"/>
<circle cx="62" cy="20" r="6" fill="#62c554"/>
{rows}
</svg>
"""


def record(picture: Picture) -> str:
    """Run the commands; return what a terminal shows."""
    return transcript(
        *picture.commands,
        project=EXAMPLES / "weather",
        setup=picture.setup,
        turns=picture.turns,
    )


if __name__ == "__main__":
    for path, picture in PICTURES.items():
        path.write_text(draw(record(picture)), encoding="utf-8")
