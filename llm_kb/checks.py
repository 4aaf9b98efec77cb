"""The checks that need no disk: of names, of texts and of words in a configuration."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from llm_kb.findings import Finding, Rule
from llm_kb.presentation import NOT_UTF8, Presented
from llm_kb.topics import Skipped, Subject

_ZERO_WIDTH = re.compile("[\u200b\u2060-\u2064\ufeff]")
_UNSEEN = (
    (Rule.INVISIBLE, "tag character{s}", re.compile("[\U000e0000-\U000e007f]")),
    (Rule.INVISIBLE, "bidirectional control{s}", re.compile("[\u202a-\u202e\u2066-\u2069]")),
    (Rule.ZERO_WIDTH, "character{s} without width", _ZERO_WIDTH),
)
_MOST_POINTS = 5
_ODD_NAMES = {
    "has characters of patterns": re.compile(r"[*?\[\]]"),
    "has characters that Windows forbids": re.compile(r'[<>:"|\\]|[. ](?:/|$)'),
    "is a device on Windows": re.compile(
        r"(?:^|/)(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.[^/]*)?(?:/|$)", re.IGNORECASE
    ),
    "has white space at an edge": re.compile(r"(?:^|/)\s|\s(?:\.[^/.]*)?(?:/|$)"),
    "has quotes": re.compile(r"['`]"),
    "looks like an option": re.compile(r"^-"),
    "has joiners, which have no width": re.compile("[\u200c\u200d]"),
}


def check_name(file: str, path: str) -> Iterator[Finding]:
    """Find what makes the path of a subject hard to name."""
    odd = [what for what, pattern in _ODD_NAMES.items() if pattern.search(path)]
    if odd:
        yield Finding(rule=Rule.UNSAFE_NAME, file=file, what=f"its name {', '.join(odd)}")


def check_alike(files: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Find paths, given with their files, that differ in case alone."""
    alike: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, path in files:
        alike[path.casefold()].append((file, path))
    for group in alike.values():
        for file, path in group if len(group) > 1 else ():
            others = ", ".join(repr(other) for _, other in group if other != path)
            what = f"its name differs only in case from {others}"
            yield Finding(rule=Rule.UNSAFE_NAME, file=file, what=what)


def check_ambiguous(subjects: Iterable[tuple[str, Subject]]) -> Iterator[Finding]:
    """Find subjects, given with their files, that share a slug."""
    sharing: defaultdict[str, list[tuple[str, Subject]]] = defaultdict(list)
    for file, subject in subjects:
        sharing[subject.slug].append((file, subject))
    for slug, group in sharing.items():
        for file, subject in group if len(group) > 1 else ():
            others = ", ".join(repr(s.path) for _, s in group if s is not subject)
            what = f"its slug {slug!r} is also that of {others}"
            yield Finding(rule=Rule.AMBIGUOUS, file=file, what=what)


def check_skipped(file: str, skipped: Skipped) -> Finding:
    """Return the finding for what a walk passed over."""
    return Finding(rule=Rule.SKIPPED, file=file, what=skipped.reason)


def check_content(file: str, presented: Presented, max_chars: int) -> Iterator[Finding]:
    """Find what a model would not get of a subject."""
    if presented.binary:
        yield Finding(rule=Rule.BINARY, file=file, what=presented.notices[0])
        return
    for notice in presented.notices:
        if NOT_UTF8 in notice:
            yield Finding(rule=Rule.UNDECODABLE, file=file, what=notice)
    if max_chars and (presented.is_cut or len(presented.text) > max_chars):
        what = f"its {presented.size:,} bytes are more than one load returns"
        yield Finding(rule=Rule.OVERSIZE, file=file, what=what)


def check_characters(file: str, text: str, where: str = "") -> Iterator[Finding]:
    """Find characters that no reader sees, or that change the order of what is read."""
    if text.isascii():
        return
    for rule, kind, pattern in _UNSEEN:
        found = pattern.findall(text)
        if found:
            line = None if where else text.count("\n", 0, text.index(found[0])) + 1
            points = ", ".join(f"U+{ord(c):04X}" for c in sorted(set(found))[:_MOST_POINTS])
            plural = "" if len(found) == 1 else "s"
            what = f"{len(found):,} {kind.format(s=plural)}{where}: {points}"
            yield Finding(rule=rule, file=file, line=line, what=what)


def check_patterns(file: str, key: str, unmatched: Sequence[str]) -> Iterator[Finding]:
    """Return a finding for each pattern of a configuration that matches nothing."""
    for pattern in unmatched:
        yield Finding(rule=Rule.UNMATCHED, file=file, what=f"{key}: {pattern!r} matches nothing")
