"""The characters and extensions that the name of a subject's file may have.

A usable name can be in a topic; a portable one can also be written on every system. The
plugin itself writes only portable names.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec

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


_KINDS = """
png jpg jpeg gif webp bmp ico icns tif tiff psd eps svg avif heic xcf pxm sketch drawio excalidraw
ttf otf woff woff2 eot mp3 wav ogg flac m4a mp4 mov avi mkv webm
zip gz tgz bz2 xz zst 7z rar tar jar whl exe dll so dylib o class pyc pyo wasm bin
doc epub xls xlsx ppt pptx odt ods odp db sqlite sqlite3 parquet npy npz pkl pickle inv typed
"""
_NEVER_TEXT = frozenset(_KINDS.split())
"""Extensions of files that are not text, or not text for readers."""


DOCUMENTS = frozenset({"pdf", "docx"})
"""Extensions of documents that can be read as Markdown, with the extra `documents`."""

NOTEBOOK = "ipynb"
CONVERTED = DOCUMENTS | {NOTEBOOK}
"""Extensions of files that are read as Markdown: lines are those of that."""

INSTALL = "llm install 'llm-kb[documents]'"
"""The command that makes documents readable."""


def find_extension(path: str) -> str:
    """Return the last extension of a file without its dot, in lower case; empty without one."""
    stem, dot, extension = path.rpartition("/")[2].lstrip(".").rpartition(".")
    return extension.lower() if dot and stem else ""


def is_readable(path: str) -> bool:
    """Tell by its extension whether a file may be text; listings and menus omit others."""
    extension = find_extension(path)
    return extension not in _NEVER_TEXT and (extension not in DOCUMENTS or can_convert())


def is_unread_document(path: str) -> bool:
    """Tell whether a file is a document, and the extra `documents` is not installed."""
    return find_extension(path) in DOCUMENTS and not can_convert()


@cache
def can_convert() -> bool:
    """Tell whether the extra `documents` is installed."""
    return all(find_spec(name) for name in ("pypdf", "mammoth"))
