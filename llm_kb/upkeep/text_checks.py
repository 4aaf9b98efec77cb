"""Checks the names and texts of subjects, and skills by the specification of Agent Skills."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from llm_kb.characters import JOINERS, REORDERING, TAG_CHARACTERS, ZERO_WIDTH
from llm_kb.files.directory import NO_SKILL
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.rendering.plain_text import count
from llm_kb.rendering.presentation import NOT_UTF8, Presented
from llm_kb.rendering.summaries import read_front_matter
from llm_kb.search.chunking.outline import find_outline
from llm_kb.subjects.names import FORBIDDEN_ON_WINDOWS, WINDOWS_DEVICE
from llm_kb.subjects.topics import Skipped, Subject
from llm_kb.upkeep.rules import Finding, Rule

_ZERO_WIDTH = re.compile(f"[{ZERO_WIDTH}]")
_UNSEEN = (
    (Rule.INVISIBLE, ("tag character", None), re.compile(f"[{TAG_CHARACTERS}]")),
    (
        Rule.INVISIBLE,
        ("bidirectional control", None),
        re.compile(f"[{REORDERING}]"),
    ),
    (Rule.ZERO_WIDTH, ("character without width", "characters without width"), _ZERO_WIDTH),
)
_MOST_POINTS = 5
_MOST_OTHERS = 3
"""The most other files that one finding names: there may be thousands."""
_MOST_SINGLE = 3
_MOST_KINDS = 6
_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_ODD_NAMES = {
    "glob characters": re.compile(r"[*?\[\]]"),
    "characters that Windows does not allow": FORBIDDEN_ON_WINDOWS,
    "a Windows device name": WINDOWS_DEVICE,
    "white space at an edge": re.compile(r"(?:^|/)\s|\s(?:\.[^/.]*)?(?:/|$)"),
    "quotes": re.compile(r"['`]"),
    "a dash at its start, like an option": re.compile(r"^-"),
    "joiners, which have no width": re.compile(f"[{JOINERS}]"),
}


def check_name(file: str, path: str) -> Iterator[Finding]:
    """Find paths of subjects that are hard to type."""
    odd = [what for what, pattern in _ODD_NAMES.items() if pattern.search(path)]
    if odd:
        yield Finding(Rule.UNSAFE_NAME, file, f"its name contains {', '.join(odd)}")


def check_alike(files: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Find paths, given with their files, that differ only in case."""
    for _, file, others in _find_sharing((path.casefold(), file) for file, path in files):
        yield Finding(Rule.UNSAFE_NAME, file, f"its name differs only in case from {others}")


def check_ambiguous(subjects: Iterable[tuple[str, Subject]]) -> Iterator[Finding]:
    """Find subjects, given with their files, that share a slug."""
    for slug, file, others in _find_sharing((subject.slug, file) for file, subject in subjects):
        yield Finding(Rule.AMBIGUOUS, file, f"its slug {slug!r} is also the slug of {others}")


def _find_sharing(files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield each shared key with each of its files, and the others of them.

    Others are named as files, not as subjects: a file of two topics is then one finding.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for key, file in files:
        groups[key].append(file)
    for key, group in groups.items():
        for file in group if len(group) > 1 else ():
            yield key, file, _name_others(file, group)


def _name_others(file: str, files: Sequence[str]) -> str:
    """Return the other files, the first few by name."""
    first = [other for other in files[: _MOST_OTHERS + 1] if other != file][:_MOST_OTHERS]
    left = len(files) - 1 - len(first)
    return ", ".join(map(repr, first)) + (f" and {left:,} more" if left else "")


def check_content(file: str, presented: Presented, path: str, max_chars: int) -> Iterator[Finding]:
    """Find parts of a text that a model cannot load."""
    for notice in presented.notices:
        if NOT_UTF8 in notice:
            yield Finding(Rule.UNDECODABLE, file, notice)
    if max_chars and len(presented.body) > max_chars:
        starts = [0, *(part.start for part in find_outline(path, presented.body).sections)]
        longest = max(end - start for start, end in pairwise([*starts, len(presented.body)]))
        if longest > max_chars:
            what = f"{longest:,} characters in it have no heading, more than one load returns"
            yield Finding(Rule.OVERSIZE, file, what)


def check_binary(directory: str, files: Sequence[str]) -> Iterator[Finding]:
    """Find the files of a topic that are not text; many of them are one finding."""
    if len(files) <= _MOST_SINGLE:
        for file in files:
            yield Finding(Rule.BINARY, file, "not a text file")
        return
    kinds = Counter(_kind(file) for file in files).most_common(_MOST_KINDS)
    shown = ", ".join(f"{number:,} {kind}" for kind, number in kinds)
    more = ", …" if sum(number for _, number in kinds) < len(files) else ""
    yield Finding(Rule.BINARY, directory, f"{len(files):,} files are not text: {shown}{more}")


def check_unmentioned(hidden: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Find hidden subjects, given with their files; many of a directory are one finding."""
    directories: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, name in hidden:
        directories[str(PurePosixPath(file).parent)].append((file, name))
    for directory, found in directories.items():
        if len(found) > _MOST_SINGLE:
            first = found[0][1]
            what = f"no listed subject mentions {len(found):,} subjects, such as {first!r}"
            yield Finding(Rule.UNMENTIONED, directory, what)
        else:
            for file, name in found:
                yield Finding(Rule.UNMENTIONED, file, f"no listed subject mentions {name!r}")


def _kind(file: str) -> str:
    """Return the line of `ignore` that covers a kind of file."""
    path = PurePosixPath(file)
    return f"*{path.suffix}" if path.suffix else path.name


def check_characters(file: str, text: str, where: str = "") -> Iterator[Finding]:
    """Find characters that are invisible or that change the order of the text."""
    if text.isascii():
        return
    for rule, (one, many), pattern in _UNSEEN:
        found = pattern.findall(text)
        if found:
            line = None if where else text.count("\n", 0, text.index(found[0])) + 1
            points = ", ".join(f"U+{ord(c):04X}" for c in sorted(set(found))[:_MOST_POINTS])
            what = f"{count(len(found), one, many)}{where}: {points}"
            yield Finding(rule=rule, file=file, line=line, what=what)


def check_skill(file: str, directory: str, text: str) -> Iterator[Finding]:
    """Find violations of the specification in the SKILL.md of a directory."""
    fields, _ = read_front_matter(text)
    if not fields:
        yield Finding(Rule.SKILL, file, "it has no front matter with a name and a description")
        return
    name, description = fields.get("name"), fields.get("description")
    if not name:
        yield Finding(Rule.SKILL, file, "its front matter has no name")
    elif not _SKILL_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        what = f"its name {name!r} is not of at most {_LONGEST_NAME} lower-case letters, digits"
        yield Finding(Rule.SKILL, file, f"{what} and single hyphens")
    elif name != directory:
        yield Finding(
            Rule.SKILL, file, f"its name {name!r} is not the name of its directory, {directory!r}"
        )
    if not description:
        yield Finding(Rule.SKILL, file, "its front matter has no description")
    elif len(description) > _LONGEST_DESCRIPTION:
        what = f"its description has {len(description):,} characters"
        yield Finding(Rule.SKILL, file, f"{what}; the most is {_LONGEST_DESCRIPTION:,}")


def check_strays(prefix: str, skipped: Iterable[Skipped]) -> Iterator[Finding]:
    """Find directories that should be skills, from the files skipped for being in none.

    Files directly in the topic, such as a README.md, are not meant to be skills.
    `prefix` goes before the paths of the topic.
    """
    strays: dict[str, list[str]] = {}
    for path in (PurePosixPath(s.path) for s in skipped if s.reason == NO_SKILL):
        if len(path.parts) > 1:
            strays.setdefault(path.parts[0], []).append(path.as_posix())
    for directory, paths in strays.items():
        misspelt = [path for path in paths if path.lower().endswith("/skill.md")]
        for wrong in misspelt:
            yield Finding(
                Rule.SKILL, f"{prefix}/{wrong}", f"its name must be {SKILL_FILE}, in upper case"
            )
        if not misspelt:
            what = f"no {SKILL_FILE} in it, so its {count(len(paths), 'file')} cannot be learned"
            yield Finding(Rule.SKILL, f"{prefix}/{directory}", what)
