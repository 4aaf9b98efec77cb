"""Finds the summary of a subject, one line, in its first bytes, and reads its front matter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, takewhile

from llm_kb.files.fields import TomlError, decode_toml
from llm_kb.rendering.plain_text import shorten
from llm_kb.texts.decoding import open_text
from llm_kb.texts.formats import Format, find_format
from llm_kb.texts.markup import COMMENT, LINK, TAG, mark_fenced, read_header_title
from llm_kb.texts.outlines.lines import find_purpose
from llm_kb.texts.outlines.markdown import outline_markdown
from llm_kb.texts.outlines.outline import outline_markup
from llm_kb.texts.safe import defuse, one_line

LONGEST_SUMMARY = 100
"""A summary has at most this many characters."""

LONGEST_LABEL = 80
"""A text beside a subject in a listing has at most this many characters."""

KEYS = ("description", "summary")
"""The keys of front matter that hold a summary, the better one first."""

_CODE_COMMENT = re.compile(r"""\s*(?:#+(?=\s)|//[/!]*|/\*+!?|--\[*|;+|%+|<!--|\(\*|"{3}|'{3})\s*""")
_CODE_COMMENT_END = re.compile(r"""(?:\*/|-->|\*\)|"{3}|'{3})$""")

_HEADING_MARK = re.compile(r"^ {0,3}#{1,6}[ \t]+")
_SAYS_NOTHING = re.compile(
    r"[\s#/*;%<!\"'-]*"
    r"(?:copyright\b|\(c\)|©|spdx-|licen[sc]ed? (?:under|to)\b|all rights reserved"
    r"|-\*-|vim:|eslint-|pylint:|coding[:=]|@(?:flow|ts-|license|copyright))",
    re.IGNORECASE,
)
"""Beginnings of lines that are alike in every file."""

_MDX_IMPORT = re.compile(r"(?:import|export)\s(?:.*\sfrom\s|\s*(?:[\"'{*]|default\s|const\s))")

_MARKUP = re.compile(r"[^\w\"'(\[*`:]|:[^:]+:(?:[ \t]|$)|__[ \t]")
"""Lines of another markup than Markdown that are not text: directives, fields, indented ones."""
_FIELDS = 1_000
"""Characters at the start of a text in which titles are looked for that are not headings."""

_RST_ROLE = re.compile(r":[\w.+-]+:`[!~]?([^`]*)`")


def summarize(data: bytes, path: str, slug: str = "", limit: int = LONGEST_SUMMARY) -> str:
    """Return the summary: from the front matter, else the first heading, else the first line.

    `data` is the start of a file and may end anywhere. A title or heading that only
    repeats the slug is skipped in favour of the first sentence below it. In a file that is
    not prose, by its format, only the first comment counts. Empty for a binary file or one
    without an informative line.
    """
    text = open_text(data, whole=False).text
    known = find_format(path, text)
    if known and (purpose := one_line(find_purpose(known.markup, text))):
        return shorten(purpose, limit)
    if known is None or not known.is_prose:
        return shorten(_first_comment(text), limit)
    found, rest = read_front_matter(text)
    summary = next(filter(None, (one_line(found.get(key, "")) for key in KEYS)), "")
    if not summary:
        lines = chain(
            [one_line(found.get("title", "") or "".join(read_header_title(rest)))],
            _prose_lines(rest, known),
        )
        summary = _choose(lines, _loosen(slug.rpartition("/")[2]))
    if not summary and known.is_built:
        summary = _first_comment(text)
    return shorten(summary, limit)


def find_label(data: bytes, path: str, slug: str) -> str:
    """Return the text beside a subject in a listing: a written summary, else a telling title.

    A title tells something if its letters are not those of the slug. Empty without one, and for
    what is not prose, by its format.
    """
    text = open_text(data, whole=False).text
    known = find_format(path, text)
    if known is None or not known.is_prose:
        return ""
    found, rest = read_front_matter(text)
    written = (one_line(found.get(key, "")) for key in KEYS)
    summary = next(filter(None, written), "")
    if not summary:
        title = _find_title(found, rest, known)
        names = {_loosen(slug), _loosen(slug.rpartition("/")[2])}
        summary = "" if _loosen(title) in names else title
    return shorten(defuse(summary), LONGEST_LABEL)


def find_title(text: str, path: str) -> str:
    """Return the title of prose: what it is by its name, in front matter, or its first heading."""
    known = find_format(path, text)
    if known is None or not known.is_prose or known.converter:
        return ""
    return _find_title(*read_front_matter(text), known)


def _find_title(found: Mapping[str, str], rest: str, known: Format) -> str:
    is_markdown = known.is_markdown or known.is_plain_text
    # Nearly always it is in the first lines, which take much less time than all.
    first = rest[:_FIELDS] + rest[_FIELDS:].partition("\n")[0]
    starts = [first, rest]
    if known.is_plain_text:  # an underlined line further down is that of a part
        del starts[1]
    outlines = (
        outline_markdown(text) if is_markdown else outline_markup(known.markup, text)
        for text in starts
    )
    headings = (each.title for outline in outlines for each in outline.sections[:1])
    written = found.get("title", "") or "".join(read_header_title(rest))
    named = (find_purpose(known.markup, rest), written)
    titles = chain(named, headings)
    return next(filter(_has_words, map(_plain, titles)), "")


def _choose(lines: Iterable[str], name: str) -> str:
    """Return the first line that does not just repeat a name; else the name as written."""
    first = ""
    for line in lines:
        first = first or line
        if line and _loosen(line) != name:
            return line
    return first


def _loosen(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _prose_lines(text: str, known: Format) -> Iterator[str]:
    """Yield the first title of a text, then the other lines with words."""
    # What is called plain text is in most cases Markdown.
    is_markdown = known.is_markdown or known.is_plain_text
    text = COMMENT.sub("", text) if is_markdown else text
    if text.lstrip().startswith(("{", "[{")):
        return
    outline = outline_markdown(text) if is_markdown else outline_markup(known.markup, text)
    titles = dict.fromkeys(_plain(each.title) for each in outline.sections)
    yield from list(filter(_has_words, titles))[:1]
    for is_code, line in mark_fenced(text.splitlines()):
        is_other = is_code or _MDX_IMPORT.match(line) if is_markdown else _MARKUP.match(line)
        if _has_words(line) and not is_other and not _SAYS_NOTHING.match(line):
            words = _plain(_HEADING_MARK.sub("", line))
            if _has_words(words) and words not in titles:
                yield words


def _plain(line: str) -> str:
    """Return a line without HTML tags, images, roles and the targets of links."""
    line = _RST_ROLE.sub(r"\1", line[: 8 * LONGEST_SUMMARY])
    for _ in range(2):  # a picture may be the text of a link
        line = LINK.sub(lambda link: "" if link[0].startswith("!") else link[1], line)
    return one_line(TAG.sub("", line))


def _first_comment(text: str) -> str:
    """Return the first line of a comment with words, without the marks around it."""
    for line in text.splitlines():
        mark = _has_words(line) and _CODE_COMMENT.match(line)
        if mark and not _SAYS_NOTHING.match(line):
            return one_line(_CODE_COMMENT_END.sub("", line[mark.end() :].rstrip()))
    return ""


def _has_words(line: str) -> bool:
    return any(map(str.isalnum, line))


# Front matter: YAML between `---`, TOML between `+++`

_KEY = re.compile(r"""(["']?)([\w-]+)\1[ \t]*:(?:[ \t]+(.*))?$""")
_NOT_TEXT = re.compile(
    r"\[(?:[^\]]*|.*\])$|\{(?:[^}]*|.*\})$|\*[\w-]+$|[&!][^\s]*(?:\s|$)|[-?](?:\s|$)|(?:~|null)$",
    re.IGNORECASE,
)
"""Values that are not text: lists, tables, references. `[Beta] x` and `**Bold** x` are text."""

_BLOCK = re.compile(r"[|>][-+0-9]*(?:[ \t]+#.*)?$")
_QUOTED = re.compile(r"'((?:[^']|'')*)'[ \t]*(?:#.*)?$")
_NOTHING_MORE = re.compile(r"[ \t]*(?:#.*)?$")
_YAML_COMMENT = re.compile(r"(?:^|[ \t])#.*")


def read_front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """Return the texts of the top-level keys, and the text below the front matter.

    Values that are not text are left out. Of malformed front matter, the readable part is
    returned, and of front matter that the text ends within, the part that is there.
    """
    lines = text.splitlines()
    opening = lines[0].rstrip() if lines else ""
    if opening not in {"---", "+++"}:
        return {}, text
    closings = {opening, "..."} if opening == "---" else {opening}
    inside = list(takewhile(lambda line: line.rstrip() not in closings, lines[1:]))
    rest = lines[len(inside) + 2 :]
    found = dict(_read_yaml(inside)) if opening == "---" else _read_toml(inside)
    if not rest and not found:
        rest = inside  # a rule above prose, or nothing but front matter
    return found, "\n".join(rest)


def _read_toml(lines: Sequence[str]) -> dict[str, str]:
    try:
        table = decode_toml("\n".join(lines))
    except TomlError:
        return {}
    return {key: value for key, value in table.items() if isinstance(value, str)}


def _read_yaml(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the top-level keys whose values are texts, each on one line.

    Not with a parser, since one malformed key must not cost the others: descriptions with
    an unquoted colon are common, and the text may be cut anywhere.
    """
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if key := _KEY.match(line):
            found.append((key[2], [(key[3] or "").strip()]))
        elif found and (not line.strip() or line[0] in " \t"):
            found[-1][1].append(line.strip())
        else:
            found.append(("", [""]))  # it belongs to no key, nor does what is below it
    texts = ((name, _read_value(value)) for name, value in found if name)
    yield from ((name, text) for name, text in texts if text)


def _read_value(lines: Sequence[str]) -> str:
    """Return the text of a value, of which the first line may be empty; empty if it is not text."""
    if _BLOCK.match(lines[0].strip("\"'")) and len(lines) > 1:
        return " ".join(filter(None, lines[1:]))
    text = " ".join(filter(None, lines))
    if _NOT_TEXT.match(text):
        return ""
    if text.startswith('"'):
        with suppress(ValueError):  # the escapes are those of JSON, but for a few
            value, end = json.JSONDecoder(strict=False).raw_decode(text)
            if _NOTHING_MORE.match(text, end):
                return str(value).strip()
    if quoted := _QUOTED.match(text):
        return quoted[1].replace("''", "'").strip()
    plain = (_YAML_COMMENT.sub("", line).strip() for line in lines)
    return _unquote(" ".join(filter(None, plain)))


def _unquote(text: str) -> str:
    """Return a text without the quotes around it, of which the last may be cut off."""
    quote = text[:1]
    if quote not in {'"', "'"}:
        return text
    return text.strip(quote) if text.endswith(quote) or text.count(quote) == 1 else text
