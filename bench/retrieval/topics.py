"""At what cosine a topic is about a query: what `NEAR` of lookup.py lets through.

    python bench/retrieval/topics.py        needs `pip install --group bench`

Topics are the distributions installed beside Python, by name and summary; the query
about each is its own list of keywords. Printed is how many queries let their own topic
through at some cosines, how many it is among the three nearest for, and how many other
topics come with it, on average and after the cut to three.
"""

from __future__ import annotations

from importlib.metadata import distributions

import numpy as np
from rivals import load_embedder

from llm_kb.references.lookup import MOST_NEAR, NEAR


def main() -> None:
    embed = load_embedder().embed
    topics: dict[str, tuple[str, str]] = {}
    for distribution in distributions():
        of = distribution.metadata
        if of["Summary"]:
            words = " ".join((of["Keywords"] or "").replace(",", " ").split())
            topics[of["Name"].lower()] = (f"{of['Name']}\n\n{of['Summary']}", words)
    vectors = dict(zip(topics, embed([text for text, _ in topics.values()]), strict=True))
    asked = {name: words for name, (_, words) in topics.items() if words.count(" ") >= 1}
    questions = dict(zip(asked, embed(list(asked.values())), strict=True))
    print(f"{len(topics)} topics, {len(asked)} queries; NEAR is {NEAR}\n")
    print("| cosine | own | own among 3 | others | others among 3 |\n|---|---|---|---|---|")
    for near in (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5):
        own = own_first = others = others_first = 0
        for name, question in questions.items():
            cosines = {
                other: float(np.dot(question, vector))
                / float(np.linalg.norm(question) * np.linalg.norm(vector))
                for other, vector in vectors.items()
            }
            found = sorted((n for n in cosines if cosines[n] >= near), key=lambda n: -cosines[n])
            first = found[:MOST_NEAR]
            own += name in found
            own_first += name in first
            others += len(found) - (name in found)
            others_first += len(first) - (name in first)
        share = 100 / len(questions)
        shares = f"{own * share:.0f} % | {own_first * share:.0f} %"
        means = f"{others / len(questions):.1f} | {others_first / len(questions):.1f}"
        print(f"| {near} | {shares} | {means} |")


if __name__ == "__main__":
    main()
