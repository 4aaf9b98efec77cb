"""Our matcher beside the regex one would write by hand, and the worst patterns there are.

100,000 slugs as documentation has them. The naive regex translates a pattern piece by
piece, `*` to `[^/]*` and `**/` to `(?:.*/)?`, and is right but can take for ever; ours
takes a level at a time and is to cost a few times as much on ordinary patterns, one by one
and twenty as one, and less than a millisecond on any pattern and slug. Each figure is of
the least processor time of several rounds in turn. Prints a line a row: what, figure, budget.
Run with `python bench/matching.py`.
"""

from __future__ import annotations

import random
import re

from harness import least, report

from llm_kb.subjects.patterns import MAX_GLOB, compile_any, parse_pattern

ROUNDS = 9
WORDS = (
    *("alpha", "beta", "gamma", "delta", "review", "style", "guide", "index", "notes", "model"),
    *("cache", "error", "config", "plugin", "shell", "prompt", "token", "schema", "query"),
)
ORDINARY = (
    *("*", "**", "review", "review/*", "review/**", "**/index", "**/*review*", "*/guide-*"),
    *("**/config/*", "style/**/notes*", "[a-d]*/**", "*-index", "review/style-guide-1?"),
    *("**/plugin/**", "cache/*/error-*", "??????/*", "**/*-query", "token*/**", "*/*/*", "m*l/*"),
)
UNITS = (
    "*a",
    "a*",
    "**/a/",
    "**/*a*/",
    "*?",
    "[a-z]*",
    "**/*/",
    "**/a*a/",
    "*aa",
    "*a?",
    "a/",
    "*/",
)
HEADS = ("", "*", "**/", "**/*")
TAILS = ("c", "*c", "/**/c", "c*", "c/**", "")
SLUGS = {
    "one level": "a" * 255,
    "levels": "a/" * 100 + "aa",
    "mixed": ("a" * 99 + "/") * 39 + "aa",
}
"""Slugs as long and as deep as a walk finds them."""


def make_slugs(count: int) -> list[str]:
    """Return slugs of one to five levels, the same ones each time."""
    rng = random.Random(1)
    return [
        "/".join(
            "-".join(rng.choices(WORDS, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 4))
        )
        + f"-{number}"
        for number in range(count)
    ]


def naive(pattern: str) -> str:
    """Translate a pattern as one would without a thought for bad ones."""
    if pattern == "**":
        return ".+"
    translated = ""
    for piece in re.findall(r"/\*\*$|\*\*/|\*|\?|\[[^]]*\]|.", pattern):
        parts = {"/**": "/.+", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
        escaped = piece if piece.startswith("[") else re.escape(piece)
        translated += parts.get(piece, escaped)
    return translated


def compare_ordinary(slugs: list[str]) -> None:
    """Compare ordinary patterns with naive regexes, one by one and as one."""
    ratios: dict[str, float] = {}
    ours_all = naive_all = 0.0
    for text in ORDINARY:
        ours = parse_pattern(text).matches
        theirs = re.compile(naive(text), re.DOTALL).fullmatch
        assert [bool(ours(slug)) for slug in slugs] == [bool(theirs(slug)) for slug in slugs]
        best = least(
            {
                "ours": lambda m=ours: [slug for slug in slugs if m(slug)],
                "naive": lambda m=theirs: [slug for slug in slugs if m(slug)],
            },
            ROUNDS,
        )
        ratios[text] = best["ours"] / best["naive"]
        ours_all += best["ours"]
        naive_all += best["naive"]
    report(f"{len(ORDINARY)} ordinary patterns one by one / naive regexes", ours_all / naive_all, 4)
    worst = max(ratios, key=ratios.__getitem__)
    report(f"  the slowest of them, {worst}", ratios[worst])
    texts = [text for text in ORDINARY if text != "**"] + ["notes"]
    either = compile_any([parse_pattern(text) for text in texts])
    regex = re.compile("|".join(map(naive, texts)), re.DOTALL).fullmatch
    best = least(
        {
            "ours": lambda: [slug for slug in slugs if either(slug)],
            "naive": lambda: [slug for slug in slugs if regex(slug)],
        },
        ROUNDS,
    )
    report(f"{len(texts)} patterns as one / one naive regex", best["ours"] / best["naive"], 8)


def find_worst(most: int) -> tuple[float, str, str]:
    """Return the longest a pattern of so many characters takes in ms, with it and the slug."""
    worst = (0.0, "", "")
    for unit in UNITS:
        for head in HEADS:
            for tail in TAILS:
                text = head + unit * ((most - len(head + tail)) // len(unit)) + tail
                matches = parse_pattern(text).matches
                matches("a")
                for name, slug in SLUGS.items():
                    times = least({"it": lambda m=matches, s=slug: m(s)}, 5)
                    worst = max(worst, (times["it"] * 1000, text, name))
    return worst


def main() -> None:
    """Print every row."""
    compare_ordinary(make_slugs(20_000))
    for most in (20, 60, 200, 500, MAX_GLOB):
        milliseconds, text, slug = find_worst(most)
        shown = text if len(text) < 16 else text[:13] + "..."
        report(f"worst of {most} characters, ms ({shown} on {slug})", milliseconds, 1)


if __name__ == "__main__":
    main()
