"""Formulas in a web page, as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from llm_kb.texts.html.tree import Element

_SIMPLE = re.compile(r"[+\-\u2212]?(?:\w+|\{.*\})?'*")
_ORDINALS = frozenset(
    {"st", "nd", "rd", "th", "er", "re", "e", "tm", "sm", "r", "c", "®", "™", "©"}
)
_SYMBOL = re.compile(r"(?:[A-Z][a-z]?|[)\]])$")
_MAX_POWER = 40


def raise_text(base: str, text: str, sign: str) -> str:
    """Return a power or an index after what it belongs to: `2^30`, `x_(i+1)`.

    Ordinals, signs, and the numbers in formulas of chemistry stay as they are.
    """
    inner = text.strip()
    if len(inner) > _MAX_POWER:
        return text
    is_free = not base or base[-1].isspace() or not (base[-1].isalnum() or base[-1] in ")]}`*_'")
    is_word = inner.lower() in _ORDINALS or not any(map(str.isalnum, inner))
    is_chemistry = sign == "_" and inner.isdigit() and _SYMBOL.search(base[-2:]) is not None
    if is_free or is_word or is_chemistry or "](" in inner:
        return text
    return f"{sign}{_grouped(inner)}"


def formula_text(math: Element) -> str:
    """Return a MathML formula as TeX, if it states that, else in one line."""
    tex = math.attributes.get("alttext", "").strip()
    for note in math.find_outermost("annotation"):
        if "tex" in note.attributes.get("encoding", "").lower():
            tex = note.line() or tex
    if not tex:
        return _linear(math)
    found = re.fullmatch(r"\{\\(?:display|text)style (.*)\}", tex)
    return as_tex(found[1] if found else tex, math.attributes.get("display") == "block")


def as_tex(text: str, is_display: bool) -> str:
    """Return a formula in TeX between the signs that Markdown has for it."""
    text = " ".join(text.split())
    mark = "$$" if is_display else "$"
    return f"{mark}{text}{mark}" if text else ""


def _linear(node: Element | str) -> str:
    """Return an element of MathML in one line."""
    if isinstance(node, str):
        return " ".join(node.split())
    if node.tag.startswith("annotation"):
        return ""
    parts = [
        text
        for child in node.children
        if (text := _linear(child)) or (isinstance(child, Element) and node.tag in _LAYOUTS)
    ]
    layout = _LAYOUTS.get(node.tag)
    if layout and len(parts) >= layout[0]:
        return layout[1](parts)
    return (" " if node.tag == "mtr" else "; " if node.tag == "mtable" else "").join(parts)


def _grouped(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"


_Layout = Callable[[Sequence[str]], str]
_LAYOUTS: dict[str, tuple[int, _Layout]] = {
    "msup": (2, lambda p: f"{p[0]}^{_grouped(p[1])}"),
    "mover": (2, lambda p: f"{p[0]}^{_grouped(p[1])}"),
    "msub": (2, lambda p: f"{p[0]}_{_grouped(p[1])}"),
    "munder": (2, lambda p: f"{p[0]}_{_grouped(p[1])}"),
    "msubsup": (3, lambda p: f"{p[0]}_{_grouped(p[1])}^{_grouped(p[2])}"),
    "munderover": (3, lambda p: f"{p[0]}_{_grouped(p[1])}^{_grouped(p[2])}"),
    "mfrac": (2, lambda p: f"{_grouped(p[0])}/{_grouped(p[1])}"),
    "msqrt": (1, lambda p: f"√({''.join(p)})"),
    "mroot": (2, lambda p: f"{_grouped(p[1])}√({p[0]})"),
}
