"""Draw docs/search.svg from the table of bench/RESULTS.md that compares with the best other.

Run it when the table has changed: `python scripts/plot.py`. A test compares the two.
"""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench" / "RESULTS.md"
PLOT = PROJECT / "docs" / "search.svg"

KINDS = {
    "asked by users, kept": "users' questions, not tuned with",
    "headings, all": "a deleted heading's section",
    "code, all": "a deleted docstring's function",
    "names": "names of options and functions",
    "words": "such a name, as words",
    "messages": "pasted error messages",
    "misspelled": "one wrong letter",
    "own words, user": "a user's own words for a page",
    "Japanese": "Japanese documentation",
}
_ROW = re.compile(r"\| ([^|]+) \| [\d,]+ \| ([\d.]+) \| [^|]*\| [^|]+ \| ([\d.]+) \| [+-][\d.]+ \|")

LEFT, SCALE, ROW = 250, 4.2, 42


def read_table(text: str) -> dict[str, tuple[float, float]]:
    """Return, by kind of question, hit@5 of llm-kb and of the best other, in percent."""
    found: dict[str, tuple[float, float]] = {}
    for kind, ours, best in _ROW.findall(text):
        # The first table is of words alone; those below it compare other things.
        found.setdefault(kind, (float(ours), float(best)))
    return {kind: found[kind] for kind in KINDS}


def draw(table: dict[str, tuple[float, float]]) -> str:
    """Return a bar chart, two bars for each kind."""
    rows = []
    for number, (kind, values) in enumerate(table.items()):
        top = 70 + number * ROW
        rows.append(f'<text class="kind" x="{LEFT - 12}" y="{top + 20}">{KINDS[kind]}</text>')
        for place, (name, value) in enumerate(zip(("ours", "best"), values, strict=True)):
            y, width = top + place * 15, round(value * SCALE, 1)
            rows.append(f'<rect class="{name}" x="{LEFT}" y="{y}" width="{width}" height="13"/>')
            rows.append(f'<text x="{LEFT + width + 6}" y="{y + 11}">{value:.0f}</text>')
    height = 84 + len(table) * ROW
    lines = "\n".join(rows)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" role="img">
<title>Questions of 100 whose passage is among the first five</title>
<style>text{{font:12px system-ui,sans-serif;fill:#555}}.kind{{font-size:14px;text-anchor:end}}
.title{{font-size:16px;fill:#333}}
.ours{{fill:#3f7fd4}}.best{{fill:#b4bac4}}.paper{{fill:#fff}}
@media(prefers-color-scheme:dark){{text{{fill:#b8bfca}}.title{{fill:#eef1f6}}.best{{fill:#5d6675}}
.paper{{fill:#161b22}}}}</style>
<rect class="paper" width="720" height="{height}" rx="8"/>
<text class="title" x="16" y="24">Answer among the first five, of 100 questions</text>
<rect class="ours" x="{LEFT}" y="40" width="13" height="13"/>
<text x="{LEFT + 19}" y="51">llm-kb, words alone</text>
<rect class="best" x="{LEFT + 170}" y="40" width="13" height="13"/>
<text x="{LEFT + 189}" y="51">the best other: FTS5, bm25s, tantivy, 2 more</text>
{lines}
</svg>
"""


if __name__ == "__main__":
    PLOT.write_text(draw(read_table(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
