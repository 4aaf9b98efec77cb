"""The texts in a file's front matter: YAML between `---`, TOML between `+++`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile

from llm_kb.files.toml import TomlError, decode_toml

_KEY = re.compile(r"""(["']?)([\w-]+)\1[ \t]*:(?:[ \t]+(.*))?$""")
_NOT_TEXT = re.compile(r"[\[{*&!%@`]|[-?](?:\s|$)")
"""Beginnings of values that are not text; parsing these would take quadratic time."""

MOST_LINES = 500
"""Maximum number of lines of YAML that are read."""

_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_NULLS = frozenset({"~", "null", "Null", "NULL"})


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
    found = dict(_read_yaml(inside[:MOST_LINES])) if opening == "---" else _read_toml(inside)
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
    """Yield the top-level keys whose values are texts.

    Key by key, since one that is malformed must not cost the others: descriptions with
    an unquoted colon are common, and the text may be cut anywhere.
    """
    for index, line in enumerate(lines):
        key = _KEY.match(line)
        if key:
            following = takewhile(
                lambda line: not line.strip() or line[0] in " \t", lines[index + 1 :]
            )
            text = _read_value("\n".join(((key[3] or "").strip(), *following)))
            if text:
                yield key[2], text


def _read_value(value: str) -> str:
    """Return the text of a value, with its indented lines; empty for anything else."""
    if _NOT_TEXT.match(value.lstrip()):
        return ""
    # Imported only for front matter, since every command imports this module.
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415 - it comes without stubs

    # libyaml is ten times as fast, and comes with nearly every PyYAML.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # The events, not the objects: no alias is followed, no tag makes anything.
        *_, text, end = islice(yaml.parse(f"key: {value}", loader), 6)
    except (yaml.YAMLError, UnicodeError):
        return _plain_words(value)
    if not isinstance(text, yaml.ScalarEvent) or not isinstance(end, yaml.MappingEndEvent):
        return ""
    is_null = not text.style and text.value in _NULLS
    return "" if is_null else str(text.value).strip()


def _plain_words(value: str) -> str:
    """Return the readable part of a value that is not valid YAML."""
    words = " ".join(_COMMENT.sub("", line).strip() for line in value.split("\n")).strip()
    return words.lstrip("|>\"'")
