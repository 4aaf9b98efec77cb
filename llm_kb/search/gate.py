"""Decides which hits answer a question, so that weak ones are not shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from llm_kb.errors import KbError
from llm_kb.search.features import QUOTED, find_stems
from llm_kb.search.hits import Hit
from llm_kb.search.question import is_sentence, parse_question
from llm_kb.search.search import SearchResult

LEAST_SCORE = 0.25
"""Lowest share of the question, or similarity, of a hit that answers it."""

LEAST_BEST = QUOTED
"""If no hit has so large a share, nothing fits the question."""

LEAST_OF_BEST = 0.6
"""Lowest score of a hit that is shown, as a share of the first one's."""


class EmptyQuestionError(KbError):
    """A question without a word in it."""

    def __init__(self) -> None:
        super().__init__("the question has no word to look for")


def require_words(question: str) -> None:
    """Raise EmptyQuestionError for a question without a word."""
    if not parse_question(question):
        raise EmptyQuestionError


def keep_answers(result: SearchResult, question: str) -> list[Hit]:
    """Return the hits that answer the question, judged by their scores and the first one's."""
    best = [hit for hit in result.hits if hit.score >= LEAST_BEST]
    if is_sentence(question):
        best = [hit for hit in best if _is_about(hit, result.rarities)]
    if not best:
        return []
    least = max(LEAST_SCORE, LEAST_OF_BEST * result.hits[0].score)
    return [hit for hit in result.hits if hit.score >= least]


def _is_about(hit: Hit, rarities: Mapping[str, float]) -> bool:
    """Tell whether a hit holds two words of a question, or one of two in its heading or path."""
    if len(rarities) < 2 or (hit.cosine or 0.0) >= LEAST_BEST:
        return True
    named = find_stems(f"{hit.path}\n{hit.title}", rarities)
    held = {*named, *find_stems(hit.text, rarities)}
    return len(held) > 1 or (len(rarities) == 2 and bool(named))
