"""The answer of a search, as a model reads it: passages with addresses, and notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from llm_kb.rendering.plain_text import MAX_NAMED, bounded_line, count, name_some
from llm_kb.search.roles import ONE_LINE, Role
from llm_kb.texts.document import name_lines
from llm_kb.texts.folding import unfold
from llm_kb.texts.safe import attribute, defuse, one_line

MAX_CHARACTERS = 2_000
"""Maximum number of characters of what is quoted, for a reader who can load more."""

MAX_WHOLE = 6_000
"""The same for a reader who cannot: about 1,500 tokens."""

_QUOTED = re.compile(r'^<passage "([^/"]+)/([^"]*?) \(', re.MULTILINE)
_NAMED = re.compile(r"^([^/\n]+)/(.*?) \(line ", re.MULTILINE)

FOUND_NOTHING = "Nothing in "
"""The beginning of the answer if nothing fits the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Some lines of a subject that answer a question; lines count from 1, both inclusive."""

    topic: str
    name: str
    """The subject's name in listings."""
    path: str
    address: str
    """The address for `learn` of its part: `slug#anchor`, or `slug#L1-L9` for lines around it."""
    first_line: int
    last_line: int
    part: tuple[int, int]
    """The first and the last line of that part."""
    before: tuple[int, int] | None = None
    after: tuple[int, int] | None = None
    """The first and the last of the lines of its section that precede and that follow it."""
    title: str
    text: str
    score: float
    role: Role = Role.DOCS
    also_in: tuple[str, ...] = ()
    """Other files with the same text, each once: `topic/path`."""
    origin: str | None = None
    """The origin of fetched content."""
    is_preloaded: bool = False
    """Whether the subject is already in the prompt."""
    key: str = ""
    """The sentence of it that has most of the question, on one line."""
    key_line: int = 0

    @property
    def above(self) -> str:
        """The headings from the top of the subject to its text; empty if it shows them all."""
        headings = self.title.replace(" > ", ", ").split(", ")
        return "" if all(each in self.text for each in headings) else self.title

    @property
    def heading(self) -> str:
        """The address with its topic, and the lines."""
        return f"{self.topic}/{self.address} ({self.lines})"

    def is_in_part_of(self, other: Passage) -> bool:
        """Tell whether the address of another passage loads this one as well."""
        first, last = other.part
        same = (self.topic, self.name) == (other.topic, other.name)
        return same and first <= self.first_line and self.last_line <= last

    @property
    def lines(self) -> str:
        """The lines, for people and models."""
        first, last = self.first_line, self.last_line
        return f"line {first}" if first == last else f"lines {first}-{last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """The passages that answer a question, best first, with notes on the search."""

    passages: tuple[Passage, ...]
    topics: tuple[str, ...]
    """The ids of the topics that were searched."""
    legs: tuple[str, ...] = ("keyword",)
    unknown: tuple[str, ...] = ()
    """Telling words of the question that no text has."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Pairs of an unknown word and the nearest word, which was searched instead."""
    counts: tuple[tuple[str, int], ...] = ()
    """The other words with the numbers of passages that have them, if no passage matches well."""
    unsearched: tuple[str, ...] = ()
    """The ids of other topics, which were not searched."""
    why_nothing: str = ""
    """Why nothing was searched, if so."""
    notices: tuple[str, ...] = ()
    """Notices on what was not searched, with the reasons."""


def render_passages(found: Passages, quoted: int | None = None) -> str:
    """Return the answer of a search, as a model reads it.

    Only the first `quoted` that are not pre-loaded, as many as there is room for, are quoted. As
    many others are named with a sentence, unless an address before loads them. Without a number
    the reader cannot load more, and is not told which lines come next.
    """
    parts: list[str] = []
    most = room = MAX_WHOLE if quoted is None else MAX_CHARACTERS
    left = most_named = len(found.passages) if quoted is None else quoted
    known: list[Passage] = []
    named: list[str] = []
    origin: str | None = None
    for passage in found.passages:
        if passage.is_preloaded:
            parts.append(f"{bounded_line(passage.heading)}: already in your system prompt\n")
            continue
        # Only the first is cut: of another one the heading would name lines that are not shown.
        rendered = _render(passage, origin, most, quoted)
        if left > 0 and (room == most or len(rendered) <= room):
            parts.append(rendered)
            room -= len(rendered)
            left -= 1
            origin = passage.origin
        elif len(named) == most_named or any(map(passage.is_in_part_of, known)):
            continue
        else:
            named.append(_mention(passage))
        known.append(passage)
    if named:
        parts.append("\n".join(["<also>", *named, "</also>\n"]))
    if not found.passages:
        parts.append(f"{explain_nothing(found)}\n")
    return "\n".join([*parts, *(f"(note: {note})\n" for note in find_notes(found, 1))])


def _render(passage: Passage, origin: str | None, room: int, quoted: int | None) -> str:
    """Return one passage between its tags, with a limited number of characters.

    The headings above it come first, then its origin unless it is that of the one before. A passage
    by itself is followed by the sentence that it lacks, which is data as well.
    """
    text = passage.text
    if len(text) > room:
        cut = text.rfind("\n", 0, room) + 1 or room
        text = f"{text[:cut]}\n(note: cut here)"
    notes = [
        f"[{describe_cut(passage, span, attribute)}]\n" if span and quoted is not None else ""
        for span in (passage.before, passage.after)
    ]
    source = f"under: {defuse(one_line(passage.above))}\n" if passage.above else ""
    if passage.origin and passage.origin != origin:
        source += f"source: {defuse(one_line(passage.origin))}\n"
    copies = f", also in {name_some(passage.also_in)}" if passage.also_in else ""
    place = f'"{attribute(passage.heading)}"{attribute(copies)}'
    return f"<passage {place}>\n{source}{notes[0]}{defuse(text)}\n{notes[1]}</passage>\n"


def describe_cut(passage: Passage, lines: tuple[int, int], name: Callable[[str], str]) -> str:
    """Return what was cut beside a passage: the number of lines, and a name of their address."""
    where = "more" if lines == passage.after else "before"
    address = f"{passage.topic}/{passage.name}#{name_lines(*lines)}"
    return f"… {count(1 + lines[1] - lines[0], 'line')} {where}: {name(address)}"


def _mention(passage: Passage) -> str:
    """Return a line with the address, the origin and the key sentence of a passage."""
    source = f", source: {one_line(passage.origin)}" if passage.origin else ""
    place = f"{passage.topic}/{passage.address} (line {passage.key_line}{source})"
    return f"{attribute(place)}: {defuse(one_line(passage.key))}"


def find_addresses(answer: str) -> list[tuple[str, str]]:
    """Return the topics and addresses of the passages that an answer quotes or names."""
    _, _, after = answer.rpartition("\n<also>\n")
    lines, is_named, _ = after.partition("\n</also>\n")
    return _QUOTED.findall(answer) + (_NAMED.findall(lines) if is_named else [])


def explain_nothing(found: Passages) -> str:
    """Return why a search found nothing, and what to do, in one line."""
    where = name_some(found.topics) or "no topic"
    if found.why_nothing:
        return f"{FOUND_NOTHING}{where} was searched: {bounded_line(found.why_nothing)}"
    return (
        f"{FOUND_NOTHING}{where} has a word of that question. Try the words such a text would"
        " use, another topic, or `learn` with only a topic, which lists its subjects."
    )


def describe_words(
    unknown: Sequence[str],
    replaced: Sequence[tuple[str, str]],
    counts: Sequence[tuple[str, int]] = (),
    unsearched: Sequence[str] = (),
) -> Iterator[str]:
    """Yield notes on the words of a question: those that no text has, and those searched instead.

    With `counts`, if no passage matches well, the other words are listed as well. A word that no
    text has may be in a topic that was `unsearched`.
    """
    nowhere_is = "not found here" if unsearched else "not found in any text"
    for word, nearest in replaced:
        searched = f"searched {bounded_line(nearest)!r} as well"
        yield f"{nowhere_is}: {bounded_line(unfold(word))!r}; {searched}"
    missing = [unfold(word) for word in unknown if word not in dict(replaced)]
    nowhere = [f"{nowhere_is}: {name_some(missing)}"] if missing else []
    if missing and unsearched:
        nowhere.append(f"not searched: {name_some(unsearched)}")
    if counts:
        rarest = sorted(counts, key=lambda pair: pair[1])[:MAX_NAMED]
        known = ", ".join(f"{bounded_line(unfold(word))} in {number:,}" for word, number in rarest)
        yield "; ".join(["no good match", *nowhere, f"found: {known}"])
    elif nowhere:
        yield "; ".join(nowhere)


def find_notes(found: Passages, most: int = MAX_NAMED) -> Iterator[str]:
    """Yield the notes on a search, a line each; of what was not searched `most` things."""
    yield from describe_words(found.unknown, found.replaced, found.counts, found.unsearched)
    for leg in found.legs:
        if leg.startswith("dense ("):
            yield f"searched by words, and by meaning only in part: {leg}"
    notices = [n for n in found.notices if not (found.passages and n.endswith(f"({ONE_LINE})"))]
    skipped = [notice for notice in notices if notice.startswith("not searched")]
    others = [notice for notice in notices if notice not in skipped]
    yield from map(bounded_line, others + skipped[:most])
    if len(skipped) > most:
        yield f"{count(len(skipped) - most, 'more thing')} not searched: see `llm kb check`"
