"""How often a review says rightly, and wrongly, that a passage says nearly the same.

    python bench/retrieval/alike.py PYTEST DJANGO

Takes checkouts of both. What is asked is in `questions/alike.toml`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_kb.config.workspace import decode_bytes
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.upkeep.proposed import ALIKE, ASKED

TEXTS = Path(__file__).parent / "questions" / "alike.toml"
SHARES = (0.3, 0.35, ALIKE, 0.45, 0.5, 0.6)


def main() -> None:
    texts: Any = decode_bytes(TEXTS.read_bytes(), TEXTS)
    print("| documentation | share | right | of which names the file | wrong |")
    print("|---|---|---|---|---|")
    for name, root in zip(("pytest", "django"), sys.argv[1:], strict=True):
        same = texts["says_the_same"][name]
        docs = next(each for each in ("doc/en", "docs") if Path(root, each).is_dir())
        kb = KnowledgeBase.discover(root, fragments=[f"kb.topic.docs.subjects={docs!r}"])
        right = [(*_ask(kb, text), file) for file, text in same]
        wrong = [_ask(kb, text)[0] for text in texts["is_new"]]
        for share in SHARES:
            shown = [(path, file) for score, path, file in right if score >= share]
            named = sum(path.startswith(file) for path, file in shown)
            false = sum(score >= share for score in wrong)
            figures = (f"{len(shown)} of {len(same)}", named, f"{false} of {len(wrong)}")
            print(f"| {name} | {share} |", *(f"{each} |" for each in figures))


def _ask(kb: KnowledgeBase, text: str) -> tuple[float, str]:
    """Return the highest score of a passage for a text, and its path."""
    found: Sequence[tuple[float, str]] = [
        (each.score, each.path) for each in kb.find_passages(text[:ASKED], limit=3).passages
    ]
    return max(found, default=(0.0, ""))


if __name__ == "__main__":
    main()
