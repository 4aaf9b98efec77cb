"""The words of a question, and those by which texts are found. Pure.

Words end where scripts meet: `使用Docker部署` has a Latin one. A script that is written without
spaces has no words that could be told apart; each of its letters, and each pair, is found.

A question is read once, into one record, and turned into an FTS5 query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from string import ascii_lowercase

from llm_kb.errors import KbError
from llm_kb.texts.folding import MARKS, UNSPACED, WORD, compose, fold

# The language of words

_WORDS = {
    "en": """
    a about after all also am an and any anyone are as at be because been before being both but by
    can could did do does doing done during each either every few for from further get gets had
    has have having he her here hers him his how i if in into is it its itself just let like many
    may me might more most much must my no nor not of off on once one only or other our ours out
    over own people please same shall she should show so some somehow someone such tell than that
    the their theirs them then there these they thing this those through to too under until up upon
    us use used uses using very via want was way we were what when where whether which while who
    whom whose why will with within without would you your yours
    """,
    "de": """
    ab aber alle als also am an auch auf aus bei beim bin bis bitte da dann das dass dem den denn
    der des die dies diese dieser dieses doch dort du durch ein eine einem einen einer eines er es
    etwas fuer für gegen gibt haben hat ich ihm ihn ihr im immer in ins ist ja jede jeder kann kein
    keine können könnte lange machen macht man manche mehr mein meine mich mir mit möglich muss
    müssen nach nicht noch nur ob oder oft ohne sein seine seinen sich sie sind so soll sollte über
    um und uns unter viel viele vielen vom von vor wann war warum was weil welche welchem welchen
    welcher welches wenn wer werden wie wieso will wir wird wo womit wozu wurde zu zum zur zwischen
    """,
    "fr": """
    a ai alors au aucun aussi autre aux avec avez avoir avons bien ça ce cela ces cet cette comme
    combien comment dans de depuis des donc du elle elles en entre est et etre être eu fait faire
    faut il ils j je l la le les leur lors lorsque lui ma mais me mes moi mon n ne nos notre nous on
    ont or ou où par pas peut peux plus possible pour pourquoi puis puisse qu quand que quel quelle
    quelles quels qui quoi s sa sans se ses si son sont souvent suis sur ta te temps tes toi ton
    tous tout toute toutes tu un une va vais vers veux vos votre vous y
    """,
    "es": """
    a al algo algun alguna alguno antes aquí así aun cada como cómo con cual cuál cuales cuando
    cuándo cuanto cuánto cuantos cuántos cuánta cuántas cuántos de debe debo del desde donde dónde
    dos e el él ella ellas ellos en entre era eres es esa ese eso esta está estan están este esto
    fue ha hace hacer hay he la las le les lo los más me mi mis mucho muy nada ni no nos o para pero
    poder por porque posible puede puedo pues que qué quien quién quiero se sea ser si sí sin sobre
    son soy su sus también tanto te tengo tiene tiempo tu tus un una uno unos usar ya yo y
    """,
    "it": """
    a ad agli ai al alla alle anche che chi ci cioè come con cosa così cui da dagli dai dal dalla
    dalle degli dei del della delle devo di dopo dove e è ed era essere fa fare fra gli ha hanno ho
    i il in io la le lei li lo loro ma me mentre mi mia mie mio molto ne nei nel nella nelle no noi
    non nostro o ogni per perché perche però piu più possibile posso possono può puo prima qual
    quale quali quando quanta quante quanti quanto quello questa queste questi questo qui quindi se
    sei senza si sia sono sta su sua sue sui sul sulla suo tempo tra tu tutti tutto un una uno vi
    voglio voi
    """,
}
"""By language, the words that say how something is asked and little of what."""

_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
)
"""Scripts by which a language is known, Japanese before the Chinese characters it shares."""


STOP_WORDS = {language: frozenset(fold(words).split()) for language, words in _WORDS.items()}


def find_language(text: str, words: Sequence[str]) -> str:
    """Return the language of a text, by its script or two folded stop words; else English."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return language
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
    words = list_words(text) + list_words(split_identifiers(compose(text)))
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
    language = find_language(text, sequence)
    stop = STOP_WORDS.get(language, STOP_WORDS["en"])
    # A word of a script without spaces is found by its pairs of letters.
    words = [part for word in split for part in [*map("".join, pairwise(word))] or word]
    kept = dict.fromkeys([word for word in words if word not in stop] or words)
    humps = dict.fromkeys(WORD.findall(fold(split_identifiers(text))))
    if not kept:
        raise EmptyQuestionError
    return Question(
        text=text,
        words=tuple(kept | humps),
        sequence=tuple(sequence),
        name=_find_name(text),
        language=language,
    )


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
