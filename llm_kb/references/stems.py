"""Where the words of a question stand in a text, in whatever form. Pure.

A word is looked for by its stem, at the beginning of words and of the parts of
identifiers: `parsing` is found in `parser` and in `HTTPParser`. The text is not cut
into words, which would take several times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

BESIDE = 6
"""Characters from the end of a stem to the next word, where nothing stands between."""

NEAR = 50
"""Characters between the beginnings of two words of one thought."""

MAX_OFFSETS = 16
"""How many places of a stem in a text are compared with those of another."""

_WORD = re.compile(r"[^\W_]+")
_ENDINGS = (
    *("ations", "ation", "ings", "ing", "ies", "ied", "ers"),
    *("er", "ed", "es", "s", "ly", "y", "e"),
)

Offsets = Mapping[str, Sequence[int]]
"""Where stems stand in a text, in order; those that do not are missing."""


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a lower-case word without its ending: rough, but the same for all its forms."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def stem_words(text: str) -> set[str]:
    """Return the stems of all words of a short text."""
    return {stem(word) for word in _WORD.findall(text.lower())}


def find_stems(text: str, stems: Iterable[str]) -> dict[str, list[int]]:
    """Return the offsets at which words, or parts of identifiers, begin with each stem."""
    lower = text.lower()
    if len(lower) != len(text):
        # A few letters grow, such as "İ"; then there are no capitals to go by.
        text = lower
    found = {}
    for stem_ in stems:
        offsets = []
        at = lower.find(stem_)
        while at != -1:
            if _begins_word(text, at):
                offsets.append(at)
            at = lower.find(stem_, at + len(stem_))
        if offsets:
            found[stem_] = offsets
    return found


def _begins_word(text: str, at: int) -> bool:
    """Whether a word begins at an offset, or a hump: `getDefault` at D, `HTTPServer` at S."""
    before = text[at - 1 : at]
    if not before.isalnum():
        return True
    return text[at].isupper() and (before.islower() or text[at + 1 : at + 2].islower())


def stand_near(first: str, second: str, offsets: Offsets) -> bool:
    """Whether two stems stand near each other somewhere, in any order."""
    return any(-NEAR <= gap <= NEAR for gap in _gaps(first, second, offsets))


def stand_beside(first: str, second: str, offsets: Offsets) -> bool:
    """Whether the second stem stands right after the first somewhere."""
    return any(0 < gap <= len(first) + BESIDE for gap in _gaps(first, second, offsets))


def _gaps(first: str, second: str, offsets: Offsets) -> list[int]:
    """Return how far after the first stem the second stands, everywhere."""
    ends = offsets.get(second, ())[:MAX_OFFSETS]
    return [end - start for start in offsets.get(first, ())[:MAX_OFFSETS] for end in ends]
