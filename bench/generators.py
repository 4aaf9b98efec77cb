"""How well the pages of real generators become Markdown: ours beside two libraries.

    python bench/generators.py WORK [GENERATOR...]

generators.toml has one document in the markup of each generator, which makes a page of it below
WORK. What the page must say is taken from the document, never from a reader of HTML: its headings
as headings, its lines of code in fences, the cells of its table each under its column, the labels
of its tabs, its words, and its formula, once. A generator that is not there is left out and named.
GitHub and pkg.go.dev, which run elsewhere, have a page written by hand in their shape. The
libraries are handed the main part that ours has to find. WORK/venv, WORK/NAME/node_modules and the
path are looked through for the generators; see `bench/RESULTS.md` for their packages. Needs
`pip install --group bench`.
"""

from __future__ import annotations

import os
import re
import shlex
import statistics
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from string import Template
from typing import Any

import html_to_markdown as other_library
from pages import find_main, with_markdownify, with_ours

from llm_kb.files.fields import decode_toml

DATA: Any = decode_toml(Path(__file__).with_suffix(".toml").read_text("utf-8"))
DOCUMENT, MARKUPS, GENERATORS = DATA["document"], DATA["markups"], DATA["generators"]
TABS = dict(zip(DOCUMENT["labels"], DOCUMENT["commands"], strict=True))
CODE = (DOCUMENT["code"], *TABS.values())


def write_document(recipe: dict[str, Any]) -> str:
    """Return the document in the markup of a generator."""
    pieces = {"code": CODE[0], **MARKUPS[recipe["markup"]], **recipe}
    blocks = {code: _fill(pieces.get("block", ""), code=code) for code in CODE}
    pieces["block"] = blocks[CODE[0]]
    for name in DOCUMENT["headings"][1:]:
        pieces[name.split()[0].lower()] = _fill(pieces.get("heading", ""), heading=name)
    tabs = (
        _fill(pieces["tab"], label=label, code=code, block=blocks[code])
        for label, code in TABS.items()
    )
    pieces["tabs"] = _fill(pieces.get("around", "$tabs"), tabs="\n\n".join(tabs))
    text = _fill(pieces["text"], **pieces)
    lines = [f"{pieces.get('line', '')}{line}".rstrip() for line in text.split("\n")]
    return pieces.get("before", "") + "\n".join(lines) + pieces.get("after", "")


def _fill(text: str, /, **pieces: str) -> str:
    return Template(text).safe_substitute(pieces)


def build(recipe: dict[str, Any], work: Path, root: Path) -> str:
    """Return the longest page with the document. Raises OSError, SubprocessError, ValueError.

    WORK/venv and the packages of npm below `root` come first on the path.
    """
    for name, text in {recipe["source"]: write_document(recipe), **recipe.get("files", {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    environ = {**os.environ, "ASTRO_TELEMETRY_DISABLED": "1", "CI": "1"}
    environ["PATH"] = f"{work / 'venv/bin'}:{root / 'node_modules/.bin'}:{environ['PATH']}"
    for command in filter(None, recipe.get("command", "").split(";")):
        subprocess.run(
            shlex.split(command), cwd=root, env=environ, check=True, capture_output=True,
            timeout=400,
        )  # fmt: skip
    bodies = [path.read_bytes() for path in sorted(root.glob(recipe["page"]))]
    # DocBook's own style sheets write Latin-1.
    pages = [b.decode("latin-1" if b"charset=ISO-8859-1" in b else "utf-8") for b in bodies]
    return max((page for page in pages if "zebra" in page), key=len)


def measure(text: str) -> list[float]:
    """Return per cent of headings, lines of code, cells, labels, words and formulas kept."""
    lines = [re.sub(r"^(?:> ?| {2,3}(?=\S))+", "", line).rstrip() for line in text.split("\n")]
    titles = [line.lstrip("# ") for line in lines if line.startswith("#")]
    found = re.findall(r"(?ms)^[ >]*(`{3,})[^\n]*\n(.*?)^[ >]*\1", text)
    fences = "\n" + "".join(_without_margin(body) for _, body in found)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    words = re.findall(r"\w+", text.lower())
    kept = (
        [heading in titles for heading in DOCUMENT["headings"]],
        [f"\n{block}\n" in fences for block in CODE for _ in block.split("\n")],
        [row in rows or ["", *row[1:]] in rows for row in DOCUMENT["rows"] for _ in row],
        [_is_above(text, label, command) for label, command in TABS.items()],
        [word.lower() in words for word in DOCUMENT["words"].split()],
        [text.count(DOCUMENT["formula"]) == 1],
    )
    return [100 * statistics.fmean(each) for each in kept]


def _without_margin(code: str) -> str:
    """Return code without what a list or a quotation around it puts before each line."""
    lines = [re.sub(r"^(?:> ?)+", "", line).rstrip() for line in code.split("\n")]
    return textwrap.dedent("\n".join(lines)) + "\n"


def _is_above(text: str, label: str, code: str) -> bool:
    """Tell whether the last line before some code, but for marks, is the label of its tab."""
    before = text.partition(code)[0].rsplit("```", 1)[0].strip().rsplit("\n", 1)[-1]
    return before.strip("*#-. ").casefold() == label.casefold()


def with_other(html: str) -> str:
    found = other_library.convert(str(find_main(html)))
    return found if isinstance(found, str) else str(getattr(found, "content", found))


CONVERTERS = {"ours": with_ours, "markdownify": with_markdownify, "html-to-markdown": with_other}


def main() -> None:
    work = Path(sys.argv[1]).resolve()
    print(
        "headings / lines of code / cells / labels of tabs / words / formulas kept, in per cent, ms"
    )
    for name in sys.argv[2:] or GENERATORS:
        page = work / name / "made.html"
        if not page.exists():
            try:
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(build(GENERATORS[name], work, page.parent))
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                said = getattr(error, "stderr", b"") or b""
                print(f"{name}: left out, {error}", said.decode()[-600:], file=sys.stderr)
                continue
        html = page.read_text()
        row = []
        for convert in CONVERTERS.values():
            started = time.perf_counter()
            text = convert(html)
            spent = 1000 * (time.perf_counter() - started)
            row.append(" / ".join(f"{x:.0f}" for x in [*measure(text), spent]))
        print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
