"""Rendering a section, beside joining the bare texts of its subjects.

10,000 pre-loaded Markdown subjects, plain ones and some with HTML. `render_section`
writes the tags, quotes names and defuses closing tags on the way; the bare join only
copies, so the ratio falls as subjects grow: what a subject costs besides copying is
printed too. "mixed" are lengths as documentation has them, 0.5 to 20 KB, most of them
short. Prints ratios of best rounds; run with `python bench/rendering.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from llm_kb.rendering.presentation import present
from llm_kb.rendering.section import PreloadedTopic, render_section
from llm_kb.subjects.topics import Content, Subject, Topic, slugify

SUBJECTS = 10_000
ROUNDS = 15

PARAGRAPH = (
    "Reviews look at behaviour first. A change that cannot be explained in two\n"
    "sentences is split, and `make test` is run before anyone is asked.\n\n"
)
HTML = "<details><summary>Why</summary>So that it stays short.</details>\n\n"

MIXED = (500, 1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000, 8_000, 20_000)


def make_subject(number: int, length: int, *, html: bool = False) -> tuple[Subject, Content]:
    """Return a subject and its bytes, `length` of them in paragraphs or a little more."""
    path = f"area-{number % 31}/subject-{number:05}.md"
    paragraph = PARAGRAPH + HTML if html else PARAGRAPH
    data = (f"# Subject {number}\n\n" + paragraph * (length // len(paragraph) + 1)).encode()
    subject = Subject(slug=slugify(path), name=slugify(path), path=path)
    return subject, Content(data=data, size=len(data))


def measure(function: Callable[[], object]) -> float:
    """Return the seconds of processor time of the best round: others share the machine."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def compare(name: str, lengths: Sequence[int], *, html: bool = False) -> None:
    """Print one line of ratios."""
    topic = Topic(id="bench", root=Path("/bench"), title="Bench", description="Many subjects.")
    pairs = [
        make_subject(number, lengths[number % len(lengths)], html=html)
        for number in range(SUBJECTS)
    ]
    presented = tuple(present(*pair) for pair in pairs)
    preloaded = [PreloadedTopic(topic=topic, subjects=presented)]
    texts = [item.body for item in presented]
    bare = measure(lambda: "\n".join(texts))
    rendered = measure(lambda: render_section(preloaded))
    print(
        f"{name:14} render / join {rendered / bare:6.2f}"
        f"   besides copying {(rendered - bare) / SUBJECTS * 1e6:5.2f} µs a subject"
    )


def main() -> None:
    """Compare at several lengths."""
    compare("mixed", MIXED)
    compare("mixed, HTML", MIXED, html=True)
    for length in (500, 2_000, 8_000):
        compare(f"{length:,} bytes", [length])


if __name__ == "__main__":
    main()
