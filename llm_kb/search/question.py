"""Turn a question into an FTS5 query that is valid for any text. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from string import ascii_lowercase

from llm_kb.errors import KbError
from llm_kb.search.chunking.words import split_identifiers, split_unspaced

MAX_WORDS = 48
"""Maximum number of words searched for; of a longer question the rarest."""

MAX_CHARACTERS = 8000
"""Maximum number of characters read; of a longer question half from each end."""

MAX_COUNTED = 400
"""Maximum number of words that are looked up and compared in their order."""

CANDIDATES = 0.02
"""Share of all chunks that may be scored, which is the main cost of a query."""

MIN_CANDIDATES = 500
"""Number of chunks that may always be scored; fewer would save no time."""

SURE, SURE_SHARE = 3, 0.1
"""Number of words that choose candidates beyond that, if no more than this share of the chunks
has each: a rare word may be beside the point, such as "certain"."""

STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being both but by
    can could did do does doing done during each either every few for from further get gets
    had has have having he her here hers him his how i if in into is it its itself just let
    like may me might more most much must my no nor not of off on once one only or other our
    ours out over own please same shall she should show so some such tell than that the their
    theirs them then there these they thing this those through to too under until up upon us
    use used uses using very via want was way we were what when where whether which while who
    whom whose why will with within without would you your yours
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
# Which are cut, where they are words; lines without spaces are longer.
_FIRST_WORD, _LAST_WORD = re.compile(r"^\S{1,99}"), re.compile(r"\S{1,99}$")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")
# Only at the start of a word: trying every character of a long word would take too long.
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]+(?:(?:_+|\.|::|->|/|-)[^\W_]+)+", re.UNICODE)


SHORTEST_CORRECTED = 5
"""Shortest word that is looked up in another spelling."""

RUN = 4
"""Length of the runs of words that find a text, such as a pasted message."""

MOST_RUNS = 3
"""Maximum number of runs searched for: FTS5 compares the positions of each word."""

MOST_HELPING = 3
"""Maximum number of frequent words that help to rank; more only take time."""

_OWNERS = re.compile(r"[.:]+")
_NAME = re.compile(r"^[-.$@#/]|[_=:]|[^\W_][./-]|[a-z0-9][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]|\(\)?$")
"""Signs, digits or inner capitals, by which a name differs from an ordinary word."""


class _Letters(dict[int, str]):
    """The letters that FTS5 indexes in place of others: a Latin one with one accent loses it."""

    def __missing__(self, code: int) -> str:
        base, *accents = list(unicodedata.normalize("NFD", chr(code)))
        is_accent = 0x300 <= code <= 0x36F
        self[code] = (
            "" if is_accent else base if base.isascii() and len(accents) == 1 else chr(code)
        )
        return self[code]


_letters = _Letters({0xB5: "\u03bc", 0x3C2: "\u03c3"})  # micro sign and final sigma


def fold(text: str) -> str:
    """Return a text with the letters of the index: in lower case, Latin ones without accents."""
    lower = text.lower()
    return lower if lower.isascii() else lower.translate(_letters)


class EmptyQuestionError(KbError):
    """A question without a word in it."""

    def __init__(self) -> None:
        super().__init__("the question has no word to look for")


def require_words(question: str) -> None:
    """Raise EmptyQuestionError for a question without a word."""
    if not parse_question(question):
        raise EmptyQuestionError


def parse_question(question: str) -> tuple[str, ...]:
    """Return the terms to search for, each once: the words, and identifiers as phrases.

    A word has only letters and digits; a phrase is several words separated by spaces.
    Stop words are left out, unless there is nothing else. `get_default` is
    searched for as words and as a phrase, `HTTPServer` whole and by its parts.
    """
    question = bound_question(question)
    words = [part for word in _WORD.findall(question) for part in _split(fold(word))]
    kept = [word for word in words if word not in STOP_WORDS] or words
    compounds = _COMPOUND.findall(question)
    phrases = [fold(" ".join(_WORD.findall(compound))) for compound in compounds]
    humps = map(fold, _WORD.findall(split_identifiers(question)))
    terms = [
        *_take_ends(list(dict.fromkeys(kept)), MAX_COUNTED),
        *_take_ends(phrases, MAX_WORDS),
        *_take_ends(list(dict.fromkeys(humps)), MAX_COUNTED),
    ]
    return tuple(dict.fromkeys(terms))


def _take_ends(items: list[str], most: int) -> list[str]:
    """Return at most so many items, the first and the last: of a log either may be the error."""
    half = most // 2
    return items if len(items) <= most else items[:half] + items[-half:]


def _split(word: str) -> list[str]:
    """Return a word, or its pairs of characters if its script has no spaces."""
    return [word] if word.isascii() else split_unspaced(word) or [word]


def find_name(question: str) -> str:
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
    return next(filter(None, ("".join(split_words(part)) for part in parts)), "")


def bound_question(question: str) -> str:
    """Return the part of a question that is read: the beginning and the end of a pasted log.

    The escape sequences by which a terminal shows colours are left out.
    """
    if len(question) > MAX_CHARACTERS:
        half = (MAX_CHARACTERS - 1) // 2
        first, last = _LAST_WORD.sub("", question[:half]), _FIRST_WORD.sub("", question[-half:])
        question = f"{first}\n{last}"
    return _ESCAPES.sub("", question)


def split_words(question: str) -> list[str]:
    """Return the first and last words of a question in its order, folded, with stop words."""
    return _take_ends([fold(word) for word in _WORD.findall(bound_question(question))], MAX_COUNTED)


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


def replace_words(question: str, replaced: Mapping[str, str]) -> str:
    """Return a question with some words replaced, in any case."""
    return _WORD.sub(lambda match: replaced.get(fold(match[0]), match[0]), question)


def list_runs(sequence: Sequence[str]) -> list[str]:
    """Return the runs of four words of a question that are not mostly stop words, in its order.

    A shorter question with a stop word, which may be a heading such as "Why Vite", is a run.
    """
    if 1 < len(sequence) < RUN and len({*sequence} - STOP_WORDS) < len({*sequence}):
        return [" ".join(sequence)]
    runs = (sequence[at : at + RUN] for at in range(len(sequence) - RUN + 1))
    telling = (run for run in runs if sum(word not in STOP_WORDS for word in run) >= RUN // 2)
    return [" ".join(run) for run in telling]


def build_match(
    terms: Sequence[str], runs: Sequence[str], frequencies: Mapping[str, int], total: int
) -> str | None:
    """Return the FTS5 expression for terms and runs of words, or None when nothing can match.

    `frequencies` maps a word to the number of the `total` chunks that have it; a word
    that is not in it counts as rare. Every chunk that matches is scored, which is the main
    cost. So the rare words choose the candidates, as many as the budget
    allows, and the frequent ones only help to rank them.
    """
    words = sorted(
        (term for term in terms if " " not in term), key=lambda term: frequencies.get(term, 0)
    )
    words = [word for word in words if frequencies.get(word, 1)]
    # The numbers of a log would take the place of its words.
    words = sorted(words, key=str.isdigit)[:MAX_WORDS] if len(words) > MAX_WORDS else words
    if not words:
        return None
    budget = max(MIN_CANDIDATES, int(total * CANDIDATES))
    choosing: list[str] = []
    for word in words:
        frequency = frequencies.get(word, 0)
        budget -= frequency
        is_sure = len(choosing) < SURE and frequency <= max(MIN_CANDIDATES, total * SURE_SHARE)
        if choosing and budget < 0 and not is_sure:
            break
        choosing.append(word)
    phrases = [term for term in terms if " " in term]
    runs = _choose_runs(runs, frequencies, total)
    helping = words[len(choosing) :][:MOST_HELPING]
    if not helping:
        return _any_of([*choosing, *phrases, *runs])
    # A run with a rare word chooses nothing that this word does not choose.
    chosen = _any_of(
        [*choosing, *phrases, *(run for run in runs if not {*choosing} & {*run.split()})]
    )
    # FTS5 scores every phrase of the expression that a chunk has. The second
    # operand, which all candidates match, adds the frequent words: twice, because
    # the rare ones count twice too.
    return f"({chosen}) AND ({_any_of([*choosing, *phrases, *runs, *helping, *helping])})"


def _choose_runs(runs: Sequence[str], frequencies: Mapping[str, int], total: int) -> list[str]:
    """Return the rarest runs that texts may have; neighbours only if there are no others.

    Neighbours have three words of four in common.
    """
    counts = {run: sorted(frequencies.get(word, total) for word in run.split()) for run in runs}
    places = {run: place for place, run in enumerate(counts)}
    first: list[str] = []
    neighbours: list[str] = []
    for run in sorted((run for run in counts if counts[run][0]), key=counts.__getitem__):
        is_neighbour = any(abs(places[run] - places[other]) == 1 for other in first)
        (neighbours if is_neighbour else first).append(run)
    return [*first, *neighbours][:MOST_RUNS]


def _any_of(terms: Sequence[str]) -> str:
    """Join terms as quoted strings, in which FTS5 knows no syntax."""
    return " OR ".join(f'"{term}"' for term in terms)
