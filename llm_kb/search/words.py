"""Where the words of a question stand in a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

BESIDE = 6
"""Characters from the end of a stem to the next word, where nothing stands between."""

NEAR = 50
"""Characters between the beginnings of two words of one thought."""

MAX_OFFSETS = 16
"""How many places of a stem in a text are compared with those of another."""

WORD = re.compile(r"[^\W_]+")

UNSPACED = "\u2e80"
"""From here on there are scripts without spaces, in which a word begins anywhere."""

Offsets = Mapping[str, Sequence[int]]
"""Where stems stand in a text, in order; those that do not are missing."""


def find_stems(text: str, stems: Iterable[str]) -> dict[str, list[int]]:
    """Return the offsets at which words, or parts of identifiers, begin with each stem."""
    lower = text.lower()
    if len(lower) != len(text):
        # A few letters grow, such as "İ"; then there are no capitals to go by.
        text = lower
    found = {}
    for stem in stems:
        offsets = []
        at = lower.find(stem)
        while at != -1:
            if _begins_word(text, at):
                offsets.append(at)
            at = lower.find(stem, at + len(stem))
        if offsets:
            found[stem] = offsets
    return found


def _begins_word(text: str, at: int) -> bool:
    """Whether a word begins at an offset, or a hump: `getDefault` at D, `HTTPServer` at S."""
    before = text[at - 1 : at]
    if not before.isalnum() or text[at] >= UNSPACED:
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


def find_longest_run(text: str, sequence: Sequence[str]) -> int:
    """Return how many words of a sequence stand in a text one right after the other, at most.

    The words are lower case; what stands between them in the text does not matter.
    """
    joined = f" {' '.join(WORD.findall(text.lower()))} "
    longest = start = 0
    while start + longest < len(sequence):
        if f" {' '.join(sequence[start : start + longest + 1])} " in joined:
            longest += 1
        else:
            start += 1
    return longest
