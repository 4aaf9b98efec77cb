"""What it wins that a model writes a question in the words of an answer before the search.

    python bench/retrieval/rewritten.py

`questions/rewritten.toml` has what two writers answered to exactly the request of `llm kb search
-m`: one who is told the name of the project, as a menu tells it, and one who is not. They are
replayed through the code of that option, in place of a model. Printed are the questions of which an
answer is first, among five and among ten.
"""

from __future__ import annotations

from asked import QUESTIONS, Asked, read_projects

from llm_kb.files.fields import decode_toml
from llm_kb.host import rewriting
from llm_kb.knowledge_base.api import KnowledgeBase

WRITERS = ("told", "untold")
REWRITTEN = decode_toml((QUESTIONS / "rewritten.toml").read_text(encoding="utf-8"))
"""By question, what each writer wrote."""


def find_rank(kb: KnowledgeBase, asked: Asked, text: str) -> int:
    """Return the place of the first passage that answers; 99 if none of ten does."""
    found = kb.find_passages(text, limit=10).passages
    places = (
        number
        for number, each in enumerate(found, 1)
        if asked.is_answered_by(f"{each.topic}/{each.path}", each.first_line, each.last_line)
    )
    return next(places, 99)


def rewrite(kb: KnowledgeBase, question: str, writer: str) -> str:
    """Return what is searched if a model answers as this writer did."""
    written = REWRITTEN[question][writer]
    rewriting._ask = lambda model, request: written  # noqa: ARG005, SLF001 - in place of a model
    return rewriting.rewrite_question(kb, question, writer)[0]


def main() -> None:
    ranks: dict[str, list[int]] = {}
    for project in read_projects("tune"):
        for asked in project.questions:
            if asked.text in REWRITTEN:
                texts = {"as asked": asked.text}
                texts |= {each: rewrite(project.kb, asked.text, each) for each in WRITERS}
                both = {f"{each}, and as asked": f"{asked.text}\n{texts[each]}" for each in WRITERS}
                for way, text in (texts | both).items():
                    ranks.setdefault(way, []).append(find_rank(project.kb, asked, text))
    print("| searched | questions | first | among five | among ten |\n|---|---|---|---|---|")
    for way, found in ranks.items():
        counts = " | ".join(str(sum(rank <= most for rank in found)) for most in (1, 5, 10))
        print(f"| {way} | {len(found)} | {counts} |")


if __name__ == "__main__":
    main()
