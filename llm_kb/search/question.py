"""The words of a question, and those by which texts are found. Pure.

Words end where scripts meet: `使用Docker部署` has a Latin one. A script that is written without
spaces has no words that could be told apart; each of its letters, and each pair, is found.

A question is read once, into one record, and turned into an FTS5 query.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise
from pathlib import Path
from string import ascii_lowercase

from llm_kb.errors import KbError
from llm_kb.texts.folding import MARKS, UNSPACED, WORD, compose, fold

# The language of words


@cache
def _read_table(name: str) -> list[list[str]]:
    """Return the lines of a table beside this module, as words."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


STOP_WORDS = {
    language: frozenset(map(fold, words)) for language, *words in _read_table("stop_words.txt")
}
"""By language, the words that say how something is asked and little of what."""


def _find_language(words: Sequence[str]) -> str:
    """Return the language of a text, by two folded stop words; else English."""
    counts = {language: sum(map(stop.__contains__, words)) for language, stop in STOP_WORDS.items()}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= 2 else "en"


# Words of texts, as the index, questions and the ranking know them

_UNSPACED = re.compile(f"[{UNSPACED}][{UNSPACED}{MARKS}]*")
"""A run of letters of scripts without spaces."""

_LETTER = re.compile(f".[{MARKS}]*", re.DOTALL)

_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z]{2})(?=[a-z]))[a-z0-9]*")
"""A hump in the midst of a word: `Default` of `getDefault`, `Server` of `HTTPServer`."""

_LONGEST_HUMP = 40

_BETWEEN_WORDS = re.compile(rf"(?:(?![{MARKS}])[\W_])+")
_ASCII_BETWEEN = bytes(code for code in range(128) if not chr(code).isalnum())


def space(text: str) -> str:
    """Return a folded text with spaces where its words end, for the index.

    Of a script without spaces it has the letters and then the pairs of neighbours.
    """
    return text if text.isascii() else _UNSPACED.sub(_space_run, text)


def _space_run(match: re.Match[str]) -> str:
    letters = _LETTER.findall(match[0])
    return f" {' '.join([*letters, *map(''.join, pairwise(letters))])} "


def split_words(text: str) -> Iterator[list[str]]:
    """Yield the words of a folded text in order, each as a list: of itself, or of its letters."""
    for match in WORD.finditer(_UNSPACED.sub(r" \g<0> ", text)):
        word = match[0]
        yield _LETTER.findall(word) if _UNSPACED.match(word) else [word]


def split_identifiers(text: str) -> str:
    """Return the parts of every camel-case identifier of a text, each once.

    `HTTPServer` gives `HTTP Server`. Other identifiers are left to the index,
    whose tokenizer splits them at underscores and dots.
    """
    parts: dict[str, None] = {}
    for match in _HUMP.finditer(text):
        start = match.start()
        parts[text[_hump_before(text, start) : start]] = None
        parts[match[0]] = None
    return " ".join(parts)


def _hump_before(text: str, end: int) -> int:
    """Return the start of the hump that ends at an offset, in any alphabet."""
    start = end - 1
    last = max(0, end - _LONGEST_HUMP)
    if text[start].isupper():
        while start > last and text[start - 1].isupper():
            start -= 1
        return start
    # A loop, since a regular expression is slow at searching backwards.
    while start > last and (text[start - 1].islower() or text[start - 1].isdigit()):
        start -= 1
    return start - 1 if start > last and text[start - 1].isupper() else start


def find_stems(text: str, stems: Iterable[str]) -> list[str]:
    """Return the stems that begin a word, or a part of an identifier, of a text."""
    words, folded = list_words(text), fold(text)
    if any(stem in folded and f" {stem}" not in words for stem in stems):
        words += list_words(split_identifiers(compose(text)))
    return [stem for stem in stems if f" {stem}" in words]


def list_words(text: str) -> str:
    """Return the folded words of a text, each after a space."""
    return f" {_BETWEEN_WORDS.sub(' ', space(fold(text)))}"


def join_words(text: str) -> str:
    """Return a folded text without the characters between its words."""
    text = fold(text)
    if text.isascii():  # faster than a regex
        return text.encode().translate(None, _ASCII_BETWEEN).decode()
    return _BETWEEN_WORDS.sub("", text)


# Forms of words


@cache
def _read_forms() -> Mapping[str, Sequence[str]]:
    """Return the other forms of each word that has irregular ones."""
    groups = _read_table("forms.txt")
    return {word: [each for each in group if each != word] for group in groups for word in group}


def list_forms(word: str) -> Iterator[str]:
    """Yield what may be other forms of a folded word, as no stemmer finds them."""
    yield from _read_forms().get(word, ())
    for pattern, other in _read_table("spellings.txt"):
        yield re.sub(pattern, other.strip("-"), word, count=1)


# Questions

MAX_WORDS = 48
"""Maximum number of words searched for; of a longer question the rarest."""

MAX_CHARACTERS = 4000
"""Maximum number of characters read; of a longer question half from each end."""

MOST_SCORED = 20_000
"""Number of chunks that the words of a question may choose together: each is scored, which is the
main cost of a query."""

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
    """All its words in order, folded; the letters of a script without spaces."""
    phrases: tuple[str, ...] = ()
    """What it has in quotes, as folded words, if that is more than one."""
    joined: Mapping[str, Collection[str]]
    """The compounds that a word makes with the word before or after it: `filename`."""
    name: str
    """The name that it consists of, without its qualifier; empty if it has none."""
    language: str

    def correct(self, nearest: Mapping[str, str]) -> Question:
        """Return the question with some words replaced, in any case."""
        return parse_question(
            WORD.sub(lambda match: nearest.get(fold(match[0]), match[0]), self.text)
        )


def parse_question(question: str) -> Question:
    """Read a question. Raises EmptyQuestionError if it has no word."""
    text = _bound(question)
    split = list(split_words(fold(text)))
    sequence = [letters for word in split for letters in word]
    language = _find_language(sequence)
    stop = STOP_WORDS[language]
    # A word of a script without spaces is found by its pairs of letters.
    words = [part for word in split for part in [*map("".join, pairwise(word))] or word]
    kept = dict.fromkeys([word for word in words if word not in stop] or words)
    phrases = (
        " ".join(chain.from_iterable(split_words(fold(match[1] or match[2]))))
        for match in _QUOTED.finditer(text)
    )
    humps = dict.fromkeys(WORD.findall(fold(split_identifiers(text))))
    if not kept:
        raise EmptyQuestionError
    return Question(
        text=text,
        words=tuple(kept | humps),
        sequence=tuple(sequence),
        phrases=tuple(each for each in phrases if " " in each),
        joined=_join_neighbours(split),
        name=_find_name(text),
        language=language,
    )


_QUOTED = re.compile("[\"“„«](.+?)[\"”“»]|(?<!\\w)['\u2018](.+?)['\u2019](?!\\w)", re.DOTALL)


def _join_neighbours(words: Sequence[Sequence[str]]) -> Mapping[str, Collection[str]]:
    """Return for each word of a question what it and a neighbour are, written as one."""
    joined: defaultdict[str, list[str]] = defaultdict(list)
    single = [word[0] if len(word) == 1 else "" for word in words]
    for before, after in pairwise(single):
        if before and after:
            joined[before].append(before + after)
            joined[after].append(before + after)
    return joined


def _bound(question: str) -> str:
    """Return the part of a question that is read: the beginning and the end of a pasted log.

    What is not seen, such as the escape sequences of a terminal's colours, is left out.
    """
    if len(question) > MAX_CHARACTERS:
        half = (MAX_CHARACTERS - 1) // 2
        question = f"{question[:half]}\n{question[-half:]}"
    return compose(question)


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
    parts = reversed(_OWNERS.split(fold(name)))
    return next(filter(None, ("".join(WORD.findall(part)) for part in parts)), "")


def is_correctable(word: str) -> bool:
    """Return whether a word may be corrected: only letters, and long enough to be distinctive."""
    return word.isascii() and word.isalpha() and 5 <= len(word) <= 30


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


def build_match(words: Sequence[str], frequencies: Mapping[str, int]) -> str:
    """Return the FTS5 expression for any of the words, the rarest first.

    `frequencies` are the numbers of chunks that have each word. Frequent words that would choose
    more than `MOST_SCORED` chunks are left out. The expression is empty if no text has a word.
    """
    found = sorted((word for word in words if frequencies[word]), key=frequencies.__getitem__)
    # The numbers of a log would take the place of its words.
    found = sorted(found, key=str.isdigit)[:MAX_WORDS] if len(found) > MAX_WORDS else found
    scored = accumulate(frequencies[word] for word in found)
    kept = [word for word, sum_ in zip(found, scored, strict=True) if sum_ <= MOST_SCORED]
    return " OR ".join(f'"{word}"' for word in kept or found[:1])
