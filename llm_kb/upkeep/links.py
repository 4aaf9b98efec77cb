"""The links, imports and calls of `learn` in pages that lead to nothing."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from html import unescape
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from llm_kb.errors import KbError, NoMatchError, UnreadableError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import OpenTopic
from llm_kb.rendering.plain_text import name_some
from llm_kb.rendering.presentation import present
from llm_kb.subjects.links import WIKI_LINK, LinkTargets, find_imports, is_guide
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Subject
from llm_kb.texts.decoding import MOST_BYTES
from llm_kb.texts.document import name_title
from llm_kb.texts.formats import find_extension, find_format
from llm_kb.texts.markup import hide_unread
from llm_kb.texts.outlines.outline import read_document
from llm_kb.texts.safe import visible_line

Problem: TypeAlias = tuple[str, tuple[int, int]]
"""What is wrong, and its place in a text."""

_MOST_FOLLOWED = 1_000
"""The most imports of a page that are followed, and pages whose anchors are read."""

_LINK = re.compile(
    r"(?:(?<!\\)\]\([ \t]{0,9}|^ {0,3}\[(?!\^)[^\[\]\n]{1,300}\]:[ \t]{0,9}"
    r"|<a\s(?:[^<>]{0,300}\s)?href=)"
    r"(?:<(?P<inner>[^<>\n]{1,300})>|[\"']?(?P<target>[^\s()<>\"']{1,300}))",
    re.IGNORECASE | re.MULTILINE,
)
"""Where a link of Markdown leads, in brackets of two kinds, in a definition or a tag."""

_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|[@/?]|[^{}]*[{}]", re.IGNORECASE)
"""How a target begins that is not a file beside the page, or has to be filled in."""

_UP = re.compile(r"((?:\.\./){2,}[^/]+)/")
"""The directory to which a target leads that climbs two levels or more."""

_MADE = re.compile(r"^(?:::: |import )|\{\{|\{%", re.MULTILINE)
"""Signs that a tool makes more headings of a page."""

_ID = re.compile(
    r"""(?:=(?:(?<=\bid=)|(?<=\bname=))["'{]{0,2}|\((?=[^()\n]{1,200}\)=)|\{[^{}#\n]{0,200}#"""
    r"""|:name:[ \t]{1,9})([^\s"'<>}]{1,200})"""
)
"""An anchor that is given a name: in a tag, `(name)=`, `{#name}` and the option of a directive.

Each begins with one sign, to which the search skips.
"""

_INNER_HEADING = re.compile(
    r"^(?=[ \t>*+\-\d])[ \t]{0,99}(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]{0,9}){0,9}#{1,6}[ \t]+([^\n]+)",
    re.MULTILINE,
)
"""A heading in a quotation, an item or an admonition, which is no section of the page."""

_OF_NO_HEADING = re.compile(
    r"[\W\d_]*|.*/.*|top|L\d{1,9}(?:-L?\d{1,9})?|[:^].*|(?:user-content-)?fn(?:ref)?\d{0,9}[:-].*",
    re.IGNORECASE,
)
"""Anchors of lines, the top, a routed page, a passage, a footnote, or of signs alone."""

_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]{1,300})\]:", re.MULTILINE)
"""Where a link of Markdown leads whose text is in brackets, which may be in brackets itself."""

_SHORTCODE = re.compile(
    r"\{\{[<%][ \t]{0,9}(?P<end>/?)[ \t]{0,9}(?P<name>[\w./-]{1,100})[^{}\n]*\}\}"
)
"""A tag of a template of Hugo; what is between two of them may be code."""

_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")
_LEARN = re.compile(
    r"""\blearn\(\s*(?:topic\s*[:=]\s*)?(["'])(?P<topic>[^"'\n]+)\1"""
    r"""(?:\s*,\s*(?:subjects\s*[:=]\s*)?(?P<subjects>\[[^\]]{0,2000}\]|"[^"\n]*"|'[^'\n]*'))?"""
)


class Links:
    """What the pages of some topics may lead to, each found once."""

    def __init__(self, kb: KnowledgeBase, topics: Sequence[OpenTopic]) -> None:
        self.kb = kb
        self._topics = topics
        self._targets: dict[str, tuple[LinkTargets, dict[str, str]]] = {}
        self._anchors: dict[str, frozenset[str] | None] = {}
        self._explained: dict[tuple[str, str], str] = {}
        """The reasons why calls of `learn` lead to no subject; empty if they lead to one."""

    @cached_property
    def _files(self) -> dict[str, tuple[OpenTopic, Subject]]:
        """The subjects of the topics, by their files."""
        return {
            f"{opened.config.root}{os.sep}{subject.path}": (opened, subject)
            for opened in self._topics
            for subject in opened.listing.subjects
        }

    def find_dangling(self, text: str, most: int) -> Iterator[Problem]:
        """Yield the calls of `learn` that lead to nothing; of different ones `most` are tried."""
        for reference, span in find_references(text):
            if reference not in self._explained and len(self._explained) < most:
                self._explained[reference] = self._explain(*reference)
            if problem := self._explained.get(reference):
                yield problem, span

    def _explain(self, topic: str, pattern: str) -> str:
        try:
            opened = self.kb.find_topic(topic)
            parsed = parse_pattern(pattern or "**")
        except KbError as error:
            return str(error)
        # A text may hold thousands of globs, so they are matched against one list.
        if not pattern or opened.topic.list(pattern).subjects:
            return ""
        is_found = any(parsed.matches(subject.slug) for subject in opened.listing.listed)
        return "" if is_found else str(NoMatchError(opened.config.id, pattern))

    def find_dead(self, opened: OpenTopic, path: str, text: str) -> Iterator[Problem]:
        """Yield what is wrong with each import and link in a text of a subject."""
        page, known = opened.config.root / path, find_format(path, text)
        yield from self._find_dead_imports(opened, path, text)
        signs = ("](", "[[", "]:", "href=")
        if known and known.is_markdown and any(sign in text for sign in signs):
            plain = hide_unread(text)
            yield from self._find_dead_targets(opened, plain, page, text)
            if "[[" in plain:
                yield from self._find_dead_names(opened, plain)

    def _find_dead_imports(self, opened: OpenTopic, path: str, text: str) -> Iterator[Problem]:
        directory = (opened.config.root / path).parent
        for each in islice(find_imports(text) if is_guide(path) else (), _MOST_FOLLOWED):
            if each.is_meant and os.path.normpath(directory / each.target) not in self._files:
                yield f"an import leads to no subject: @{each.target}", each.span

    def _find_dead_targets(
        self, opened: OpenTopic, plain: str, page: Path, text: str
    ) -> Iterator[Problem]:
        own, dead = os.path.normpath(page), set[str]()
        find_own = cache(partial(list_anchors, page.name, text))
        # ExDoc puts all pages into one directory.
        is_flat = _exists((self.kb.config.workspace or opened.config.root) / "mix.exs")
        for (target, anchor), span in _list_targets(plain).items():
            place = os.path.normpath(page.parent / target) if target else own
            if place != own and not _exists(place):
                up = _UP.match(target)
                # Such a directory is another site beside this one.
                is_elsewhere = up and not _exists(page.parent / up[1])
                if is_flat and "/" not in target:
                    is_elsewhere = len(self._find_in(opened, target)) == 1
                if target not in dead and not is_elsewhere:
                    yield f"a link leads to nothing: {visible_line(target)}", span
                dead.add(target)
            elif _lacks(anchor, find_own if place == own else partial(self._find_anchors, place)):
                yield f"a link leads to no heading: {visible_line(f'{target}#{anchor}')}", span

    def _find_dead_names(self, opened: OpenTopic, plain: str) -> Iterator[Problem]:
        """Yield what is wrong with each `[[name]]`, if one in the page leads to a subject."""
        names = _list_names(plain)
        found = {name: self._find_named(opened, name) for name, _ in names}
        if not any(found.values()):
            return  # it is another markup, or an example
        problems: dict[str, tuple[int, int]] = {}
        for (name, part), span in names.items():
            places = [*found[name]]
            if len(places) != 1:
                slugs = name_some(found[name].values())
                leads = f"several: {slugs}" if places else "nothing"
                problems.setdefault(f"[[{visible_line(name)}]] leads to {leads}", span)
            elif _lacks(part.rpartition("#")[2], partial(self._find_anchors, places[0])):
                problems[f"[[{visible_line(f'{name}#{part}')}]] leads to no heading"] = span
        yield from problems.items()

    def _find_named(self, opened: OpenTopic, name: str) -> dict[str, str]:
        """Return the files of the subjects that a name may mean, with their slugs."""
        topic, _, rest = name.partition("/")
        found = self._find_in(opened, name)
        other = self.kb.topics.get(topic) if rest else None
        return found or (self._find_in(other, rest) if other else {})

    def _find_in(self, opened: OpenTopic, name: str) -> dict[str, str]:
        id_ = opened.config.id
        if id_ not in self._targets:
            subjects = opened.listing.subjects
            files = {str(s.slug): f"{opened.config.root}{os.sep}{s.path}" for s in subjects}
            self._targets[id_] = LinkTargets(subjects), files
        targets, files = self._targets[id_]
        return {files[slug]: slug for slug in targets.find(name)}

    def _find_anchors(self, place: str) -> frozenset[str] | None:
        """Return the anchors of the page in a file; None if they are not known."""
        if place not in self._anchors:
            self._anchors[place] = None
            if place in self._files and len(self._anchors) <= _MOST_FOLLOWED:
                opened, subject = self._files[place]
                with suppress(UnreadableError):
                    text = present(subject, opened.topic.read(subject, MOST_BYTES)).body
                    self._anchors[place] = list_anchors(subject.path, text)
        return self._anchors[place]


def find_references(text: str) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """Yield topic and pattern of each `learn("topic", "pattern")` in a text, with its place.

    Without a pattern it is empty. Parts are left out.
    """
    for match in _LEARN.finditer(text) if "learn(" in text else ():
        for pattern in _QUOTED.findall(match["subjects"] or "") or [""]:
            yield (match["topic"], pattern.partition("#")[0]), match.span()


def _list_targets(plain: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the targets and anchors of links to pages, with the first place of each."""
    links: dict[tuple[str, str], tuple[int, int]] = {}
    for match in _LINK.finditer(plain):
        group = "inner" if match["inner"] else "target"
        written = unescape(match[group])
        target, _, anchor = written.partition("#")
        target = unquote(target.partition("?")[0])
        opening = plain.rfind("[", max(0, match.start() - 300), match.start())
        is_escaped = plain[match.start()] == "]" and plain[max(0, opening - 1)] == "\\"
        if not (is_escaped or _ELSEWHERE.match(written)) and (not target or _is_page(target)):
            links.setdefault((target, unquote(anchor)), match.span(group))
    return links


def _is_page(target: str) -> bool:
    known = find_format(target)
    is_written = known is not None and known.is_prose and not known.is_built
    return is_written and find_extension(target) != ""


def _list_names(plain: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the names and parts of links as wikis write them, with the first place of each."""
    names: dict[tuple[str, str], tuple[int, int]] = {}
    defined = set(_DEFINITION.findall(plain))
    tags = [*_SHORTCODE.finditer(plain)]
    inside = [
        (one.end(), other.start())
        for one, other in pairwise(tags)
        if other["end"] and one["name"] == other["name"]
    ]
    for match in WIKI_LINK.finditer(plain):
        name, at = match["name"], bisect_left(inside, match.span())
        is_code = at and match.start() < inside[at - 1][1]
        known = find_format(name)
        is_page = known is None or known.is_prose or not find_extension(name)
        # Without a letter it is a citation or a table.
        if is_page and not is_code and name not in defined and any(map(str.isalpha, name)):
            names.setdefault((name, (match["part"] or "")[1:]), match.span())
    return names


def _lacks(anchor: str, find: Callable[[], frozenset[str] | None]) -> bool:
    """Tell whether a page certainly has no such anchor, by all that it has, if that is known."""
    if not anchor or _OF_NO_HEADING.fullmatch(anchor) or (known := find()) is None:
        return False
    # Of several headings that are alike all but the first have a number.
    folded = _fold(anchor)
    return known.isdisjoint({folded, folded.rstrip("0123456789")})


def list_anchors(path: str, text: str) -> frozenset[str] | None:
    """Return the anchors of a page without case and signs; None if a tool may make more."""
    known = find_format(path, text)
    if known is None or not known.markup or _MADE.search(text):
        return None
    names = [part.anchor for part in read_document(path, text).sections]
    names += [name.rpartition("/")[2] for name in names]
    names += map(name_title, _INNER_HEADING.findall(text))
    return frozenset(map(_fold, [*names, *_ID.findall(text)]))


def _fold(anchor: str) -> str:
    return re.sub(r"[\W_]+", "", anchor.casefold())


def _exists(path: str | Path) -> bool:
    # `Path.exists` raises for a path that is too long.
    return os.path.exists(os.path.normpath(path))  # noqa: PTH110
