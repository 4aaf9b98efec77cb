"""Draw docs/terminal.svg: commands in docs/examples/weather and what they print.

Run it with the environment of `make test`: `.venv/bin/python scripts/screenshot.py`. A test
compares the words of the picture with what the commands print.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests.console import EXAMPLES, transcript  # noqa: E402 - found by the line above

PICTURE = PROJECT / "docs" / "terminal.svg"
COMMANDS = (
    "llm kb init --all",
    "llm kb prompt | head -6",
    "llm kb search -n 1 when are readings moved to the archive",
)

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


def record() -> str:
    """Run the commands; return what a terminal shows."""
    return transcript(*COMMANDS, project=EXAMPLES / "weather")


if __name__ == "__main__":
    PICTURE.write_text(draw(record()), encoding="utf-8")
