"""The characters that the name of a subject's file may have.

A usable name can be in a topic; a portable one can also be written on every system. The
plugin itself writes only portable names.
"""

from __future__ import annotations

import re

from llm_kb.texts.safe import UNUSABLE

FORBIDDEN_ON_WINDOWS = re.compile(r'[<>:"|?*\\]|[. ](?=/|$)')
"""Characters that Windows refuses in a name, and those it drops from a name's end."""

WINDOWS_DEVICE = re.compile(r"(?i)(?:^|/)(?:con|prn|aux|nul|com\d|lpt\d)(?=[./]|$)")
"""Names that Windows takes for a device, whatever the extension."""

MAX_NAME_BYTES = 250
"""The longest portable name; file systems allow 255 bytes."""


def find_flaw(name: str) -> str | None:
    """Return the reason why a name cannot be in a topic; None if it can."""
    if UNUSABLE.search(name):
        return "its name contains control, invisible or undecodable characters"
    if "\\" in name:
        return "its name contains a backslash, which no pattern may contain"
    return None if name.strip(".") else "its name consists of dots only"


def is_portable(name: str) -> bool:
    """Tell whether a file or directory of this name can be written on every system."""
    return not (
        not name
        or find_flaw(name)
        or FORBIDDEN_ON_WINDOWS.search(name)
        or WINDOWS_DEVICE.search(name)
        or len(name.encode()) > MAX_NAME_BYTES
    )
