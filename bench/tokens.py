"""Tokens sent for one question: all pages of a tree, or its menu and what is read of it.

    python bench/tokens.py           prints the table of RESULTS.md
    python scripts/plot_tokens.py    draws docs/tokens.svg from it

The pages are Django's documentation, first those that answer the questions of `reading.py`, then
the others by name. "All pages" is what `llm -f` would send: the text of each page, once. The other
figure counts every request that a question takes with `-T learn`: the section, the tools and the
question, and again with the answer of each call, as the scripted reader of `reading.py` makes
them. It is the mean of the questions that the reader answers, with four characters to a token.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from statistics import mean

from harness import CACHE, fetch
from reading import DJANGO, read_search

from llm_kb import KnowledgeBase

PAGES = (1, 3, 10, 30, 100, 300)
CHARACTERS = 4
"""Of a token, the estimate that `llm kb` uses too."""


def find_pages(root: Path) -> list[Path]:
    """Return the pages of a documentation, those first that answer a question."""
    pages = [path for path in sorted(root.rglob("*.txt")) if path.is_file()]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    answering = {
        path
        for pattern in DJANGO.values()
        for path in [next((p for p in pages if re.search(pattern, texts[p])), None)]
        if path
    }
    return [*sorted(answering), *(path for path in pages if path not in answering)]


def write_tree(place: Path, root: Path, pages: list[Path]) -> int:
    """Write a project with these pages; return their characters."""
    shutil.rmtree(place, ignore_errors=True)
    characters = 0
    for page in pages:
        target = place / "docs" / page.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        characters += len(page.read_text(encoding="utf-8"))
        shutil.copyfile(page, target)
    (place / "llm-kb.toml").write_text(
        '[kb.topic.docs]\ntitle = "Documentation"\nsubjects = "docs"\n'
        'introduction = "How the framework is used."\n'
    )
    return characters


def count_sent(kb: KnowledgeBase, question: str, answer: str) -> int | None:
    """Return the characters of all requests until the answer was read; None if it was not."""
    arguments = kb.add_to()
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in arguments["tools"]
    ]
    held = len(arguments["system"] or "") + len(json.dumps(tools)) + len(question)
    sent = held
    for _, text in zip(range(4), read_search(kb, question), strict=False):
        held += len(text)
        sent += held
        if re.search(answer, text):
            return sent
    return None


def main() -> None:
    os.environ["LLM_USER_PATH"] = str(CACHE / "tokens-user")
    root = fetch("django==5.2.19") / "docs"
    pages = find_pages(root)
    print("| pages | every page, tokens | a menu and what is read, tokens | answered |")
    print("|---|---|---|---|")
    for count in (*PAGES, len(pages)):
        place = CACHE / "tokens"
        characters = write_tree(place, root, pages[:count])
        kb = KnowledgeBase.discover(place)
        sent = [count_sent(kb, question, answer) for question, answer in DJANGO.items()]
        found = [each for each in sent if each is not None]
        if not found:
            continue
        print(
            f"| {count} | {characters // CHARACTERS:,} | {round(mean(found)) // CHARACTERS:,} |"
            f" {len(found)} of {len(sent)} |"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
