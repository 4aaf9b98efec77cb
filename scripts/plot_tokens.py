"""Draw docs/tokens.svg from the table of bench/RESULTS.md that bench/tokens.py printed.

Run it when the table has changed: `python scripts/plot_tokens.py`. A test compares the two.
"""

from __future__ import annotations

import re
from math import log10
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench" / "RESULTS.md"
PLOT = PROJECT / "docs" / "tokens.svg"

_ROW = re.compile(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| \d+ of \d+ \|$", re.MULTILINE)

LEFT, TOP, WIDTH, HEIGHT = 92, 64, 530, 250
PAGES, TOKENS = (1, 1000), (1_000, 2_000_000)

STYLE = """\
text{font:13px system-ui,sans-serif;fill:#444}.title{font-size:16px;font-weight:600;fill:#111}
.grid{stroke:#ddd}.all{stroke:#b0612b;fill:#b0612b}.ours{stroke:#2f6fc4;fill:#2f6fc4}
polyline{fill:none!important;stroke-width:2.5}.end{text-anchor:end}.middle{text-anchor:middle}
text.all,text.ours{stroke:none;font-weight:600}rect{fill:#fff}
@media(prefers-color-scheme:dark){rect{fill:#14181f}text{fill:#b9c0cb}.title{fill:#eef1f5}
.grid{stroke:#333a45}.all{stroke:#e0925a;fill:#e0925a}.ours{stroke:#6ea8f5;fill:#6ea8f5}}"""


def read_table(text: str) -> list[tuple[int, int, int]]:
    """Return pages, tokens of all of them, and tokens sent with a menu."""
    rows = [[int(cell.replace(",", "")) for cell in row] for row in _ROW.findall(text)]
    return [(pages, everything, ours) for pages, everything, ours in rows]


def draw(table: list[tuple[int, int, int]]) -> str:
    """Return two lines over the number of pages, both axes logarithmic."""
    parts = [*_grid(), *_line("all", [(row[0], row[1]) for row in table])]
    parts += _line("ours", [(row[0], row[2]) for row in table])
    pages, everything, ours = table[-1]
    parts += [
        f'<text class="all end" x="{_x(pages) - 24:.0f}" y="{_y(everything) - 2:.0f}">'
        f"every page: {everything:,}</text>",
        f'<text class="ours end" x="{_x(pages):.0f}" y="{_y(ours) - 12:.0f}">'
        f"a menu and what is read: {ours:,}</text>",
        f'<text class="middle" x="{LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 40}">'
        "pages in the documentation (Django 5.2, a part of it or all)</text>",
    ]
    lines = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 370" role="img">
<title>Tokens sent to answer one question, against the pages in the tree</title>
<style>{STYLE}</style>
<rect width="660" height="370" rx="8"/>
<text class="title" x="24" y="34">Tokens sent to answer one question</text>
{lines}
</svg>
"""


def _grid() -> list[str]:
    rows = [1_000, 10_000, 100_000, 1_000_000]
    columns = [1, 10, 100, 1000]
    right, bottom = LEFT + WIDTH, TOP + HEIGHT
    return [
        *(f'<path class="grid" d="M{LEFT} {_y(row):.0f}H{right}"/>' for row in rows),
        *(f'<text class="end" x="{LEFT - 8}" y="{_y(row) + 4:.0f}">{row:,}</text>' for row in rows),
        *(f'<text class="middle" x="{_x(n):.0f}" y="{bottom + 18}">{n:,}</text>' for n in columns),
    ]


def _line(name: str, points: list[tuple[int, int]]) -> list[str]:
    places = [(_x(pages), _y(tokens)) for pages, tokens in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in places]
    return [f'<polyline class="{name}" points="{path}"/>', *dots]


def _x(pages: float) -> float:
    return LEFT + WIDTH * _share(pages, *PAGES)


def _y(tokens: float) -> float:
    return TOP + HEIGHT * (1 - _share(tokens, *TOKENS))


def _share(value: float, low: float, high: float) -> float:
    """Return where a value is between two others, by its logarithm."""
    return log10(value / low) / log10(high / low)


if __name__ == "__main__":
    PLOT.write_text(draw(read_table(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
