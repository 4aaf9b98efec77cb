"""Draw docs/growth.svg from the table of bench/RESULTS.md that bench/growth.py printed.

Run it when the table has changed: `python scripts/plot_growth.py`. A test compares the two.
"""

from __future__ import annotations

import re
from math import log10
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench" / "RESULTS.md"
PLOT = PROJECT / "docs" / "growth.svg"

LINES = {"first index": "index", "check": "check", "list": "list", "cold search": "search"}
LEFT, TOP, WIDTH, HEIGHT = 70, 64, 560, 260
FILES, SECONDS = (800, 300_000), (0.1, 1000)

STYLE = """\
text{font:13px system-ui,sans-serif;fill:#444}.title{font-size:16px;font-weight:600;fill:#111}
.grid{stroke:#ddd}.index{stroke:#b0612b;fill:#b0612b}.check{stroke:#8a4fb0;fill:#8a4fb0}
.list{stroke:#3a8a4d;fill:#3a8a4d}.search{stroke:#2f6fc4;fill:#2f6fc4}.bare{stroke:#888;fill:#888}
polyline{fill:none!important;stroke-width:2.5}.end{text-anchor:end}.middle{text-anchor:middle}
text.index,text.check,text.list,text.search,text.bare{stroke:none;font-weight:600}rect{fill:#fff}
@media(prefers-color-scheme:dark){rect{fill:#14181f}text{fill:#b9c0cb}.title{fill:#eef1f5}
.grid{stroke:#333a45}.index{stroke:#e0925a;fill:#e0925a}.check{stroke:#c08ae0;fill:#c08ae0}
.list{stroke:#6cc082;fill:#6cc082}.search{stroke:#6ea8f5;fill:#6ea8f5}.bare{stroke:#999;fill:#999}}"""


COLUMNS = (
    *("first index", "cold search", "warm search", "after 1", "after 1,000", "list", "learn"),
    *("prompt", "check", "FTS5: index", "FTS5: search", "rg"),
)


def read_table(text: str) -> list[dict[str, float]]:
    """Return the rows of the table in RESULTS.md: seconds by column, and `files`."""
    rows = []
    for line in re.findall(r"^\| (?:Linux 6\.1: )?[\d,]+ \|.*;.*\|$", text, re.MULTILINE):
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) == len(COLUMNS):
            texts = [cell.partition(";")[0].removesuffix(" ms") for cell in cells]
            pairs = zip(COLUMNS, texts, strict=True)
            values = {column: float(text) for column, text in pairs if text != "-"}
            rows.append({"files": float(name.rpartition(" ")[2].replace(",", "")), **values})
    return [row for row in rows if row["files"] > 1]


def draw(rows: list[dict[str, float]]) -> str:
    """Return the seconds of each command over the number of files, both axes logarithmic."""
    bottom = TOP + HEIGHT
    parts = [
        *(
            f'<path class="grid" d="M{LEFT} {_y(s):.0f}H{LEFT + WIDTH}"/>'
            for s in (0.1, 1, 10, 100)
        ),
        *(
            f'<text class="end" x="{LEFT - 8}" y="{_y(s) + 4:.0f}">{s:g} s</text>'
            for s in (0.1, 1, 10, 100)
        ),
        *(
            f'<text class="middle" x="{_x(n):.0f}" y="{bottom + 18}">{n:,}</text>'
            for n in (1_000, 10_000, 50_000)
        ),
    ]
    columns = {"FTS5: index": "bare", **LINES}
    last, lowest = rows[-1], float(bottom)
    for column in sorted(columns, key=last.__getitem__):
        name = columns[column]
        places = [(_x(row["files"]), _y(row[column])) for row in rows]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="{name}" points="{path}"/>')
        # A label stands right of its line, above the one before.
        lowest = min(places[-1][1] + 4, lowest - 16)
        label = "index, bare FTS5" if name == "bare" else column
        x = places[-1][0] + 8
        parts.append(f'<text class="{name}" x="{x:.0f}" y="{lowest:.0f}">{label}</text>')
    lines = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 380" role="img">
<title>Processor time of commands, against the files in the topic</title>
<style>{STYLE}</style>
<rect width="660" height="380" rx="8"/>
<text class="title" x="24" y="34">Processor time of commands, by the files of a topic</text>
{lines}
<text class="middle" x="340" y="{bottom + 40}">files in the topic</text>
</svg>
"""


def _x(files: float) -> float:
    return LEFT + WIDTH * log10(files / FILES[0]) / log10(FILES[1] / FILES[0])


def _y(seconds: float) -> float:
    share = log10(max(seconds, SECONDS[0]) / SECONDS[0]) / log10(SECONDS[1] / SECONDS[0])
    return TOP + HEIGHT * (1 - share)


if __name__ == "__main__":
    PLOT.write_text(draw(read_table(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
