"""How much of what answers a search shows, for questions written for passages of real projects.

    python bench/retrieval/shown.py

Printed are the characters of an answer, the share of the lines that answer (up to 30 of each place)
that its passages show, and how often the first, second, … passage is the first that shows any. And
how often nothing is found: for these, and for questions about the world (elsewhere.txt).
"""

from __future__ import annotations

import os
import re
from collections import Counter

from known_items import QUESTIONS, Query, build_trees
from sources import CACHE, SPLITS

from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.passages import FOUND_NOTHING

MOST_LINES = 30

_PASSAGE = re.compile(
    r'^(?:<passage ")?[^/\n]+/([^#\n]+)#[^"\n]*? \(lines? (\d+)-?(\d*)', re.MULTILINE
)
"""The lines of a passage, or the line of the sentence that one is named with."""


def find_shown(query: Query, answer: str) -> list[set[int]]:
    """Return the lines of each passage that are of the place that answers."""
    last = min(query.last_line, query.first_line + MOST_LINES - 1)
    wanted = set(range(query.first_line, last + 1))
    return [
        wanted & set(range(int(first), int(end or first) + 1))
        if query.path.rpartition(".")[0] == name
        else set()
        for name, first, end in _PASSAGE.findall(answer)
    ]


def main() -> None:
    os.environ["LLM_USER_PATH"] = str(CACHE / "shown-user")
    place = CACHE / "trees" / "as-it-is"
    questions = [
        (tree.directory.name, query)
        for split in ("tune", "report")
        for tree in build_trees(SPLITS[split])
        for kind, queries in tree.questions.items()
        for query in (queries if kind.startswith("own words") else ())
    ]
    topics = sorted({name for name, _ in questions})
    rows = [f'[kb.topic.{name}]\nsubjects = "{name}"\n' for name in topics]
    (place / "llm-kb.toml").write_text("".join(rows))
    kb = KnowledgeBase.discover(place)
    characters = share = nothing = 0
    first: Counter[int] = Counter()
    for name, query in questions:
        answer = kb.answer_search({"question": query.text, "topic": name})
        shown = find_shown(query, answer)
        lines = min(query.last_line - query.first_line + 1, MOST_LINES)
        characters += len(answer)
        nothing += answer.startswith(FOUND_NOTHING)
        share += len(set().union(*shown)) / lines
        first[next((number for number, found in enumerate(shown, 1) if found), 0)] += 1
    count = len(questions)
    print(
        f"{count} questions, {characters / count:,.0f} characters, {share / count:.1%} of the lines"
    )
    print(f"first shown by passage: {sorted(first.items())} (0: by none)")
    elsewhere = (QUESTIONS / "elsewhere.txt").read_text().splitlines()
    answers = [
        kb.answer_search({"question": question, "topic": name})
        for name in topics
        for question in elsewhere
    ]
    refused = sum(answer.startswith(FOUND_NOTHING) for answer in answers)
    print(f"nothing found: {nothing} of {count}; of the world {refused} of {len(answers)}")


if __name__ == "__main__":
    main()
