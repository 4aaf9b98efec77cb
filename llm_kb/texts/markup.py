"""What markups have in common. Pure."""

from __future__ import annotations

import re

_EMBEDDED = re.compile(
    r"(data:(?:image|audio|video|font|application)/[\w.+-]{1,60}(?:;[\w=.-]{1,60}){0,5},)"
    r"[^\s\"'()<>\[\]{}\\]{200,}",
)
"""The address of a picture or another file that is itself in the text."""


def hide_embedded(text: str) -> tuple[str, int]:
    """Return a text with a placeholder for each file embedded in it, and their number.

    Lines stay what they are.
    """
    return _EMBEDDED.subn(r"\1…", text) if "data:" in text else (text, 0)
