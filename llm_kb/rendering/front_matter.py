"""The texts in a file's front matter: YAML between `---`, TOML between `+++`.

Of YAML only what front matter uses for a line of text: top-level keys with a
plain, quoted or block scalar. A YAML library would cost more than all the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from llm_kb.files.toml import TomlError, decode_toml

_KEY = re.compile(r"""(["']?)([\w-]+)\1[ \t]*:(?:[ \t]+(.*))?$""")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}(?:[ \t]+#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)')
_SINGLE_QUOTED = re.compile(r"'((?:[^']|'')*)")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U(000[0-9A-Fa-f]{5})|(.))")
_NO_TEXT = tuple("[{&*!|>%@`")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "0": ""}


def read_front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """Return the texts of the top-level keys, and what stands below the front matter.

    Values that are no text are left out; malformed front matter holds none. One
    that the text ends within is read as far as it goes.
    """
    lines = text.splitlines()
    opening = lines[0].rstrip() if lines else ""
    if opening not in {"---", "+++"}:
        return {}, text
    closings = {opening, "..."} if opening == "---" else {opening}
    inside = list(takewhile(lambda line: line.rstrip() not in closings, lines[1:]))
    rest = lines[len(inside) + 2 :]
    found = _read_yaml(inside) if opening == "---" else _read_toml(inside)
    if not rest and not found:
        rest = inside  # a rule above prose, or nothing but front matter
    return found, "\n".join(rest)


def _read_toml(lines: Sequence[str]) -> dict[str, str]:
    try:
        table = decode_toml("\n".join(lines))
    except TomlError:
        return {}
    return {key: value for key, value in table.items() if isinstance(value, str)}


def _read_yaml(lines: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for index, line in enumerate(lines):
        key = _KEY.match(line)
        if key:
            text = _read_scalar((key[3] or "").strip(), lines[index + 1 :])
            if text:
                found[key[2]] = text
    return found


def _read_scalar(first: str, following: Sequence[str]) -> str:
    """Return a scalar that begins on the line of its key and goes on where lines are indented."""
    more = takewhile(lambda line: not line.strip() or line[0] in " \t", following)
    if _BLOCK.match(first):
        return "\n".join(line.strip() for line in more).strip()
    if first.startswith(('"', "'")):
        return _unquote(" ".join((first, *(line.strip() for line in more))))
    if first.startswith(_NO_TEXT):
        return ""
    words = " ".join(_COMMENT.sub("", line).strip() for line in (first, *more)).strip()
    return "" if words in {"~", "null"} else words


def _unquote(text: str) -> str:
    double = _DOUBLE_QUOTED.match(text)
    if double:
        return _ESCAPE.sub(_unescape, double[1])
    single = _SINGLE_QUOTED.match(text)
    return single[1].replace("''", "'") if single else ""


def _unescape(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        return chr(int(code, 16))
    return _CONTROLS.get(escape[4], escape[4])
