"""Reads what is asked for, once, into one record, and turns it into an FTS5 query. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from llm_kb.errors import KbError
from llm_kb.search.languages import (
    STOP_WORDS,
    find_language,
    fold,
    split_identifiers,
    split_unspaced,
)
from llm_kb.search.roles import Asked

MAX_WORDS = 48
"""Maximum number of words searched for; of a longer question the rarest."""

MAX_CHARACTERS = 4000
"""Maximum number of characters read; of a longer question half from each end."""

MOST_SCORED = 20_000
"""Number of chunks that the words of a question may choose together: each is scored, which is the
main cost of a query."""

SHORTEST_CORRECTED = 5
"""Shortest word that is looked up in another spelling."""

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
# Which are cut, where they are words; lines without spaces are longer.
_FIRST_WORD, _LAST_WORD = re.compile(r"^\S{1,99}"), re.compile(r"\S{1,99}$")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")
_OWNERS = re.compile(r"[.:]+")
_NAME = re.compile(r"^[-.$@#/]|[_=:]|[^\W_][./-]|[a-z0-9][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]|\(\)?$")
"""Signs, digits or inner capitals, by which a name differs from an ordinary word."""


class EmptyQuestionError(KbError):
    """A question without a word in it."""

    def __init__(self) -> None:
        super().__init__("the question has no word to look for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a question asks for; made by `parse_question`."""

    text: str
    """The part of it that is read."""
    words: tuple[str, ...]
    """The words to look for, each once and folded, without stop words unless there are no others;
    of an identifier such as `HTTPServer` also its parts."""
    sequence: tuple[str, ...]
    """All its words in order, folded."""
    name: str
    """The name that it consists of, without its qualifier; empty if it has none."""
    language: str
    asked: Asked
    """The roles of the documents that it asks for."""

    def correct(self, nearest: Mapping[str, str]) -> Question:
        """Return the question with some words replaced, in any case."""
        return parse_question(
            _WORD.sub(lambda match: nearest.get(fold(match[0]), match[0]), self.text)
        )


def parse_question(question: str) -> Question:
    """Read a question. Raises EmptyQuestionError if it has no word."""
    text = _bound(question)
    found = _WORD.findall(text)
    sequence = [fold(word) for word in found]
    language = find_language(text, sequence)
    stop = STOP_WORDS.get(language, STOP_WORDS["en"])
    words = [part for word in sequence for part in _split(word)]
    kept = dict.fromkeys([word for word in words if word not in stop] or words)
    humps = dict.fromkeys(map(fold, _WORD.findall(split_identifiers(text))))
    if not kept:
        raise EmptyQuestionError
    return Question(
        text=text,
        words=tuple(kept | humps),
        sequence=tuple(sequence),
        name=_find_name(text),
        language=language,
        asked=Asked(text),
    )


def _bound(question: str) -> str:
    """Return the part of a question that is read: the beginning and the end of a pasted log.

    The escape sequences by which a terminal shows colours are left out.
    """
    if len(question) > MAX_CHARACTERS:
        half = (MAX_CHARACTERS - 1) // 2
        first, last = _LAST_WORD.sub("", question[:half]), _FIRST_WORD.sub("", question[-half:])
        question = f"{first}\n{last}"
    return _ESCAPES.sub("", question)


def _split(word: str) -> list[str]:
    """Return a word, or its pairs of characters if its script has no spaces."""
    return [word] if word.isascii() else split_unspaced(word) or [word]


def _find_name(question: str) -> str:
    """Return the name that a question consists of, without its qualifier; empty if it has none.

    An identifier, an option, a code or a single word is a name: `Class.get_item` is `getitem`.
    """
    names = question.split()
    if len(names) != 1 and not all(map(_NAME.search, names)):
        return ""
    return strip_owner(names[-1]) if names else ""


def strip_owner(name: str) -> str:
    """Return a name as one word, without its qualifier."""
    parts = reversed(_OWNERS.split(name))
    return next(filter(None, ("".join(map(fold, _WORD.findall(part))) for part in parts)), "")


def is_correctable(word: str) -> bool:
    """Return whether a word may be corrected: only letters, and long enough to be distinctive."""
    return word.isascii() and word.isalpha() and SHORTEST_CORRECTED <= len(word) <= 30


def list_neighbours(word: str) -> list[str]:
    """Return every spelling with one letter added, removed or replaced, or two exchanged."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    found = [
        *(a + b[1:] for a, b in cuts if b),
        *(a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1),
        *(a + letter + b[1:] for a, b in cuts if b for letter in ascii_lowercase),
        *(a + letter + b for a, b in cuts for letter in ascii_lowercase),
    ]
    return [each for each in dict.fromkeys(found) if each != word]


def build_match(words: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, int]:
    """Return the FTS5 expression for any of the words, and how often it counts each.

    The rare words choose the chunks that are scored, and the frequent ones only add to their
    scores. `frequencies` are the numbers of chunks that have each word. The expression is empty if
    no text has one.
    """
    found = sorted((word for word in words if frequencies[word]), key=frequencies.__getitem__)
    # The numbers of a log would take the place of its words.
    found = sorted(found, key=str.isdigit)[:MAX_WORDS] if len(found) > MAX_WORDS else found
    if not found:
        return "", 1
    budget = MOST_SCORED - frequencies[found[0]]
    choosing = found[:1]
    for word in found[1:]:
        budget -= frequencies[word]
        if budget < 0:
            break
        choosing.append(word)
    if helping := found[len(choosing) :]:
        # FTS5 counts a word as often as the expression has it.
        return f"({_any_of(choosing)}) AND ({_any_of([*choosing, *helping, *helping])})", 2
    return _any_of(choosing), 1


def _any_of(words: Sequence[str]) -> str:
    """Join words as quoted strings, in which FTS5 knows no syntax."""
    return " OR ".join(f'"{word}"' for word in words)
